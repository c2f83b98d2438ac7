//! Executing a tree on data.

use setpoint_value::{CallContext, Type};

use super::datum::{Datum, Entries};
use super::tree::{Branches, Command, Expression, Node, NodeKind, Pipe, Template};
use super::{builtins, core, printing};
use crate::text_builder::{TextBuilder, TooLong};

/// Templates that call templates deeper than this are taken for endless.
const DEEPEST: usize = 100;

/// A template that takes more steps is taken for endless.
const MOST_STEPS: u64 = 20_000_000;

/// Executes a template; an error is a message with its line.
pub(super) fn execute(
    template: &Template,
    data: Datum,
    context: &CallContext<'_>,
) -> Result<Vec<u8>, String> {
    let mut executor = Executor {
        template,
        context,
        out: TextBuilder::new(),
        variables: vec![("$".to_owned(), data.clone())],
        depth: 0,
        steps: 0,
        line: 1,
    };
    match executor.list(&template.main, &data) {
        Ok(_) => Ok(executor.out.finish()?),
        Err(message) => Err(format!("template:{}: {message}", executor.line)),
    }
}

/// How a list of nodes ended.
#[derive(PartialEq)]
enum Flow {
    Through,
    Break,
    Continue,
}

struct Executor<'a> {
    template: &'a Template,
    context: &'a CallContext<'a>,
    out: TextBuilder,
    /// Variables in scope, innermost last.
    variables: Vec<(String, Datum)>,
    depth: usize,
    steps: u64,
    line: usize,
}

