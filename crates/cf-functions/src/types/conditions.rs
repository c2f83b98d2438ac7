//! Conditions of typedefs, which are evaluated on the spot: nothing can be waited for, and only `self` is bound.

use std::sync::Arc;

use setpoint_cf_names::datum::{Datum, InstanceId, Instances, Unknowns};
use setpoint_cf_names::hir::{
    Comprehension, Expression, ExpressionKind, Function, FunctionImplementation, Model, Place, Typedef,
};
use setpoint_cf_names::ids::EntityId;
use setpoint_cf_syntax::ast::Operator;
use setpoint_diagnostics::{Diagnostic, LoadError, Loader, Span};
use setpoint_value::{CallError, FunctionRef, Value};

use crate::calls::{call, needs_context};
use crate::casts::cast;
use crate::codes::{self, class};
use crate::context::{Arguments, Context, Deployment, Fact, Read, Sender, Site, Stop};
use crate::operators::{self, Outcome};
use crate::text::{Naming, shown, type_name};

/// A condition goes no more steps than this: comprehensions inside of comprehensions would take for ever.
const MOST_STEPS: u32 = 10_000_000;

/// What the condition of a typedef says of a value.
///
/// # Errors
/// An expression that cannot stand there, or what goes wrong in it.
pub(super) fn evaluate(
    condition: &Expression,
    value: &Datum,
    typedef: &Typedef,
    naming: Naming<'_>,
) -> Outcome<Datum> {
    let mut direct = Direct {
        value,
        typedef,
        naming,
        unknowns: Unknowns::default(),
        loops: Vec::new(),
        steps: 0,
    };
    direct.expression(condition)
}

struct Direct<'a> {
    value: &'a Datum,
    typedef: &'a Typedef,
    naming: Naming<'a>,
    unknowns: Unknowns,
    /// Variables of the comprehensions around, outermost first.
    loops: Vec<Datum>,
    steps: u32,
}

