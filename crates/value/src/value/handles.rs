//! Function values and opaque ones: equal only to themselves.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::{CallError, Type, Value};

/// A function value. Equal only to itself.
#[derive(Clone)]
pub struct Func(Arc<FuncData>);

struct FuncData {
    ty: Type,
    implementation: Box<dyn Callable>,
}

/// What stands behind a function value. The evaluator keeps its closures here and finds them again by `as_any`.
pub trait Callable: Any + Send + Sync {
    /// For finding the concrete type again.
    fn as_any(&self) -> &dyn Any;

    /// Calls it directly with values, where that is possible without an evaluator.
    ///
    /// # Errors
    /// What the function answers, or that it can only be called by an evaluator.
    fn call(&self, arguments: &[Value]) -> Result<Value, CallError>;
}

impl Func {
    /// A function of type `ty`.
    #[must_use]
    pub fn new(ty: Type, implementation: impl Callable) -> Func {
        Func(Arc::new(FuncData {
            ty,
            implementation: Box::new(implementation),
        }))
    }

    /// Its type.
    #[must_use]
    pub fn ty(&self) -> &Type {
        &self.0.ty
    }

    /// Where it is; for a total order within one run.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// What stands behind it.
    #[must_use]
    pub fn implementation(&self) -> &dyn Callable {
        &*self.0.implementation
    }
}

impl PartialEq for Func {
    fn eq(&self, other: &Func) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Func {}

impl Hash for Func {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.0) as usize).hash(state);
    }
}

/// Something of the application's, equal only to itself.
#[derive(Clone)]
pub struct Opaque {
    name: Arc<str>,
    content: Arc<dyn Any + Send + Sync>,
}

impl Opaque {
    /// Wraps `content` under a type name.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, content: Arc<dyn Any + Send + Sync>) -> Opaque {
        Opaque {
            name: name.into(),
            content,
        }
    }

    /// The name of its type.
    #[must_use]
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Where it is; for a total order within one run.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.content).cast::<()>() as usize
    }

    /// What is inside.
    #[must_use]
    pub fn content(&self) -> &(dyn Any + Send + Sync) {
        &*self.content
    }
}

impl PartialEq for Opaque {
    fn eq(&self, other: &Opaque) -> bool {
        Arc::ptr_eq(&self.content, &other.content)
    }
}

impl Eq for Opaque {}

impl Hash for Opaque {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.content).cast::<()>() as usize).hash(state);
    }
}

/// The zero value of function types.
pub(super) struct NoFunction;

impl Callable for NoFunction {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn call(&self, _: &[Value]) -> Result<Value, CallError> {
        Err(CallError::fatal("nil function"))
    }
}
