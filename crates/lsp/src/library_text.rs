//! What is said about functions, kinds, parameters and constants, as Markdown and as snippets.

use std::fmt::Write;

use serde_json::{Map, Value as Json, json};
use setpoint_graph::{
    ConstantValue, EdgeProperty, KindSchema, Library, MetaName, MetaParameters, ParameterSchema, SendKey,
};
use setpoint_mcl::writable_parameters;
use setpoint_value::{Class, FunctionSpec, Type, Value};

/// Values of more letters are shown up to here.
const LONGEST_VALUE: usize = 300;

/// A block of the language.
pub(crate) fn code(text: &str) -> String {
    format!("```mcl\n{text}\n```\n")
}

/// The first line of a documentation, for lists.
pub(crate) fn first_line(doc: &str) -> &str {
    doc.trim().lines().next().unwrap_or_default()
}

/// A value as the language writes it, shortened where it is long; a sensitive one is not shown.
pub(crate) fn value(value: &Value) -> String {
    if value.is_sensitive() {
        return "(sensitive)".to_owned();
    }
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// How a function is called, with its types: one line a signature.
pub(crate) fn calls(spec: &FunctionSpec) -> Vec<String> {
    let call = |signature: &str| {
        let rest = signature.strip_prefix("func").unwrap_or(signature);
        format!("{}{rest}", spec.called())
    };
    spec.signatures().into_iter().map(call).collect()
}

/// A function of the library.
pub(crate) fn function(spec: &FunctionSpec) -> String {
    let mut out = code(&calls(spec).join("\n"));
    if !spec.module.is_empty() {
        let _ = writeln!(out, "`import \"{}\"`\n", spec.module);
    }
    let _ = writeln!(out, "{}", spec.doc.trim());
    let class = match spec.class {
        Class::Pure => "",
        Class::Environment => "\nThe machine is asked once, and again only for other arguments.",
        Class::Source => "\nWhen it changes, the program follows.",
        Class::Stateful => "\nWhen it changes, the program follows. Each call in the text is on its own.",
    };
    let _ = writeln!(out, "{class}");
    for parameter in spec
        .parameter_docs()
        .iter()
        .filter(|parameter| !parameter.doc.is_empty())
    {
        let _ = writeln!(out, "- `{}`: {}", parameter.name, one_line(parameter.doc));
    }
    for example in spec.examples {
        let _ = write!(
            out,
            "\n{}",
            code(&format!("{} # {}", example.call, example.result))
        );
    }
    out
}

/// A kind of resource.
pub(crate) fn kind(schema: &KindSchema) -> String {
    let mut out = format!("kind **{}**\n\n{}\n", schema.kind, schema.doc.trim());
    let writable: Vec<_> = writable_parameters(schema).collect();
    if !writable.is_empty() {
        out.push_str("\nParameters:\n\n");
        for parameter in writable {
            let _ = writeln!(
                out,
                "- `{} {}`: {}",
                parameter.name,
                parameter.parameter_type.describe(),
                first_line(parameter.doc)
            );
        }
    }
    if !schema.sends.is_empty() {
        out.push_str("\nSends:\n\n");
        for key in schema.sends {
            let ty = key.parameter_type.describe();
            let _ = writeln!(out, "- `{} {ty}`: {}", key.name, first_line(key.doc));
        }
    }
    out
}

/// A parameter of a kind, or something that it sends.
pub(crate) fn parameter_or_key(schema: &KindSchema, name: &str) -> Option<String> {
    match (schema.parameter(name), schema.send_key(name)) {
        (Some(found), _) => Some(parameter(schema, found)),
        (None, Some(key)) => Some(send_key(schema, key)),
        (None, None) => None,
    }
}

/// A parameter of a kind.
pub(crate) fn parameter(schema: &KindSchema, parameter: &ParameterSchema) -> String {
    let ty = parameter.parameter_type.describe();
    let mut out = code(&format!("{} => {ty}", parameter.name));
    let _ = writeln!(out, "Parameter of `{}`.\n\n{}", schema.kind, parameter.doc.trim());
    if let Some(form) = parameter.form {
        let _ = writeln!(out, "\nIts text is {}.", form());
    }
    if !parameter.default.is_empty() {
        let _ = writeln!(out, "\nDefault: `{}`", parameter.default);
    }
    let constants: Vec<String> = constants(schema, parameter.name)
        .map(|(name, value)| format!("- `${name}`: `{value}`"))
        .collect();
    if !constants.is_empty() {
        let _ = writeln!(out, "\nConstants:\n\n{}", constants.join("\n"));
    }
    out
}

/// The constants for a parameter: name without a dollar, value.
pub(crate) fn constants(schema: &KindSchema, parameter: &str) -> impl Iterator<Item = (String, Value)> {
    let own = schema
        .constants
        .iter()
        .filter(move |constant| constant.parameter == parameter);
    own.map(|constant| {
        let name = format!(
            "const.res.{}.{}.{}",
            schema.kind, constant.parameter, constant.name
        );
        let value = match constant.value {
            ConstantValue::Str(text) => Value::str(text),
            ConstantValue::Int(number) => Value::Int(number),
        };
        (name, value)
    })
}

fn send_key(schema: &KindSchema, key: &SendKey) -> String {
    let ty = key.parameter_type.describe();
    let line = code(&format!("{} {ty}", key.name));
    format!("{line}Sent by `{}`.\n\n{}", schema.kind, key.doc.trim())
}

/// A meta parameter.
pub(crate) fn meta(name: MetaName) -> String {
    let mut out = code(&format!("Meta:{} => {}", name.name(), name.ty()));
    let _ = writeln!(out, "Meta parameter of every kind.\n\n{}", name.doc());
    let _ = writeln!(out, "\nDefault: `{}`", MetaParameters::DEFAULT.value(name));
    out
}

/// The edge properties with what they mean.
pub(crate) const EDGE_PROPERTIES: [(EdgeProperty, &str, &str); 4] = [
    (EdgeProperty::Before, "Before", "This one first, then the other."),
    (
        EdgeProperty::Notify,
        "Notify",
        "This one first, then the other, which hears when this one was changed.",
    ),
    (EdgeProperty::Depend, "Depend", "The other first, then this one."),
    (
        EdgeProperty::Listen,
        "Listen",
        "The other first, then this one, which hears when the other was changed.",
    ),
];

/// A kind as edges write it: `Http:Server`.
pub(crate) fn capitalized(kind: &str) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    kind.split(':').map(capital).collect::<Vec<_>>().join(":")
}

