//! The manual's pages of the commands, man-pages(7).

use std::path::Path;

use clap_mangen::Man;
use setpoint_host::files::{AbsolutePath, Committer, Entry, Replace};
use setpoint_programs::failure::Failure;

use super::super::all_commands;

/// Writes a page for each command.
pub(super) fn write(directory: &Path) -> Result<(), Failure> {
    let failed = |why: &dyn std::fmt::Display| {
        Failure::wrong(format!("failed to write the pages to {}", directory.display())).because(why)
    };
    let absolute = std::path::absolute(directory)
        .map_err(|error| failed(&setpoint_programs::failure::system_text(&error)))
        .and_then(|path| AbsolutePath::new(path).map_err(|error| failed(&error)))?;
    Entry::create_directories(&absolute, 0o755, 0o755).map_err(|error| failed(&error))?;
    let mut pages = Vec::new();
    for command in all_commands() {
        let name = command
            .get_display_name()
            .unwrap_or(command.get_name())
            .to_owned();
        let page = Man::new(command)
            .title(name.to_uppercase())
            .section("1")
            .source(format!("setpoint {}", env!("CARGO_PKG_VERSION")))
            .manual("Setpoint");
        let mut text = Vec::new();
        page.render(&mut text).expect("memory takes everything");
        pages.push(Replace::bytes(absolute.join(format!("{name}.1")), text));
    }
    for written in Committer::new().replace_many(pages) {
        written.map_err(|error| failed(&error))?;
    }
    Ok(())
}
