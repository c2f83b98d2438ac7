//! The running model as functions and templates see it.

use std::sync::Arc;

use setpoint_cf_functions::calls;
use setpoint_cf_functions::context::{
    Arguments, Cache, Context, Deployment, Fact, Read, RecordError, Sender, Site, Stop, UnsetCell,
};
use setpoint_cf_functions::std::{FUNCTIONS, number};
use setpoint_cf_names::datum::{Datum, InstanceId, Instances, Unknowns};
use setpoint_cf_names::hir::{Function, FunctionImplementation, Model};
use setpoint_cf_names::ids::{EntityId, NamespaceId, Symbol};
use setpoint_cf_names::project;
use setpoint_diagnostics::{Diagnostic, FileId, Loader, Span};
use setpoint_value::{CallError, FunctionRef, Value};

use super::cells::{CellId, GradualKind, NONE};
use super::frames::FrameNames;
use super::inputs::ReadKey;
use super::machine::{Machine, TOP};
use super::units::Scope;
use super::view::place_text;
use crate::export::bindings::{Executed, Identified};

/// The machine with the scope of one call.
pub(super) struct CallContext<'a, 'm> {
    pub(super) machine: &'a mut Machine<'m>,
    pub(super) frame: u32,
    pub(super) namespace: NamespaceId,
}

impl CallContext<'_, '_> {
    fn read(&self, cell: CellId) -> Read {
        self.machine.read_cell(cell)
    }

    fn is_named(&self, symbol: Symbol, name: &str) -> bool {
        **self.machine.model.text(symbol) == *name
    }

    /// The namespace that is visible under a name where the call is.
    fn namespace_named(&self, path: &str) -> Option<usize> {
        let own = &self.machine.model.namespaces[self.namespace.index()];
        if *own.name == *path {
            return Some(self.namespace.index());
        }
        own.imports.get(path).map(|found| found.index())
    }

    fn variable_of(&self, namespace: usize, name: &str) -> Read {
        let variables = &self.machine.model.namespaces[namespace].body.variables;
        match variables
            .iter()
            .position(|variable| self.is_named(variable.name, name))
        {
            Some(index) => self.read(self.machine.namespaces[namespace].at(index as u32)),
            None => Read::NotFound,
        }
    }
}

impl Machine<'_> {
    /// What is in a cell.
    fn read_cell(&self, cell: CellId) -> Read {
        if let Some(recorder) = &self.recorder {
            recorder.read(cell);
        }
        if !self.cells.is_ready(cell) {
            return Read::Unset(UnsetCell(u64::from(cell.0)));
        }
        let found = self.cells.get(cell);
        let is_optional = self
            .cells
            .gradual(cell)
            .is_some_and(|gradual| gradual.kind == GradualKind::Optional);
        if is_optional && !found.is_set() {
            return Read::Absent;
        }
        Read::Value(found.value.clone())
    }
}

impl Machine<'_> {
    /// Something is asked of the world outside.
    fn ask(&mut self, key: ReadKey) {
        if let Some(recorder) = &mut self.recorder {
            recorder.ask(key.clone());
        }
        self.reads.insert(key);
    }

    /// Something is done that cannot be done once more.
    fn is_final(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.recording.is_final = true;
        }
    }
}

impl Executed for Machine<'_> {
    fn count(&self) -> u32 {
        self.instances.len() as u32
    }

    fn entity(&self, instance: InstanceId) -> EntityId {
        self.entity_of(instance)
    }

    fn span(&self, instance: InstanceId) -> Span {
        self.instances[instance.0 as usize].span
    }

    fn member(&self, instance: InstanceId, slot: u32) -> Read {
        self.read_cell(self.instances[instance.0 as usize].first.at(slot))
    }

    fn file(&self, marker: &str) -> Option<Arc<[u8]>> {
        self.files.get(marker).cloned()
    }

    fn place(&self, instance: InstanceId, slot: u32) -> Option<Span> {
        self.cells
            .place(self.instances[instance.0 as usize].first.at(slot))
    }
}

impl Instances for CallContext<'_, '_> {
    fn entity(&self, instance: InstanceId) -> EntityId {
        self.machine.entity_of(instance)
    }

    fn places(&self, instance: InstanceId) -> Vec<String> {
        let first = self.machine.instances[instance.0 as usize].span;
        let again = self
            .machine
            .constructed_again
            .get(&instance)
            .into_iter()
            .flatten();
        let spans = std::iter::once(&first).chain(again);
        spans
            .map(|span| place_text(self.machine.sources, *span))
            .collect()
    }
}

impl Context for CallContext<'_, '_> {
    fn model(&self) -> &Model {
        self.machine.model
    }

    fn unknowns(&mut self) -> &mut Unknowns {
        &mut self.machine.unknowns
    }

    fn attribute(&mut self, instance: InstanceId, name: &str) -> Read {
        let data = &self.machine.instances[instance.0 as usize];
        let members = &self.machine.model.entities[data.entity.index()].members;
        match members.iter().position(|member| self.is_named(member.name, name)) {
            Some(slot) => self.read(data.first.at(slot as u32)),
            None => Read::NotFound,
        }
    }

