//! The core library, row by row: each function's value, and the class of each failure, through compiler and evaluator.

use std::collections::BTreeSet;
use std::fmt::Write;

use setpoint::Assembly;
use setpoint_graph::Library;
use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::{Exported, Interface, Value};

use crate::program::{Followed, compile_with, rendered};

const ROWS: &str = include_str!("core_library.txt");

/// Name and signature of each function of the reference.
const SIGNATURES: &str = include_str!("../../../functions/tests/signatures.tsv");

/// What no expression can call, because it is a statement, which has cases of its own.
const STATEMENTS: &[&str] = &["panic"];

/// What has no value where nothing is changed, no sound and no Go.
pub(crate) const NO_VALUE: &[&str] = &[
    "example.vumeter",
    "golang/os.mkdir_temp",
    "golang/runtime.cpu_profile",
    "golang/runtime.read_trace",
    "golang/runtime.stack",
    "os.system",
];

/// The machine that the rows are about.
pub(crate) fn machine() -> SimulatedCapabilities {
    let machine = SimulatedCapabilities::new();
    machine.set_now(std::time::Duration::from_secs(1_000_000_000));
    machine.set_zone(Some("UTC"));
    for (path, content) in [
        ("/etc/motd", "hello"),
        ("/etc/debian_version", "12"),
        ("/etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n"),
        ("/proc/cpuinfo", "flags : hypervisor"),
        ("/proc/modules", "loop 1 0 - Live 0x0\n"),
        ("/sys/devices/system/cpu/online", "0-3\n"),
    ] {
        machine.set_file(path, content);
    }
    machine.set_link("/link", "/etc/motd");
    machine.set_program("/usr/bin/ls", "");
    for (name, value) in [
        ("SET", "x"),
        ("EMPTY", ""),
        ("D", "%d"),
        ("DD", "%d %d"),
        ("Y", "a%y"),
        ("PAREN", "("),
        ("PATH", "/bin:/usr/bin"),
        ("HOME", "/root"),
    ] {
        machine.set_environment(name, Some(value));
    }
    machine.set_arguments(&["setpoint", "run"]);
    machine.set_system_hostname("machine.example");
    machine.set_load([0.5, 0.25, 0.125]);
    machine.set_user("root", 0, "/root");
    machine.set_user("", 0, "/root");
    machine.set_user("guest", 1000, "/home/guest");
    machine.set_deploy_file("/x", "of x");
    machine.set_deploy_file("/files/y", "of y");
    machine.set_deploy_file("/files/motd", "hello");
    machine.set_deploy_file("/main.mcl", "");
    let interface = |index: u32, name: &str, up: bool, loopback: bool| Interface {
        index,
        name: name.to_owned(),
        loopback,
        up,
        mac: (!loopback).then(|| [0, 0, 0, 0, 0, u8::try_from(index).expect("few interfaces")]),
        addresses: up
            .then(|| ([10, 0, 0, 5].into(), 24))
            .filter(|_| !loopback)
            .into_iter()
            .collect(),
    };
    machine.set_interfaces(vec![
        interface(9, "lo", true, true),
        interface(1, "eth0", false, false),
        interface(2, "eth1", true, false),
    ]);
    machine.set_value("int", Some(Value::Int(7)));
    machine.set_world_string("key", Some("v"));
    machine.set_world_string_of("ns", "a", Some("1"));
    machine.set_schedule("ns", &["a", "b"]);
    machine.set_kinds(&["file"]);
    machine.set_exports(
        "file",
        vec![Exported {
            name: "/x".to_owned(),
            host: "a".to_owned(),
            data: String::new().into(),
        }],
    );
    machine.without_effects()
}

/// Expression and what is expected of it, with the number of its line.
fn rows() -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    ROWS.lines().enumerate().filter_map(|(index, line)| {
        let (expression, expected) = line.split_once(" ==> ")?;
        (!line.starts_with('#')).then_some((index + 1, expression, expected))
    })
}

