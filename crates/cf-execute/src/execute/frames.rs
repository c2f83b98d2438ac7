//! Block instances, and where names lead in them.

use setpoint_cf_functions::codes::{self as function_codes, class};
use setpoint_cf_functions::context::Stop;
use setpoint_cf_names::advice::{inner_variable, unnamed_end};
use setpoint_cf_names::datum::{Datum, InstanceId};
use setpoint_cf_names::hir::{Block, Expression, ExpressionKind, Member, MemberKind, Place};
use setpoint_cf_names::ids::{EntityId, RelationId, Symbol};
use setpoint_cf_syntax::foreign_word;
use setpoint_diagnostics::{Diagnostic, Span, did_you_mean};
use smallvec::SmallVec;

use super::cells::{CellId, GradualKind, NONE};
use super::codes;
use super::expressions::BlockKey;
use super::machine::{Machine, Run};
use super::units::Scope;

/// The variables of a block, bound to the blocks around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// The block around it.
    pub(super) parent: u32,
    /// Its variables lie side by side from here on.
    pub(super) first: CellId,
    /// The instance that is refined.
    pub(super) instance: u32,
    /// How many constructions led here, one inside the other.
    pub(super) nesting: u32,
    /// Their names.
    pub(super) names: FrameNames,
}

/// Names of the variables of a frame, for whoever looks for one.
#[derive(Debug, Clone, Copy)]
pub(super) enum FrameNames {
    /// Those of a block.
    Block(BlockKey),
    /// That of a loop of a comprehension.
    Loop(Symbol),
    /// None.
    None,
}

/// Names of the variables of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) enum Names<'m> {
    /// Those of a block.
    Block(&'m Block),
    /// That of a loop of a comprehension.
    Loop(Symbol),
    /// None: a condition of `implement`.
    None,
}

/// Where a reference leads.
#[derive(Debug)]
pub(super) enum Target {
    /// To a cell.
    Cell(CellId),
    /// To a value that is no variable: `self`.
    Value(Datum),
    /// As far as a cell that has no value yet.
    Blocked(CellId),
}

impl<'m> Machine<'m> {
    /// A new instance of a block, with its variables.
    pub(super) fn add_frame(&mut self, parent: u32, instance: u32, names: Names<'m>) -> u32 {
        let (count, names) = match names {
            Names::Block(block) => (block.variables.len(), FrameNames::Block(BlockKey::of(block))),
            Names::Loop(name) => (1, FrameNames::Loop(name)),
            Names::None => (0, FrameNames::None),
        };
        let first = self.cells.add(count, NONE);
        let around = self.frames.get(parent as usize).map_or(0, |frame| frame.nesting);
        self.frames.push(Frame {
            parent,
            first,
            instance,
            nesting: around.max(self.nesting_of(instance)),
            names,
        });
        self.frames.len() as u32 - 1
    }

    /// How many constructions led to an instance; none if there is no instance.
    fn nesting_of(&self, instance: u32) -> u32 {
        self.nesting.get(instance as usize).copied().unwrap_or(0)
    }

    /// The block instance of a loop has its element: what is constructed there comes from what constructed that.
    pub(super) fn nest_in_element(&mut self, frame: u32, element: &Datum) {
        if let Datum::Instance(instance) = element {
            let nesting = self.nesting_of(instance.0);
            let frame = &mut self.frames[frame as usize];
            frame.nesting = frame.nesting.max(nesting);
        }
    }

    /// The instance that is refined where a frame is; [`NONE`] if none is.
    pub(super) fn instance_of(&self, frame: u32) -> u32 {
        self.frames
            .get(frame as usize)
            .map_or(NONE, |frame| frame.instance)
    }

    /// Where a name leads.
    pub(super) fn place(&self, place: Place, frame: u32, span: Span) -> Run<Target> {
        match place {
            Place::Local { up, index } => {
                let mut frame = frame;
                for _ in 0..up {
                    frame = self.frames[frame as usize].parent;
                }
                Ok(Target::Cell(self.frames[frame as usize].first.at(index)))
            }
            Place::Namespace { namespace, index } => {
                Ok(Target::Cell(self.namespaces[namespace.index()].at(index)))
            }
            Place::Instance => match self.instance_of(frame) {
                NONE => Err(self.not_found("self", span, None)),
                instance => Ok(Target::Value(Datum::Instance(InstanceId(instance)))),
            },
            Place::Member { name, otherwise } => {
                let instance = self.instance_of(frame);
                if let Some(instance) = self.instances.get(instance as usize)
                    && let Some((slot, _)) = self.model.entities[instance.entity.index()].member(name)
                {
                    return Ok(Target::Cell(instance.first.at(slot)));
                }
                match otherwise {
                    Some((namespace, index)) => {
                        Ok(Target::Cell(self.namespaces[namespace.index()].at(index)))
                    }
                    None => Err(self.not_found(self.model.text(name), span, Some(frame))),
                }
            }
            Place::TypedefSelf => Err(self.not_found("self", span, None)),
            Place::NotFound(name) => Err(self.not_found(self.model.text(name), span, Some(frame))),
        }
    }

