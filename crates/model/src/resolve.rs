//! Trees of all loaded files to one [`crate::hir::Model`]: definitions are collected whatever their order, then names in bodies are resolved.
