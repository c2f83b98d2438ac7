//! What calls, casts, operators and templates do with values: everything that needs no waiting.
