//! What a template sees: names of the scope, instances, lists, dicts, namespaces and functions, each read when it is needed.

use std::cmp::Ordering;
use std::sync::Arc;

use minijinja::value::{DynObject, Enumerator, Object, ObjectRepr};
use minijinja::{Error, ErrorKind, State, Value};
use setpoint_cf_names::datum::{Datum, Dict, InstanceId};
use setpoint_cf_names::hir::FunctionImplementation;

use super::{Answer, CallRequest, Request, Session};
use crate::context::{Arguments, Failure, Read};
use crate::equality::write_key;
use crate::std::changes_something;
use crate::templates::conversion::to_datum;

/// All names that a template can begin with.
#[derive(Debug)]
pub(super) struct Root(pub(super) Arc<Session>);

impl Object for Root {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, name: &str) -> Option<Value> {
        let session = &self.0;
        if let Some(arguments) = &session.arguments {
            return arguments.get(name).map(|datum| session.value(datum));
        }
        session.found(Request::Variable(name.to_owned()))
    }
}

impl Session {
    /// What the engine is given for a request; none if there is nothing of that name.
    fn found(self: &Arc<Self>, request: Request) -> Option<Value> {
        Some(match self.ask(request) {
            None => Value::from_object(Missing),
            Some(Answer::Read(read)) => match read {
                Read::Value(datum) => self.value(&datum),
                Read::Unset(cell) => self.stop(Failure::Unset(cell)).into(),
                Read::Absent | Read::NotFound => return None,
            },
            Some(Answer::Namespace(path)) => Value::from_object(Namespace {
                path,
                session: self.clone(),
            }),
            Some(Answer::Function(name, implementation)) => Value::from_object(Callee {
                name,
                implementation: Some(implementation),
                session: self.clone(),
            }),
            Some(Answer::Failed(failure)) => self.stop(failure).into(),
            // Only asked for by the loader.
            Some(Answer::Template(..)) => return None,
        })
    }

    /// A datum for the engine.
    pub(super) fn value(self: &Arc<Self>, datum: &Datum) -> Value {
        self.take_marks(datum);
        match datum.unmarked() {
            Datum::Null => Value::from(()),
            Datum::Bool(bool) => Value::from(*bool),
            Datum::Int(int) => Value::from(*int),
            Datum::Float(float) => Value::from(*float),
            Datum::Text(text) => Value::from(text.clone()),
            Datum::List(items) => Value::from_object(Items {
                items: items.clone(),
                session: self.clone(),
            }),
            Datum::Dict(dict) => Value::from_object(Entries {
                dict: dict.clone(),
                session: self.clone(),
            }),
            Datum::Instance(instance) => Value::from_object(Instance {
                instance: *instance,
                session: self.clone(),
            }),
            Datum::Unknown(_) => self.stop(Failure::Unknown).into(),
            Datum::Deferred(_) => self.refuse_reference().into(),
            // Marks are never on marks.
            Datum::Marked(marked) => self.value(&marked.datum),
        }
    }
}

/// What has not been read yet, in a pass that will be repeated: empty, whatever is done with it.
#[derive(Debug)]
pub(super) struct Missing;

impl Object for Missing {
    fn get_value(self: &Arc<Self>, _: &Value) -> Option<Value> {
        Some(Value::from_object(Missing))
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, _: &[Value]) -> Result<Value, Error> {
        Ok(Value::from_object(Missing))
    }

    fn call_method(self: &Arc<Self>, _: &mut State<'_, '_>, _: &str, _: &[Value]) -> Result<Value, Error> {
        Ok(Value::from_object(Missing))
    }

    fn render(self: &Arc<Self>, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Ok(())
    }
}

/// A list.
#[derive(Debug)]
pub(super) struct Items {
    pub(super) items: Arc<[Datum]>,
    session: Arc<Session>,
}

impl Object for Items {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let item = self.items.get(key.as_usize()?)?;
        Some(self.session.value(item))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.items.len())
    }
}

/// A dict.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) dict: Arc<Dict>,
    session: Arc<Session>,
}

impl Object for Entries {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.dict.get(key).map(|datum| self.session.value(datum))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(
            self.dict
                .iter()
                .map(|(key, _)| Value::from(key.clone()))
                .collect(),
        )
    }
}

/// An instance.
#[derive(Debug)]
pub(super) struct Instance {
    pub(super) instance: InstanceId,
    session: Arc<Session>,
}

impl Object for Instance {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, name: &str) -> Option<Value> {
        self.session
            .found(Request::Attribute(self.instance, name.to_owned()))
    }

    fn custom_cmp(self: &Arc<Self>, other: &DynObject) -> Option<Ordering> {
        Some(self.instance.cmp(&other.downcast_ref::<Instance>()?.instance))
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<instance {}>", self.instance.0)
    }
}

/// A namespace, or the beginning of the path of one.
#[derive(Debug)]
pub(super) struct Namespace {
    path: String,
    session: Arc<Session>,
}

impl Object for Namespace {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, name: &str) -> Option<Value> {
        self.session
            .found(Request::Member(self.path.clone(), name.to_owned()))
    }

    fn call_method(
        self: &Arc<Self>,
        state: &mut State<'_, '_>,
        method: &str,
        arguments: &[Value],
    ) -> Result<Value, Error> {
        match self.get_value_by_str(method) {
            Some(value) => value.call(state, arguments),
            None => Err(Error::new(
                ErrorKind::UnknownFunction,
                format!("there is no function `{}::{method}`", self.path),
            )),
        }
    }
}

/// A function of the language, as a filter or behind a namespace.
#[derive(Debug)]
pub(super) struct Callee {
    pub(super) name: Arc<str>,
    /// None: it is looked up when it is called.
    pub(super) implementation: Option<FunctionImplementation>,
    pub(super) session: Arc<Session>,
}

impl Object for Callee {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, arguments: &[Value]) -> Result<Value, Error> {
        Callee::call(self, arguments)
    }
}

impl Callee {
    /// Calls the function, or notes that it is to be called.
    pub(super) fn call(&self, arguments: &[Value]) -> Result<Value, Error> {
        let mut given = Arguments::default();
        for argument in arguments {
            if argument.is_kwargs() {
                let keywords = minijinja::value::Kwargs::try_from(argument.clone())?;
                for name in keywords.args() {
                    let value: Value = keywords.get(name)?;
                    let Some(datum) = to_datum(&value)? else {
                        return Ok(Value::from_object(Missing));
                    };
                    given.keywords.push((name.into(), datum));
                }
            } else {
                let Some(datum) = to_datum(argument)? else {
                    return Ok(Value::from_object(Missing));
                };
                given.positional.push(datum);
            }
        }
        // What it changes must not be changed for a pass that is not what it will be.
        if self.implementation.as_ref().is_some_and(changes_something) && self.session.is_guessing() {
            return Ok(Value::from_object(Missing));
        }
        let mut key = format!("{}(", self.name);
        for datum in &given.positional {
            write_key(datum, &mut key);
        }
        for (name, datum) in &given.keywords {
            key.push_str(name);
            key.push('=');
            write_key(datum, &mut key);
        }
        let request = CallRequest {
            name: self.name.clone(),
            implementation: self.implementation.clone(),
            arguments: given,
            key,
        };
        Ok(self
            .session
            .found(Request::Call(Arc::new(request)))
            .unwrap_or(Value::UNDEFINED))
    }
}