    /// Where a reference leads: `a`, `a.b.c`.
    pub(super) fn resolve(&self, reference: &'m Expression, frame: u32) -> Run<Target> {
        self.resolve_from(reference, frame, 0)
    }

    /// Where a reference that is written some blocks further inside leads.
    pub(super) fn resolve_from(&self, reference: &'m Expression, frame: u32, lift: u16) -> Run<Target> {
        let mut names: SmallVec<[(Symbol, Span); 4]> = SmallVec::new();
        let mut root = reference;
        while let ExpressionKind::Attribute { of, name, name_span } = &root.kind {
            names.push((*name, *name_span));
            root = of;
        }
        let mut target = match &root.kind {
            ExpressionKind::Variable(Place::Local { up, index }) => {
                let place = Place::Local {
                    up: up.saturating_sub(lift),
                    index: *index,
                };
                self.place(place, frame, root.span)?
            }
            ExpressionKind::Variable(place) => self.place(*place, frame, root.span)?,
            _ => return Err(self.not_found("", root.span, None)),
        };
        for (name, span) in names.into_iter().rev() {
            let instance = match &target {
                Target::Cell(cell) if !self.cells.is_ready(*cell) => return Ok(Target::Blocked(*cell)),
                Target::Cell(cell) => {
                    if let Some(recorder) = &self.recorder {
                        recorder.touch_way(*cell);
                    }
                    self.instance_at(self.read(*cell, span)?, root.span.to(span))?
                }
                Target::Value(value) => self.instance_at(value, root.span.to(span))?,
                Target::Blocked(_) => return Ok(target),
            };
            target = Target::Cell(self.member_cell(instance, name, span)?.0);
        }
        Ok(target)
    }

    /// The value of a cell that is ready.
    pub(super) fn read(&self, cell: CellId, span: Span) -> Run<&Datum> {
        self.touch(cell);
        let found = self.cells.get(cell);
        if !found.is_set()
            && self
                .cells
                .gradual(cell)
                .is_some_and(|gradual| gradual.kind == GradualKind::Optional)
        {
            return Err(self.no_value(cell, span).into());
        }
        Ok(&found.value)
    }

    fn instance_at(&self, value: &Datum, span: Span) -> Run<InstanceId> {
        if let Datum::Instance(instance) = value {
            return Ok(*instance);
        }
        let message = match value {
            Datum::List(_) => "this is not an entity but a list, so it has no attributes".to_owned(),
            value => format!(
                "this is not an entity but {}, so it has no attributes",
                self.described(value)
            ),
        };
        let error = Diagnostic::error(&codes::NOT_AN_INSTANCE, span, message).of_class(class::RUNTIME);
        Err(match value {
            Datum::List(_) => error.help(
                "read the attribute of each element, `[x.a for x in list]`, or of one element, `std::at(list, 0)`",
            ),
            Datum::Dict(_) => error.help("what a dict has for a key is found with `[…]`: `d[\"key\"]`"),
            Datum::Null => error.help("ask `x != null` before"),
            _ => error,
        }
        .into())
    }

    /// The cell of a member of an instance, and its slot.
    pub(super) fn member_cell(&self, instance: InstanceId, name: Symbol, span: Span) -> Run<(CellId, u32)> {
        let data = &self.instances[instance.0 as usize];
        let entity = &self.model.entities[data.entity.index()];
        if let Some((slot, _)) = entity.member(name) {
            return Ok((data.first.at(slot), slot));
        }
        let wanted = self.model.text(name);
        let text = |symbol| &**self.model.text(symbol);
        let near = unnamed_end(self.model, data.entity, wanted, &text)
            .or_else(|| did_you_mean(wanted, entity.members.iter().map(|member| text(member.name))));
        let error = Diagnostic::error(
            &function_codes::NOT_FOUND,
            span,
            format!("`{}` has no attribute `{wanted}`", entity.name),
        )
        .of_class(class::NOT_FOUND)
        .help_if(near);
        Err(match entity.span {
            Some(span) => error.because(span, "the entity"),
            None => error,
        }
        .into())
    }

