//! The end of a program leaves nothing behind.

use std::time::{Duration, Instant};

use crate::machine::Machine;
use setpoint_testing::place::Place;

/// Threads, descriptors and children of this process.
fn own() -> [usize; 3] {
    let count = |path: &str| std::fs::read_dir(path).unwrap().count();
    let task = format!("/proc/self/task/{}/children", std::process::id());
    let children = std::fs::read_to_string(task).unwrap_or_default();
    [
        count("/proc/self/task"),
        count("/proc/self/fd"),
        children.split_whitespace().count(),
    ]
}

/// What the threads are called, and what the descriptors are of.
fn names() -> String {
    let entries = |path: &str| {
        std::fs::read_dir(path)
            .unwrap()
            .flatten()
            .map(|entry| entry.path())
    };
    let threads =
        entries("/proc/self/task").map(|path| std::fs::read_to_string(path.join("comm")).unwrap_or_default());
    let descriptors = entries("/proc/self/fd").filter_map(|path| std::fs::read_link(path).ok());
    let threads: Vec<String> = threads.map(|name| name.trim_end().to_owned()).collect();
    format!("{threads:?} {:?}", descriptors.collect::<Vec<_>>())
}

/// The threads that a process keeps, beside the one of the runner and that of the test.
const STAYING: [&str; 5] = ["watches", "store", "start commands", "guardian", "bus"];

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: {:?}\n{}", own(), names());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn nothing_is_left_of_any_source() {
    Place::process("teardown::nothing_is_left_of_any_source").run(|| {
        let machine = Machine::new();
        let path = machine.path("d/file");
        let everything = [
            format!("os.readfile(\"{path}\") <|> \"\""),
            format!("fmt.printf(\"%t\", os.file_exists(\"{path}\"))"),
            "fmt.printf(\"%t\", os.user_exists(\"root\"))".to_owned(),
            "fmt.printf(\"%t\", os.modinfo_loaded(\"loop\"))".to_owned(),
            "os.system(\"while sleep 0.1; do echo tick; done\")".to_owned(),
            "datetime.str_now()".to_owned(),
            "datetime.weekday_fast()".to_owned(),
            "fmt.printf(\"%d\", sys.cpu_count())".to_owned(),
            "fmt.printf(\"%d\", sys.uptime())".to_owned(),
            "fmt.printf(\"%v\", sys.load()->x1)".to_owned(),
            "sys.hostname()".to_owned(),
            "fmt.printf(\"%t\", fwupd.reboot_needed())".to_owned(),
            "fmt.printf(\"%v\", net.macs())".to_owned(),
            "net.interface_cidr(\"no\") <|> \"\"".to_owned(),
            "net.wired_interface() <|> \"\"".to_owned(),
            "value.get_str(\"key\")->value".to_owned(),
            "world.getval(\"key\")->value".to_owned(),
            "fmt.printf(\"%v\", world.kvlookup(\"key\"))".to_owned(),
            "fmt.printf(\"%v\", world.schedule(\"key\"))".to_owned(),
            "fmt.printf(\"%v\", collect.res(\"file\"))".to_owned(),
            "http.response(\"uid\")->output".to_owned(),
            "history(datetime.str_now(), 1000)".to_owned(),
            "random1(8)".to_owned(),
        ];
        let imports = [
            "os",
            "fmt",
            "datetime",
            "sys",
            "sys/fwupd",
            "net",
            "net/http",
            "value",
            "world",
            "world/collect",
        ];
        // What a process keeps once it has had any runtime, has started a command and has been at a bus: the pair of sockets by which signals
        // are passed on, the thread that commands are bound to, and that of the bus, which others may need again.
        drop(tokio::runtime::Builder::new_current_thread().enable_all().build());
        let mut command = machine.follow(&["os"], "os.system(\"echo\")");
        command.first().unwrap();
        drop(command);
        let mut bus = machine.follow(&["sys"], "sys.hostname()");
        bus.first().unwrap();
        drop(bus);
        // The thread of what was followed ends after it was dropped, and closes its descriptors before: what is left is counted when only
        // those threads are there that stay.
        let mut before = own();
        wait_until("the first command and the bus's first reader have ended", || {
            let is_the_same = before == own() && before[0] == STAYING.len() + 2 && before[2] == 0;
            before = own();
            is_the_same
        });
        let mut all = machine.follow(&imports, &format!("[{},]", everything.join(", ")));
        all.first().unwrap();
        let watched = machine.host.watches.statistics().paths;
        assert!(
            watched > 5 && own() > before,
            "they are at work: {watched} {:?}",
            own()
        );
        drop(all);
        wait_until("nothing is watched", || {
            machine.host.watches.statistics().paths == 0
        });
        wait_until(&format!("everything has ended, as before: {before:?}"), || {
            own() == before
        });
    });
}
