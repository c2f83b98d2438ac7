//! The kind `msg`, with the journal of a machine of its own.

use setpoint_testing::Hermetic;

use crate::end_to_end::run_command;
use setpoint_testing::place::{Place, shell};

const PROGRAM: &str = "\
msg \"hello\" {
	body => \"first line\\nsecond line\",
	priority => \"Warning\",
	journal => true,
	fields => {\"GREETING\" => \"to the journal\",},
}
msg \"old\" {
	body => \"to syslog\",
	priority => \"Err\",
	syslog => true,
}
";

#[test]
fn the_journal_has_what_it_is_told() {
    let test = "messages::the_journal_has_what_it_is_told";
    Place::machine(test).needing(&["journalctl"]).run(|| {
        let place = Hermetic::new();
        let main = place.write("main.mcl", PROGRAM);
        let main = main.to_str().expect("the place has a plain name");
        let run = |arguments: &[&str]| {
            let output = run_command(&place, arguments)
                .output()
                .expect("the program can be started");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        };
        // What was handed over is in the journal's files when this returns.
        let found = |field: &str| shell(&format!("journalctl --sync; journalctl -o cat -q {field}"));
        run(&["--once", "--noop", main]);
        assert_eq!(found("'GREETING=to the journal'"), "");
        run(&["--once", main]);
        assert_eq!(
            found("'GREETING=to the journal' PRIORITY=4"),
            "first line\nsecond line"
        );
        assert_eq!(
            found("'SETPOINT_RESOURCE=msg[hello]' SYSLOG_IDENTIFIER=setpoint"),
            "first line\nsecond line"
        );
        assert_eq!(
            found("SYSLOG_IDENTIFIER=setpoint _TRANSPORT=syslog PRIORITY=3"),
            "to syslog"
        );
    });
}
