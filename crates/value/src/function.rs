//! What a function is: one description for inference, calls, documentation and editors.

use std::fmt;
use std::sync::OnceLock;

use std::collections::BTreeMap;

use crate::{Refinement, Shape, Signature, Source, Type, Value};

/// A function, described. One `static` each; see the attribute [`macro@crate::function`].
pub struct FunctionSpec {
    /// Import name of its module, `golang/strings`; empty for functions that need no import.
    pub module: &'static str,
    /// Its name in the module. Names that begin with `_` cannot be written by users.
    pub name: &'static str,
    /// Reference documentation; the first line stands alone.
    pub doc: &'static str,
    /// One signature for each alternative, tried in order by arity and then by type, in the spelling of
    /// [`Signature::parse`]: `func(a str, …) ?1`, `func(?1: int | float, ?1) ?1`.
    pub signatures: &'static [&'static str],
    /// Flags of parameters by position; the last one given serves all further ones. Empty: the default.
    pub parameters: &'static [ParameterFlags],
    /// What makes its value change.
    pub class: Class,
    /// In `plan` its result is unknown.
    pub unpredictable: bool,
    /// Types a call in mcl from what is known of its arguments. None: by the signatures.
    pub infer: Option<InferHook>,
    /// Decides the result type from the arguments, in the dynamic protocol. None: the signature's result.
    pub result_type: Option<ResultType>,
    /// Calls by mcl go through the whole dynamic protocol, arguments and result converted; see
    /// [`FunctionSpec::adapted_by`].
    pub adapted: bool,
    /// What holds for every result.
    pub refine: Option<fn(&[Value], &Type) -> Refinement>,
    /// What it does.
    pub implementation: Implementation,
    /// Inputs with results, run as tests.
    pub examples: &'static [Example],
    /// The parsed signatures; filled on first use.
    pub parsed: OnceLock<Vec<Signature>>,
}

impl FunctionSpec {
    /// A pure function with everything else at its default. Written as a chain:
    /// `FunctionSpec::pure("strings", "title", &["func(s str) str"], title).documented("…", &[…])`.
    #[must_use]
    pub const fn pure(
        module: &'static str,
        name: &'static str,
        signatures: &'static [&'static str],
        implementation: PureFunction,
    ) -> FunctionSpec {
        FunctionSpec::new(
            module,
            name,
            signatures,
            Class::Pure,
            Implementation::Pure(implementation),
        )
    }

    /// A source with everything else at its default. `class` is `Environment`, `Source` or `Stateful`.
    #[must_use]
    pub const fn source(
        module: &'static str,
        name: &'static str,
        signatures: &'static [&'static str],
        class: Class,
        implementation: &'static dyn Source,
    ) -> FunctionSpec {
        FunctionSpec::new(
            module,
            name,
            signatures,
            class,
            Implementation::Source(implementation),
        )
    }

    /// A shape with everything else at its default.
    #[must_use]
    pub const fn shape(
        module: &'static str,
        name: &'static str,
        signatures: &'static [&'static str],
        implementation: &'static dyn Shape,
    ) -> FunctionSpec {
        FunctionSpec::new(
            module,
            name,
            signatures,
            Class::Pure,
            Implementation::Shape(implementation),
        )
    }

    const fn new(
        module: &'static str,
        name: &'static str,
        signatures: &'static [&'static str],
        class: Class,
        implementation: Implementation,
    ) -> FunctionSpec {
        FunctionSpec {
            module,
            name,
            doc: "",
            signatures,
            parameters: &[],
            class,
            unpredictable: false,
            infer: None,
            result_type: None,
            adapted: false,
            refine: None,
            implementation,
            examples: &[],
            parsed: OnceLock::new(),
        }
    }

    /// With documentation and examples.
    #[must_use]
    pub const fn documented(mut self, doc: &'static str, examples: &'static [Example]) -> FunctionSpec {
        self.doc = doc;
        self.examples = examples;
        self
    }

    /// With flags of its parameters.
    #[must_use]
    pub const fn with_flags(mut self, parameters: &'static [ParameterFlags]) -> FunctionSpec {
        self.parameters = parameters;
        self
    }

    /// With a result that is unknown in `plan`.
    #[must_use]
    pub const fn unpredictable(mut self) -> FunctionSpec {
        self.unpredictable = true;
        self
    }

    /// With an inference hook.
    #[must_use]
    pub const fn inferred_by(mut self, infer: InferHook) -> FunctionSpec {
        self.infer = Some(infer);
        self
    }

    /// A function of the dynamic protocol whose calls in mcl are typed by this hook, normally
    /// [`crate::infer_adapted`], and at run time convert arguments and result.
    #[must_use]
    pub const fn adapted_by(mut self, infer: InferHook) -> FunctionSpec {
        self.infer = Some(infer);
        self.adapted = true;
        self
    }

    /// With a type function for the dynamic protocol.
    #[must_use]
    pub const fn typed_by(
        mut self,
        result_type: fn(&[Value]) -> Result<Type, ArgumentError>,
    ) -> FunctionSpec {
        self.result_type = Some(result_type);
        self
    }

    /// With a refinement of every result.
    #[must_use]
    pub const fn refined_by(mut self, refine: fn(&[Value], &Type) -> Refinement) -> FunctionSpec {
        self.refine = Some(refine);
        self
    }

    /// Calls it as a function over values, everything checked; see [`crate::call::call`].
    ///
    /// # Errors
    /// An argument that does not fit, or what the function answers.
    pub fn call(&self, arguments: &[Value]) -> Result<Value, CallError> {
        crate::call::call(self, arguments)
    }

    /// The parsed signatures.
    ///
    /// # Panics
    /// When one is misspelt; a test walks all specs of a registry.
    #[must_use]
    pub fn alternatives(&self) -> &[Signature] {
        self.parsed.get_or_init(|| {
            let parse = |text: &&str| {
                Signature::parse(text)
                    .unwrap_or_else(|| panic!("the signature `{text}` of `{self}` is well-formed"))
            };
            self.signatures.iter().map(parse).collect()
        })
    }

    /// The flags of the parameter at a position.
    #[must_use]
    pub fn flags(&self, index: usize) -> ParameterFlags {
        self.parameters
            .get(index)
            .or(self.parameters.last())
            .copied()
            .unwrap_or_default()
    }
}

