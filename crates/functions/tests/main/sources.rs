//! Sources: a first value, one more for each change outside, and nothing left behind.

use std::net::IpAddr;
use std::time::Duration;

use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::{CallError, Exported, Interface, Map, Type, Value};

use crate::machine::{follow, follow_as, once, text};

fn catchable(result: Result<Value, CallError>) -> bool {
    result.expect_err("a failure").is_catchable()
}

/// Whether it is refused in a way that nothing catches, at once or as its first answer.
fn refused(result: Result<crate::machine::Followed, CallError>) -> bool {
    let first = result.and_then(|mut followed| followed.first());
    first.err().is_some_and(|error| !error.is_catchable())
}

#[test]
fn time_passes_each_second_and_ends_with_the_subscription() {
    let machine = SimulatedCapabilities::new();
    let mut now = follow(&machine, "datetime.now", &[]).expect("open");
    assert_eq!(now.first(), Ok(Value::Int(1_000_000_000)));
    assert_eq!(now.after(999), None);
    assert_eq!(now.after(1), Some(Ok(Value::Int(1_000_000_001))));
    assert_eq!(once(&machine, "datetime.str_now", &[]), Ok(text("1000000001")));
    drop(now);
    assert_eq!(machine.live_watches(), 0);
}

#[test]
fn times_are_those_of_the_machines_zone() {
    let machine = SimulatedCapabilities::new();
    machine.set_zone(Some("Europe/Berlin"));
    let at = Value::Int(1_000_000_000);
    assert_eq!(
        once(&machine, "datetime.hour", std::slice::from_ref(&at)),
        Ok(Value::Int(3))
    );
    assert_eq!(
        once(&machine, "datetime.print", std::slice::from_ref(&at)),
        Ok(text("2001-09-09 03:46:40 +0200 CEST"))
    );
    assert_eq!(
        once(&machine, "datetime.weekday", std::slice::from_ref(&at)),
        Ok(text("sunday"))
    );
    assert_eq!(
        once(&machine, "datetime.format", &[at, text("Jan 2")]),
        Ok(text("Sep 9"))
    );
    assert!(!catchable(once(&machine, "datetime.hour", &[Value::Int(-1)])));
    assert_eq!(
        once(&machine, "datetime.hour", &[Value::Int(i64::MAX)]),
        Ok(Value::Int(16))
    );
}

#[test]
fn the_weekday_changes_at_midnight_and_only_then() {
    let machine = SimulatedCapabilities::new();
    let mut weekday = follow(&machine, "datetime.weekday_fast", &[]).expect("open");
    assert_eq!(weekday.first(), Ok(text("sunday")));
    // 01:46:40 UTC, so 22 h 13 min 20 s are left.
    let left = Duration::from_secs(22 * 3600 + 13 * 60 + 20);
    assert_eq!(machine.next_timer(), Some(left));
    assert_eq!(weekday.after(80_000_000 - 1), None);
    assert_eq!(weekday.after(1), Some(Ok(text("monday"))));
    assert_eq!(weekday.after(86_400_000), Some(Ok(text("tuesday"))));
}

#[test]
fn a_file_is_followed_through_all_that_can_happen_to_it() {
    let machine = SimulatedCapabilities::new();
    let mut content = follow(&machine, "os.readfile", &[text("/etc/app/motd")]).expect("open");
    assert!(catchable(content.first()));
    machine.set_file("/etc/app/motd", "one");
    assert_eq!(content.news(), Some(Ok(text("one"))));
    machine.set_file("/etc/app/motd", "one");
    assert_eq!(content.news(), None);
    machine.set_file("/etc/app/motd", "two");
    assert_eq!(content.news(), Some(Ok(text("two"))));
    machine.remove_file("/etc/app");
    assert!(content.news().is_some_and(catchable));
    machine.set_file("/other", "x");
    assert_eq!(content.news(), None);
    content.update(&[text("/other")]).expect("a path may change");
    assert_eq!(content.news(), Some(Ok(text("x"))));
    machine.set_file("/etc/app/motd", "gone from sight");
    assert_eq!(content.news(), None);
    assert_eq!(machine.live_watches(), 1);
    // What cannot be the content of a file can be caught like a missing one.
    assert!(catchable(once(&machine, "os.readfile", &[text("/etc")])));
    assert!(catchable(once(&machine, "os.readfile", &[text("relative")])));
    assert!(catchable(once(&machine, "os.readfile", &[text("")])));
}

