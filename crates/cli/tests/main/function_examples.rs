//! The examples in the documentation of functions are true.

use std::fmt::Write;

use setpoint::Assembly;
use setpoint_diagnostics::{Diagnostics, MemoryLoader, RenderStyle, SourceMap, render};
use setpoint_flow::Evaluator;
use setpoint_mcl::{CompileOptions, Entry, compile};
use setpoint_value::{Equality, Example, FunctionSpec, Value, Wake};

use crate::core_library;

/// Call and result, as the two elements of a list, so that both have one type; the call alone where there is no result.
fn evaluate(assembly: &Assembly, spec: &FunctionSpec, example: &Example) -> Result<Vec<Value>, String> {
    let mut text = String::new();
    // A module's own alias means the module, whatever else has that name.
    let own = spec.module.rsplit('/').next().unwrap_or_default();
    for module in assembly.modules() {
        // Where two modules have one default alias, examples spell the whole path: `golang_strings`.
        let last = module.name.rsplit('/').next().unwrap_or_default().to_owned();
        let whole = module.name.replace('/', "_");
        let mentions = |alias: &str| {
            let call = format!("{alias}.");
            let is_call = |text: &str| {
                text.match_indices(&call).any(|(at, _)| {
                    !text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.')
                })
            };
            !alias.is_empty() && (is_call(example.call) || is_call(example.result))
        };
        if whole != last && mentions(&whole) {
            text.push_str(&format!("import \"{}\" as {whole}\n", module.name));
        } else if mentions(&last) && (module.name == spec.module || (module.name == last && own != last)) {
            text.push_str(&format!("import \"{}\"\n", module.name));
        }
    }
    let pair = match example.result {
        "" => example.call.to_owned(),
        result => format!("[{}, {result}]", example.call),
    };
    text.push_str(&format!("test \"pair\" {{ interface => {pair}, }}\n"));
    let library = assembly.library("host.example");
    let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
    let entry = Entry::Code {
        name: "example".to_owned(),
        text,
    };
    let loader = MemoryLoader::new();
    let compiled = compile(
        &entry,
        &CompileOptions::default(),
        &loader,
        &library,
        &mut sources,
        &mut diagnostics,
    );
    let said = |diagnostics: &Diagnostics, sources: &SourceMap| -> String {
        diagnostics
            .iter()
            .map(|d| render(d, sources, RenderStyle::PLAIN) + "\n")
            .collect()
    };
    let Some(program) = compiled.program else {
        // Whatever type it has is decided by its use, and an example without a result has none.
        let is_open = diagnostics.iter().all(|diagnostic| diagnostic.code.rule == "U6");
        return if is_open && example.result.is_empty() {
            Ok(Vec::new())
        } else {
            Err(said(&diagnostics, &sources))
        };
    };
    let machine = core_library::machine();
    machine.set_exports("file", Vec::new());
    let mut evaluator = Evaluator::new(program, machine.shared(), Box::new(|_| Wake::new(|| ())));
    let step = evaluator.step(&[]);
    if step.diagnostics.has_errors() {
        return Err(said(&step.diagnostics, &sources));
    }
    let Some(graph) = step.graph else {
        return Err("it gives no value".to_owned());
    };
    let value = graph
        .resources
        .values()
        .next()
        .and_then(|resource| resource.parameters.get("interface").cloned());
    match value {
        Some(Value::List(pair)) if !example.result.is_empty() => Ok(pair.iter().cloned().collect()),
        Some(_) => Ok(Vec::new()),
        None => Err("there is no value".to_owned()),
    }
}

/// What is no expression, and has pages and cases of its own.
const STATEMENTS: &[&str] = &["panic"];

/// What has no value yet when a program starts.
const SLOW: &[&str] = &["test.slow_string"];

/// How many examples functions have, and what is wrong with them.
pub(crate) fn wrong_examples(assembly: &Assembly, functions: &[&'static FunctionSpec]) -> (usize, String) {
    let mut wrong = String::new();
    let mut count = 0;
    for spec in functions {
        let name = spec.to_string();
        if STATEMENTS.contains(&name.as_str()) {
            continue;
        }
        for example in spec.examples {
            count += 1;
            let needs_no_value = [core_library::NO_VALUE, SLOW]
                .iter()
                .any(|names| names.contains(&name.as_str()))
                && example.result.is_empty();
            match evaluate(assembly, spec, example) {
                Ok(values)
                    if values.len() == 2
                        && setpoint_value::equals(&values[0], &values[1]) != Equality::Equal =>
                {
                    let _ = writeln!(
                        wrong,
                        "{name}: {} is {}, not {}",
                        example.call, values[0], values[1]
                    );
                }
                Ok(_) => {}
                Err(_) if needs_no_value => {}
                Err(error) => {
                    let _ = writeln!(wrong, "{name}: {}\n{error}", example.call);
                }
            }
        }
    }
    (count, wrong)
}

#[test]
fn every_example_of_a_function_gives_what_it_says() {
    let assembly = Assembly::standard();
    let functions: Vec<&'static FunctionSpec> = assembly
        .modules()
        .iter()
        .flat_map(|module| module.functions)
        .copied()
        .collect();
    let (count, wrong) = wrong_examples(&assembly, &functions);
    assert!(count > 400, "only {count} examples were found");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_function_is_documented() {
    let functions = Assembly::standard().modules().to_vec();
    let undocumented: Vec<String> = functions
        .iter()
        .flat_map(|module| module.functions)
        .filter(|spec| spec.doc.trim().is_empty())
        .map(ToString::to_string)
        .collect();
    assert!(undocumented.is_empty(), "{undocumented:?}");
}
