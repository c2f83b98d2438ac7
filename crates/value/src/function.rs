//! What a function is: one description for inference, calls, documentation and editors.

use std::borrow::Cow;
use std::fmt;
use std::mem::{forget, replace};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use crate::{ArgumentError, CallError, QualifiedName, Refinement, Shape, Signature, Source, Type, Value};

/// A function, described. Those of the library are one `static` each, see the attribute [`macro@crate::function`]; others are
/// made while the program runs, by [`FunctionSpec::made`]. Who calls functions holds them as [`FunctionRef`]s.
pub struct FunctionSpec {
    /// Import name of its module, `golang/strings`; empty for functions that need no import.
    pub module: Cow<'static, str>,
    /// Its name in the module. Names that begin with `_` cannot be written by users.
    pub name: Cow<'static, str>,
    /// Reference documentation; the first line stands alone.
    pub doc: Cow<'static, str>,
    signatures: Spellings,
    /// Flags of parameters by position; the last one given serves all further ones. Empty: the default.
    pub parameters: Cow<'static, [ParameterFlags]>,
    /// What makes its value change.
    pub class: Class,
    /// In `plan` its result is unknown.
    pub unpredictable: bool,
    /// It runs a command of the program.
    pub runs_commands: bool,
    /// Other implementations of mcl do not have it, so that programs that use it run here only.
    pub extension: bool,
    /// Types a call in a statically typed language from what is known of its arguments. None: by the signatures.
    pub infer: Option<InferHook>,
    /// Decides the result type from the arguments, in the dynamic protocol. None: the signature's result.
    pub result_type: Option<ResultType>,
    /// What holds for every result.
    pub refine: Option<fn(&[Value], &Type) -> Refinement>,
    /// What it does.
    pub implementation: Implementation,
    /// Inputs with results, run as tests.
    pub examples: &'static [Example],
    /// Documentation of its parameters, in any order.
    documented_parameters: &'static [ParameterDoc<'static>],
    /// The parsed signatures; filled on first use.
    parsed: OnceLock<Vec<Signature>>,
}

/// How signatures were written.
enum Spellings {
    Static(&'static [&'static str]),
    Made(Vec<String>),
}

/// A function that may be called: one of the library, or one that was made at run time. A clone is the same function and costs
/// at most a reference count; two are equal if they are one function, whatever their descriptions say.
///
/// ```
/// use setpoint_value::{CallError, FunctionRef, FunctionSpec, PureFunction, Value};
///
/// let by = 3;
/// let times = move |arguments: &[Value], _: &setpoint_value::Type| match arguments[0].as_int() {
///     Some(number) => Ok(Value::Int(number * by)),
///     None => Err(CallError::catchable("not a number")),
/// };
/// let spec = FunctionSpec::made("plugin", "times", ["func(int) int"], PureFunction::made(times))?;
/// let function = FunctionRef::from(spec);
/// assert_eq!(function.call(&[Value::Int(5)]), Ok(Value::Int(15)));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone)]
pub struct FunctionRef(Held);

#[derive(Clone)]
enum Held {
    Static(&'static FunctionSpec),
    Made(Arc<FunctionSpec>),
}

impl Deref for FunctionRef {
    type Target = FunctionSpec;

    fn deref(&self) -> &FunctionSpec {
        match &self.0 {
            Held::Static(spec) => spec,
            Held::Made(spec) => spec,
        }
    }
}

impl From<&'static FunctionSpec> for FunctionRef {
    fn from(spec: &'static FunctionSpec) -> FunctionRef {
        FunctionRef(Held::Static(spec))
    }
}

impl From<FunctionSpec> for FunctionRef {
    fn from(spec: FunctionSpec) -> FunctionRef {
        FunctionRef(Held::Made(Arc::new(spec)))
    }
}

