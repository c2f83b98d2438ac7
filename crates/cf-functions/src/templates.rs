//! Templates in the Jinja language, rendered over the running model.
//!
//! The engine takes nothing borrowed, and the model is. So a template is rendered over what has been read of the model so far; what it
//! misses is noted, and stands there as something empty, so that one pass finds as much as it can. Then all that was missing is read, and the
//! template rendered again. Of a pass in which something was missing nothing is kept: neither its text, nor an error, nor that it met an
//! unknown or what has no value yet. A function that changes something is only called for a pass in which nothing is missing so far.

mod conversion;
mod filters;
mod methods;
mod parameters;
mod scope;

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minijinja::value::{Rest, ValueOrKwargs};
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_cf_names::datum::{Datum, Dict, InstanceId};
use setpoint_cf_names::hir::{Function, FunctionImplementation};
use setpoint_diagnostics::{Diagnostic, FileId, Span};
use setpoint_value::{LONGEST_TEXT, Marks};

use crate::codes::{self, class};
use crate::context::{Arguments, Cache, Context, Failure, Read, Site, Stop};
use crate::std::{data_file, read_text};
use crate::text::unexpected_reference;

use scope::{Callee, Root};

/// How much a template may do in one pass: instructions and bytes.
const FUEL: u64 = 20_000_000;

/// How deep macros, blocks and includes may nest.
const DEEPEST: usize = 60;

/// How often a template is rendered at most. Each pass but the last has read something new.
const MOST_PASSES: usize = 10_000;

/// Renders a template. With arguments it sees nothing but those.
pub(crate) fn render(
    path: &str,
    arguments: Option<Arc<Dict>>,
    span: Span,
    context: &mut dyn Context,
) -> Result<Datum, Failure> {
    render_within(FUEL, path, arguments, span, context)
}

fn render_within(
    fuel: u64,
    path: &str,
    arguments: Option<Arc<Dict>>,
    span: Span,
    context: &mut dyn Context,
) -> Result<Datum, Failure> {
    let engine = Engine::of_call(fuel, context);
    let session = Arc::new(Session {
        arguments,
        loaded: engine.loaded.clone(),
        state: Mutex::default(),
    });
    let rendered = render_with(&engine, &session, path, span, context);
    // Also those that were loaded for an earlier call.
    let used = std::mem::take(&mut session.state().used);
    for name in used.iter().map(String::as_str).chain([path]) {
        let place = lock(&engine.loaded).get(name).map(|loaded| loaded.place.clone());
        if let Some(place) = place {
            context.record_file(&place);
        }
    }
    rendered
}

fn render_with(
    engine: &Engine,
    session: &Arc<Session>,
    path: &str,
    span: Span,
    context: &mut dyn Context,
) -> Result<Datum, Failure> {
    for _ in 0..MOST_PASSES {
        let mut output = Bounded::default();
        // A function that was called for this template may have rendered another.
        *lock(&engine.current) = Some(session.clone());
        let rendered = engine.environment.get_template(path).and_then(|template| {
            let root = minijinja::Value::from_object(Root(session.clone()));
            template.render_captured_to(root, &mut output).map(|_| ())
        });
        let missing = {
            let mut state = session.state();
            if let Some(stop) = state.stop.take() {
                return Err(stop);
            }
            state.noted.clear();
            std::mem::take(&mut state.missing)
        };
        if missing.is_empty() {
            return match rendered {
                Ok(()) => Ok(Datum::text(output.into_text()).with_marks(&session.state().marks)),
                Err(_) if output.full => Err(Failure::Other(format!(
                    "the text would be longer than {} MiB",
                    LONGEST_TEXT >> 20
                ))),
                Err(error) => Err(session.failure(&error, path, span)),
            };
        }
        for request in missing {
            let answer = answer(&request, span, context);
            session.state().answers.insert(request, answer);
        }
    }
    Err(Failure::Other(format!(
        "the template needs more than {MOST_PASSES} passes"
    )))
}

/// The engines of an execution: one for each module that calls, as templates are named from there, and for each set of functions that can
/// be called there. Each parses a template once.
#[derive(Debug, Default)]
struct Engines(FxHashMap<EngineKey, Arc<Engine>>);