    fn variable(&mut self, name: &str) -> Read {
        let mut at = self.frame;
        while let Some(frame) = self.machine.frames.get(at as usize) {
            let found = match frame.names {
                FrameNames::Block(block) => self.machine.block(block).and_then(|block| {
                    let mut variables = block.variables.iter();
                    variables.position(|variable| self.is_named(variable.name, name))
                }),
                FrameNames::Loop(variable) => self.is_named(variable, name).then_some(0),
                FrameNames::None => None,
            };
            if let Some(index) = found {
                return self.read(frame.first.at(index as u32));
            }
            at = frame.parent;
        }
        let instance = self.machine.instance_of(self.frame);
        if instance != NONE {
            let instance = InstanceId(instance);
            if name == "self" {
                return Read::Value(Datum::Instance(instance));
            }
            match self.attribute(instance, name) {
                Read::NotFound => {}
                found => return found,
            }
        }
        self.variable_of(self.namespace.index(), name)
    }

    fn is_namespace(&self, path: &str) -> bool {
        let own = &self.machine.model.namespaces[self.namespace.index()];
        let is_beginning = |name: &str| {
            name.strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        is_beginning(&own.name) || own.imports.keys().any(|name| is_beginning(name))
    }

    fn namespace_variable(&mut self, namespace: &str, name: &str) -> Read {
        match self.namespace_named(namespace) {
            Some(namespace) => self.variable_of(namespace, name),
            None => Read::NotFound,
        }
    }

    fn function(&self, name: &str) -> Option<FunctionImplementation> {
        if let Some((module, function)) = name.rsplit_once("::")
            && let Some(number) = number(module, function)
        {
            return Some(FunctionImplementation::Std(number));
        }
        let mut functions = self.machine.model.functions.iter();
        let called = functions.find(|function| *function.name == *name);
        if let Some(called) = called {
            return Some(called.implementation.clone());
        }
        // Those in Python can also be called by templates alone.
        let (namespace, name) = name.rsplit_once("::")?;
        let namespace = &self.machine.model.namespaces[self.namespace_named(namespace)?].name;
        let plugins = self.machine.model.plugins.as_ref()?;
        plugins
            .function(namespace, name)
            .map(FunctionImplementation::Plugin)
    }

    fn function_names(&self) -> Vec<Arc<str>> {
        let called = self
            .machine
            .model
            .functions
            .iter()
            .map(|function| function.name.clone());
        let own = FUNCTIONS
            .iter()
            .map(|function| format!("{}::{}", function.module, function.name).into());
        called.chain(own).collect()
    }

    fn call(&mut self, function: &Function, arguments: Arguments, site: Site<'_>) -> Result<Datum, Stop> {
        calls::call(function, arguments, site, self)
    }

    fn python_names(&self) -> Vec<Arc<str>> {
        let Some(plugins) = &self.machine.model.plugins else {
            return Vec::new();
        };
        let own = &self.machine.model.namespaces[self.namespace.index()];
        let mut visible: Vec<&Arc<str>> = own.imports.keys().chain([&own.name]).collect();
        visible.sort_unstable();
        let names = |visible: &Arc<str>| {
            let namespace = self.namespace_named(visible);
            let namespace = namespace.map(|found| &self.machine.model.namespaces[found].name);
            let names = namespace
                .map(|namespace| plugins.names(namespace))
                .unwrap_or_default();
            names
                .into_iter()
                .map(move |name| format!("{visible}::{name}").into())
                .collect::<Vec<Arc<str>>>()
        };
        visible.into_iter().flat_map(names).collect()
    }

    fn entity_named(&self, name: &str) -> Option<EntityId> {
        let position = self
            .machine
            .model
            .entities
            .iter()
            .position(|entity| *entity.name == *name);
        position.map(|position| EntityId(position as u32))
    }

    fn loader(&self) -> &dyn Loader {
        self.machine.loader
    }

    fn record_file(&mut self, path: &str) {
        self.machine.ask(ReadKey::File(path.into()));
    }

    fn add_source(&mut self, path: &str, text: &str) -> FileId {
        if let Some(file) = self.machine.template_sources.get(path) {
            return *file;
        }
        let file = project::source_file(self.machine.sources, path, text);
        self.machine.template_sources.insert(path.into(), file);
        file
    }

    fn module_directory(&self, module: &str) -> Option<Arc<str>> {
        let directory = self.machine.model.modules.get(module)?;
        // That of the project is empty: paths are relative to it.
        Some(if directory.is_empty() {
            ".".into()
        } else {
            directory.clone()
        })
    }

    fn calling_module(&self) -> Arc<str> {
        let name = &self.machine.model.namespaces[self.namespace.index()].name;
        match name.split("::").next() {
            Some("__config__") | None => "".into(),
            Some(module) => module.into(),
        }
    }

    fn cache(&mut self) -> Option<&mut Cache> {
        Some(&mut self.machine.cache)
    }

    fn record(
        &mut self,
        entity: &str,
        attributes: Vec<(Arc<str>, Datum)>,
        span: Span,
    ) -> Result<InstanceId, RecordError> {
        let record = self.entity_named(entity).filter(|entity| {
            let data = &self.machine.model.entities;
            let mut above = data.iter().filter(|entity| &*entity.name == "std::Dataclass");
            above.any(|above| above.descendants.contains(entity))
        });
        let record = record.ok_or_else(|| RecordError::refused(entity))?;
        let members = &self.machine.model.entities[record.index()].members;
        let mut given = Vec::with_capacity(attributes.len());
        for (name, value) in attributes {
            let slot = members
                .iter()
                .position(|member| self.is_named(member.name, &name));
            let Some(slot) = slot else {
                let what = format!(
                    "holds a dataclass with a field `{name}`, which the entity `{entity}` does not have"
                );
                return Err(RecordError::Refused(what));
            };
            given.push((slot as u32, value));
        }
        let scope = Scope {
            frame: self.frame,
            ..TOP
        };
        self.machine
            .make_record(record, given, span, scope)
            .map_err(RecordError::Stopped)
    }

    fn note_plugin(&mut self) {
        if let Some(recorder) = &mut self.machine.recorder {
            recorder.is_opaque();
        }
    }

    fn print(&mut self, line: String) {
        self.machine.printed.push(line);
    }

    fn warn(&mut self, warning: Diagnostic) {
        if let Some(recorder) = &mut self.machine.recorder {
            recorder.is_opaque();
        }
        self.machine.diagnostics.push(warning);
    }

    fn environment(&mut self, name: &str) -> Option<Arc<str>> {
        let key = ReadKey::Environment(name.into());
        let found = self.machine.inputs.environment.get(name).cloned();
        if found.is_none() {
            self.machine.unknown_reads.insert(key.clone());
        }
        self.machine.ask(key);
        found
    }

    fn fact(&mut self, resource: InstanceId, name: &str) -> Fact {
        let Some(bindings) = self.machine.bindings else {
            return Fact::NotAResource;
        };
        let identity = match bindings.identify(self.machine.model, self.machine, resource) {
            Identified::Resource(identity) => identity,
            Identified::NotAResource => return Fact::NotAResource,
            Identified::Unknown => return Fact::Unknown,
            Identified::Unset(cell) => return Fact::Unset(cell),
        };
        let key: Arc<str> = format!("{}/{name}", identity.key()).into();
        let read = ReadKey::Fact(key.clone());
        self.machine.ask(read.clone());
        match self.machine.inputs.facts.get(&key) {
            Some(value) => Fact::Value(value.clone()),
            None => {
                self.machine.unknown_reads.insert(read);
                Fact::Unknown
            }
        }
    }

    fn sender(&mut self, resource: InstanceId) -> Sender {
        match self.machine.bindings {
            Some(bindings) => bindings.sender(self.machine.model, self.machine, resource),
            None => Sender::NotAResource,
        }
    }

    fn unix_time(&mut self) -> Option<i64> {
        self.machine.ask(ReadKey::Clock);
        self.machine.inputs.unix_time
    }

    fn deployment(&self) -> Deployment {
        Deployment {
            project: self.machine.options.project.clone(),
            ..self.machine.inputs.deployment.clone()
        }
    }

    fn stored_text(&mut self, path: &str) -> Option<Arc<str>> {
        match self.machine.stored.get(path) {
            Some(text) => Some(text.as_str().into()),
            None => self.machine.inputs.stored.get(path).cloned(),
        }
    }

    fn store_text(&mut self, path: &str, text: String) -> Result<(), String> {
        self.machine.is_final();
        self.machine.stored.insert(path.into(), text);
        Ok(())
    }

    fn keep_file(&mut self, path: &str, content: Arc<[u8]>) -> Arc<str> {
        let root = &self.machine.inputs.root;
        let separator = if path.starts_with('/') || root.is_empty() || root.ends_with('/') {
            ""
        } else {
            "/"
        };
        let root = if path.starts_with('/') { "" } else { root };
        let marker: Arc<str> = format!("imp-module-source:file://{root}{separator}{path}").into();
        if let Some(recorder) = &mut self.machine.recorder {
            // Whoever has the text has the content too, and the text does not tell when that changes.
            recorder.is_opaque();
        }
        self.machine.files.insert(marker.clone(), content);
        marker
    }

    fn random(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        self.machine.is_final();
        match &self.machine.inputs.outside {
            Some(outside) => outside.random(bytes),
            None => Err("there is no source of randomness here".to_owned()),
        }
    }

    fn source(&mut self, function: &FunctionRef, arguments: &[Value]) -> Result<Value, CallError> {
        let key = format!(
            "{}.{}({})",
            function.module,
            function.name,
            arguments
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        );
        self.machine.ask(ReadKey::Function(key.into()));
        match &self.machine.inputs.outside {
            Some(outside) => outside.source(function, arguments),
            None => Err(CallError::Failed {
                message: "nothing outside can be followed here".to_owned(),
                catchable: false,
            }),
        }
    }
}