impl FunctionRef {
    /// Whether this is the function of that description, and not merely one that is described alike.
    #[must_use]
    pub fn is(&self, spec: &FunctionSpec) -> bool {
        std::ptr::eq(&raw const **self, spec)
    }
}

impl PartialEq for FunctionRef {
    fn eq(&self, other: &FunctionRef) -> bool {
        self.is(other)
    }
}

impl Eq for FunctionRef {}

impl std::hash::Hash for FunctionRef {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::ptr::from_ref::<FunctionSpec>(self).hash(state);
    }
}

impl fmt::Display for FunctionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl fmt::Debug for FunctionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl FunctionSpec {
    /// A pure function with everything else at its default. Written as a chain:
    /// `FunctionSpec::pure("strings", "title", &["func(s str) str"], title).documented("…", &[…], &[…])`.
    #[must_use]
    pub const fn pure(
        module: &'static str,
        name: &'static str,
        signatures: &'static [&'static str],
        implementation: fn(&[Value], &Type) -> Result<Value, CallError>,
    ) -> FunctionSpec {
        FunctionSpec::new(
            module,
            name,
            signatures,
            Class::Pure,
            Implementation::Pure(PureFunction(Code::Static(implementation))),
        )
    }

    /// A function that is made while the program runs, by a plug-in or from the text of a module: pure, with everything else
    /// at its default. Signatures are one for each alternative, tried in order by arity and then by type, in the spelling of
    /// [`Signature::parse`]: `func(a str, …) ?1`, `func(?1: int | float, ?1) ?1`.
    ///
    /// # Errors
    /// What is wrong with a signature; that there is none.
    pub fn made(
        module: impl Into<String>,
        name: impl Into<String>,
        signatures: impl IntoIterator<Item = impl Into<String>>,
        implementation: PureFunction,
    ) -> Result<FunctionSpec, String> {
        let signatures: Vec<String> = signatures.into_iter().map(Into::into).collect();
        let parse =
            |text: &String| Signature::parse(text).ok_or_else(|| format!("`{text}` is not a signature"));
        let parsed = signatures.iter().map(parse).collect::<Result<Vec<_>, String>>()?;
        if parsed.is_empty() {
            return Err("a function has at least one signature".to_owned());
        }
        let mut spec = FunctionSpec::new("", "", &[], Class::Pure, Implementation::Pure(implementation));
        spec.module = Cow::Owned(module.into());
        spec.name = Cow::Owned(name.into());
        spec.signatures = Spellings::Made(signatures);
        spec.parsed = OnceLock::from(parsed);
        Ok(spec)
    }

    /// With documentation that is made while the program runs.
    #[must_use]
    pub fn described(mut self, doc: impl Into<String>) -> FunctionSpec {
        self.doc = Cow::Owned(doc.into());
        self
    }

    /// The signatures as they were written.
    #[must_use]
    pub fn signatures(&self) -> Vec<&str> {
        match &self.signatures {
            Spellings::Static(texts) => texts.to_vec(),
            Spellings::Made(texts) => texts.iter().map(String::as_str).collect(),
        }
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
            Implementation::Source(Shared::Static(implementation)),
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
            Implementation::Shape(Shared::Static(implementation)),
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
            module: Cow::Borrowed(module),
            name: Cow::Borrowed(name),
            doc: Cow::Borrowed(""),
            signatures: Spellings::Static(signatures),
            parameters: Cow::Borrowed(&[]),
            class,
            unpredictable: false,
            runs_commands: false,
            extension: false,
            infer: None,
            result_type: None,
            refine: None,
            implementation,
            examples: &[],
            documented_parameters: &[],
            parsed: OnceLock::new(),
        }
    }

    /// With documentation of itself and of its parameters, and examples.
    #[must_use]
    pub const fn documented(
        mut self,
        doc: &'static str,
        parameters: &'static [ParameterDoc<'static>],
        examples: &'static [Example],
    ) -> FunctionSpec {
        // Forgotten, because nothing can be freed while compiling; it is the empty default.
        forget(replace(&mut self.doc, Cow::Borrowed(doc)));
        self.documented_parameters = parameters;
        self.examples = examples;
        self
    }

    /// With flags of its parameters.
    #[must_use]
    pub const fn with_flags(mut self, parameters: &'static [ParameterFlags]) -> FunctionSpec {
        // Forgotten, because nothing can be freed while compiling; it is the empty default.
        forget(replace(&mut self.parameters, Cow::Borrowed(parameters)));
        self
    }

    /// Beyond what other implementations of mcl have.
    #[must_use]
    pub const fn extension(mut self) -> FunctionSpec {
        self.extension = true;
        self
    }

    /// With a result that is unknown in `plan`.
    #[must_use]
    pub const fn unpredictable(mut self) -> FunctionSpec {
        self.unpredictable = true;
        self
    }

    /// It runs a command of the program, so its result is unpredictable.
    #[must_use]
    pub const fn running_commands(mut self) -> FunctionSpec {
        self.runs_commands = true;
        self.unpredictable()
    }

    /// With an inference hook.
    #[must_use]
    pub const fn inferred_by(mut self, infer: InferHook) -> FunctionSpec {
        self.infer = Some(infer);
        self
    }

    /// With a type function for the dynamic protocol.
    #[must_use]
    pub const fn typed_by(
        mut self,
        result_type: fn(&[Value]) -> Result<Type, ArgumentError>,
    ) -> FunctionSpec {
        let result_type = Some(ResultType(Code::Static(result_type)));
        // Forgotten, because nothing can be freed while compiling; there was none.
        forget(replace(&mut self.result_type, result_type));
        self
    }

    /// With a type function for the dynamic protocol that is made while the program runs.
    #[must_use]
    pub fn typed_by_made(mut self, result_type: ResultType) -> FunctionSpec {
        self.result_type = Some(result_type);
        self
    }

    /// With a refinement of every result.
    #[must_use]
    pub const fn refined_by(mut self, refine: fn(&[Value], &Type) -> Refinement) -> FunctionSpec {
        self.refine = Some(refine);
        self
    }

    /// The parsed signatures.
    ///
    /// # Panics
    /// When one is misspelt; a test walks all specs of a registry.
    #[must_use]
    pub fn alternatives(&self) -> &[Signature] {
        self.parsed.get_or_init(|| {
            let parse = |text: &str| {
                Signature::parse(text)
                    .unwrap_or_else(|| panic!("the signature `{text}` of `{self}` is well-formed"))
            };
            self.signatures().into_iter().map(parse).collect()
        })
    }

    /// The documentation of the parameters, in the order of the longest signature. The text of an undocumented parameter is empty.
    ///
    /// # Panics
    /// If a parameter is documented that no signature has; a test walks all specs of a registry.
    #[must_use]
    pub fn parameter_docs(&self) -> Vec<ParameterDoc<'_>> {
        let documented = self.documented_parameters;
        let mut docs: Vec<ParameterDoc<'_>> = Vec::new();
        let mut alternatives: Vec<&Signature> = self.alternatives().iter().collect();
        alternatives.sort_by_key(|signature| std::cmp::Reverse(signature.parameters.len()));
        let parameters = alternatives
            .iter()
            .flat_map(|s| s.parameters.iter().chain(&s.variadic));
        for name in parameters.map(|parameter| &*parameter.name) {
            if docs.iter().all(|doc| doc.name != name) {
                let undocumented = ParameterDoc {
                    name,
                    doc: "",
                    default: "",
                };
                let own = documented.iter().find(|doc| doc.name == name).copied();
                docs.push(own.unwrap_or(undocumented));
            }
        }
        for ParameterDoc { name, .. } in documented {
            assert!(
                docs.iter().any(|doc| doc.name == *name),
                "`{self}` has a parameter `{name}`"
            );
        }
        docs
    }

    /// The name as a program has it when the module is imported under its own name: `strings.title` of `golang/strings`.
    #[must_use]
    pub fn called(&self) -> String {
        self.qualified_name().called()
    }

    /// Its module and its name.
    #[must_use]
    pub fn qualified_name(&self) -> QualifiedName<'_> {
        QualifiedName {
            module: &self.module,
            name: &self.name,
        }
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
        self.qualified_name().fmt(f)
    }
}