/// What the engine may do, the module that calls, and the functions in Python that it sees.
type EngineKey = (u64, Arc<str>, Vec<Arc<str>>);

/// An engine with the templates that it has parsed.
#[derive(Debug)]
struct Engine {
    environment: Environment<'static>,
    /// What is rendered at present.
    current: Current,
    loaded: LoadedTemplates,
}

type Current = Arc<Mutex<Option<Arc<Session>>>>;

type LoadedTemplates = Arc<Mutex<FxHashMap<String, LoadedTemplate>>>;

/// A template that an engine has.
#[derive(Debug, Clone)]
struct LoadedTemplate {
    text: Arc<str>,
    file: FileId,
    place: String,
}

impl Engine {
    fn of_call(fuel: u64, context: &mut dyn Context) -> Arc<Engine> {
        let key = (fuel, context.calling_module(), context.python_names());
        let engines = context.cache().map(Cache::get::<Engines>);
        if let Some(engine) = engines.and_then(|engines| engines.0.get(&key)) {
            return engine.clone();
        }
        let current = Current::default();
        let mut environment = environment(&current, context);
        environment.set_fuel(Some(fuel));
        let engine = Arc::new(Engine {
            environment,
            current,
            loaded: LoadedTemplates::default(),
        });
        if let Some(cache) = context.cache() {
            cache.get::<Engines>().0.insert(key, engine.clone());
        }
        engine
    }
}

/// Whoever holds these locks does nothing that panics; and if, what he wrote is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nothing_is_rendered() -> minijinja::Error {
    minijinja::Error::new(ErrorKind::InvalidOperation, "nothing is rendered")
}

/// The engine, with all functions as filters.
fn environment(current: &Current, context: &dyn Context) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_unknown_method_callback(methods::call);
    filters::add_to(&mut environment);
    environment.set_formatter(conversion::write_value);
    environment.set_recursion_limit(DEEPEST);
    environment.set_debug(true);
    let loading = current.clone();
    environment.set_loader(move |name| {
        let session = lock(&loading).clone().ok_or_else(nothing_is_rendered)?;
        session.load(name)
    });
    let joining = current.clone();
    environment.set_path_join_callback(move |name, _| {
        if let Some(session) = &*lock(&joining) {
            session.state().used.insert(name.to_owned());
        }
        name.into()
    });
    for name in context.function_names() {
        if let Some(implementation) = context.function(&name) {
            add_filter(&mut environment, current, name, Some(implementation));
        }
    }
    for name in context.python_names() {
        add_filter(&mut environment, current, name, None);
    }
    environment
}

fn add_filter(
    environment: &mut Environment<'static>,
    current: &Current,
    name: Arc<str>,
    implementation: Option<FunctionImplementation>,
) {
    let filter = name.replace("::", ".");
    let current = current.clone();
    environment.add_filter(filter, move |arguments: Rest<ValueOrKwargs>| {
        let callee = Callee {
            name: name.clone(),
            implementation: implementation.clone(),
            session: lock(&current).clone().ok_or_else(nothing_is_rendered)?,
        };
        callee.call(&arguments.into_values())
    });
}

/// One rendering: what has been read for it.
#[derive(Debug)]
struct Session {
    arguments: Option<Arc<Dict>>,
    /// The templates of its engine.
    loaded: LoadedTemplates,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    answers: FxHashMap<Request, Answer>,
    /// What the pass found missing, in order.
    missing: Vec<Request>,
    noted: FxHashSet<Request>,
    /// Templates that were used besides the one that is rendered.
    used: BTreeSet<String>,
    /// Why the call ends, met while nothing was missing.
    stop: Option<Failure>,
    /// Marks of all that was read.
    marks: Marks,
}

/// What a template wants to know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Request {
    /// A variable in the scope of the call, or the beginning of a namespace path.
    Variable(String),
    /// A variable, function or namespace in a namespace.
    Member(String, String),
    /// An attribute of an instance.
    Attribute(InstanceId, String),
    /// The text of a template.
    Template(String),
    /// The result of a function, by its name and the text that tells its arguments from others.
    Call(Arc<CallRequest>),
}