#[test]
fn existence_follows_links_and_users() {
    let machine = SimulatedCapabilities::new();
    let mut exists = follow(&machine, "os.file_exists", &[text("/a/b")]).expect("open");
    assert_eq!(exists.first(), Ok(Value::Bool(false)));
    machine.set_link("/a/b", "/target");
    assert_eq!(exists.news(), None);
    machine.set_directory("/a/b");
    assert_eq!(exists.news(), Some(Ok(Value::Bool(true))));
    let mut user = follow(&machine, "os.user_exists", &[text("ann")]).expect("open");
    assert_eq!(user.first(), Ok(Value::Bool(false)));
    machine.set_user("ann", 1000, "/home/ann");
    machine.set_file("/etc/passwd", "ann");
    assert_eq!(user.news(), Some(Ok(Value::Bool(true))));
    assert_eq!(once(&machine, "os.uid", &[text("ann")]), Ok(text("1000")));
    assert_eq!(once(&machine, "os.home", &[text("ann")]), Ok(text("/home/ann/")));
    assert!(catchable(once(&machine, "os.home", &[text("bob")])));
    assert!(!catchable(once(&machine, "os.uid", &[text("bob")])));
    for (path, expected) in [
        ("~ann/x/", "/home/ann/x/"),
        ("~/x", "/root/x"),
        ("/a/~ann/", "/a/~ann/"),
        ("~", "/root"),
    ] {
        assert_eq!(
            once(&machine, "os.expand_home", &[text(path)]),
            Ok(text(expected)),
            "{path}"
        );
    }
}

#[test]
fn the_newest_line_of_a_command_is_its_value() {
    let machine = SimulatedCapabilities::new();
    let mut lines = follow(&machine, "os.system", &[text("count")]).expect("open");
    assert_eq!(lines.subscription.take(), None);
    machine.print_line("count", "1");
    machine.print_line("count", "2");
    assert_eq!(lines.news(), Some(Ok(text("2"))));
    machine.end_command("count", "exit status 0");
    assert_eq!(lines.news(), None);
    lines.update(&[text("other")]).expect("a command may change");
    assert_eq!(lines.news(), None);
    machine.print_line("count", "3");
    assert_eq!(lines.news(), None);
    machine.print_line("other", "x");
    assert_eq!(lines.news(), Some(Ok(text("x"))));
    // One that ends without a line will never have a value.
    lines.update(&[text("silent")]).expect("a command may change");
    machine.end_command("silent", "exit status 3");
    let error = lines.news().expect("its end is an answer");
    assert_eq!(
        error.as_ref().map_err(ToString::to_string),
        Err("the command ended without printing a line (exit status 3)".to_owned())
    );
    assert!(catchable(error));
    assert_eq!(lines.news(), None, "one report is enough");
    drop(lines);
    assert_eq!(machine.live_watches(), 0);
    let looking = machine.without_effects();
    assert!(catchable(once(&looking, "os.system", &[text("count")])));
}