/// A value of a type to fill in, as a snippet whose first place has this number.
pub(crate) fn placeholder(ty: &Type, place: usize) -> String {
    match ty {
        Type::Bool => format!("${{{place}|true,false|}}"),
        Type::Str => format!("\"${place}\""),
        Type::List(_) => format!("[${place}]"),
        Type::Map(_) => format!("{{${place}}}"),
        _ => format!("${place}"),
    }
}

/// `parameter => value,` to fill in.
pub(crate) fn parameter_snippet(parameter: &ParameterSchema) -> String {
    let value = placeholder(&parameter.parameter_type.ty(), 1);
    format!("{} => {value},", parameter.name)
}

/// A resource to fill in.
pub(crate) fn kind_snippet(schema: &KindSchema) -> String {
    format!("{} \"${{1:name}}\" {{\n\t$0\n}}", schema.kind)
}

/// The kinds that programs use.
pub(crate) fn kinds(library: &Library) -> impl Iterator<Item = &'static KindSchema> + '_ {
    let kinds = library.kinds.values().copied();
    kinds.filter(|schema| !schema.kind.starts_with('_'))
}

/// A snippet for each kind, in the form in which Visual Studio Code reads them: for editors without the server.
#[must_use]
pub fn kind_snippets(library: &Library) -> Json {
    let mut snippets = Map::new();
    for schema in kinds(library) {
        let names: Vec<&str> = writable_parameters(schema)
            .map(|parameter| parameter.name)
            .collect();
        let line = match names.is_empty() {
            true => "\t$0".to_owned(),
            false => format!("\t${{2|{}|}} => $3,$0", names.join(",")),
        };
        let snippet = json!({
            "prefix": schema.kind,
            "body": [format!("{} \"${{1:name}}\" {{", schema.kind), line, "}"],
            "description": first_line(schema.doc),
        });
        snippets.insert(format!("kind {}", schema.kind), snippet);
    }
    Json::Object(snippets)
}

/// A documentation on one line.
pub(crate) fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}
