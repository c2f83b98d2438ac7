//! A running model for tests: a few entities and instances, variables, files, and an environment, all of them given.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_cf_names::datum::{Datum, InstanceId, Instances, Unknowns};
use setpoint_cf_names::hir::{Entity, Function, FunctionImplementation, Model};
use setpoint_cf_names::ids::{EntityId, NamespaceId};
use setpoint_diagnostics::{Diagnostic, FileId, Loader, MemoryLoader, SourceMap, Span};
use setpoint_value::{CallError, FunctionRef, Value};

use crate::context::{Arguments, Context, Deployment, Fact, Read, Sender, Site, Stop, UnsetCell};
use crate::text::Naming;

/// The place of everything in tests.
pub(crate) fn nowhere() -> Span {
    Span::new(FileId(0), 0, 0)
}

/// A running model. `__config__::Host` is the entity of the instances 0 and 1, `std::OS` of 2 and 3.
pub(crate) struct World {
    pub(crate) model: Model,
    pub(crate) instances: Vec<EntityId>,
    pub(crate) attributes: BTreeMap<(u32, String), Read>,
    pub(crate) variables: BTreeMap<String, Read>,
    pub(crate) loader: MemoryLoader,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) facts: BTreeMap<String, Datum>,
    pub(crate) stored: BTreeMap<String, Arc<str>>,
    pub(crate) printed: Vec<String>,
    pub(crate) warnings: Vec<Diagnostic>,
    pub(crate) recorded: Vec<String>,
    pub(crate) sources: SourceMap,
    pub(crate) reads: usize,
    unknowns: Unknowns,
}

impl World {
    pub(crate) fn new() -> World {
        let mut model = Model::default();
        let names = [
            "std::Entity",
            "__config__::Host",
            "std::OS",
            "std::Resource",
            "__config__::Pkg",
        ];
        for (number, name) in names.into_iter().enumerate() {
            let ancestors = match name {
                "std::Entity" => vec![],
                "__config__::Pkg" => vec![EntityId(0), EntityId(3)],
                _ => vec![EntityId(0)],
            };
            model.entities.push(Entity {
                name: name.into(),
                namespace: NamespaceId(0),
                span: None,
                parents: ancestors.last().copied().into_iter().collect(),
                descendants: Vec::new(),
                ancestors,
                members: Vec::new(),
                by_name: Default::default(),
                indexes: Vec::new(),
                implements: Vec::new(),
                kind: None,
                doc: None,
            });
            assert_eq!(number, model.entities.len() - 1);
        }
        let mut sources = SourceMap::new();
        sources.add("main.cf", "x = f()\n");
        World {
            model,
            instances: vec![EntityId(1), EntityId(1), EntityId(2), EntityId(2), EntityId(4)],
            attributes: BTreeMap::new(),
            variables: BTreeMap::new(),
            loader: MemoryLoader::new(),
            environment: BTreeMap::new(),
            facts: BTreeMap::new(),
            stored: BTreeMap::new(),
            printed: Vec::new(),
            warnings: Vec::new(),
            recorded: Vec::new(),
            sources,
            reads: 0,
            unknowns: Unknowns::default(),
        }
    }

    pub(crate) fn naming(&self) -> Naming<'_> {
        Naming {
            model: &self.model,
            instances: self,
        }
    }

    pub(crate) fn with_variable(mut self, name: &str, value: Datum) -> World {
        self.variables.insert(name.to_owned(), Read::Value(value));
        self
    }

    pub(crate) fn with_attribute(mut self, instance: u32, name: &str, value: Datum) -> World {
        self.attributes
            .insert((instance, name.to_owned()), Read::Value(value));
        self
    }

    pub(crate) fn with_file(mut self, path: &str, text: &str) -> World {
        self.loader = self.loader.with(path, text);
        self
    }

    pub(crate) fn with_unset(mut self, name: &str, cell: u64) -> World {
        self.variables
            .insert(name.to_owned(), Read::Unset(UnsetCell(cell)));
        self
    }
}

impl Instances for World {
    fn entity(&self, instance: InstanceId) -> EntityId {
        self.instances[instance.0 as usize]
    }