#[test]
fn the_machine_tells_about_itself() {
    let machine = SimulatedCapabilities::new();
    machine.set_file("/sys/devices/system/cpu/online", "0-3,6\n");
    machine.set_file("/etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n");
    machine.set_file("/etc/debian_version", "12");
    machine.set_file("/proc/cpuinfo", "flags: hypervisor");
    machine.set_file("/proc/modules", "ext4 1 2 - Live\n");
    machine.set_environment("A", Some(""));
    assert_eq!(once(&machine, "sys.cpu_count", &[]), Ok(Value::Int(5)));
    let ty = Type::parse("struct{id str; variant_id str; version_id str}").expect("a type");
    assert_eq!(
        once(&machine, "os.release", &[]),
        Ok(Value::structure(ty, vec![text("debian"), text(""), text("12")]))
    );
    assert_eq!(once(&machine, "os.family", &[]), Ok(text("debian")));
    assert_eq!(once(&machine, "os.is_family_redhat", &[]), Ok(Value::Bool(false)));
    assert_eq!(once(&machine, "os.is_virtual", &[]), Ok(Value::Bool(true)));
    assert_eq!(
        once(&machine, "os.modinfo_loaded", &[text("ext4")]),
        Ok(Value::Bool(true))
    );
    assert_eq!(
        once(&machine, "os.modinfo_loaded", &[text("ext")]),
        Ok(Value::Bool(false))
    );
    assert_eq!(once(&machine, "sys.getenv", &[text("A")]), Ok(text("")));
    assert!(catchable(once(&machine, "sys.getenv", &[text("B")])));
    assert_eq!(once(&machine, "sys.hasenv", &[text("B")]), Ok(Value::Bool(false)));
    let map = Map::new(Type::Str, Type::Str, [(text("A"), text(""))]);
    assert_eq!(once(&machine, "sys.env", &[]), Ok(Value::Map(map)));
    let mut uptime = follow(&machine, "sys.uptime", &[]).expect("open");
    assert_eq!(uptime.first(), Ok(Value::Int(1000)));
    assert_eq!(uptime.after(1000), Some(Ok(Value::Int(1001))));
    let mut hostname = follow(&machine, "sys.hostname", &[]).expect("open");
    assert_eq!(hostname.first(), Ok(text("host1")));
    machine.set_system_hostname("other");
    assert_eq!(hostname.news(), Some(Ok(text("other"))));
    let mut reboot = follow(&machine, "sys/fwupd.reboot_needed", &[]).expect("open");
    assert_eq!(reboot.first(), Ok(Value::Bool(false)));
    machine.set_firmware_reboot(true);
    assert_eq!(reboot.news(), Some(Ok(Value::Bool(true))));
}

fn interface(index: u32, name: &str, up: bool, mac: Option<[u8; 6]>, addresses: &[&str]) -> Interface {
    Interface {
        index,
        name: name.to_owned(),
        loopback: name == "lo",
        up,
        mac,
        addresses: addresses
            .iter()
            .map(|a| (a.parse::<IpAddr>().expect("an address"), 24))
            .collect(),
    }
}

#[test]
fn interfaces_are_followed() {
    let machine = SimulatedCapabilities::new();
    let mac = [0, 0x11, 0x22, 0xaa, 0xbb, 0xcc];
    let loopback = interface(1, "lo", true, Some([0; 6]), &["127.0.0.1"]);
    let wireless = interface(2, "wlan0", true, Some(mac), &[]);
    let down = interface(
        3,
        "eth0",
        false,
        Some(mac),
        &["fe80::1", "169.254.0.1", "10.0.0.5"],
    );
    machine.set_file("/sys/class/net/wlan0/wireless/x", "");
    machine.set_interfaces(vec![loopback.clone()]);
    let mut wired = follow(&machine, "net.wired_interface", &[]).expect("open");
    assert!(catchable(wired.first()));
    machine.set_interfaces(vec![loopback, wireless, down]);
    assert_eq!(wired.news(), Some(Ok(text("eth0"))));
    assert_eq!(
        once(&machine, "net.macs", &[]),
        Ok(Value::strings(["00:11:22:aa:bb:cc", "00:11:22:aa:bb:cc"]))
    );
    assert_eq!(
        once(&machine, "net.interface_cidr", &[text("eth0")]),
        Ok(text("10.0.0.5/24"))
    );
    assert!(catchable(once(&machine, "net.interface_cidr", &[text("wlan0")])));
    assert!(catchable(once(&machine, "net.interface_cidr", &[text("none")])));
    let names = Value::Map(Map::new(
        Type::Str,
        Type::Str,
        [(text("00:11:22:aa:bb:cc"), text("me"))],
    ));
    assert_eq!(once(&machine, "util.hostname_mapper", &[names]), Ok(text("me")));
}