impl fmt::Debug for FunctionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FunctionSpec({self})")
    }
}

/// A function of the arguments and the decided result type, compiled in or made while the program runs.
#[derive(Clone)]
pub struct PureFunction(Code<PurePointer, PureClosure>);

type PurePointer = fn(&[Value], &Type) -> Result<Value, CallError>;
type PureClosure = dyn Fn(&[Value], &Type) -> Result<Value, CallError> + Send + Sync;

/// A type function: the result type from the arguments, which may be unknown.
#[derive(Clone)]
pub struct ResultType(Code<TypePointer, TypeClosure>);

type TypePointer = fn(&[Value]) -> Result<Type, ArgumentError>;
type TypeClosure = dyn Fn(&[Value]) -> Result<Type, ArgumentError> + Send + Sync;

/// Something to be called: a function of ours, or a closure.
enum Code<F, C: ?Sized> {
    Static(F),
    Made(Arc<C>),
}

impl<F: Copy, C: ?Sized> Clone for Code<F, C> {
    fn clone(&self) -> Code<F, C> {
        match self {
            Code::Static(function) => Code::Static(*function),
            Code::Made(closure) => Code::Made(closure.clone()),
        }
    }
}

impl PureFunction {
    /// From a closure.
    #[must_use]
    pub fn made(
        closure: impl Fn(&[Value], &Type) -> Result<Value, CallError> + Send + Sync + 'static,
    ) -> PureFunction {
        PureFunction(Code::Made(Arc::new(closure)))
    }