/// The modules that an expression calls, by what stands before the dot.
fn imports(expression: &str) -> String {
    let mut text = String::new();
    for module in setpoint_functions::MODULES
        .iter()
        .filter(|module| !module.name.is_empty())
    {
        let alias = match module.name.starts_with("golang/") {
            true => module.name.replace('/', "_"),
            false => module.name.rsplit('/').next().unwrap_or_default().to_owned(),
        };
        let mentioned = expression.match_indices(&format!("{alias}.")).any(|(at, _)| {
            !expression[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
        });
        if mentioned {
            let last = module.name.rsplit('/').next().unwrap_or_default();
            let renamed = if alias == last {
                String::new()
            } else {
                format!(" as {alias}")
            };
            let _ = writeln!(text, "import \"{}\"{renamed}", module.name);
        }
    }
    text
}

/// What comes of an expression: its value as it is written, a code of the compiler, or the text of a failure.
fn outcome(expression: &str, library: &Library) -> Result<String, String> {
    let code = format!(
        "{}test \"value\" {{ interface => {expression}, }}\n",
        imports(&format!("{expression} "))
    );
    let text = compile_with(&code, library);
    if text.compiled.program.is_none() {
        let code = text.diagnostics.iter().next().map(|d| d.code.code);
        return Ok(code.unwrap_or("no program").to_owned());
    }
    assert!(
        !text.diagnostics.has_errors(),
        "{}",
        rendered(&text.diagnostics, &text.sources)
    );
    let mut followed = Followed::start(text, machine().shared());
    if followed.is_pending() {
        return Ok("waits".to_owned());
    }
    followed.now()
}

#[test]
fn every_row_of_the_core_library_gives_what_it_says() {
    let library = Assembly::standard().library("host.example");
    let mut wrong = String::new();
    let mut count = 0;
    for (line, expression, expected) in rows() {
        count += 1;
        let found = outcome(expression, &library);
        let caught = |class: &str| {
            let expression = format!("fmt.printf(\"%v\", {expression}) <|> \"caught\"");
            match (class, outcome(&expression, &library)) {
                ("C", Ok(text)) if text == "\"caught\"" => None,
                ("F", Err(_)) => None,
                (_, other) => Some(format!("under a fallback {other:?}")),
            }
        };
        let problem = match (expected.split_once(": "), found) {
            (Some((class @ ("C" | "F"), message)), Err(text)) if text.contains(message) => caught(class),
            (_, Ok(text)) if text == expected => None,
            (_, found) => Some(format!("{found:?}")),
        };
        if let Some(problem) = problem {
            let _ = writeln!(wrong, "{line}: {expression} ==> {expected}\n    is {problem}");
        }
    }
    assert!(count > 400, "only {count} rows");
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn every_function_has_a_row() {
    let registry = setpoint_functions::registry();
    let names: Vec<String> = registry.iter().map(ToString::to_string).collect();
    let without: BTreeSet<&str> = names
        .iter()
        .map(String::as_str)
        .filter(|name| !STATEMENTS.contains(name))
        .filter(|name| {
            let written = match name.rsplit_once('.') {
                None => (*name).to_owned(),
                Some((module, function)) if module.starts_with("golang/") => {
                    format!("{}.{function}", module.replace('/', "_"))
                }
                Some((module, function)) => {
                    format!("{}.{function}", module.rsplit('/').next().unwrap_or_default())
                }
            };
            !rows().any(|(_, expression, expected)| {
                let is_failure = expected.starts_with("C: ") || expected.starts_with("F: ");
                (!is_failure || NO_VALUE.contains(name)) && expression.contains(&format!("{written}("))
            })
        })
        // mcl has no bytes to give them.
        .filter(|name| !name.starts_with("cty.bytes_"))
        // Options of a command, all of one form.
        .filter(|name| !name.starts_with("embedded/provisioner.cli_"))
        .collect();
    assert!(without.is_empty(), "{without:?}");
}

/// Functions that templates do not have although their types are closed: what is no plain function in the reference.
const NOT_IN_TEMPLATES: &[&str] = &[
    "datetime.now",
    "datetime.str_now",
    "datetime.weekday_fast",
    "deploy.abspath",
    "deploy.directory",
    "deploy.file_exists",
    "deploy.readfile",
    "deploy.readfileabs",
    "example.flipflop",
    "example.vumeter",
    "fmt.printf",
    "golang.template",
    "iter.range",
    "local.pool",
    "local.vardir",
    "math.fortytwo",
    "net.macs",
    "net.interface_cidr",
    "net.wired_interface",
    "net/http.response",
    "os.file_exists",
    "os.modinfo_loaded",
    "os.readfile",
    "os.system",
    "os.user_exists",
    "panic",
    "random1",
    "sys.cpu_count",
    "sys.hostname",
    "sys.load",
    "sys.uptime",
    "sys/fwupd.reboot_needed",
    "test.fastcount",
    "test.forkvloop",
    "test.forloop",
    "test.one_instance_a",
    "test.one_instance_c",
    "test.one_instance_e",
    "test.one_instance_g",
    "test.one_stream",
    "test.slow_string",
    "value.get_bool",
    "value.get_float",
    "value.get_int",
    "value.get_str",
    "world.getval",
    "world.kvlookup",
    "world.schedule",
    "world/collect.res",
];

#[test]
fn templates_have_every_plain_function_and_no_other() {
    let library = Assembly::standard().library("host.example");
    let mut wrong = Vec::new();
    for row in SIGNATURES.lines().skip(1) {
        let (name, signature) = row.split_once('\t').unwrap();
        let (module, function) = name.rsplit_once('.').unwrap_or(("", name));
        let is_plain = !signature.contains('?') && !NOT_IN_TEMPLATES.contains(&name);
        let written = format!("{}_{function}", module.replace('/', "_"));
        // Known names are looked for when the template is read, whether or not they are called.
        let template = format!("golang.template(\"{{{{ if false }}}}{{{{ {written} }}}}{{{{ end }}}}\")");
        let is_known = match outcome(&template, &library) {
            Ok(_) => true,
            Err(text) => !text.contains(&format!("function \"{written}\" not defined")),
        };
        if is_known != is_plain {
            wrong.push(written);
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Follows the value of an expression on a machine.
fn follow(machine: &SimulatedCapabilities, expression: &str) -> Followed {
    let code = format!(
        "{}test \"value\" {{ interface => {expression}, }}\n",
        imports(expression)
    );
    let library = Assembly::standard().library("host.example");
    Followed::start(compile_with(&code, &library), machine.shared())
}

#[test]
fn a_lambda_that_captures_the_time_is_evaluated_each_second() {
    let machine = machine();
    let mut list = follow(&machine, "iter.map([1, 2,], func($x) { $x + datetime.now() })");
    assert_eq!(list.now().as_deref(), Ok("[1000000001, 1000000002]"));
    machine.advance(std::time::Duration::from_secs(1));
    assert_eq!(list.now().as_deref(), Ok("[1000000002, 1000000003]"));
    assert_eq!(list.changes(), 2);
}

#[test]
fn elements_keep_their_state_when_a_list_grows_or_shrinks() {
    let machine = machine();
    let names = |names: &[&str]| Some(Value::strings(names.iter().copied()));
    machine.set_value("names", names(&["a", "b"]));
    let expression =
        "iter.map(value.get(\"names\")->value, func($x) { fmt.printf(\"%s%s\", $x, random1(8)) })";
    let mut list = follow(&machine, expression);
    let elements = |text: Result<String, String>| -> Vec<String> {
        text.unwrap()
            .split(['[', ']', ',', ' '])
            .filter(|s| !s.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let two = elements(list.now());
    machine.set_value("names", names(&["a", "b", "c"]));
    let three = elements(list.now());
    assert_eq!((three.len(), &three[..2]), (3, &two[..]));
    machine.set_value("names", names(&["a"]));
    assert_eq!(elements(list.now()), two[..1]);
    machine.set_value("names", names(&["a", "z"]));
    let changed = elements(list.now());
    assert_eq!(changed[0], two[0]);
    assert!(changed[1].starts_with("\"z"), "{changed:?}");
}

#[test]
fn a_random_text_belongs_to_its_call_site_and_length() {
    let machine = machine();
    machine.set_value("length", Some(Value::Int(8)));
    let mut texts = follow(
        &machine,
        "[random1(value.get_int(\"length\")->value), random1(value.get_int(\"length\")->value), datetime.str_now(),]",
    );
    let parts = |text: Result<String, String>| -> Vec<String> {
        text.unwrap()
            .split('"')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect()
    };
    let first = parts(texts.now());
    assert!(
        first[..2]
            .iter()
            .all(|text| text.len() == 8 && text.bytes().all(|b| b.is_ascii_alphabetic()))
    );
    assert_ne!(first[0], first[1]);
    machine.advance(std::time::Duration::from_secs(1));
    let later = parts(texts.now());
    assert_eq!(first[..2], later[..2]);
    assert_ne!(first[2], later[2]);
    machine.set_value("length", Some(Value::Int(9)));
    let longer = parts(texts.now());
    assert_eq!(longer[0].len(), 9);
    assert_ne!(longer[0][..8], first[0]);
}