#[test]
fn a_random_text_stays_until_its_length_changes() {
    let machine = SimulatedCapabilities::new();
    let mut random = follow(&machine, "random1", &[Value::Int(8)]).expect("open");
    let first = random.first().expect("a text");
    let letters = first.as_str().expect("text").to_lossy().into_owned();
    assert!(
        letters.len() == 8 && letters.bytes().all(|b| b.is_ascii_alphabetic()),
        "{letters}"
    );
    let other = once(&machine, "random1", &[Value::Int(8)]).expect("a text");
    assert_ne!(first, other);
    random.update(&[Value::Int(8)]).expect("the same");
    assert_eq!(random.news(), None);
    random.update(&[Value::Int(3)]).expect("another length");
    assert!(
        random
            .news()
            .is_some_and(|r| r.is_ok_and(|v| v.as_str().is_some_and(|s| s.len() == 3)))
    );
    random.update(&[Value::Int(-1)]).expect("taken");
    assert!(random.news().is_some_and(|r| !catchable(r)));
    assert_eq!(once(&machine, "random1", &[Value::Int(0)]), Ok(text("")));
    assert!(!catchable(once(&machine, "random1", &[Value::Int(65_536)])));
}

#[test]
fn history_tells_what_was_and_wakes_when_that_changes() {
    let machine = SimulatedCapabilities::new();
    let mut history = follow(&machine, "history", &[Value::Int(1), Value::Int(3000)]).expect("open");
    assert_eq!(history.first(), Ok(Value::Int(1)));
    assert_eq!(machine.live_watches(), 0);
    for value in 2..=4 {
        assert!(history.after(1000).is_none());
        history
            .update(&[Value::Int(value), Value::Int(3000)])
            .expect("another value");
        // The oldest there is, as long as nothing is old enough.
        assert_eq!(history.news(), Some(Ok(Value::Int(1))));
    }
    // At 4 s the 2 of second 1 is 3 s old.
    assert_eq!(history.after(999), None);
    assert_eq!(history.after(1), Some(Ok(Value::Int(2))));
    assert_eq!(history.after(1000), Some(Ok(Value::Int(3))));
    assert_eq!(history.after(1000), Some(Ok(Value::Int(4))));
    assert_eq!(machine.live_watches(), 0);
    history
        .update(&[Value::Int(9), Value::Int(0)])
        .expect("another delay");
    assert_eq!(history.news(), Some(Ok(Value::Int(9))));
    assert!(refused(follow(
        &machine,
        "history",
        &[Value::Int(1), Value::Int(-1)]
    )));
}

#[test]
fn a_value_that_changes_all_the_time_is_remembered_in_bounds() {
    let machine = SimulatedCapabilities::new();
    let mut history = follow(&machine, "history", &[Value::Int(0), Value::Int(10_000_000)]).expect("open");
    for value in 0..50_000 {
        machine.advance(Duration::from_millis(1));
        history
            .update(&[Value::Int(value), Value::Int(10_000_000)])
            .expect("another value");
    }
    assert_eq!(history.first(), Ok(Value::Int(0)));
}

#[test]
fn values_of_the_host_have_a_type_and_a_key_that_stays() {
    let machine = SimulatedCapabilities::new();
    let ty = |value: &str| Type::parse(&format!("struct{{value {value}; ready bool}}")).expect("a type");
    let answer = |value: Value, ready: bool| {
        Ok(Value::structure(
            ty(&value.ty().to_string()),
            vec![value, Value::Bool(ready)],
        ))
    };
    let mut port = follow(&machine, "value.get_int", &[text("port")]).expect("open");
    assert_eq!(port.first(), answer(Value::Int(0), false));
    machine.set_value("port", Some(Value::Int(80)));
    assert_eq!(port.news(), Some(answer(Value::Int(80), true)));
    machine.set_value("other", Some(Value::Int(1)));
    assert_eq!(port.news(), None);
    machine.set_value("port", Some(text("80")));
    assert!(port.news().is_some_and(|r| !catchable(r)));
    machine.set_value("port", None);
    assert_eq!(port.news(), Some(answer(Value::Int(0), false)));
    assert!(port.update(&[text("changed")]).is_err_and(|e| !e.is_catchable()));
    machine.set_value("list", Some(Value::strings(["a"])));
    let mut any = follow_as(&machine, "value.get", &[text("list")], &ty("[]str")).expect("open");
    assert_eq!(any.first(), answer(Value::strings(["a"]), true));
    assert!(refused(follow(&machine, "value.get_str", &[text("")])));
}

