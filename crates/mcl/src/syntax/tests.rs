//! Tests of lexer, parser and strings, as tables: text and what comes of it.

mod accepted;
mod laws;
mod precedence;
mod rejected;
mod strings;

use setpoint_diagnostics::{Diagnostics, FileId, Severity, SourceMap};

use super::{Ast, Callee, ExprId, ExprKind, Parsed, StmtKind, parse};

fn read(text: &str) -> (Parsed, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let parsed = parse(FileId(0), text, &mut diagnostics);
    (parsed, diagnostics)
}

/// Every error as `P1@2:5`, every warning as `W0001@2:5`.
fn findings(text: &str) -> Vec<String> {
    let mut sources = SourceMap::new();
    let file = sources.add("test.mcl", text);
    let mut diagnostics = Diagnostics::new();
    parse(file, text, &mut diagnostics);
    diagnostics
        .iter()
        .map(|d| {
            let place = sources.positions(d.rule_place()).0;
            let rule = if d.code.rule.is_empty() {
                d.code.code
            } else {
                d.code.rule
            };
            format!("{rule}@{}:{}", place.line, place.column)
        })
        .collect()
}

/// The first error's message, all its help joined.
fn first_help(text: &str) -> String {
    let (_, diagnostics) = read(text);
    let first = diagnostics
        .iter()
        .find(|d| d.severity == Severity::Error)
        .expect("an error");
    first
        .help
        .iter()
        .map(|help| help.text.as_str())
        .collect::<Vec<_>>()
        .join("; ")
}

#[track_caller]
fn assert_accepted(text: &str) -> Parsed {
    let (parsed, diagnostics) = read(text);
    assert!(
        !diagnostics.has_errors(),
        "{text:?} is rejected: {:#?}",
        diagnostics.into_vec()[0]
    );
    parsed
}

/// The value of the first bind, with parentheses that show its structure.
#[track_caller]
fn value_of(text: &str) -> String {
    let parsed = assert_accepted(text);
    let first = parsed.ast.root.statements[0];
    let StmtKind::Bind(bind) = &parsed.ast.stmt(first).kind else {
        panic!("no bind: {text}")
    };
    shape(&parsed.ast, bind.value)
}

/// The structure of an expression, one pair of parentheses a node.
fn shape(ast: &Ast, id: ExprId) -> String {
    let of = |id: &ExprId| shape(ast, *id);
    let list = |ids: &[ExprId]| ids.iter().map(of).collect::<Vec<_>>().join(" ");
    match &ast.expr(id).kind {
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Integer(value) => value.to_string(),
        ExprKind::Float(value) => format!("{value:?}"),
        ExprKind::String(raw) => format!("{raw:?}"),
        ExprKind::List(elements) => format!("[{}]", list(elements)),
        ExprKind::Map(entries) => {
            let entries = entries
                .iter()
                .map(|e| format!("{}=>{}", of(&e.key), of(&e.value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(" "))
        }
        ExprKind::Struct(fields) => {
            let fields = fields
                .iter()
                .map(|f| format!("{}=>{}", f.name.text, of(&f.value)));
            format!("struct{{{}}}", fields.collect::<Vec<_>>().join(" "))
        }
        ExprKind::Variable(name) => format!("${}", name.text),
        ExprKind::Call(call) => {
            let callee = match &call.callee {
                Callee::Function(name) => name.text.to_string(),
                Callee::Variable(name) => format!("${}", name.text),
                Callee::Lambda(lambda) => of(lambda),
            };
            format!("(call {callee} {})", list(&call.arguments.items)).replace(" )", ")")
        }
        ExprKind::Lambda(function) => {
            let parameters = function
                .parameters
                .items
                .iter()
                .map(|p| format!("${}", p.name.text));
            format!(
                "(func [{}] {})",
                parameters.collect::<Vec<_>>().join(" "),
                of(&function.body)
            )
        }
        ExprKind::If(branches) => {
            let word = if branches.else_if { "elif" } else { "else" };
            let (condition, then) = (of(&branches.condition), of(&branches.then_branch));
            format!("(if {condition} {then} {word} {})", of(&branches.else_branch))
        }
        ExprKind::Paren(inner) => format!("<{}>", of(inner)),
        ExprKind::Operator {
            operator,
            left,
            right,
            ..
        } => {
            format!("({} {} {})", operator.text(), of(left), of(right))
        }
        ExprKind::Not(operand) => format!("(not {})", of(operand)),
        ExprKind::In { left, right } => format!("(in {} {})", of(left), of(right)),
        ExprKind::Lookup { base, index } => format!("(at {} {})", of(base), of(index)),
        ExprKind::StructLookup { base, field } => format!("(field {} {})", of(base), field.text),
        ExprKind::StructLookupOptional {
            base, field, default, ..
        } => {
            format!("(field {} {} or {})", of(base), field.text, of(default))
        }
        ExprKind::Unfinished(parts) => format!("(unfinished {})", list(parts)),
        ExprKind::Except { left, right, .. } => format!("(except {} {})", of(left), of(right)),
    }
}
