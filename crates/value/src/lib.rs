//! Types, values and functions: the data of every language, and the protocol by which functions are called.
//!
//! - [`Type`] and [`Value`]: what there is. A value may be *unknown* (it will be known later) and may carry *marks*
//!   (`sensitive`). `Eq` and `Hash` of both mean *identical*; the languages' `==` is [`equals`].
//!   [`Value::walk`], [`Value::transform`] and [`Path::apply`] reach into it; [`Value::to_json`] and [`Type::to_json`] write what
//!   [`Value::from_json`] and [`Type::from_json`] read exactly.
//! - [`FunctionSpec`]: one typed description of a function, from which inference, argument checks, handling of
//!   unknowns and marks, documentation and editor help follow. [`call`] is the protocol.
//! - [`Source`], [`Shape`] and [`Capabilities`]: how functions whose value changes by itself, or that build scopes,
//!   meet the evaluator and the machine. Only declarations: nothing in this crate does I/O, holds a lock or knows a
//!   clock.

#![forbid(unsafe_code)]

mod awaited;
mod bounds;
pub mod call;
mod call_error;
mod capabilities;
mod conformance;
mod convert;
mod equality;
mod follow;
mod function;
mod json;
mod marks;
pub mod native;
pub mod operators;
mod qualified_name;
pub mod ranges;
mod refine;
mod registry;
mod shape;
mod signature;
mod source;
mod types;
mod unify;
mod value;
mod walk;

pub use awaited::Awaited;
pub use bounds::{LONGEST_TEXT, MOST_PARTS, TooLarge, check_size};
pub use call_error::{ArgumentError, CallError};
pub use capabilities::{
    AtOnce, Background, Capabilities, Clock, Commands, Deploy, Effects, Exported, FileWatch, Files,
    FollowedFile, FunctionLog, HostFact, HostFacts, HttpResponses, Interface, LARGEST_FILE, Network, Random,
    RunningCommand, StoredText, Timer, Values, Wake, WatchDepth, WorldAnswer, WorldFeed, WorldQuery,
    WorldReader,
};
pub use conformance::{Mismatch, conforms, value_conforms};
pub use convert::{
    ConversionError, Safety, conversion, convert, convert_arguments, convert_safely, converted_type,
    converts_safely, parse_number, whole,
};
pub use equality::{Equality, equals};
pub use follow::Follow;
pub use function::{
    Class, Example, FunctionRef, FunctionSpec, Implementation, InferArguments, InferHook, Inferred,
    ParameterDoc, ParameterFlags, PureFunction, ResultType, Shared,
};
pub use json::{JsonError, JsonProblem};
pub use marks::{Mark, Marks};
pub use qualified_name::QualifiedName;
pub use refine::{Contradiction, compare_numbers, known_prefix, length_range, less, number_range};
pub use registry::{Module, Registry};
pub use setpoint_derive::function;
pub use shape::{ScopeArgument, ScopeBuilder, Shape, ShapeState};
pub use signature::{Signature, SignatureParameter};
pub use source::{CallContext, CallSite, ReadOnce, Source, Subscription};
pub use types::{Field, FormMismatch, FuncParameter, FuncType, StructType, Type};
pub use unify::{Disagreement, unify};
pub use value::{
    Bound, Callable, FloatBits, Func, List, Map, MapKey, Opaque, Path, PathStep, Refinement, Set, Str,
    Struct, Unknown, Value, compare, format_float, quote,
};
pub use walk::{Descend, MixedTypes, NoSuchPart};