impl fmt::Display for FunctionSpec {
    /// The name as it is written after `import "module"`, with the module's whole path: `golang/strings.title`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.module.is_empty() {
            f.write_str(self.name)
        } else {
            write!(f, "{}.{}", self.module, self.name)
        }
    }
}

impl fmt::Debug for FunctionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FunctionSpec({self})")
    }
}

/// A function of the arguments and the decided result type.
pub type PureFunction = fn(&[Value], &Type) -> Result<Value, CallError>;

/// A type function: the result type from the arguments, which may be unknown.
pub type ResultType = fn(&[Value]) -> Result<Type, ArgumentError>;

/// What a function does.
#[derive(Clone, Copy)]
pub enum Implementation {
    /// Depends on nothing but its arguments.
    Pure(PureFunction),
    /// Gives a value now and again when the outside changes.
    Source(&'static dyn Source),
    /// Builds scoped sub-graphs from function values.
    Shape(&'static dyn Shape),
}

/// What makes the value of a call change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// `=`: only its arguments.
    Pure,
    /// `env`: reads the machine once for given arguments.
    Environment,
    /// `ev`: something outside that changes by itself.
    Source,
    /// `st`: a source with state for each call site; never shared.
    Stateful,
}

/// What an argument may be. The default: known, not null, of known type, and seen without its marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParameterFlags {
    /// Null reaches the implementation.
    pub allow_null: bool,
    /// Unknown values reach the implementation.
    pub allow_unknown: bool,
    /// Values whose type is not known reach the type function.
    pub allow_dynamic: bool,
    /// Marks stay on the argument; the implementation sees to the marks of its result.
    pub allow_marked: bool,
}

/// An input with its result, in mcl: `len("abc")` and `3`.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    /// An expression that calls the function, with its module's default alias.
    pub call: &'static str,
    /// An expression of equal value, or empty for an example whose value varies.
    pub result: &'static str,
}

/// Types a call from what is known of its arguments, for functions whose signature depends on values (`fmt.printf`).
pub type InferHook = fn(&InferArguments<'_>) -> Result<Inferred, ArgumentError>;

/// What an [`InferHook`] is given: for each argument its type as far as it is evident, and its static value if it has one.
#[derive(Debug, Clone, Copy)]
pub struct InferArguments<'a> {
    /// Evident types.
    pub types: &'a [Option<Type>],
    /// Static values.
    pub values: &'a [Option<Value>],
}

/// What an [`InferHook`] answers.
#[derive(Debug, Clone)]
pub struct Inferred {
    /// A signature for exactly these arguments; its variables are fresh for the call.
    pub signature: Type,
}

/// An argument that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentError {
    /// Its position from 0; none when it is the arguments as a whole (their number).
    pub index: Option<usize>,
    /// Name of the parameter, where known.
    pub parameter: Option<String>,
    /// What is wrong: lower case, no full stop, without the value when that is sensitive.
    pub message: String,
    /// Where inside the argument: `.a[0].b`; empty for the argument itself.
    pub path: String,
}

impl ArgumentError {
    /// About the argument at `index`.
    #[must_use]
    pub fn at(index: usize, message: impl Into<String>) -> ArgumentError {
        ArgumentError {
            index: Some(index),
            parameter: None,
            message: message.into(),
            path: String::new(),
        }
    }