    /// Whose member a cell is, with its slot.
    pub(super) fn owner_of(&self, cell: CellId) -> Option<(InstanceId, u32)> {
        let owner = self.cells.get(cell).owner();
        let instance = self.instances.get(owner as usize)?;
        Some((InstanceId(owner), cell.0 - instance.first.0))
    }

    /// A member of the entity of an instance.
    pub(super) fn member(&self, instance: InstanceId, slot: u32) -> &'m Member {
        let entity = self.entity_of(instance);
        &self.model.entities[entity.index()].members[slot as usize]
    }

    pub(super) fn entity_of(&self, instance: InstanceId) -> EntityId {
        self.instances[instance.0 as usize].entity
    }

    /// The relation that a cell is an end of.
    pub(super) fn relation_of(&self, cell: CellId) -> Option<RelationId> {
        let (instance, slot) = self.owner_of(cell)?;
        match self.member(instance, slot).kind {
            MemberKind::Relation(relation) => Some(relation),
            MemberKind::Attribute { .. } => None,
        }
    }

    /// How many a relation must hold.
    pub(super) fn low(&self, cell: CellId) -> i64 {
        self.relation_of(cell).map_or(0, |relation| {
            self.model.relations[relation.index()].multiplicity.low
        })
    }

    /// The error that nothing has a name.
    pub(super) fn not_found(&self, name: &str, span: Span, frame: Option<u32>) -> Stop {
        let mut visible: Vec<&str> = Vec::new();
        let mut at = frame.unwrap_or(NONE);
        if let Some(instance) = self.instances.get(self.instance_of(at) as usize) {
            let members = &self.model.entities[instance.entity.index()].members;
            visible.extend(members.iter().map(|member| &**self.model.text(member.name)));
        }
        while let Some(frame) = self.frames.get(at as usize) {
            match frame.names {
                FrameNames::Block(block) => {
                    let variables = self.block(block).into_iter().flat_map(|block| &block.variables);
                    visible.extend(variables.map(|variable| &**self.model.text(variable.name)));
                }
                FrameNames::Loop(name) => visible.push(self.model.text(name)),
                FrameNames::None => {}
            }
            at = frame.parent;
        }
        let mut namespaces = self.model.namespaces.iter();
        let namespace = namespaces.find(|namespace| namespace.file == span.file);
        if let Some(namespace) = namespace {
            let variables = &namespace.body.variables;
            visible.extend(variables.iter().map(|variable| &**self.model.text(variable.name)));
        }
        let error = Diagnostic::error(
            &function_codes::NOT_FOUND,
            span,
            format!("variable `{name}` not found"),
        )
        .of_class(class::NOT_FOUND);
        let inner = namespace.and_then(|namespace| inner_variable(self.model, &namespace.body, name));
        let is_name = name
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | ':'));
        if let Some(inner) = inner {
            let help = "a variable of a block is visible in the block alone; to choose between values, write `x = condition ? a : b`";
            return error
                .because(inner, "this one is of the block that it stands in")
                .help(help)
                .into();
        }
        if !is_name {
            let help = "a field of an f-string is a name with attributes; give the value a name first";
            return error.help(help).into();
        }
        let near = did_you_mean(name, visible).or_else(|| match name.replace('-', " - ") {
            spaced if spaced != name => Some(format!(
                "`-` between letters belongs to the name; a subtraction has spaces: `{spaced}`"
            )),
            _ => foreign_word(name).map(str::to_owned),
        });
        error.help_if(near).into()
    }

    /// The error that an optional relation was left without a value.
    pub(super) fn no_value(&self, cell: CellId, span: Span) -> Diagnostic {
        let name = self.owner_of(cell).map(|(instance, slot)| {
            let name = self.model.text(self.member(instance, slot).name).clone();
            (name, self.instance_text(instance))
        });
        let message = match &name {
            Some((name, instance)) => format!("the optional relation `{name}` of {instance} has no value"),
            None => "this optional relation has no value".to_owned(),
        };
        Diagnostic::error(&function_codes::NO_VALUE, span, message)
            .of_class(class::OPTIONAL_VALUE)
            .help("ask with `is defined` first")
    }

    /// The scope of a part of a block: the owner is not handed on.
    pub(super) fn scope(frame: u32) -> Scope {
        Scope { frame, owner: NONE }
    }
}