/// A call of a function.
#[derive(Debug, Clone)]
struct CallRequest {
    name: Arc<str>,
    /// None: it is looked up when it is called, since that runs Python.
    implementation: Option<FunctionImplementation>,
    arguments: Arguments,
    key: String,
}

impl PartialEq for CallRequest {
    fn eq(&self, other: &CallRequest) -> bool {
        self.key == other.key
    }
}

impl Eq for CallRequest {}

impl std::hash::Hash for CallRequest {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// What was found.
#[derive(Debug, Clone)]
enum Answer {
    /// A variable or attribute.
    Read(Read),
    /// A namespace, or the beginning of the path of one.
    Namespace(String),
    /// A function of a namespace.
    Function(Arc<str>, FunctionImplementation),
    /// A template, with its place among the sources.
    Template(LoadedTemplate),
    /// What cannot be had.
    Failed(Failure),
}

fn answer(request: &Request, span: Span, context: &mut dyn Context) -> Answer {
    match request {
        Request::Variable(name) => match context.variable(name) {
            Read::NotFound if context.is_namespace(name) => Answer::Namespace(name.clone()),
            read => Answer::Read(read),
        },
        Request::Member(namespace, name) => {
            let path = format!("{namespace}::{name}");
            match context.namespace_variable(namespace, name) {
                Read::NotFound if context.is_namespace(&path) => Answer::Namespace(path),
                Read::NotFound => match context.function(&path) {
                    Some(implementation) => Answer::Function(path.into(), implementation),
                    None => Answer::Read(Read::NotFound),
                },
                read => Answer::Read(read),
            }
        }
        Request::Attribute(instance, name) => Answer::Read(context.attribute(*instance, name)),
        Request::Template(path) => {
            let loaded = data_file(path, "templates", context)
                .and_then(|file| Ok((read_text(&file, context)?, file.place)));
            match loaded {
                Ok((text, place)) => {
                    // Lines end in one character, whatever ends them in the file.
                    let text = text.replace("\r\n", "\n").replace('\r', "\n");
                    let file = context.add_source(&place, &text);
                    let text = text.into();
                    Answer::Template(LoadedTemplate { text, file, place })
                }
                Err(failure) => Answer::Failed(failure),
            }
        }
        Request::Call(wanted) => {
            let known = wanted.implementation.clone();
            let Some(implementation) = known.or_else(|| context.function(&wanted.name)) else {
                let message = format!("there is no function `{}`", wanted.name);
                return Answer::Failed(Failure::Other(message));
            };
            let function = Function {
                name: wanted.name.clone(),
                implementation,
            };
            let site = Site {
                span,
                name: span,
                written: None,
            };
            match context.call(&function, wanted.arguments.clone(), site) {
                Ok(result) => Answer::Read(Read::Value(result)),
                Err(Stop::Unset(cell)) => Answer::Read(Read::Unset(cell)),
                Err(Stop::Error(error)) => Answer::Failed(Failure::Model(error)),
            }
        }
    }
}

impl Session {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// What is known of a request. None: nothing yet, and that was noted.
    fn ask(&self, request: Request) -> Option<Answer> {
        let mut state = self.state();
        if let Some(answer) = state.answers.get(&request) {
            return Some(answer.clone());
        }
        if state.noted.insert(request.clone()) {
            state.missing.push(request);
        }
        None
    }

    /// Whether something has been missing in this pass.
    fn is_guessing(&self) -> bool {
        !self.state().missing.is_empty()
    }

    /// Ends the call, unless the pass is not what it will be.
    fn stop(&self, failure: Failure) -> minijinja::Error {
        let mut state = self.state();
        if state.missing.is_empty() && state.stop.is_none() {
            state.stop = Some(failure);
        }
        minijinja::Error::new(ErrorKind::InvalidOperation, "the call ends here")
    }

    fn take_marks(&self, datum: &Datum) {
        if let Datum::Marked(marked) = datum {
            self.state().marks.union(&marked.marks);
        }
    }

