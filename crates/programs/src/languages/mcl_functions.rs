//! Functions that modules of models declare in mcl, in a file `functions.mcl`.
//!
//! The file is compiled with the model, and each function at its top is one that the model can call. The first call with arguments of
//! certain types compiles a program that makes such a call; it and all later ones evaluate that program. Nothing in it may ask the machine:
//! what a function gives follows from its arguments.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_cf::project::codes::MODULE;
use setpoint_diagnostics::{
    Diagnostic, Diagnostics, FileId, LoadError, Loader, MemoryLoader, Severity, SourceMap, Span,
};
use setpoint_flow::{Evaluator, Program};
use setpoint_graph::{FunctionFile, FunctionFiles, Library};
use setpoint_host::sync::Mutex;
use setpoint_mcl::syntax::{Func, StmtKind, TypeExpr, parse};
use setpoint_mcl::{CompileOptions, Entry, compile};
use setpoint_value::{CallError, FunctionRef, FunctionSpec, PureFunction, Type, Value};

use crate::languages::included_programs::Places;

/// Compiles files of functions in mcl.
pub(crate) struct MclFunctions;

impl FunctionFiles for MclFunctions {
    fn functions(
        &self,
        module: &str,
        path: &str,
        loader: &dyn Loader,
        library: &Library,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> FunctionFile {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let below = Below { directory, loader };
        let (mut own, mut found) = (SourceMap::new(), Diagnostics::new());
        let entry = Entry::File(name.to_owned());
        let options = CompileOptions::default();
        let compiled = compile(&entry, &options, &below, library, &mut own, &mut found);
        let mut functions = Vec::new();
        let main = own.files().find(|(_, file)| &*file.name == name);
        if let (Some((id, file)), false) = (main, found.has_errors()) {
            let file = Declaring {
                name,
                path,
                text: &file.text,
                texts: compiled
                    .files
                    .iter()
                    .filter_map(|file| Some((file, below.read(file).ok()?)))
                    .fold(MemoryLoader::new(), |texts, (file, text)| texts.with(file, text)),
                library: Arc::new(library.clone()),
            };
            functions = file.functions(id, module, &mut found);
        }
        if !found.is_empty() {
            let places = Places::new(&own, &below.path(""), None, sources);
            diagnostics.append(places.diagnostics(&found));
        }
        FunctionFile {
            functions,
            reads: compiled.files.iter().map(|file| below.path(file)).collect(),
        }
    }
}

/// A file of functions that compiles.
struct Declaring<'a> {
    /// Relative to its directory.
    name: &'a str,
    /// As the model has it.
    path: &'a str,
    text: &'a str,
    /// With all that it imports.
    texts: MemoryLoader,
    library: Arc<Library>,
}

impl Declaring<'_> {
    /// Its functions. What else stands at its top is told, unless it is for them.
    fn functions(&self, id: FileId, module: &str, found: &mut Diagnostics) -> Vec<FunctionRef> {
        let parsed = parse(id, self.text, &mut Diagnostics::new());
        let mut functions = Vec::new();
        for statement in &parsed.ast.root.statements {
            let statement = parsed.ast.stmt(*statement);
            match &statement.kind {
                StmtKind::Func(function) => match self.function(function, module) {
                    Ok(function) => functions.push(function),
                    Err(reason) => found.push(unusable(function.name.span, &reason)),
                },
                StmtKind::Bind(_) | StmtKind::Import(_) => {}
                _ => found.push(no_function(statement.span, self.path)),
            }
        }
        functions
    }

    fn function(&self, function: &Func, module: &str) -> Result<FunctionRef, String> {
        let calls = Calls {
            file: self.name.to_owned(),
            function: function.name.text.to_string(),
            path: self.path.to_owned(),
            texts: self.texts.clone(),
            library: self.library.clone(),
            by_types: Mutex::default(),
        };
        let call = PureFunction::made(move |arguments, _| calls.call(arguments));
        let signature = self.signature(function);
        let spec = FunctionSpec::made(module, &*function.name.text, [signature], call)?;
        Ok(spec.described(format!("Declared in `{}`.", self.path)).into())
    }

    /// A function as the library describes it. Types that are not written follow from each call.
    fn signature(&self, function: &Func) -> String {
        let mut open = 0;
        let mut written = |annotation: Option<&TypeExpr>| match annotation {
            Some(annotation) => {
                self.text[annotation.span.start as usize..annotation.span.end as usize].to_owned()
            }
            None => {
                open += 1;
                format!("?{open}")
            }
        };
        let parameters = function.function.parameters.items.iter();
        let parameters: Vec<String> = parameters
            .map(|parameter| {
                format!(
                    "{} {}",
                    parameter.name.text,
                    written(parameter.annotation.as_ref())
                )
            })
            .collect();
        let result = written(function.function.result.as_ref());
        format!("func({}) {result}", parameters.join(", "))
    }
}

fn no_function(place: Span, path: &str) -> Diagnostic {
    let message = format!("`{path}` has something that is no function, which nobody would apply");
    Diagnostic::error(&MODULE, place, message)
        .of_class("ModuleLoadingException")
        .label("takes no effect")
        .help("a file of functions has functions, imports and variables; resources belong into the model")
}

fn unusable(place: Span, reason: &str) -> Diagnostic {
    let message = format!("a model cannot call this function: {reason}");
    Diagnostic::error(&MODULE, place, message).of_class("ModuleLoadingException")
}

