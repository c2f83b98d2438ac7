//! What a project is made of: its settings, where modules are looked for, and which files are loaded.