    /// About the arguments as a whole.
    #[must_use]
    pub fn whole(message: impl Into<String>) -> ArgumentError {
        ArgumentError {
            index: None,
            parameter: None,
            message: message.into(),
            path: String::new(),
        }
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parameter) = &self.parameter {
            write!(f, "`{parameter}`{}: ", self.path)?;
        } else if let Some(index) = self.index {
            write!(f, "argument {}{}: ", index + 1, self.path)?;
        }
        f.write_str(&self.message)
    }
}

/// Why a call has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// An argument does not fit.
    Argument(ArgumentError),
    /// The implementation failed.
    Failed {
        /// What is wrong: lower case, no full stop.
        message: String,
        /// Whether mcl's `<|>` catches it.
        catchable: bool,
    },
    /// The implementation, or the type function, panicked. Never catchable.
    Panicked {
        /// The function.
        function: String,
        /// The panic's message.
        message: String,
    },
}

impl CallError {
    /// A failure that `<|>` catches.
    #[must_use]
    pub fn catchable(message: impl Into<String>) -> CallError {
        CallError::Failed {
            message: message.into(),
            catchable: true,
        }
    }

    /// A failure that nothing catches.
    #[must_use]
    pub fn fatal(message: impl Into<String>) -> CallError {
        CallError::Failed {
            message: message.into(),
            catchable: false,
        }
    }

    /// Whether `<|>` catches it.
    #[must_use]
    pub fn is_catchable(&self) -> bool {
        matches!(self, CallError::Failed { catchable: true, .. })
    }
}

impl From<ArgumentError> for CallError {
    fn from(error: ArgumentError) -> CallError {
        CallError::Argument(error)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Argument(error) => write!(f, "{error}"),
            CallError::Failed { message, .. } => f.write_str(message),
            CallError::Panicked { function, message } => {
                write!(f, "`{function}` stopped with an internal error: {message}")
            }
        }
    }
}

impl std::error::Error for CallError {}

/// The functions and variables of one module of a library, in the order of the reference documentation.
pub struct Module {
    /// Import name, `golang/strings`; empty for what needs no import.
    pub name: &'static str,
    /// One line about it.
    pub doc: &'static str,
    /// Its functions.
    pub functions: &'static [&'static FunctionSpec],
    /// Its variables: name and text value.
    pub variables: &'static [(&'static str, &'static str)],
}

impl Module {
    /// A module of functions only.
    #[must_use]
    pub const fn new(
        name: &'static str,
        doc: &'static str,
        functions: &'static [&'static FunctionSpec],
    ) -> Module {
        Module {
            name,
            doc,
            functions,
            variables: &[],
        }
    }
}

/// All functions that a language may call, by module and name.
#[derive(Clone, Default)]
pub struct Registry {
    modules: BTreeMap<&'static str, BTreeMap<&'static str, &'static FunctionSpec>>,
    variables: BTreeMap<&'static str, Vec<(&'static str, &'static str)>>,
}

impl Registry {
    /// The functions of these modules.
    ///
    /// # Panics
    /// When two functions of one module have one name, or a function names another module than the one that lists it.
    #[must_use]
    pub fn new<'a>(modules: impl IntoIterator<Item = &'a Module>) -> Registry {
        let mut registry = Registry::default();
        for module in modules {
            let functions = registry.modules.entry(module.name).or_default();
            for spec in module.functions {
                assert_eq!(spec.module, module.name, "`{spec}` is listed by its own module");
                let before = functions.insert(spec.name, spec);
                assert!(before.is_none(), "`{spec}` is listed once");
            }
            registry
                .variables
                .entry(module.name)
                .or_default()
                .extend(module.variables);
        }
        registry
    }

    /// A function by module (empty: no import needed) and name.
    #[must_use]
    pub fn get(&self, module: &str, name: &str) -> Option<&'static FunctionSpec> {
        self.modules.get(module)?.get(name).copied()
    }

    /// The functions of a module, by name; none if there is no such module.
    #[must_use]
    pub fn module(&self, name: &str) -> Option<&BTreeMap<&'static str, &'static FunctionSpec>> {
        self.modules.get(name)
    }

    /// The variables of a module: name and text value.
    #[must_use]
    pub fn variables(&self, module: &str) -> &[(&'static str, &'static str)] {
        self.variables.get(module).map(Vec::as_slice).unwrap_or_default()
    }

    /// Names of all modules.
    pub fn module_names(&self) -> impl Iterator<Item = &'static str> {
        self.modules.keys().copied()
    }

    /// All functions, by module and name.
    pub fn iter(&self) -> impl Iterator<Item = &'static FunctionSpec> {
        self.modules
            .values()
            .flat_map(|functions| functions.values().copied())
    }
}
