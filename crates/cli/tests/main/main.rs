//! Tests of the command line and of everything put together.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests and their steps read and write files, start processes, and print what they measured"
)]

mod accounts;
mod augeas;
mod book;
mod checking;
mod cluster;
mod cluster_tutorial;
mod command_line;
mod commands;
mod control;
mod control_socket;
mod core_library;
mod cron;
mod debug_output;
mod deploy_tar;
mod drawing;
mod elections;
mod end_to_end;
mod ending;
mod error_pages;
mod events;
mod every_day;
mod exec;
mod exports;
mod firewalld;
mod firmware;
mod firstboot;
mod function_examples;
mod function_system;
mod function_walk_through;
mod fwupd;
mod gates;
mod groups;
mod grow;
mod growing;
mod gsettings;
mod host_kinds;
mod hostile;
mod hung_file_system;
mod included_programs;
mod jobs;
mod json_edit;
mod jumping_clock;
mod killed;
mod kind;
mod known_files;
mod language_server;
mod linter;
mod machine_names;
mod mcl_functions;
mod messages;
mod metrics;
mod mistakes;
mod mixed_use;
mod model_modules;
mod model_tutorial;
mod models;
mod modules;
mod mount;
mod neovim;
mod net;
mod package_managers;
mod packages;
mod plan;
mod planned_programs;
mod plugins;
#[path = "../../../programs/tests/sources/program.rs"]
#[allow(dead_code, reason = "the tests of sources use all of it")]
mod program;
mod reference;
mod relations;
mod scheduling;
mod screens;
mod secrets;
mod service;
mod setup;
mod several_hosts;
mod staying_right;
mod svc;
mod trust;
mod undoing;
mod validation;
mod yaml;
