//! Which entities are resources, and how: of which kind, and which of their attributes is what.
//!
//! There are three ways, and of several the first counts: the entity, or one that it descends from, was made from a kind (module
//! `setpoint`); a binding file says so; or it comes with this program, for entities of `std`. Besides there is `setpoint::Raw`, which is of
//! the kind that its instance names. Within a way the nearest counts.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_cf_functions::context::{Read, Sender, UnsetCell};
use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::hir::{MemberKind, Model};
use setpoint_cf_names::ids::{EntityId, Symbol};
use setpoint_diagnostics::{Diagnostic, Diagnostics, Span};
use setpoint_graph::{KindSchema, ParameterSchema};

use super::binding_file::{self, BindingFile};
use super::codes;

/// The instances of a model that is executed, or was.
pub trait Executed {
    /// How many instances there are. Their numbers are those below.
    fn count(&self) -> u32;

    /// The entity of an instance.
    fn entity(&self, instance: InstanceId) -> EntityId;

    /// Where an instance was constructed first.
    fn span(&self, instance: InstanceId) -> Span;

    /// An attribute or relation of an instance, by its slot. A relation with several ends is a list.
    fn member(&self, instance: InstanceId, slot: u32) -> Read;

    /// The content of a file that a text stands for.
    fn file(&self, marker: &str) -> Option<Arc<[u8]>>;

    /// What gave it its value, or the last of its elements.
    fn place(&self, instance: InstanceId, slot: u32) -> Option<Span>;

    /// Whether it may have another value without a whole execution.
    fn may_change(&self, _: InstanceId, _: u32) -> bool {
        false
    }
}

/// What the entities of a model are as resources.
#[derive(Debug)]
pub struct Bindings {
    /// By entity.
    plans: Vec<Option<Arc<Plan>>>,
    /// Every kind that there is.
    pub(super) kinds: BTreeMap<&'static str, &'static KindSchema>,
    /// `std::ResourceSet`.
    pub(super) sets: Option<EntityId>,
    symbols: FxHashMap<Arc<str>, Symbol>,
}