impl Executor<'_> {
    fn list(&mut self, nodes: &[Node], dot: &Datum) -> Result<Flow, String> {
        for node in nodes {
            self.line = node.line;
            match self.node(&node.kind, dot)? {
                Flow::Through => {}
                other => return Ok(other),
            }
        }
        Ok(Flow::Through)
    }

    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err(format!("the template takes more than {MOST_STEPS} steps"));
        }
        if self.out.is_full() {
            return Err(TooLong.to_string());
        }
        Ok(())
    }

    fn node(&mut self, node: &NodeKind, dot: &Datum) -> Result<Flow, String> {
        self.step()?;
        match node {
            NodeKind::Text(text) => self.out.push_bytes(text),
            NodeKind::Action(pipe) => {
                let value = self.pipe(pipe, dot)?;
                if pipe.variables.is_empty() {
                    printing::print_result(&value, &mut self.out);
                }
            }
            NodeKind::If(branches) | NodeKind::With(branches) => {
                let is_with = matches!(node, NodeKind::With(_));
                let scope = self.variables.len();
                let value = self.pipe(&branches.pipe, dot)?;
                let flow = if value.is_true() {
                    self.list(&branches.then, if is_with { &value } else { dot })
                } else {
                    self.list(&branches.otherwise, dot)
                };
                self.variables.truncate(scope);
                return flow;
            }
            NodeKind::Range(branches) => {
                let scope = self.variables.len();
                let flow = self.range(branches, dot);
                self.variables.truncate(scope);
                return flow;
            }
            NodeKind::Template { name, argument } => self.call_template(name, argument.as_ref(), dot)?,
            NodeKind::Break => return Ok(Flow::Break),
            NodeKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Through)
    }

    fn call_template(&mut self, name: &[u8], argument: Option<&Pipe>, dot: &Datum) -> Result<(), String> {
        let template = self.template;
        let Some(body) = template.defined.get(name) else {
            return Err(format!("template {} not defined", setpoint_value::quote(name)));
        };
        if self.depth == DEEPEST {
            return Err(format!("templates call each other more than {DEEPEST} deep"));
        }
        let dot = match argument {
            Some(pipe) => self.pipe(pipe, dot)?,
            None => Datum::Nothing,
        };
        let outer = std::mem::replace(&mut self.variables, vec![("$".to_owned(), dot.clone())]);
        self.depth += 1;
        self.list(body, &dot)?;
        self.depth -= 1;
        self.variables = outer;
        Ok(())
    }

    fn range(&mut self, branches: &Branches, dot: &Datum) -> Result<Flow, String> {
        let pipe = &branches.pipe;
        let over = self.commands(&pipe.commands, dot)?;
        // Variables are declared once and set anew in each round.
        if !pipe.assigns {
            for name in &pipe.variables {
                self.variables.push((name.clone(), Datum::Nothing));
            }
        }
        let mut rounds = 0usize;
        match &over {
            Datum::Nothing => {}
            Datum::Int(count) => {
                let mut index = 0;
                while index < *count {
                    rounds += 1;
                    let value = Datum::Int(index);
                    if self.round(branches, &value, &value, true)? == Flow::Break {
                        break;
                    }
                    index += 1;
                }
            }
            Datum::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    rounds += 1;
                    let index = Datum::Int(i64::try_from(index).unwrap_or(i64::MAX));
                    if self.round(branches, &index, item, false)? == Flow::Break {
                        break;
                    }
                }
            }
            Datum::Map(map) => {
                for (key, value) in &map.entries {
                    rounds += 1;
                    if self.round(branches, key, value, false)? == Flow::Break {
                        break;
                    }
                }
            }
            Datum::Bool(_) | Datum::Byte(_) | Datum::Float(_) | Datum::Str(_) => {
                let mut shown = TextBuilder::new();
                printing::print_value(&over, &mut shown);
                return Err(format!(
                    "range can't iterate over {}",
                    String::from_utf8_lossy(shown.as_bytes())
                ));
            }
        }
        if rounds == 0 {
            return self.list(&branches.otherwise, dot);
        }
        Ok(Flow::Through)
    }

    fn round(
        &mut self,
        branches: &Branches,
        key: &Datum,
        value: &Datum,
        is_count: bool,
    ) -> Result<Flow, String> {
        self.step()?;
        match branches.pipe.variables.as_slice() {
            [] => {}
            [only] => self.assign(only, value.clone())?,
            [_, _, ..] if is_count => {
                return Err("can't use two variables to iterate over an integer".to_owned());
            }
            [first, second, ..] => {
                self.assign(first, key.clone())?;
                self.assign(second, value.clone())?;
            }
        }
        let scope = self.variables.len();
        let flow = self.list(&branches.then, value);
        self.variables.truncate(scope);
        flow
    }

    fn assign(&mut self, name: &str, value: Datum) -> Result<(), String> {
        let variable = self.variables.iter_mut().rev().find(|(known, _)| known == name);
        match variable {
            Some(variable) => {
                variable.1 = value;
                Ok(())
            }
            None => Err(format!("undefined variable: {name}")),
        }
    }

    /// The value of a pipeline, which also goes into its variables.
    fn pipe(&mut self, pipe: &Pipe, dot: &Datum) -> Result<Datum, String> {
        let value = self.commands(&pipe.commands, dot)?;
        for name in &pipe.variables {
            if pipe.assigns {
                self.assign(name, value.clone())?;
            } else {
                self.variables.push((name.clone(), value.clone()));
            }
        }
        Ok(value)
    }

    fn commands(&mut self, commands: &[Command], dot: &Datum) -> Result<Datum, String> {
        let mut value = None;
        for command in commands {
            value = Some(self.command(command, dot, value)?);
        }
        Ok(value.unwrap_or(Datum::Nothing))
    }

    /// A command; `last` is the value of the one before, which becomes its last argument.
    fn command(&mut self, command: &Command, dot: &Datum, last: Option<Datum>) -> Result<Datum, String> {
        self.step()?;
        let Some((first, arguments)) = command.words.split_first() else {
            return Ok(Datum::Nothing);
        };
        if let Expression::Function(name) = first {
            return self.call(name, arguments, dot, last);
        }
        let takes_arguments = !arguments.is_empty() || last.is_some();
        match first {
            Expression::Field(names) | Expression::Chain(_, names) | Expression::Variable(_, names)
                if takes_arguments && !names.is_empty() =>
            {
                let name = names.last().map(String::as_str).unwrap_or_default();
                // The receiver is looked at first, so that a missing field is what is reported.
                self.expression(first, dot)?;
                Err(format!("{name} is not a method but has arguments"))
            }
            Expression::Nil => Err("nil is not a command".to_owned()),
            _ if takes_arguments => Err(format!("can't give argument to non-function {}", spelling(first))),
            _ => self.expression(first, dot),
        }
    }

    fn expression(&mut self, expression: &Expression, dot: &Datum) -> Result<Datum, String> {
        self.step()?;
        Ok(match expression {
            Expression::Dot => dot.clone(),
            Expression::Nil => Datum::Nothing,
            Expression::Bool(value) => Datum::Bool(*value),
            Expression::Number(number) => number.ideal(),
            Expression::Str(text) => Datum::str(text.as_slice()),
            Expression::Function(name) => self.call(name, &[], dot, None)?,
            Expression::Field(names) => follow(dot.clone(), names)?,
            Expression::Variable(name, names) => {
                let variable = self.variables.iter().rev().find(|(known, _)| known == name);
                let value = variable.map(|(_, value)| value.clone());
                follow(value.ok_or_else(|| format!("undefined variable: {name}"))?, names)?
            }
            Expression::Chain(inner, names) => follow(self.expression(inner, dot)?, names)?,
            Expression::Pipe(pipe) => self.pipe(pipe, dot)?,
        })
    }

    /// Calls a function by name.
    fn call(
        &mut self,
        name: &str,
        arguments: &[Expression],
        dot: &Datum,
        last: Option<Datum>,
    ) -> Result<Datum, String> {
        // These two look at no more arguments than they need.
        if matches!(name, "and" | "or") {
            return self.connective(name, arguments, dot, last);
        }
        if let Some(function) = core::find(name) {
            let count = arguments.len() + usize::from(last.is_some());
            let parameters = core::parameters(function);
            if count != parameters.len() {
                return Err(format!(
                    "wrong number of args for {name}: want {} got {count}",
                    parameters.len()
                ));
            }
            let mut values = Vec::with_capacity(count);
            for (argument, ty) in arguments.iter().zip(&parameters) {
                // A number is written without a type: it is what is wanted.
                let value = match (argument, ty) {
                    (Expression::Number(number), Type::Float) => Datum::Float(number.float),
                    (Expression::Number(number), Type::Int) => {
                        let int = number.int.ok_or("expected integer; found float")?;
                        Datum::Int(int)
                    }
                    _ => self.expression(argument, dot)?,
                };
                values.push(value);
            }
            values.extend(last);
            return core::call(name, function, &values, self.context);
        }
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for argument in arguments {
            values.push(self.expression(argument, dot)?);
        }
        values.extend(last);
        builtins::call(name, &values).map_err(|problem| format!("error calling {name}: {problem}"))
    }

    fn connective(
        &mut self,
        name: &str,
        arguments: &[Expression],
        dot: &Datum,
        last: Option<Datum>,
    ) -> Result<Datum, String> {
        let mut value = None;
        for argument in arguments {
            let this = self.expression(argument, dot)?;
            if this.is_true() == (name == "or") {
                return Ok(this);
            }
            value = Some(this);
        }
        last.or(value)
            .ok_or_else(|| format!("wrong number of args for {name}: want at least 1 got 0"))
    }
}

