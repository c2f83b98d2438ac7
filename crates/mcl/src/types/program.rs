//! The typed program: what stands between inference and lowering.
//!
//! It exists only for a program in which inference found nothing wrong, and it answers what lowering asks about an expression of an instance
//! as a [`Form`], in which all is decided that types decide: what is looked up in a list and what in a map, which
//! field of a struct is meant, whether a default is taken, which instance of a function is called. Its forms are fewer than those of
//! the syntax, and none of them can be refused, so that lowering neither looks at types nor fails.
//!
//! What it relies on holds because inference found no error: every expression that a statement with output needs has a closed type;
//! every reference leads outward to an instance of its owner; every include and call that is reached has an instance.
//! Where that does not hold, the mistake is ours, and [`missing`] ends the compilation: nothing stands in for what is not there.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use setpoint_value::{FunctionRef, Type, Value, operators};

use super::expressions::operator_spec;
use super::instances::{Instance, InstanceId, Typed};
use crate::hir::{
    BodyId, Callee, DefinitionId, DefinitionKind, ExprId, ExprKind, FunctionId, Hir, IncludeId, Owner, Part,
};

/// A resolved program with the types of all that has output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypedProgram<'a> {
    hir: &'a Hir,
    typed: &'a Typed,
}

/// An expression of an instance, when its types are known.
#[derive(Debug)]
pub(crate) enum Form<'a> {
    Constant(&'a Value),
    /// A definition that is reached through these includes.
    Variable {
        path: &'a [IncludeId],
        definition: DefinitionId,
    },
    Interpolation(&'a [Part]),
    List(&'a [ExprId]),
    Map(&'a [(ExprId, ExprId)]),
    /// Its fields in the order of its type.
    Struct(&'a [(Arc<str>, ExprId)]),
    /// This field of a struct.
    Field {
        base: ExprId,
        index: u32,
    },
    Lambda(FunctionId),
    If {
        condition: ExprId,
        then: ExprId,
        otherwise: ExprId,
    },
    Except {
        left: ExprId,
        right: ExprId,
    },
    /// What an operator, a lookup or a call of a library function comes to.
    Library {
        function: FunctionRef,
        arguments: Cow<'a, [ExprId]>,
        /// Directory of the module whose text calls.
        module_directory: Arc<str>,
    },
    /// A call of a named function of the program, reached through these includes.
    Function {
        path: &'a [IncludeId],
        function: FunctionId,
        /// The instance of it that this call has.
        called: InstanceId,
        arguments: &'a [ExprId],
    },
    /// A call of a function value.
    Value {
        callee: ExprId,
        arguments: &'a [ExprId],
    },
    /// What this other expression is: the default of a field that a struct does not have.
    Same(ExprId),
}

/// Where the argument of an included class is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Argument {
    /// The instance that the include statement is in.
    pub(crate) site: InstanceId,
    /// The body that it is in.
    pub(crate) body: BodyId,
    pub(crate) value: ExprId,
}

impl<'a> TypedProgram<'a> {
    /// The program, if its types are known: if inference found nothing wrong.
    pub(crate) fn new(hir: &'a Hir, typed: &'a Typed) -> Option<TypedProgram<'a>> {
        typed.is_complete.then_some(TypedProgram { hir, typed })
    }

    pub(crate) fn hir(&self) -> &'a Hir {
        self.hir
    }

    /// The top of the entry; none of a program without a text.
    pub(crate) fn entry(&self) -> Option<InstanceId> {
        self.typed.tops.get(&BodyId(0)).copied()
    }

    pub(crate) fn instance(&self, id: InstanceId) -> &'a Instance {
        self.typed.instance(id)
    }

    /// The nearest instance outward from `from` that is one of `owner`.
    pub(crate) fn outward(&self, from: InstanceId, owner: Owner) -> InstanceId {
        let found = self.typed.outward(from, owner);
        found.unwrap_or_else(|| missing(format_args!("nothing around {from:?} is {owner:?}")))
    }

    /// The instance of an include of an instance.
    pub(crate) fn included(&self, holder: InstanceId, include: IncludeId) -> InstanceId {
        let found = self.instance(holder).includes.get(&include).copied();
        found.unwrap_or_else(|| missing(format_args!("{holder:?} does not include {include:?}")))
    }

    /// The instance that a path leads to and in which `owner`'s things are. Each include on the way is told with the instance that
    /// it is in.
    pub(crate) fn follow(
        &self,
        from: InstanceId,
        path: &[IncludeId],
        owner: Owner,
        mut on_the_way: impl FnMut(InstanceId, IncludeId),
    ) -> InstanceId {
        let mut at = from;
        for include in path {
            let holder = self.outward(at, self.hir.include(*include).owner);
            on_the_way(holder, *include);
            at = self.included(holder, *include);
        }
        self.outward(at, owner)
    }

    /// An argument of the include that an instance of a class is of.
    pub(crate) fn argument(&self, of: InstanceId, index: usize) -> Argument {
        let Some((site, include)) = self.instance(of).site else {
            missing(format_args!("{of:?} is not included"));
        };
        let include = self.hir.include(include);
        match include.arguments.get(index) {
            Some(value) => Argument {
                site,
                body: include.body,
                value: *value,
            },
            None => missing(format_args!("{of:?} has no argument {index}")),
        }
    }

    /// The named function that an instance is one of.
    pub(crate) fn function_of(&self, instance: InstanceId) -> FunctionId {
        match self.instance(instance).owner {
            Owner::Function(id) => id,
            owner => missing(format_args!("{owner:?} is called")),
        }
    }

    /// The type of an expression.
    pub(crate) fn type_of(&self, instance: InstanceId, id: ExprId) -> Type {
        let found = match &self.hir.expr(id).kind {
            ExprKind::Literal(value) => return value.ty(),
            ExprKind::Variable { path, definition } => {
                let known = self.hir.definition(*definition);
                if let DefinitionKind::Library(value) = &known.kind {
                    return value.ty();
                }
                let holder = self.follow(instance, path, known.owner, |_, _| ());
                self.instance(holder).definitions.get(definition)
            }
            _ => self.typed.types.get(&(instance, id)),
        };
        let found = found.cloned();
        found.unwrap_or_else(|| missing(format_args!("{id:?} of {instance:?} has no type")))
    }

    /// What an expression is.
    pub(crate) fn form(&self, instance: InstanceId, id: ExprId) -> Form<'a> {
        match &self.hir.expr(id).kind {
            ExprKind::Unknown(_) => missing(format_args!("{id:?} has no meaning")),
            ExprKind::Literal(value) => Form::Constant(value),
            ExprKind::Variable { path, definition } => Form::Variable {
                path,
                definition: *definition,
            },
            ExprKind::Interpolation(parts) => Form::Interpolation(parts),
            ExprKind::List(items) => Form::List(items),
            ExprKind::Map(entries) => Form::Map(entries),
            ExprKind::Struct(fields) => Form::Struct(fields),
            ExprKind::Lambda(function) => Form::Lambda(*function),
            ExprKind::If {
                condition,
                then,
                otherwise,
            } => Form::If {
                condition: *condition,
                then: *then,
                otherwise: *otherwise,
            },
            ExprKind::Except { left, right } => Form::Except {
                left: *left,
                right: *right,
            },
            ExprKind::Operator {
                operator,
                left,
                right,
            } => built_in(operator_spec(*operator).into(), [*left, *right]),
            ExprKind::Not(inner) => built_in((&operators::NOT).into(), [*inner]),
            ExprKind::In { left, right } => built_in((&operators::CONTAINS).into(), [*left, *right]),
            ExprKind::Lookup { base, index } => {
                let function = match self.type_of(instance, *base) {
                    Type::Map(_) => &operators::MAP_LOOKUP,
                    Type::List(_) => &operators::LIST_LOOKUP,
                    other => missing(format_args!("{id:?} is looked up in {other}")),
                };
                built_in(function.into(), [*base, *index])
            }
            ExprKind::Field { base, field } => match self.field(instance, *base, field) {
                Some(index) => Form::Field { base: *base, index },
                None => missing(format_args!("{base:?} has no field `{field}`")),
            },
            ExprKind::FieldOr { base, field, default } => match self.field(instance, *base, field) {
                Some(index) => Form::Field { base: *base, index },
                None => Form::Same(*default),
            },
            ExprKind::Call { callee, arguments } => match callee {
                Callee::Library(function, directory) => Form::Library {
                    function: function.clone(),
                    arguments: Cow::Borrowed(arguments),
                    module_directory: directory.clone(),
                },
                Callee::Value(callee) => Form::Value {
                    callee: *callee,
                    arguments,
                },
                Callee::Function { path, function } => match self.instance(instance).calls.get(&id) {
                    Some(called) => Form::Function {
                        path,
                        function: *function,
                        called: *called,
                        arguments,
                    },
                    None => missing(format_args!("{id:?} of {instance:?} calls nothing")),
                },
            },
        }
    }

    /// The place of a field in the type of a struct, if it has that field.
    fn field(&self, instance: InstanceId, base: ExprId, field: &str) -> Option<u32> {
        match self.type_of(instance, base).as_struct() {
            Some(fields) => fields.index(field).map(|index| index as u32),
            None => missing(format_args!("{base:?} is not a struct")),
        }
    }
}

fn built_in<'a, const N: usize>(function: FunctionRef, arguments: [ExprId; N]) -> Form<'a> {
    Form::Library {
        function,
        arguments: Cow::Owned(arguments.to_vec()),
        module_directory: "/".into(),
    }
}

/// Something that this module promises is not there.
#[cold]
pub(crate) fn missing(what: fmt::Arguments<'_>) -> ! {
    panic!("a typed program is not complete: {what}")
}
