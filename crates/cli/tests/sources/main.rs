//! Sources against what really changes them.
