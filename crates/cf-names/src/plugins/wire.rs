//! Data as they cross to a worker and back.
//!
//! JSON's own values are themselves, with numbers that have a point always written with one. The rest is an object with one key, which says the
//! sort: `{"dict": [k, v, …]}`, `{"instance": [number, entity]}`, `{"unknown": number}`, `{"reference": number}`, `{"float": "nan"}`.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::{Value as Json, json};
use setpoint_value::Marks;

use crate::datum::{Datum, Deferred, Dict, InstanceId, Instances, UnknownId, Unknowns};
use crate::hir::Model;

/// Lists and dicts in lists and dicts cross no deeper than this.
const DEEPEST: u32 = 60;

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
    #[must_use]
    pub fn decode(&self, wire: Json, unknowns: &mut Unknowns) -> Option<Datum> {
        Some(match wire {
            Json::Null => Datum::Null,
            Json::Bool(bool) => Datum::Bool(bool),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Datum::Int(int),
                None => Datum::Float(number.as_f64()?),
            },
            Json::String(text) => Datum::text(text),
            Json::Array(items) => {
                let items = items.into_iter().map(|item| self.decode(item, unknowns));
                Datum::List(items.collect::<Option<Vec<_>>>()?.into())
            }
            Json::Object(object) => {
                let (sort, content) = object.into_iter().next()?;
                match sort.as_str() {
                    "dict" => self.decode_dict(content, unknowns)?,
                    "instance" => Datum::Instance(self.instance(content.get(0)?.as_u64()?)?),
                    "unknown" => match content.as_u64() {
                        Some(number) => Datum::Unknown(UnknownId(u32::try_from(number).ok()?)),
                        None => unknowns.create(),
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

    fn decode_dict(&self, content: Json, unknowns: &mut Unknowns) -> Option<Datum> {
        let Json::Array(content) = content else {
            return None;
        };
        let mut entries = Vec::with_capacity(content.len() / 2);
        let mut content = content.into_iter();
        while let Some(key) = content.next() {
            let Json::String(key) = key else { return None };
            entries.push((Arc::from(key), self.decode(content.next()?, unknowns)?));
        }
        Some(Datum::Dict(Arc::new(entries.into_iter().collect::<Dict>())))
    }
}
