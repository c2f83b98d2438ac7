//! Tests on the real machine: temporary directories, inotify, child processes.

mod files;
mod place;
mod tree;
