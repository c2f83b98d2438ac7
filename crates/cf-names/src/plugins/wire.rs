//! Data as they cross to a worker and back.
//!
//! JSON's own values are themselves, with numbers that have a point always written with one. The rest is an object with one key, which says the
//! sort: `{"dict": [k, v, …]}`, `{"instance": [number, entity]}`, `{"record": [entity, [k, v, …]]}`,
//! `{"unknown": number}`, `{"reference": number}`, `{"float": "nan"}`.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value as Json, json};
use setpoint_value::Marks;

use crate::datum::{Datum, Deferred, Dict, InstanceId, Instances, UnknownId};
use crate::hir::Model;

/// Lists and dicts in lists and dicts cross no deeper than this.
const DEEPEST: u32 = 60;

/// Makes the new values and instances in an answer of a worker.
pub trait Made {
    /// A value that is not known.
    fn unknown(&mut self) -> Datum;

    /// An instance of an entity below `std::Dataclass`. None if it cannot be made; the implementation keeps the reason.
    fn record(&mut self, entity: &str, attributes: Vec<(Arc<str>, Datum)>) -> Option<Datum>;
}

/// What a worker was given that it can name again.
#[derive(Debug, Default)]
pub struct Given {
    instances: FxHashSet<InstanceId>,
    deferred: Vec<Arc<Deferred>>,
    known: FxHashMap<usize, usize>,
}

impl Given {
    /// A datum for the worker. Marks stay behind, and are taken in.
    ///
    /// # Errors
    /// Why it cannot cross, to go on after its name.
    pub fn encode(
        &mut self,
        datum: &Datum,
        model: &Model,
        instances: &dyn Instances,
        marks: &mut Marks,
    ) -> Result<Json, String> {
        if datum.extent().depth > DEEPEST {
            return Err(format!("nests deeper than {DEEPEST} lists and dicts"));
        }
        Ok(match datum {
            Datum::Null => Json::Null,
            Datum::Bool(bool) => json!(bool),
            Datum::Int(int) => json!(int),
            Datum::Float(float) if float.is_finite() => json!(float),
            Datum::Float(float) => json!({"float": float.to_string()}),
            Datum::Text(text) => json!(&**text),
            Datum::Unknown(unknown) => json!({"unknown": unknown.0}),
            Datum::Deferred(deferred) => json!({"reference": self.number_of(deferred)}),
            Datum::Instance(instance) => {
                self.instances.insert(*instance);
                let entity = instances.entity(*instance);
                json!({"instance": [instance.0, &*model.entities[entity.index()].name]})
            }
            Datum::List(items) => {
                let items = items
                    .iter()
                    .map(|item| self.encode(item, model, instances, marks));
                Json::Array(items.collect::<Result<_, _>>()?)
            }
            Datum::Dict(dict) => {
                let mut content = Vec::with_capacity(dict.len() * 2);
                for (key, value) in dict.iter() {
                    content.push(json!(&**key));
                    content.push(self.encode(value, model, instances, marks)?);
                }
                json!({ "dict": content })
            }
            Datum::Marked(marked) => {
                marks.union(&marked.marks);
                self.encode(&marked.datum, model, instances, marks)?
            }
        })
    }

    fn number_of(&mut self, deferred: &Arc<Deferred>) -> usize {
        // The address is that of no other one as long as it is kept.
        let address = Arc::as_ptr(deferred) as usize;
        let next = self.deferred.len();
        let number = *self.known.entry(address).or_insert(next);
        if number == next {
            self.deferred.push(deferred.clone());
        }
        number
    }

    /// An instance that the worker was given; none if it was not.
    #[must_use]
    pub fn instance(&self, number: u64) -> Option<InstanceId> {
        let instance = InstanceId(u32::try_from(number).ok()?);
        self.instances.contains(&instance).then_some(instance)
    }

    /// A datum from the worker; none if it is none, or names what the worker was not given.
    pub fn decode(&self, wire: Json, made: &mut dyn Made) -> Option<Datum> {
        Some(match wire {
            Json::Null => Datum::Null,
            Json::Bool(bool) => Datum::Bool(bool),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Datum::Int(int),
                None => Datum::Float(number.as_f64()?),
            },
            Json::String(text) => Datum::text(text),
            Json::Array(items) => {
                let items = items.into_iter().map(|item| self.decode(item, made));
                Datum::List(items.collect::<Option<Vec<_>>>()?.into())
            }
            Json::Object(object) => {
                let (sort, content) = object.into_iter().next()?;
                match sort.as_str() {
                    "dict" => Datum::Dict(Arc::new(
                        self.decode_entries(content, made)?.into_iter().collect::<Dict>(),
                    )),
                    "record" => {
                        let Ok([Json::String(entity), fields]) = serde_json::from_value::<[Json; 2]>(content)
                        else {
                            return None;
                        };
                        let fields = self.decode_entries(fields, made)?;
                        made.record(&entity, fields)?
                    }
                    "instance" => Datum::Instance(self.instance(content.get(0)?.as_u64()?)?),
                    "unknown" => match content.as_u64() {
                        Some(number) => Datum::Unknown(UnknownId(u32::try_from(number).ok()?)),
                        None => made.unknown(),
                    },
                    "reference" => {
                        let number = usize::try_from(content.as_u64()?).ok()?;
                        Datum::Deferred(self.deferred.get(number)?.clone())
                    }
                    "float" => Datum::Float(match content.as_str()? {
                        "nan" => f64::NAN,
                        "inf" => f64::INFINITY,
                        "-inf" => f64::NEG_INFINITY,
                        _ => return None,
                    }),
                    _ => return None,
                }
            }
        })
    }

    fn decode_entries(&self, content: Json, made: &mut dyn Made) -> Option<Vec<(Arc<str>, Datum)>> {
        let Json::Array(content) = content else {
            return None;
        };
        let mut entries = Vec::with_capacity(content.len() / 2);
        let mut content = content.into_iter();
        while let Some(key) = content.next() {
            let Json::String(key) = key else { return None };
            entries.push((Arc::from(key), self.decode(content.next()?, made)?));
        }
        Some(entries)
    }
}