#[test]
fn the_world_is_followed_by_key() {
    let machine = SimulatedCapabilities::new();
    let ty = Type::parse("struct{value str; exists bool}").expect("a type");
    let answer = |value: &str, exists| {
        Ok(Value::structure(
            ty.clone(),
            vec![text(value), Value::Bool(exists)],
        ))
    };
    let mut value = follow(&machine, "world.getval", &[text("k")]).expect("open");
    assert_eq!(value.first(), answer("", false));
    machine.set_world_string("k", Some("v"));
    assert_eq!(value.news(), Some(answer("v", true)));
    assert!(value.update(&[text("other")]).is_err());

    let mut hosts = follow(&machine, "world.kvlookup", &[text("ns")]).expect("open");
    assert_eq!(hosts.first(), Ok(Value::Map(Map::new(Type::Str, Type::Str, []))));
    machine.set_world_string_of("ns", "h1", Some("1"));
    let one = Map::new(Type::Str, Type::Str, [(text("h1"), text("1"))]);
    assert_eq!(hosts.news(), Some(Ok(Value::Map(one))));

    let mut schedule = follow(&machine, "world.schedule", &[text("ns")]).expect("open");
    assert_eq!(schedule.first(), Ok(Value::list(Type::Str, [])));
    machine.set_schedule("ns", &["h2", "h3"]);
    assert_eq!(schedule.news(), Some(Ok(Value::strings(["h2", "h3"]))));

    machine.set_kinds(&["file"]);
    let mut exports = follow(&machine, "world/collect.res", &[text("file")]).expect("open");
    let element = Type::parse("struct{name str; host str}").expect("a type");
    assert_eq!(exports.first(), Ok(Value::list(element.clone(), [])));
    machine.set_exports(
        "file",
        vec![Exported {
            name: "/a".to_owned(),
            host: "h1".to_owned(),
            data: String::new().into(),
        }],
    );
    let item = Value::structure(element.clone(), vec![text("/a"), text("h1")]);
    assert_eq!(exports.news(), Some(Ok(Value::list(element, [item]))));
    assert!(refused(follow(&machine, "world/collect.res", &[text("nosuch")])));
    assert!(refused(follow(&machine, "world.getval", &[text("")])));
}

#[test]
fn answers_of_requests_are_followed() {
    let machine = SimulatedCapabilities::new();
    let ty = Type::parse("struct{status int; output str}").expect("a type");
    let mut response = follow(&machine, "net/http.response", &[text("u")]).expect("open");
    let answer = |status, body| Ok(Value::structure(ty.clone(), vec![Value::Int(status), text(body)]));
    assert_eq!(response.first(), answer(0, ""));
    machine.set_response("u", 200, "hi");
    assert_eq!(response.news(), Some(answer(200, "hi")));
    assert!(response.update(&[text("v")]).is_err());
    assert!(refused(follow(&machine, "net/http.response", &[text("")])));
}

#[test]
fn the_deploy_is_read_from_the_modules_own_directory() {
    let machine = SimulatedCapabilities::new();
    machine.set_deploy_file("/modules/a/files/x", "x");
    machine.set_deploy_file("/modules/a/files/d/y", "y");
    machine.set_deploy_file("/main.mcl", "m");
    let ask = |name: &str, path: &str| once(&machine, &format!("deploy.{name}"), &[text(path)]);
    assert_eq!(ask("abspath", ""), Ok(text("/modules/a/")));
    assert_eq!(ask("abspath", "/files/x"), Ok(text("/modules/a/files/x")));
    assert!(!catchable(ask("abspath", "files")));
    assert_eq!(ask("readfile", "/files/x"), Ok(text("x")));
    assert!(!catchable(ask("readfile", "/main.mcl")));
    assert_eq!(ask("readfileabs", "/main.mcl"), Ok(text("m")));
    assert_eq!(ask("file_exists", "/files/x"), Ok(Value::Bool(true)));
    assert_eq!(ask("file_exists", "/main.mcl"), Ok(Value::Bool(true)));
    assert_eq!(ask("file_exists", "/none"), Ok(Value::Bool(false)));
    machine.set_plain_file(true);
    let error = ask("readfile", "/none").expect_err("missing").to_string();
    assert!(error.contains("metadata.yaml"), "{error}");
}

