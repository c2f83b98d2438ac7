//! The engine with real threads, tasks, watches and files, and kinds made for it.

mod exports;
mod groups;
mod inquiries;
mod kinds;
mod lifecycle;
mod repairs;
mod rig;
