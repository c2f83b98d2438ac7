//! The engine with real threads, tasks, watches and files, and kinds made for it.

mod kinds;
mod lifecycle;
mod repairs;
mod rig;