impl Direct<'_> {
    fn expression(&mut self, expression: &Expression) -> Outcome {
        let span = expression.span;
        self.steps += 1;
        if self.steps > MOST_STEPS {
            let message = format!("the condition takes more than {MOST_STEPS} steps");
            return Err(Box::new(
                Diagnostic::error(&codes::TOO_LARGE, span, message).of_class(class::RUNTIME),
            ));
        }
        match &expression.kind {
            ExpressionKind::Literal(literal) => Ok(Datum::from(literal)),
            ExpressionKind::ConstantList(items) => Ok(Datum::List(items.clone())),
            ExpressionKind::Matches { place, regex } => {
                let value = self.variable(*place, span)?;
                match operators::matches(regex, &value, span, self.naming)? {
                    Some(matches) => Ok(Datum::Bool(matches)),
                    None => Ok(self.unknowns.create()),
                }
            }
            ExpressionKind::Variable(place) => self.variable(*place, span),
            ExpressionKind::List(elements) => {
                let elements = self.all(elements)?;
                operators::list(elements, span)
            }
            ExpressionKind::Dict(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), self.expression(value)?)))
                    .collect::<Outcome<Vec<_>>>()?;
                operators::dict(entries, span)
            }
            ExpressionKind::Comprehension(comprehension) => {
                let mut elements = Vec::new();
                self.comprehension(comprehension, 0, &mut elements)?;
                operators::list(elements, span)
            }
            ExpressionKind::Not(operand) => {
                let value = self.expression(operand)?;
                operators::not(&value, span, self.naming, &mut self.unknowns)
            }
            ExpressionKind::Operators { first, rest } => {
                let mut left = self.expression(first)?;
                for (operator, _, right) in rest {
                    let whole = first.span.to(right.span);
                    left = self.operator(*operator, &left, right, whole)?;
                }
                Ok(left)
            }
            ExpressionKind::Conditional {
                condition,
                then,
                otherwise,
            } => {
                let value = self.expression(condition)?;
                match operators::condition(&value, None, condition.span, self.naming)? {
                    Some(true) => self.expression(then),
                    Some(false) => self.expression(otherwise),
                    None => Ok(self.unknowns.create()),
                }
            }
            ExpressionKind::Cast { to, value } => {
                let value = self.expression(value)?;
                cast(*to, &value, span, self.naming, &mut self.unknowns)
            }
            ExpressionKind::Call {
                function,
                positional,
                keywords,
                dicts,
                name_span,
                ..
            } => {
                let function = &self.naming.model.functions[function.index()];
                if needs_context(&function.implementation) {
                    let what = format!("function `{}` needs more than its arguments, it", function.name);
                    return Err(not_direct(&what, *name_span));
                }
                let positional = self.all(positional)?;
                let keywords = keywords
                    .iter()
                    .map(|(name, _, value)| {
                        Ok((self.naming.model.text(*name).clone(), self.expression(value)?))
                    })
                    .collect::<Outcome<Vec<_>>>()?;
                let arguments = Arguments {
                    positional,
                    keywords,
                    dicts: self.all(dicts)?,
                };
                let mut context = NoContext {
                    naming: self.naming,
                    unknowns: &mut self.unknowns,
                };
                let site = Site {
                    span,
                    name: *name_span,
                    written: Some(&expression.kind),
                };
                match call(function, arguments, site, &mut context) {
                    Ok(result) => Ok(result),
                    Err(Stop::Error(error)) => Err(error),
                    Err(Stop::Unset(_)) => Err(not_direct("what has no value yet", span)),
                }
            }
            ExpressionKind::Attribute { .. } => Err(not_direct("access to attributes", span)),
            ExpressionKind::Interpolated(_) => Err(not_direct("a string with `{{…}}`", span)),
            ExpressionKind::Format(_) => Err(not_direct("an f-string", span)),
            ExpressionKind::IsDefined(_) | ExpressionKind::LookupIsDefined(_) => {
                Err(not_direct("`is defined`", span))
            }
            ExpressionKind::MapLookup(_) => Err(not_direct("a lookup in a dict", span)),
            ExpressionKind::Constructor(_) => Err(not_direct("a constructor", span)),
            ExpressionKind::IndexLookup { .. } | ExpressionKind::SelectorLookup { .. } => {
                Err(not_direct("a lookup in an index", span))
            }
        }
    }

    fn all(&mut self, expressions: &[Expression]) -> Outcome<Vec<Datum>> {
        expressions.iter().map(|e| self.expression(e)).collect()
    }

    fn variable(&self, place: Place, span: Span) -> Outcome {
        let name = match place {
            Place::TypedefSelf => return Ok(self.value.clone()),
            Place::Local { up, .. } => {
                let index = self.loops.len().checked_sub(usize::from(up) + 1);
                if let Some(value) = index.and_then(|index| self.loops.get(index)) {
                    return Ok(value.clone());
                }
                None
            }
            Place::Namespace { namespace, index } => {
                let namespace = &self.naming.model.namespaces[namespace.index()];
                let variable = namespace.body.variables.get(index as usize);
                variable.map(|variable| variable.name)
            }
            Place::Member { name, .. } | Place::NotFound(name) => Some(name),
            Place::Instance => None,
        };
        let name = name.map_or_else(
            || "a variable".to_owned(),
            |name| format!("`{}`", self.naming.model.text(name)),
        );
        let message = format!("unable to resolve {name}: a type constraint can not reference variables");
        Err(Box::new(
            Diagnostic::error(&codes::CONSTRAINT_VARIABLE, span, message)
                .of_class(class::NOT_FOUND)
                .label("only `self` is known here")
                .note(format!("in the condition of typedef `{}`", self.typedef.name)),
        ))
    }

    /// `and` and `or` evaluate the right operand only where the left one does not decide.
    fn operator(&mut self, operator: Operator, left: &Datum, right: &Expression, span: Span) -> Outcome {
        let decided = match operator {
            Operator::And => Some(false),
            Operator::Or => Some(true),
            _ => None,
        };
        if let Some(decided) = decided {
            match operators::condition(left, Some(operator), span, self.naming)? {
                Some(value) if value == decided => return Ok(Datum::Bool(value)),
                None => return Ok(self.unknowns.create()),
                Some(_) => {}
            }
        }
        let right = self.expression(right)?;
        operators::apply(operator, left, &right, span, self.naming, &mut self.unknowns)
    }

    fn comprehension(
        &mut self,
        comprehension: &Comprehension,
        level: usize,
        elements: &mut Vec<Datum>,
    ) -> Outcome<()> {
        /// So many loops inside each other are no condition any more.
        const MOST_LOOPS: usize = 64;
        let Some((_, iterable)) = comprehension.loops.get(level) else {
            return self.element(comprehension, elements);
        };
        if level >= MOST_LOOPS {
            return Err(not_direct("a comprehension of so many loops", iterable.span));
        }
        let value = self.expression(iterable)?;
        let items = match value.unmarked() {
            Datum::Unknown(_) => {
                elements.push(self.unknowns.create());
                return Ok(());
            }
            Datum::List(items) => items.clone(),
            other => {
                let message = format!(
                    "a comprehension goes through lists, not through {} `{}`",
                    type_name(other, self.naming),
                    shown(&value, self.naming)
                );
                return Err(Box::new(
                    Diagnostic::error(&codes::OPERAND, iterable.span, message).of_class(class::TYPING),
                ));
            }
        };
        for item in items.iter() {
            self.loops.push(item.clone());
            let done = self.comprehension(comprehension, level + 1, elements);
            self.loops.pop();
            done?;
        }
        Ok(())
    }

    fn element(&mut self, comprehension: &Comprehension, elements: &mut Vec<Datum>) -> Outcome<()> {
        for condition in &comprehension.conditions {
            let value = self.expression(condition)?;
            match operators::condition(&value, None, condition.span, self.naming)? {
                Some(true) => {}
                Some(false) => return Ok(()),
                None => {
                    elements.push(value);
                    return Ok(());
                }
            }
        }
        elements.push(self.expression(&comprehension.value)?);
        Ok(())
    }
}