    /// Gives the engine the text of a template.
    fn load(&self, name: &str) -> Result<Option<String>, minijinja::Error> {
        match self.ask(Request::Template(name.to_owned())) {
            Some(Answer::Template(template)) => {
                let text = template.text.to_string();
                lock(&self.loaded).insert(name.to_owned(), template);
                Ok(Some(text))
            }
            Some(Answer::Failed(_)) => Ok(None),
            _ => Err(minijinja::Error::new(
                ErrorKind::InvalidOperation,
                "the template is not loaded yet",
            )),
        }
    }

    /// What an error of the engine is for the call: told at the place in the template.
    fn failure(&self, error: &minijinja::Error, path: &str, span: Span) -> Failure {
        // The innermost error that has a place is where it began.
        let mut inner = error;
        let mut source = std::error::Error::source(error);
        while let Some(next) = source {
            if let Some(next) = next.downcast_ref::<minijinja::Error>() {
                inner = next;
            }
            source = next.source();
        }
        let state = self.state();
        if inner.kind() == ErrorKind::TemplateNotFound
            && let Some(Answer::Failed(failure)) = state.answers.get(&Request::Template(path.to_owned()))
        {
            return match failure {
                Failure::Other(reason) => Failure::Caused(Box::new(
                    Diagnostic::error(&codes::NOT_IN_TEMPLATE, span, reason.clone())
                        .of_class(class::TEMPLATE_NOT_FOUND),
                )),
                failure => failure.clone(),
            };
        }
        let loaded = lock(&self.loaded);
        let template = |name: &str| loaded.get(name);
        let placed = [inner, error].into_iter().find_map(|error| {
            match (error.name(), error.name().and_then(template)) {
                (Some(name), Some(LoadedTemplate { text, file, .. })) => {
                    let range = error
                        .range()
                        .or_else(|| line_range(text, error.line()?))
                        .unwrap_or(0..0);
                    let offset = |place: usize| u32::try_from(place.min(text.len())).unwrap_or(0);
                    Some((
                        name.to_owned(),
                        Span::new(*file, offset(range.start), offset(range.end)),
                    ))
                }
                _ => None,
            }
        });
        let reason = match inner.detail() {
            Some(detail) => detail.to_owned(),
            None => inner.kind().to_string(),
        };
        let (place, name) = match placed {
            Some((name, place)) => (place, name),
            None => (span, path.to_owned()),
        };
        let undefined = inner.kind() == ErrorKind::UndefinedError;
        let diagnostic = if undefined {
            let message = format!("an undefined name is used in template `{name}`: {reason}");
            Diagnostic::error(&codes::NOT_FOUND, place, message).of_class(class::NOT_FOUND)
        } else {
            let message = format!("template `{name}` cannot be rendered: {reason}");
            Diagnostic::error(&codes::NOT_IN_TEMPLATE, place, message).of_class(class::EXTERNAL)
        };
        let diagnostic = if place == span {
            diagnostic
        } else {
            diagnostic.via(span, "the template is rendered here")
        };
        if undefined {
            Failure::Model(Box::new(diagnostic))
        } else {
            Failure::Caused(Box::new(diagnostic))
        }
    }

    /// An unexpected deferred reference.
    fn refuse_reference(&self) -> minijinja::Error {
        // The place is that of the call, which wraps it.
        self.stop(Failure::Model(Box::new(unexpected_reference(Span::new(
            FileId(0),
            0,
            0,
        )))))
    }
}

/// The bytes of a line.
fn line_range(text: &str, line: usize) -> Option<std::ops::Range<usize>> {
    let start = match line.checked_sub(2) {
        None => 0,
        Some(before) => text.match_indices('\n').nth(before)?.0 + 1,
    };
    let end = text[start..]
        .find('\n')
        .map_or(text.len(), |length| start + length);
    Some(start..end)
}

/// A text that refuses to become too long.
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    full: bool,
}

impl Bounded {
    fn into_text(self) -> String {
        // The engine writes nothing but text.
        String::from_utf8(self.bytes).unwrap_or_default()
    }
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > LONGEST_TEXT {
            self.full = true;
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
