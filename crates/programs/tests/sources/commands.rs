//! Commands that print.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::machine::Machine;

fn follow(machine: &Machine, command: &str) -> crate::program::Followed {
    machine.set_text("command", command);
    machine.follow(&["os", "value"], "os.system(value.get_str(\"command\")->value)")
}

fn wait_for_end(pid: &str) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while Path::new("/proc").join(pid).exists() {
        assert!(Instant::now() < deadline, "process {pid} lives on");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn each_line_is_a_value_and_the_last_one_stays() {
    let machine = Machine::new();
    let fifo = machine.path("fifo");
    let mut line = follow(
        &machine,
        &format!("mkfifo {fifo}; echo first; read _ <{fifo}; echo noise >&2; echo last; exit 3"),
    );
    assert_eq!(line.first().as_deref(), Ok("\"first\""));
    std::fs::write(&fifo, "go\n").unwrap();
    line.becomes("\"last\"");
}

#[test]
fn a_command_without_output_has_no_value_and_holds_up_nobody() {
    let machine = Machine::new();
    let mut line = follow(&machine, "exec sleep 1000");
    assert!(line.is_pending());
    machine.set_text("command", "echo now");
    line.becomes("\"now\"");
}

#[test]
fn another_command_ends_the_process_group_of_the_old_one() {
    let machine = Machine::new();
    // The child's child, in the background, writes its own number.
    let mut line = follow(&machine, "sh -c 'sleep 1000 & echo $!; wait'");
    let sleeper = line.first().unwrap().trim_matches('"').to_owned();
    assert!(Path::new("/proc").join(&sleeper).exists());
    machine.set_text("command", "while sleep 0.2; do date +%s%N; done");
    line.until("another line", |now| {
        now.as_ref().is_ok_and(|text| text.len() > 15)
    });
    wait_for_end(&sleeper);
    line.changes();
    line.until("the next line", |_| true);
    let before = line.now().unwrap();
    line.until("the next line", |now| now.as_ref() != Ok(&before));
}

#[test]
fn the_end_of_the_program_ends_its_commands() {
    let machine = Machine::new();
    let mut line = follow(&machine, "sh -c 'sleep 1000 & echo $!; wait'");
    let sleeper = line.first().unwrap().trim_matches('"').to_owned();
    drop(line);
    wait_for_end(&sleeper);
}