    fn places(&self, instance: InstanceId) -> Vec<String> {
        vec![format!("main.cf:{}", 3 + instance.0)]
    }
}

impl Context for World {
    fn model(&self) -> &Model {
        &self.model
    }

    fn unknowns(&mut self) -> &mut Unknowns {
        &mut self.unknowns
    }

    fn attribute(&mut self, instance: InstanceId, name: &str) -> Read {
        self.reads += 1;
        self.attributes
            .get(&(instance.0, name.to_owned()))
            .cloned()
            .unwrap_or(Read::NotFound)
    }

    fn variable(&mut self, name: &str) -> Read {
        self.reads += 1;
        self.variables.get(name).cloned().unwrap_or(Read::NotFound)
    }

    fn is_namespace(&self, path: &str) -> bool {
        ["ip", "ip::services", "std"].contains(&path)
    }

    fn namespace_variable(&mut self, namespace: &str, name: &str) -> Read {
        match (namespace, name) {
            ("ip::services", "ssh") => Read::Value(Datum::Int(22)),
            _ => Read::NotFound,
        }
    }

    fn function(&self, name: &str) -> Option<FunctionImplementation> {
        crate::std::number("std", name.strip_prefix("std::")?).map(FunctionImplementation::Std)
    }

    fn function_names(&self) -> Vec<Arc<str>> {
        crate::std::FUNCTIONS
            .iter()
            .map(|function| format!("std::{}", function.name).into())
            .collect()
    }

    fn call(&mut self, function: &Function, arguments: Arguments, site: Site<'_>) -> Result<Datum, Stop> {
        crate::calls::call(function, arguments, site, self)
    }

    fn entity_named(&self, name: &str) -> Option<EntityId> {
        let index = self
            .model
            .entities
            .iter()
            .position(|entity| &*entity.name == name)?;
        Some(EntityId(u32::try_from(index).ok()?))
    }

    fn loader(&self) -> &dyn Loader {
        &self.loader
    }

    fn record_file(&mut self, path: &str) {
        self.recorded.push(path.to_owned());
    }

    fn add_source(&mut self, path: &str, text: &str) -> FileId {
        self.sources.add(path, text)
    }

    fn module_directory(&self, module: &str) -> Option<Arc<str>> {
        match module {
            "" => Some("/project".into()),
            "web" => Some("/project/libs/web".into()),
            _ => None,
        }
    }

    fn calling_module(&self) -> Arc<str> {
        "web".into()
    }

    fn print(&mut self, line: String) {
        self.printed.push(line);
    }

    fn warn(&mut self, warning: Diagnostic) {
        self.warnings.push(warning);
    }

    fn environment(&mut self, name: &str) -> Option<Arc<str>> {
        self.environment.get(name).map(|value| Arc::from(&**value))
    }

    fn fact(&mut self, resource: InstanceId, name: &str) -> Fact {
        if self.entity(resource) != EntityId(4) {
            return Fact::NotAResource;
        }
        self.facts.get(name).cloned().map_or(Fact::Unknown, Fact::Value)
    }

    fn sender(&mut self, _: InstanceId) -> Sender {
        Sender::NotAResource
    }

    fn unix_time(&mut self) -> Option<i64> {
        Some(1_700_000_000)
    }

    fn deployment(&self) -> Deployment {
        Deployment {
            deploy: "live".into(),
            project: "shop".into(),
            server: None,
        }
    }

    fn stored_text(&mut self, path: &str) -> Option<Arc<str>> {
        self.stored.get(path).cloned()
    }

    fn store_text(&mut self, path: &str, text: String) -> Result<(), String> {
        self.stored.insert(path.to_owned(), text.into());
        Ok(())
    }

    fn keep_file(&mut self, path: &str, _: Arc<[u8]>) -> Arc<str> {
        format!("imp-module-source:file://{path}").into()
    }

    fn random(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = (index * 7) as u8;
        }
        Ok(())
    }

    fn source(&mut self, function: &FunctionRef, _: &[Value]) -> Result<Value, CallError> {
        Ok(Value::str(format!("first value of {function}")))
    }
}