#[test]
fn a_directory_of_the_deploy_is_mirrored() {
    let machine = SimulatedCapabilities::new();
    machine.set_deploy_file("/modules/a/files/x", "x");
    machine.set_deploy_file("/modules/a/files/d/y", "y");
    let target = "/var/lib/setpoint/local/vardir/directory/modules/a/files/";
    machine.set_file(&format!("{target}old/z"), "z");
    machine.set_file(&format!("{target}x"), "changed");
    let looking = machine.without_effects();
    assert_eq!(
        once(&looking, "deploy.directory", &[text("/files/")]),
        Ok(text(target))
    );
    assert!(machine.file_paths().contains(&format!("{target}old/z")));
    assert_eq!(
        once(&machine, "deploy.directory", &[text("/files/")]),
        Ok(text(target))
    );
    assert_eq!(
        machine.file_paths(),
        [format!("{target}d/y"), format!("{target}x")]
    );
    assert_eq!(
        once(&machine, "os.readfile", &[text(&format!("{target}x"))]),
        Ok(text("x"))
    );
    for bad in ["files/", "/files", "/../"] {
        assert!(
            !catchable(once(&machine, "deploy.directory", &[text(bad)])),
            "{bad}"
        );
    }
}

#[test]
fn numbers_of_a_pool_stay_and_differ() {
    let machine = SimulatedCapabilities::new();
    let ask = |uid: &str| once(&machine, "local.pool", &[text("ns"), text(uid)]);
    assert_eq!(ask("a"), Ok(Value::Int(1)));
    assert_eq!(ask("b"), Ok(Value::Int(2)));
    assert_eq!(ask("a"), Ok(Value::Int(1)));
    assert_eq!(
        once(&machine, "local.pool", &[text("other"), text("b")]),
        Ok(Value::Int(1))
    );
    let looking = machine.without_effects();
    assert_eq!(
        once(&looking, "local.pool", &[text("ns"), text("c")]),
        Ok(Value::Int(3))
    );
    assert_eq!(ask("d"), Ok(Value::Int(3)));
    for bad in ["", "a/b", ".."] {
        assert!(!catchable(ask(bad)), "{bad}");
    }
    assert_eq!(
        once(&machine, "local.vardir", &[text("x/y/")]),
        Ok(text("/var/lib/setpoint/local/vardir/functions/x/y/"))
    );
    for bad in ["", "/", "/x/", "x", "../", "x/../../y/"] {
        assert!(!catchable(once(&machine, "local.vardir", &[text(bad)])), "{bad}");
    }
}

#[test]
fn options_of_the_provisioner_have_their_defaults() {
    let machine = SimulatedCapabilities::new();
    let ask = |name: &str| once(&machine, &format!("embedded/provisioner.{name}"), &[]);
    assert_eq!(ask("cli_part"), Ok(text("plain")));
    assert_eq!(ask("cli_dns"), Ok(Value::list(Type::Str, [])));
    assert_eq!(ask("cli_luks"), Ok(Value::Bool(true)));
    assert_eq!(
        ask("cli_version").expect_err("no default").to_string(),
        "func `embedded/provisioner.cli_version()` has nil value"
    );
    machine.set_provisioner_option("cli_version", text("42"));
    assert_eq!(ask("cli_version"), Ok(text("42")));
}

