//! Instances whose entities are bound to a kind become a desired graph.