fn not_direct(what: &str, span: Span) -> Box<Diagnostic> {
    let message = format!("{what} can not be executed in this context");
    Box::new(
        Diagnostic::error(&codes::NOT_DIRECT, span, message)
            .of_class(class::DIRECT_EXECUTE)
            .label("in the condition of a typedef"),
    )
}

/// What functions that need no context are given.
struct NoContext<'a> {
    naming: Naming<'a>,
    unknowns: &'a mut Unknowns,
}

impl Instances for NoContext<'_> {
    fn entity(&self, instance: InstanceId) -> EntityId {
        self.naming.instances.entity(instance)
    }

    fn places(&self, instance: InstanceId) -> Vec<String> {
        self.naming.instances.places(instance)
    }
}

/// No files.
struct NoFiles;

impl Loader for NoFiles {
    fn read(&self, _: &str) -> Result<Arc<[u8]>, LoadError> {
        Err(LoadError::NotFound)
    }

    fn is_file(&self, _: &str) -> bool {
        false
    }

    fn is_directory(&self, _: &str) -> bool {
        false
    }

    fn list(&self, _: &str) -> Result<Vec<String>, LoadError> {
        Err(LoadError::NotFound)
    }
}

/// Why nothing outside can be reached.
const REFUSED: &str = "this is not possible in the condition of a typedef";

impl Context for NoContext<'_> {
    fn model(&self) -> &Model {
        self.naming.model
    }

    fn unknowns(&mut self) -> &mut Unknowns {
        self.unknowns
    }

    fn attribute(&mut self, _: InstanceId, _: &str) -> Read {
        Read::NotFound
    }

    fn variable(&mut self, _: &str) -> Read {
        Read::NotFound
    }

    fn is_namespace(&self, _: &str) -> bool {
        false
    }

    fn namespace_variable(&mut self, _: &str, _: &str) -> Read {
        Read::NotFound
    }

    fn function(&self, _: &str) -> Option<FunctionImplementation> {
        None
    }

    fn function_names(&self) -> Vec<Arc<str>> {
        Vec::new()
    }

    fn call(&mut self, function: &Function, arguments: Arguments, site: Site<'_>) -> Result<Datum, Stop> {
        call(function, arguments, site, self)
    }

    fn entity_named(&self, _: &str) -> Option<EntityId> {
        None
    }

    fn loader(&self) -> &dyn Loader {
        &NoFiles
    }

    fn record_file(&mut self, _: &str) {}

    fn add_source(&mut self, _: &str, _: &str) -> setpoint_diagnostics::FileId {
        // Only who has read a file adds it, and there is none to read.
        setpoint_diagnostics::FileId(0)
    }

    fn module_directory(&self, _: &str) -> Option<Arc<str>> {
        None
    }

    fn calling_module(&self) -> Arc<str> {
        "".into()
    }

    fn print(&mut self, _: String) {}

    fn warn(&mut self, _: Diagnostic) {}

    fn environment(&mut self, _: &str) -> Option<Arc<str>> {
        None
    }

    fn fact(&mut self, _: InstanceId, _: &str) -> Fact {
        Fact::NotAResource
    }

    fn sender(&mut self, _: InstanceId) -> Sender {
        Sender::NotAResource
    }

    fn unix_time(&mut self) -> Option<i64> {
        None
    }

    fn deployment(&self) -> Deployment {
        Deployment::default()
    }

    fn stored_text(&mut self, _: &str) -> Option<Arc<str>> {
        None
    }

    fn store_text(&mut self, _: &str, _: String) -> Result<(), String> {
        Err(REFUSED.to_owned())
    }

    fn keep_file(&mut self, path: &str, _: Arc<[u8]>) -> Arc<str> {
        path.into()
    }

    fn random(&mut self, _: &mut [u8]) -> Result<(), String> {
        Err(REFUSED.to_owned())
    }

    fn source(&mut self, _: &FunctionRef, _: &[Value]) -> Result<Value, CallError> {
        Err(CallError::fatal(REFUSED))
    }
}