/// The module of the functions that lead into and out of a program that makes a call. No module of a user can be called so.
const MODULE_OF_CALL: &str = "setpoint/call";

/// So many programs of calls are kept for a function: each dict with other keys is of another type.
const MOST_PROGRAMS: usize = 256;

/// The calls of one function.
struct Calls {
    file: String,
    function: String,
    path: String,
    /// The file, with all that it imports.
    texts: MemoryLoader,
    library: Arc<Library>,
    /// By the types of the arguments.
    by_types: Mutex<BTreeMap<String, CallOfTypes>>,
}

/// The program of a call, or why there is none.
type CallOfTypes = Result<Arc<Mutex<Call>>, String>;

/// A program that makes a call.
struct Call {
    program: Arc<Program>,
    sources: SourceMap,
    passed: Arc<Mutex<Passed>>,
}

/// What passes between a call and its program.
#[derive(Default)]
struct Passed {
    arguments: Vec<Value>,
    result: Option<Value>,
}

impl Calls {
    fn call(&self, arguments: &[Value]) -> Result<Value, CallError> {
        let types: Vec<Type> = arguments.iter().map(Value::ty).collect();
        let key = types
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        let known = self.by_types.lock().get(&key).cloned();
        let call = match known {
            Some(known) => known,
            None => {
                let made = self.compile(&types).map(|call| Arc::new(Mutex::new(call)));
                let mut by_types = self.by_types.lock();
                if by_types.len() >= MOST_PROGRAMS {
                    by_types.clear();
                }
                by_types.insert(key, made.clone());
                made
            }
        };
        let call = call.map_err(CallError::catchable)?;
        let call = call.lock();
        call.make(arguments, &self.path, &self.file)
    }

    fn compile(&self, types: &[Type]) -> Result<Call, String> {
        let passed = Arc::new(Mutex::new(Passed::default()));
        let mut library = (*self.library).clone();
        let mut arguments = Vec::new();
        for (position, ty) in types.iter().enumerate() {
            let passed = passed.clone();
            let argument = PureFunction::made(move |_, _| {
                let value = passed.lock().arguments.get(position).cloned();
                value.ok_or_else(|| CallError::catchable("there is no argument"))
            });
            let name = format!("argument{position}");
            arguments.push(format!("call.{name}()"));
            let argument = FunctionSpec::made(MODULE_OF_CALL, name, [format!("func() {ty}")], argument)?;
            // Nobody else has a module of this name.
            let _ = library.functions.add(argument.into());
        }
        let result = passed.clone();
        let give = PureFunction::made(move |arguments, _| {
            result.lock().result = arguments.first().cloned();
            Ok(Value::Bool(true))
        });
        let give = FunctionSpec::made(MODULE_OF_CALL, "give", ["func(result ?1) bool"], give)?;
        let _ = library.functions.add(give.into());
        let (function, file, arguments) = (&self.function, &self.file, arguments.join(", "));
        let text = format!(
            "import \"{MODULE_OF_CALL}\"\nimport \"{file}\" as declared\n\
             if call.give(declared.{function}({arguments})) {{\n\tnoop \"called\" {{}}\n}}\n"
        );
        let entry = Entry::Code {
            name: "<call>".to_owned(),
            text,
        };
        let (mut sources, mut found) = (SourceMap::new(), Diagnostics::new());
        let options = CompileOptions::default();
        let compiled = compile(&entry, &options, &self.texts, &library, &mut sources, &mut found);
        match (
            compiled.program,
            found.iter().find(|found| found.severity == Severity::Error),
        ) {
            (Some(program), None) => Ok(Call {
                program,
                sources,
                passed,
            }),
            (_, Some(error)) => Err(error.message.clone()),
            (None, None) => Err("it cannot be called".to_owned()),
        }
    }
}

impl Call {
    fn make(&self, arguments: &[Value], path: &str, file: &str) -> Result<Value, CallError> {
        *self.passed.lock() = Passed {
            arguments: arguments.to_vec(),
            result: None,
        };
        let step = Evaluator::alone(self.program.clone()).step(&[]);
        let result = self.passed.lock().result.take();
        if let Some(error) = step
            .diagnostics
            .iter()
            .find(|found| found.severity == Severity::Error)
        {
            let place = error.primary.span;
            let text = self.sources.file(place.file);
            let message = match &*text.name == file {
                true => format!("{} ({path}:{})", error.message, text.position(place.start).line),
                false => error.message.clone(),
            };
            return Err(CallError::catchable(message));
        }
        result.ok_or_else(|| {
            CallError::catchable(format!(
                "it asks the machine for something; what a function of `{path}` gives must follow from its arguments"
            ))
        })
    }
}

/// What a loader has below a directory.
struct Below<'a> {
    directory: &'a str,
    loader: &'a dyn Loader,
}

impl Below<'_> {
    fn path(&self, path: &str) -> String {
        match self.directory {
            "" => path.to_owned(),
            directory => format!("{directory}/{path}"),
        }
    }
}

impl Loader for Below<'_> {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError> {
        self.loader.read(&self.path(path))
    }

    fn is_file(&self, path: &str) -> bool {
        self.loader.is_file(&self.path(path))
    }

    fn is_directory(&self, path: &str) -> bool {
        self.loader.is_directory(&self.path(path))
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError> {
        let found = self.loader.list(&self.path(directory))?;
        let own = self.path("");
        let relative = found
            .iter()
            .map(|path| path.strip_prefix(&own).unwrap_or(path).to_owned());
        Ok(relative.collect())
    }
}