/// How instances of an entity become resources.
#[derive(Debug)]
pub(super) struct Plan {
    /// The entity that is bound.
    pub entity: EntityId,
    pub kind: PlanKind,
    pub name: Text,
    pub machine: Source,
    /// The parameters with what they are set to.
    pub parameters: Vec<(&'static ParameterSchema, Source)>,
    /// What replaces them when the resource shall not be there, if the binding says so.
    pub purged: Option<Vec<(&'static ParameterSchema, Source)>>,
    /// Whether there is a resource at all.
    pub when: Option<Path>,
}

/// Of which kind a resource is.
#[derive(Debug, Clone, Copy)]
pub(super) enum PlanKind {
    Kind(&'static KindSchema),
    /// That which the attribute `kind` names, with the parameters of the dict `params`.
    Raw,
    /// `std::testing::NullResource`: nothing, or a command that fails.
    Null,
}

/// Where a value comes from.
#[derive(Debug, Clone)]
pub(super) enum Source {
    Path(Path),
    Constant(Datum),
}

/// A text for a name.
#[derive(Debug, Clone)]
pub(super) enum Text {
    Source(Source),
    /// Fixed texts, each followed by what a path leads to.
    Template(Vec<(Arc<str>, Option<Path>)>),
}

/// Attributes one behind the other, from an instance on.
#[derive(Debug, Clone)]
pub(super) struct Path(pub Vec<Symbol>);

/// Which resource an instance is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// The machine; `*` for every one.
    pub machine: Arc<str>,
    /// The kind.
    pub kind: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Identity {
    /// `machine/kind[name]`, under which facts are published.
    #[must_use]
    pub fn key(&self) -> String {
        format!("{}/{}[{}]", self.machine, self.kind, self.name)
    }
}

/// Why something of an instance cannot be read.
#[derive(Debug, Clone)]
pub(super) enum Unread {
    /// It has no value yet.
    Unset(UnsetCell),
    /// An optional relation on the way, or a list, has nothing in it.
    Absent(Symbol),
    /// There is no such attribute.
    NotFound(Symbol),
    /// What stands before this attribute is no instance.
    NotAnInstance(Symbol),
}

/// Which resource an instance is, as far as that is known.
#[derive(Debug, Clone)]
pub enum Identified {
    /// This one.
    Resource(Identity),
    /// It is none: its entity is not bound, or what names it cannot be used.
    NotAResource,
    /// Its name or machine is not known.
    Unknown,
    /// An attribute that it takes has no value yet.
    Unset(UnsetCell),
}

impl Bindings {
    /// The bindings of a model. `default_machine` is that of resources whose binding names none.
    #[must_use]
    pub fn of(
        model: &Model,
        kinds: &BTreeMap<&'static str, &'static KindSchema>,
        files: &[BindingFile],
        default_machine: &str,
        diagnostics: &mut Diagnostics,
    ) -> Bindings {
        let texts = model.symbols.iter().enumerate();
        let symbols = texts.map(|(number, text)| (text.clone(), Symbol(number as u32)));
        let mut bindings = Bindings {
            plans: Vec::new(),
            kinds: kinds.clone(),
            sets: None,
            symbols: symbols.collect(),
        };
        let named = |name: &str| {
            let at = model.entities.iter().position(|entity| &*entity.name == name);
            at.map(|at| EntityId(at as u32))
        };
        bindings.sets = named("std::ResourceSet");
        let base = named("setpoint::Resource");
        let mut made: BTreeMap<EntityId, Arc<Plan>> = BTreeMap::new();
        for (number, entity) in model.entities.iter().enumerate() {
            let id = EntityId(number as u32);
            if let Some(schema) = entity.kind {
                made.insert(id, Arc::new(bindings.generated(model, id, base, schema)));
            }
        }
        if let Some(raw) = named("setpoint::Raw") {
            made.extend(bindings.raw(raw).map(|plan| (raw, Arc::new(plan))));
        }
        let machine = Source::Constant(Datum::Text(default_machine.into()));
        let mut bound: BTreeMap<EntityId, Arc<Plan>> = BTreeMap::new();
        for file in files {
            for plan in binding_file::read(file, model, &bindings, &machine, diagnostics) {
                bound.entry(plan.entity).or_insert_with(|| Arc::new(plan));
            }
        }
        let mut shipped: BTreeMap<EntityId, Arc<Plan>> = BTreeMap::new();
        if let Some(null) = named("std::testing::NullResource") {
            shipped.extend(bindings.null(null).map(|plan| (null, Arc::new(plan))));
        }
        for number in 0..model.entities.len() {
            let id = EntityId(number as u32);
            let plan = [&made, &bound, &shipped]
                .into_iter()
                .find_map(|way| nearest(model, id, way, diagnostics));
            bindings.plans.push(plan);
        }
        bindings
    }

    /// How instances of an entity become resources; none if they do not.
    pub(super) fn plan(&self, entity: EntityId) -> Option<&Arc<Plan>> {
        self.plans.get(entity.index())?.as_ref()
    }

    /// A name, if the model has it anywhere.
    pub(super) fn symbol(&self, text: &str) -> Option<Symbol> {
        self.symbols.get(text).copied()
    }

    /// A path of one attribute.
    fn attribute(&self, name: &str) -> Option<Source> {
        Some(Source::Path(Path(vec![self.symbol(name)?])))
    }

    /// The plan of an entity that was made from a kind.
    fn generated(
        &self,
        model: &Model,
        id: EntityId,
        base: Option<EntityId>,
        schema: &'static KindSchema,
    ) -> Plan {
        let entity = &model.entities[id.index()];
        let is_taken = |name: &str| {
            let symbol = self.symbol(name);
            let base = base.map(|base| &model.entities[base.index()]);
            symbol.is_some_and(|symbol| base.is_some_and(|base| base.member(symbol).is_some()))
        };
        let member = |name: &str| {
            let symbol = self.symbol(name)?;
            entity.member(symbol).map(|_| Source::Path(Path(vec![symbol])))
        };
        let parameters = schema.parameters.iter().filter_map(|parameter| {
            let other = format!("{}_", parameter.name);
            let source = match is_taken(parameter.name) {
                true => member(&other),
                false => member(parameter.name).or_else(|| member(&other)),
            };
            Some((parameter, source?))
        });
        Plan {
            entity: id,
            kind: PlanKind::Kind(schema),
            name: Text::Source(self.attribute("name").unwrap_or(Source::Constant(Datum::Null))),
            machine: self.attribute("machine").unwrap_or(Source::Constant(Datum::Null)),
            parameters: parameters.collect(),
            purged: None,
            when: None,
        }
    }

    fn raw(&self, id: EntityId) -> Option<Plan> {
        Some(Plan {
            entity: id,
            kind: PlanKind::Raw,
            name: Text::Source(self.attribute("name")?),
            machine: self.attribute("machine")?,
            parameters: Vec::new(),
            purged: None,
            when: None,
        })
    }

    fn null(&self, id: EntityId) -> Option<Plan> {
        Some(Plan {
            entity: id,
            kind: PlanKind::Null,
            name: Text::Source(self.attribute("name")?),
            machine: self.attribute("agentname")?,
            parameters: Vec::new(),
            purged: None,
            when: None,
        })
    }

    /// What the attribute `kind` of an instance says.
    fn raw_kind(&self, reader: Reader<'_>, instance: InstanceId) -> Option<Result<Datum, Unread>> {
        let kind = Path(vec![self.symbol("kind")?]);
        Some(reader.read(instance, &kind))
    }

    /// The kind of an instance that is a resource, while the model runs.
    pub(crate) fn sender(&self, model: &Model, executed: &dyn Executed, instance: InstanceId) -> Sender {
        let kind = match self.plan(executed.entity(instance)).map(|plan| plan.kind) {
            None => return Sender::NotAResource,
            Some(PlanKind::Kind(schema)) => return Sender::Kind(schema),
            Some(PlanKind::Null) => Ok("noop".into()),
            Some(PlanKind::Raw) => named_kind(self.raw_kind(Reader { model, executed }, instance)),
        };
        match kind {
            Ok(kind) => self
                .kinds
                .get(&*kind)
                .map_or(Sender::NotAResource, |schema| Sender::Kind(schema)),
            Err(Identified::Unknown) => Sender::Unknown,
            Err(Identified::Unset(cell)) => Sender::Unset(cell),
            Err(_) => Sender::NotAResource,
        }
    }

    /// Which resource an instance is, while the model runs or afterwards.
    #[must_use]
    pub fn identify(&self, model: &Model, executed: &dyn Executed, instance: InstanceId) -> Identified {
        let Some(plan) = self.plan(executed.entity(instance)) else {
            return Identified::NotAResource;
        };
        let reader = Reader { model, executed };
        let kind: Arc<str> = match plan.kind {
            PlanKind::Kind(schema) => schema.kind.into(),
            PlanKind::Null => "noop".into(),
            PlanKind::Raw => match named_kind(self.raw_kind(reader, instance)) {
                Ok(kind) => kind,
                Err(identified) => return identified,
            },
        };
        let (name, machine) = (
            reader.text(instance, &plan.name),
            reader.source(instance, &plan.machine),
        );
        match (name, machine) {
            (Err(Unread::Unset(cell)), _) | (_, Err(Unread::Unset(cell))) => Identified::Unset(cell),
            (Ok(Datum::Unknown(_)), _) | (_, Ok(Datum::Unknown(_))) => Identified::Unknown,
            (Ok(Datum::Text(name)), Ok(Datum::Text(machine))) => {
                Identified::Resource(Identity { machine, kind, name })
            }
            _ => Identified::NotAResource,
        }
    }
}

/// What an instance of `setpoint::Raw` is called a resource of, while the model runs or afterwards.
fn named_kind(named: Option<Result<Datum, Unread>>) -> Result<Arc<str>, Identified> {
    match named {
        Some(Ok(Datum::Text(kind))) => Ok(kind),
        Some(Ok(Datum::Unknown(_))) => Err(Identified::Unknown),
        Some(Err(Unread::Unset(cell))) => Err(Identified::Unset(cell)),
        _ => Err(Identified::NotAResource),
    }
}

/// The plan of the nearest of those that an entity is or descends from.
fn nearest(
    model: &Model,
    id: EntityId,
    way: &BTreeMap<EntityId, Arc<Plan>>,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<Plan>> {
    if let Some(plan) = way.get(&id) {
        return Some(plan.clone());
    }
    let entity = &model.entities[id.index()];
    let bound: Vec<EntityId> = entity
        .ancestors
        .iter()
        .copied()
        .filter(|ancestor| way.contains_key(ancestor))
        .collect();
    let is_nearest = |one: &&EntityId| {
        let mut others = bound.iter().filter(|other| other != one);
        others.all(|other| !model.is_below(*other, **one))
    };
    let nearest: Vec<EntityId> = bound.iter().filter(is_nearest).copied().collect();
    let first = *nearest.first()?;
    if let (Some(other), Some(span)) = (nearest.get(1), entity.span) {
        let names = [first, *other].map(|id| &model.entities[id.index()].name);
        let message = format!(
            "`{}` is bound as `{}` and as `{}`",
            entity.name, names[0], names[1]
        );
        let error = Diagnostic::error(&codes::UNFIT, span, message)
            .label("an instance can be one resource only")
            .help("extend one of them only, and construct the other in an implementation");
        diagnostics.push(error);
    }
    way.get(&first).cloned()
}

/// Reads what plans ask for.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub model: &'a Model,
    pub executed: &'a dyn Executed,
}

impl Reader<'_> {
    /// The slot of a member of an instance.
    pub(super) fn slot(&self, instance: InstanceId, name: Symbol) -> Option<u32> {
        let entity = &self.model.entities[self.executed.entity(instance).index()];
        entity.member(name).map(|(slot, _)| slot)
    }

    /// What a path leads to. A list on the way stands for its first element, an unknown for whatever would be behind it.
    pub(super) fn read(&self, instance: InstanceId, path: &Path) -> Result<Datum, Unread> {
        let mut at = Datum::Instance(instance);
        for name in &path.0 {
            let step = match at.unmarked() {
                Datum::List(items) => items.first().cloned().ok_or(Unread::Absent(*name))?,
                other => other.clone(),
            };
            let instance = match step {
                Datum::Instance(instance) => instance,
                Datum::Unknown(_) => return Ok(step),
                _ => return Err(Unread::NotAnInstance(*name)),
            };
            let slot = self.slot(instance, *name).ok_or(Unread::NotFound(*name))?;
            at = match self.executed.member(instance, slot) {
                Read::Value(datum) => datum,
                Read::Unset(cell) => return Err(Unread::Unset(cell)),
                Read::Absent => return Err(Unread::Absent(*name)),
                Read::NotFound => return Err(Unread::NotFound(*name)),
            };
        }
        Ok(at)
    }

    pub(super) fn source(&self, instance: InstanceId, source: &Source) -> Result<Datum, Unread> {
        match source {
            Source::Path(path) => self.read(instance, path),
            Source::Constant(datum) => Ok(datum.clone()),
        }
    }

    /// A text: what a source gives as it is, or the parts of a template together.
    pub(super) fn text(&self, instance: InstanceId, text: &Text) -> Result<Datum, Unread> {
        let parts = match text {
            Text::Source(source) => return self.source(instance, source),
            Text::Template(parts) => parts,
        };
        let mut whole = String::new();
        for (fixed, path) in parts {
            whole.push_str(fixed);
            let Some(path) = path else { continue };
            match self.read(instance, path)? {
                Datum::Text(text) => whole.push_str(&text),
                Datum::Int(number) => whole.push_str(&number.to_string()),
                Datum::Bool(value) => whole.push_str(if value { "True" } else { "False" }),
                // What is secret or not known, or no text, is told as such by whoever wants the text.
                other => return Ok(other),
            }
        }
        Ok(Datum::Text(whole.into()))
    }

    /// Where the last attribute of a source was given its value, if it is one of the instance itself.
    pub(super) fn place(&self, instance: InstanceId, source: &Source) -> Option<Span> {
        match source {
            Source::Path(Path(names)) => match names.as_slice() {
                [name] => self.executed.place(instance, self.slot(instance, *name)?),
                _ => None,
            },
            Source::Constant(_) => None,
        }
    }

    /// The text of a path.
    pub(super) fn path_text(&self, path: &Path) -> String {
        let names: Vec<&str> = path.0.iter().map(|name| &**self.model.text(*name)).collect();
        names.join(".")
    }
}

/// Whether an entity, or one that relations of it lead to, has the attributes of a path. Answers the first that is not there.
pub(super) fn missing_step(model: &Model, entity: EntityId, path: &Path) -> Option<(EntityId, Symbol)> {
    let mut entity = entity;
    for (at, name) in path.0.iter().enumerate() {
        let Some((_, member)) = model.entities[entity.index()].member(*name) else {
            return Some((entity, *name));
        };
        match member.kind {
            MemberKind::Relation(relation) => entity = model.relations[relation.index()].target,
            MemberKind::Attribute { .. } => {
                return path.0.get(at + 1).map(|next| (entity, *next));
            }
        }
    }
    None
}