#[test]
fn go_sees_the_process_and_the_machine() {
    let machine = SimulatedCapabilities::new();
    machine.set_environment("PATH", Some("/bin:/usr/bin::."));
    machine.set_environment("HOME", Some("/root"));
    machine.set_program("/usr/bin/ls", "");
    machine.set_file("/bin/ls", "no program");
    machine.set_link("/l", "/bin/ls");
    assert_eq!(
        once(&machine, "golang/os/exec.look_path", &[text("ls")]),
        Ok(text("/usr/bin/ls"))
    );
    assert!(catchable(once(
        &machine,
        "golang/os/exec.look_path",
        &[text("none")]
    )));
    assert_eq!(
        once(&machine, "golang/os.readlink", &[text("/l")]),
        Ok(text("/bin/ls"))
    );
    assert_eq!(
        once(&machine, "golang/path/filepath.eval_symlinks", &[text("/l")]),
        Ok(text("/bin/ls"))
    );
    assert_eq!(
        once(&machine, "golang/os.expand_env", &[text("$HOME/x")]),
        Ok(text("/root/x"))
    );
    assert_eq!(
        once(&machine, "golang/os.user_cache_dir", &[]),
        Ok(text("/root/.cache"))
    );
    assert_eq!(once(&machine, "golang/os.temp_dir", &[]), Ok(text("/tmp")));
    assert_eq!(once(&machine, "golang/os.getpid", &[]), Ok(Value::Int(100)));
    assert!(catchable(once(&machine, "golang/os.read_file", &[text("/none")])));
    let made = once(&machine, "golang/os.mkdir_temp", &[text(""), text("a*b")]).expect("a directory");
    let made = made.as_str().expect("text").to_lossy().into_owned();
    assert!(made.starts_with("/tmp/a") && made.ends_with('b'), "{made}");
    assert_eq!(
        once(&machine, "os.file_exists", &[text(&made)]),
        Ok(Value::Bool(true))
    );
    assert!(catchable(once(
        &machine,
        "golang/os.mkdir_temp",
        &[text(""), text("a/b")]
    )));
    let drawn = once(&machine, "golang/math/rand.intn", &[Value::Int(10)]).expect("a number");
    assert!((0..10).contains(&drawn.as_int().expect("an int")));
    assert!(!catchable(once(
        &machine,
        "golang/math/rand.intn",
        &[Value::Int(0)]
    )));
    assert!(catchable(once(&machine, "golang/runtime.read_trace", &[])));
}

#[test]
fn sources_for_tests_alternate_and_count() {
    let machine = SimulatedCapabilities::new();
    let mut flip = follow(&machine, "example.flipflop", &[]).expect("open");
    assert_eq!(flip.first(), Ok(Value::Bool(true)));
    assert_eq!(flip.after(5000), Some(Ok(Value::Bool(false))));
    assert_eq!(flip.after(5000), Some(Ok(Value::Bool(true))));
    let mut list = follow(&machine, "test.forloop", &[]).expect("open");
    assert_eq!(list.first(), Ok(Value::strings(["foo"])));
    assert_eq!(list.after(5000), Some(Ok(Value::strings(["bar"]))));
    let mut count = follow(&machine, "test.fastcount", &[]).expect("open");
    assert_eq!(count.first(), Ok(Value::Int(0)));
    assert_eq!(count.after(1), Some(Ok(Value::Int(1))));
    let mut stream = follow(&machine, "test.one_stream", &[Value::Int(2)]).expect("open");
    assert_eq!(stream.first(), Ok(text("xx")));
    assert!(stream.update(&[Value::Int(3)]).is_err());
    let mut slow = follow(&machine, "test.slow_string", &[]).expect("open");
    assert_eq!(slow.subscription.take(), None);
    assert_eq!(slow.after(5000), Some(Ok(text("five seconds has elapsed"))));
}

#[test]
fn an_error_about_a_sensitive_argument_does_not_show_it() {
    let machine = SimulatedCapabilities::new();
    for name in ["os.readfile", "sys.getenv", "golang/os.read_file"] {
        let argument = text("/canary").sensitive();
        let mut source = follow_as(&machine, name, &[argument], &Type::Str).expect("open");
        let error = source.first().expect_err("missing").to_string();
        assert!(!error.contains("canary"), "{name}: {error}");
    }
}