/// `.A.B` of a value.
fn follow(mut value: Datum, names: &[String]) -> Result<Datum, String> {
    for name in names {
        value = match &value {
            Datum::Nothing => return Err(format!("nil data; no entry for key {name:?}")),
            Datum::Map(map) => match map.get(&Datum::str(name.as_str())) {
                Some(value) => value.clone(),
                None => return Err(no_entry(map, name)),
            },
            other => {
                return Err(format!(
                    "can't evaluate field {name} in type {}",
                    other.type_name()
                ));
            }
        };
    }
    Ok(value)
}

/// What is wrong with the name of an entry that is not there.
fn no_entry(map: &Entries, name: &str) -> String {
    let mut capitalised = name.to_owned();
    if let Some(first) = capitalised.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let missing = format!("map has no entry for key {name:?}");
    if capitalised != name && map.get(&Datum::str(capitalised.as_str())).is_some() {
        return format!(
            "{missing}; in a template the field of a struct begins with a capital letter: `.{capitalised}`"
        );
    }
    missing
}

/// An expression for a message.
fn spelling(expression: &Expression) -> String {
    match expression {
        Expression::Dot => ".".to_owned(),
        Expression::Nil => "nil".to_owned(),
        Expression::Bool(value) => value.to_string(),
        Expression::Number(number) => match number.int {
            Some(int) => int.to_string(),
            None => number.float.to_string(),
        },
        Expression::Str(text) => setpoint_value::quote(text),
        Expression::Function(name) | Expression::Variable(name, _) => name.clone(),
        Expression::Field(names) => format!(".{}", names.join(".")),
        Expression::Chain(_, names) => format!("(…).{}", names.join(".")),
        Expression::Pipe(_) => "(…)".to_owned(),
    }
}
