//! What holds for every function and every kind when all parts are put together.

use std::process::Command;

use setpoint::Assembly;
use setpoint_graph::{ParameterType, json, text};
use setpoint_simulated::SimulatedCapabilities;
use setpoint_value::{CallContext, CallError, Module, Type, function};

use crate::program::{Followed, code, compile_code, compile_with, rendered};

/// A module as somebody adds one.
static MODULE: Module = Module::new("greetings", "Greetings.", &[&HELLO, &EXPLODE, &FRAGILE]);

/// A greeting for somebody.
///
/// Nobody is greeted as a stranger.
#[function(example(call = r#"greetings.hello("you")"#, result = r#""hello, you""#))]
fn hello(
    /// The name of the person to greet.
    name: &str,
) -> Result<String, CallError> {
    if name.is_empty() {
        return Err(CallError::catchable("there is nobody to greet"));
    }
    Ok(format!("hello, {name}"))
}

/// Goes wrong.
#[function]
fn explode(
    /// Any text.
    name: &str,
) -> String {
    panic!("a bug about {}", name.len())
}

/// Goes wrong later.
#[function(environment)]
fn fragile(context: &CallContext<'_>) -> String {
    panic!("a bug about {}", context.capabilities.host().page_size())
}

fn assembly() -> Assembly {
    Assembly::standard().with_module(&MODULE)
}

fn follow(expression: &str) -> Followed {
    let library = assembly().library("host.example");
    let text = compile_with(&code(&["greetings", "fmt", "sys"], expression), &library);
    let machine = SimulatedCapabilities::new();
    machine.set_environment("WHO", Some("you"));
    machine.set_environment("NOBODY", Some(""));
    Followed::start(text, machine.shared())
}

/// The description is all that there is to write: programs, the reference and its examples follow from it.
#[test]
fn adding_a_function_is_adding_its_item() {
    assert_eq!(
        follow("greetings.hello(\"you\")").now().as_deref(),
        Ok("\"hello, you\"")
    );
    let mut caught = follow("greetings.hello(sys.getenv(\"NOBODY\")) <|> \"nobody\"");
    assert_eq!(caught.now().as_deref(), Ok("\"nobody\""));
    let wrong = compile_with(
        &code(&["greetings"], "greetings.hello(1)"),
        &assembly().library("host.example"),
    );
    assert!(wrong.diagnostics.has_errors());

    const INSIDE: &str = "SETPOINT_TEST_DOCS";
    let test = "function_system::adding_a_function_is_adding_its_item";
    if std::env::var_os(INSIDE).is_some() {
        let arguments = ["setpoint", "docs", "functions", "greetings.hello"].map(Into::into);
        let _ = setpoint::main(assembly(), arguments);
        return;
    }
    let printed = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&printed.stdout);
    for part in [
        "greetings.hello(name str) str",
        "A greeting for somebody.",
        "greetings.hello(\"you\") == \"hello, you\"",
    ] {
        assert!(printed.contains(part), "{printed}");
    }
}

/// The failure names the function and points at the call with its arguments; the process goes on.
#[test]
fn a_panic_in_a_function_is_a_failure_of_its_call() {
    std::panic::set_hook(Box::new(|_| ()));
    for (call, function) in [
        ("greetings.explode(sys.getenv(\"WHO\"))", "greetings.explode"),
        ("greetings.fragile()", "greetings.fragile"),
    ] {
        let said = follow(call).now().expect_err("it panics");
        assert!(said.contains(function) && said.contains("a bug about"), "{said}");
        let marked = "^".repeat(call.len());
        assert!(said.contains(call) && said.contains(&marked), "{said}");
        let caught = follow(&format!("{call} <|> \"caught\"")).now();
        assert!(caught.is_err(), "a bug is not caught: {caught:?}");
    }
    let _ = std::panic::take_hook();
}

#[test]
fn what_is_read_by_a_secret_name_is_secret() {
    let machine = SimulatedCapabilities::new();
    machine.set_file("/key", "content");
    machine.set_environment("NAME", Some("/key"));
    for expression in [
        "os.readfile(sensitive(sys.getenv(\"NAME\")))",
        "strings.to_upper(os.readfile(sensitive(\"/key\")))",
        "os.file_exists(sensitive(\"/key\"))",
        "iter.map([sensitive(1),], func($x) { $x + 1 })[0]",
        "if sensitive(true) { 1 } else { 2 }",
        "\"a${hostname}\" == sensitive(\"b\")",
    ] {
        let text = compile_code(&code(&["os", "sys", "strings", "iter"], expression));
        let mut followed = Followed::start(text, machine.shared());
        assert_eq!(followed.now().as_deref(), Ok("(sensitive)"), "{expression}");
    }
}

/// An expression of a type whose texts are secret; none for function values.
fn argument(ty: &Type) -> Option<String> {
    Some(match ty {
        Type::Str | Type::Variable(_) | Type::Dynamic => "sensitive(sys.getenv(\"SECRET\"))".to_owned(),
        Type::Int | Type::Number => "-1".to_owned(),
        Type::Float => "-1.0".to_owned(),
        Type::Bool => "true".to_owned(),
        Type::List(element) => format!("[{},]", argument(element)?),
        Type::Map(types) => format!("{{\"key\" => {},}}", argument(&types.1)?),
        _ => return None,
    })
}