    /// Runs it, nothing checked; see [`crate::call::call`] for that.
    ///
    /// # Errors
    /// What it answers.
    pub fn run(&self, arguments: &[Value], result: &Type) -> Result<Value, CallError> {
        match &self.0 {
            Code::Static(function) => function(arguments, result),
            Code::Made(closure) => closure(arguments, result),
        }
    }
}

impl ResultType {
    /// From a closure.
    #[must_use]
    pub fn made(
        closure: impl Fn(&[Value]) -> Result<Type, ArgumentError> + Send + Sync + 'static,
    ) -> ResultType {
        ResultType(Code::Made(Arc::new(closure)))
    }

    /// Runs it.
    ///
    /// # Errors
    /// An argument that does not fit.
    pub fn run(&self, arguments: &[Value]) -> Result<Type, ArgumentError> {
        match &self.0 {
            Code::Static(function) => function(arguments),
            Code::Made(closure) => closure(arguments),
        }
    }
}

/// A part of the program, or something that was made while it runs; a clone is the same.
pub enum Shared<T: ?Sized + 'static> {
    /// A part of the program.
    Static(&'static T),
    /// Made while it runs.
    Made(Arc<T>),
}

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        match self {
            Shared::Static(part) => Shared::Static(part),
            Shared::Made(made) => Shared::Made(made.clone()),
        }
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Shared::Static(part) => part,
            Shared::Made(made) => made,
        }
    }
}

/// What a function does.
#[derive(Clone)]
pub enum Implementation {
    /// Depends on nothing but its arguments.
    Pure(PureFunction),
    /// Gives a value now and again when the outside changes.
    Source(Shared<dyn Source>),
    /// Builds scoped sub-graphs from function values.
    Shape(Shared<dyn Shape>),
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

/// What a parameter is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParameterDoc<'a> {
    /// Its name in the signatures.
    pub name: &'a str,
    /// A sentence about it.
    pub doc: &'a str,
    /// What holds where it is left out; empty where it must be given.
    pub default: &'a str,
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
