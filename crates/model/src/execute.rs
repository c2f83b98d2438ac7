//! Executes a resolved model as a dataflow: a statement runs when the values that it needs exist, whatever the order of the text.