/// Whatever a function does with secret texts, nothing that is said tells them.
#[test]
fn no_failure_of_any_function_shows_a_sensitive_argument() {
    let library = Assembly::standard().library("host.example");
    let machine = SimulatedCapabilities::new();
    let mut failures = 0;
    let mut called = 0;
    let modules = Assembly::standard();
    let functions = modules.modules().iter().flat_map(|module| module.functions);
    // Telling is what this one is for.
    for spec in functions.filter(|spec| spec.name != "nonsensitive") {
        for signature in spec.alternatives() {
            let types = signature.parameters.iter().chain(&signature.variadic);
            let arguments: Option<Vec<String>> = types.map(|parameter| argument(&parameter.ty)).collect();
            let Some(arguments) = arguments.filter(|arguments| !arguments.is_empty()) else {
                continue;
            };
            let imported = match &*spec.module {
                "" => String::new(),
                module => format!("import \"{module}\" as called\n"),
            };
            let dot = if spec.module.is_empty() { "" } else { "called." };
            let call = format!("{dot}{}({})", spec.name, arguments.join(", "));
            let call = format!(
                "import \"fmt\"\nimport \"sys\"\n{imported}test \"value\" {{\n\tanotherstr => fmt.printf(\"%v\", {call}),\n}}\n"
            );
            for canary in [
                "canary",
                "/canary",
                "[canary",
                "{{canary",
                "%d canary %y",
                "{\"canary\": canary",
            ] {
                machine.set_environment("SECRET", Some(canary));
                let text = compile_with(&call, &library);
                // What needs other arguments is refused without a value in sight; the refusal shows the text of the program.
                let Some(program) = text.compiled.program.clone() else {
                    continue;
                };
                called += 1;
                let wake = Box::new(|_| setpoint_value::Wake::new(|| ()));
                let mut evaluator = setpoint_flow::Evaluator::new(program, machine.shared(), wake);
                let step = evaluator.step(&[]);
                let said = rendered(&step.diagnostics, &text.sources);
                assert!(!said.contains("canary"), "{call}{said}");
                let graph = step.graph.map(|graph| format!("{graph:?}")).unwrap_or_default();
                assert!(!graph.contains("canary"), "{call}{graph}");
                failures += usize::from(step.diagnostics.has_errors());
            }
        }
    }
    assert!(
        called > 1200 && failures > 300,
        "{called} calls, {failures} failures"
    );
}

/// An expression of a parameter's type whose texts are secret.
fn secret(parameter_type: &ParameterType) -> Option<String> {
    let canary = "sensitive(sys.getenv(\"SECRET\"))".to_owned();
    Some(match parameter_type {
        ParameterType::Str | ParameterType::Any => canary,
        ParameterType::Optional(inner) => secret(inner)?,
        ParameterType::List(inner) | ParameterType::Array(inner, _) => format!("[{},]", secret(inner)?),
        ParameterType::Map(ParameterType::Str, value) => format!("{{\"key\" => {},}}", secret(value)?),
        ParameterType::Struct(fields) => {
            let fields: Option<Vec<String>> = fields
                .iter()
                .map(|(name, parameter_type)| Some(format!("{name} => {},", secret(parameter_type)?)))
                .collect();
            format!("struct{{{}}}", fields?.concat())
        }
        ParameterType::Bool
        | ParameterType::Int { .. }
        | ParameterType::Float { .. }
        | ParameterType::Map(..)
        | ParameterType::Func(_) => {
            return None;
        }
    })
}

/// Neither what is wrong nor any form of the graph tells what a secret parameter holds.
#[test]
fn no_kind_shows_a_sensitive_parameter() {
    let machine = SimulatedCapabilities::new();
    let mut refused = 0;
    let mut shown = 0;
    for kind in Assembly::standard().kinds() {
        for parameter in setpoint_mcl::writable_parameters(kind.schema) {
            let Some(value) = secret(parameter.parameter_type) else {
                continue;
            };
            for canary in ["canary", "/canary", "canary/", "/a/../canary", ""] {
                machine.set_environment("SECRET", Some(canary));
                let code = format!(
                    "import \"sys\"\n{} \"/name\" {{\n\t{} => {value},\n}}\n",
                    kind.schema.kind, parameter.name
                );
                let text = compile_code(&code);
                let Some(program) = text.compiled.program.clone() else {
                    panic!("{code}{}", rendered(&text.diagnostics, &text.sources));
                };
                let wake = Box::new(|_| setpoint_value::Wake::new(|| ()));
                let mut evaluator = setpoint_flow::Evaluator::new(program, machine.shared(), wake);
                let step = evaluator.step(&[]);
                let said = rendered(&step.diagnostics, &text.sources);
                assert!(!said.contains("canary"), "{code}{said}");
                refused += usize::from(step.diagnostics.has_errors());
                if let Some(graph) = step.graph {
                    shown += 1;
                    let written = [
                        text::graph_text(&graph, Some(&text.sources)),
                        json::graph_json(&graph, &step.diagnostics, &text.sources).to_string(),
                        format!("{graph:?}"),
                    ]
                    .concat();
                    assert!(!written.contains("canary"), "{code}{written}");
                    assert!(written.contains("sensitive"), "{code}{written}");
                }
            }
        }
    }
    assert!(refused > 5 && shown > 50, "{refused} refused, {shown} shown");
}
