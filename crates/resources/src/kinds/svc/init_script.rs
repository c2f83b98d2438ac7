//! Services whose unit systemd generates from a script in `/etc/init.d`. Links in the directories of the run levels enable them, which
//! `systemctl` sets through the tools of the distribution.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use setpoint_engine::{Apply, Failure};
use setpoint_host::processes::{Command, Environment, Stop};

use crate::unit_control::Startup;

/// The directories of the run levels in which a machine usually works.
const RUN_LEVELS: [&str; 8] = [
    "/etc/rc2.d",
    "/etc/rc3.d",
    "/etc/rc4.d",
    "/etc/rc5.d",
    "/etc/rc.d/rc2.d",
    "/etc/rc.d/rc3.d",
    "/etc/rc.d/rc4.d",
    "/etc/rc.d/rc5.d",
];

/// Whether a script starts with the machine; none if there is no script of this name.
pub(super) fn is_enabled(name: &str) -> Option<bool> {
    let script = Path::new("/etc/init.d").join(name);
    script.is_file().then_some(())?;
    let starts_it = |link: &str| {
        let order = link.strip_prefix('S').and_then(|rest| rest.strip_suffix(name));
        order.is_some_and(|order| order.len() == 2 && order.bytes().all(|sign| sign.is_ascii_digit()))
    };
    let mut links = RUN_LEVELS
        .iter()
        .filter_map(|directory| std::fs::read_dir(directory).ok())
        .flat_map(Iterator::flatten);
    Some(links.any(|link| link.file_name().to_str().is_some_and(starts_it)))
}

/// Enables or disables a script.
///
/// # Errors
/// The output of `systemctl`.
pub(super) async fn set(name: &str, wanted: Startup, apply: &Apply<'_>) -> Result<(), Failure> {
    let (_, verb) = wanted.word_and_verb();
    let path = ("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into());
    let command = Command::new(
        "systemctl",
        vec![OsString::from(verb), OsString::from(format!("{name}.service"))],
    );
    let command = command.environment(Environment::Exactly(BTreeMap::from([path])));
    let cancellation = apply.cancellation();
    let stop = Stop {
        cancel: cancellation.token().clone(),
        interrupt: cancellation.interrupt_token().clone(),
        ..Stop::default()
    };
    let failed = || Failure::new(verb).on(name);
    let finished = apply.handle().services().processes.run(&command, &stop).await;
    let finished = finished.map_err(|error| failed().because(error))?;
    match finished.exit.is_success() {
        true => Ok(()),
        false => Err(failed().because(
            String::from_utf8_lossy(&finished.output.stderr())
                .trim()
                .to_owned(),
        )),
    }
}
