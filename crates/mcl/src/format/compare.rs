//! Whether two texts say the same: equal syntax but for places, redundant parentheses and older spellings.

use crate::syntax::{
    Arguments, Ast, Block, BodyItem, BodyItemKind, Callee, EdgeEndpoint, ExprId, ExprKind, Function,
    ImportAlias, Loop, Name, Parameters, StmtId, StmtKind, TypeExpr, TypeKind,
};

/// Whether two files say the same.
pub(super) fn same(left: &Ast, right: &Ast) -> bool {
    Comparison { left, right }.blocks(&left.root, &right.root)
}

struct Comparison<'a> {
    left: &'a Ast,
    right: &'a Ast,
}

fn all<T>(left: &[T], right: &[T], same: impl Fn(&T, &T) -> bool) -> bool {
    left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
}

fn option<T>(left: Option<&T>, right: Option<&T>, same: impl Fn(&T, &T) -> bool) -> bool {
    match (left, right) {
        (None, None) => true,
        (Some(left), Some(right)) => same(left, right),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn names(left: &Name, right: &Name) -> bool {
    left.text == right.text
}

fn types(left: &TypeExpr, right: &TypeExpr) -> bool {
    match (&left.kind, &right.kind) {
        (TypeKind::List(a), TypeKind::List(b)) => types(a, b),
        (TypeKind::Map { key: k, value: v }, TypeKind::Map { key, value }) => {
            types(k, key) && types(v, value)
        }
        (TypeKind::Struct(a), TypeKind::Struct(b)) => all(a, b, |a, b| {
            names(&a.name, &b.name) && types(&a.annotation, &b.annotation)
        }),
        (
            TypeKind::Func {
                arguments: a,
                result: r,
            },
            TypeKind::Func {
                arguments: b,
                result: s,
            },
        ) => {
            all(a, b, |a, b| {
                option(a.name.as_ref(), b.name.as_ref(), names) && types(&a.annotation, &b.annotation)
            }) && types(r, s)
        }
        (left, right) => std::mem::discriminant(left) == std::mem::discriminant(right),
    }
}

fn annotations(left: &Option<TypeExpr>, right: &Option<TypeExpr>) -> bool {
    option(left.as_ref(), right.as_ref(), types)
}

fn parameters(left: &Parameters, right: &Parameters) -> bool {
    all(&left.items, &right.items, |a, b| {
        names(&a.name, &b.name) && annotations(&a.annotation, &b.annotation)
    })
}

impl Comparison<'_> {
    fn blocks(&self, left: &Block, right: &Block) -> bool {
        all(&left.statements, &right.statements, |a, b| {
            self.statements(*a, *b)
        })
    }

    fn statements(&self, left: StmtId, right: StmtId) -> bool {
        match (&self.left.stmt(left).kind, &self.right.stmt(right).kind) {
            (StmtKind::Bind(a), StmtKind::Bind(b)) => {
                names(&a.name, &b.name)
                    && annotations(&a.annotation, &b.annotation)
                    && self.exprs(a.value, b.value)
            }
            (StmtKind::If(a), StmtKind::If(b)) => {
                a.else_if == b.else_if
                    && self.exprs(a.condition, b.condition)
                    && self.blocks(&a.then_block, &b.then_block)
                    && option(a.else_block.as_ref(), b.else_block.as_ref(), |a, b| {
                        self.blocks(a, b)
                    })
            }
            (StmtKind::For(a), StmtKind::For(b)) | (StmtKind::ForKv(a), StmtKind::ForKv(b)) => {
                self.loops(a, b)
            }
            (StmtKind::Resource(a), StmtKind::Resource(b)) => {
                a.collect == b.collect
                    && names(&a.kind, &b.kind)
                    && self.exprs(a.name, b.name)
                    && all(&a.items, &b.items, |a, b| self.items(a, b))
            }
            (StmtKind::Edge(a), StmtKind::Edge(b)) => {
                all(&a.endpoints, &b.endpoints, |a, b| self.endpoints(a, b))
            }
            (StmtKind::Class(a), StmtKind::Class(b)) => {
                names(&a.name, &b.name)
                    && option(a.parameters.as_ref(), b.parameters.as_ref(), parameters)
                    && self.blocks(&a.body, &b.body)
            }
            (StmtKind::Include(a), StmtKind::Include(b)) => {
                names(&a.class, &b.class)
                    && option(a.arguments.as_ref(), b.arguments.as_ref(), |a, b| {
                        self.arguments(a, b)
                    })
                    && option(a.alias.as_ref(), b.alias.as_ref(), names)
            }
            (StmtKind::Import(a), StmtKind::Import(b)) => {
                names(&a.path, &b.path)
                    && option(a.alias.as_ref(), b.alias.as_ref(), |a, b| match (a, b) {
                        (ImportAlias::Name(a), ImportAlias::Name(b)) => names(a, b),
                        (ImportAlias::All(_), ImportAlias::All(_)) => true,
                        (ImportAlias::Name(_) | ImportAlias::All(_), _) => false,
                    })
            }
            (StmtKind::Func(a), StmtKind::Func(b)) => {
                names(&a.name, &b.name) && self.functions(&a.function, &b.function)
            }
            (StmtKind::Panic(a), StmtKind::Panic(b)) => self.arguments(a, b),
            (
                StmtKind::Bind(_)
                | StmtKind::If(_)
                | StmtKind::For(_)
                | StmtKind::ForKv(_)
                | StmtKind::Resource(_)
                | StmtKind::Edge(_)
                | StmtKind::Class(_)
                | StmtKind::Include(_)
                | StmtKind::Import(_)
                | StmtKind::Func(_)
                | StmtKind::Panic(_),
                _,
            ) => false,
        }
    }

    fn loops(&self, left: &Loop, right: &Loop) -> bool {
        names(&left.key, &right.key)
            && names(&left.value, &right.value)
            && self.exprs(left.iterable, right.iterable)
            && self.blocks(&left.body, &right.body)
    }

    fn items(&self, left: &BodyItem, right: &BodyItem) -> bool {
        let conditions = option(left.condition.as_ref(), right.condition.as_ref(), |a, b| {
            self.exprs(*a, *b)
        });
        conditions
            && match (&left.kind, &right.kind) {
                (BodyItemKind::Field { name: a, value: v }, BodyItemKind::Field { name: b, value: w })
                | (BodyItemKind::Meta { name: a, value: v }, BodyItemKind::Meta { name: b, value: w }) => {
                    names(a, b) && self.exprs(*v, *w)
                }
                (
                    BodyItemKind::EdgeProperty {
                        property: a,
                        endpoint: v,
                    },
                    BodyItemKind::EdgeProperty {
                        property: b,
                        endpoint: w,
                    },
                ) => names(a, b) && self.endpoints(v, w),
                (BodyItemKind::MetaStruct { value: v }, BodyItemKind::MetaStruct { value: w }) => {
                    self.exprs(*v, *w)
                }
                (
                    BodyItemKind::Field { .. }
                    | BodyItemKind::Meta { .. }
                    | BodyItemKind::EdgeProperty { .. }
                    | BodyItemKind::MetaStruct { .. },
                    _,
                ) => false,
            }
    }

    fn endpoints(&self, left: &EdgeEndpoint, right: &EdgeEndpoint) -> bool {
        names(&left.kind, &right.kind)
            && self.exprs(left.name, right.name)
            && option(left.field.as_ref(), right.field.as_ref(), names)
    }

    fn arguments(&self, left: &Arguments, right: &Arguments) -> bool {
        all(&left.items, &right.items, |a, b| self.exprs(*a, *b))
    }

    fn functions(&self, left: &Function, right: &Function) -> bool {
        parameters(&left.parameters, &right.parameters)
            && annotations(&left.result, &right.result)
            && self.exprs(left.body, right.body)
    }

    fn exprs(&self, left: ExprId, right: ExprId) -> bool {
        let left = &self.left.expr(self.left.without_parens(left)).kind;
        let right = &self.right.expr(self.right.without_parens(right)).kind;
        match (left, right) {
            (ExprKind::Bool(a), ExprKind::Bool(b)) => a == b,
            (ExprKind::Integer(a), ExprKind::Integer(b)) => a == b,
            (ExprKind::Float(a), ExprKind::Float(b)) => a.to_bits() == b.to_bits(),
            (ExprKind::String(a), ExprKind::String(b)) => a == b,
            (ExprKind::List(a), ExprKind::List(b)) => all(a, b, |a, b| self.exprs(*a, *b)),
            (ExprKind::Map(a), ExprKind::Map(b)) => all(a, b, |a, b| {
                self.exprs(a.key, b.key) && self.exprs(a.value, b.value)
            }),
            (ExprKind::Struct(a), ExprKind::Struct(b)) => all(a, b, |a, b| {
                names(&a.name, &b.name) && self.exprs(a.value, b.value)
            }),
            (ExprKind::Variable(a), ExprKind::Variable(b)) => names(a, b),
            (ExprKind::Call(a), ExprKind::Call(b)) => {
                let callees = match (&a.callee, &b.callee) {
                    (Callee::Function(a), Callee::Function(b))
                    | (Callee::Variable(a), Callee::Variable(b)) => names(a, b),
                    (Callee::Lambda(a), Callee::Lambda(b)) => self.exprs(*a, *b),
                    (Callee::Function(_) | Callee::Variable(_) | Callee::Lambda(_), _) => false,
                };
                callees && self.arguments(&a.arguments, &b.arguments)
            }
            (ExprKind::Lambda(a), ExprKind::Lambda(b)) => self.functions(a, b),
            (ExprKind::If(a), ExprKind::If(b)) => {
                a.else_if == b.else_if
                    && self.exprs(a.condition, b.condition)
                    && self.exprs(a.then_branch, b.then_branch)
                    && self.exprs(a.else_branch, b.else_branch)
            }
            (
                ExprKind::Operator {
                    operator: o,
                    left: a,
                    right: c,
                    ..
                },
                ExprKind::Operator {
                    operator: p,
                    left: b,
                    right: d,
                    ..
                },
            ) => o == p && self.exprs(*a, *b) && self.exprs(*c, *d),
            (ExprKind::Not(a), ExprKind::Not(b)) => self.exprs(*a, *b),
            (ExprKind::In { left: a, right: c }, ExprKind::In { left: b, right: d })
            | (ExprKind::Lookup { base: a, index: c }, ExprKind::Lookup { base: b, index: d })
            | (
                ExprKind::Except {
                    left: a, right: c, ..
                },
                ExprKind::Except {
                    left: b, right: d, ..
                },
            ) => self.exprs(*a, *b) && self.exprs(*c, *d),
            (ExprKind::StructLookup { base: a, field: f }, ExprKind::StructLookup { base: b, field: g }) => {
                names(f, g) && self.exprs(*a, *b)
            }
            (
                ExprKind::StructLookupOptional {
                    base: a,
                    field: f,
                    default: c,
                    ..
                },
                ExprKind::StructLookupOptional {
                    base: b,
                    field: g,
                    default: d,
                    ..
                },
            ) => names(f, g) && self.exprs(*a, *b) && self.exprs(*c, *d),
            _ => false,
        }
    }
}
