//! The order of units and of freezing, over models that are made by hand.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use setpoint_cf_functions::std::number;
use setpoint_cf_names::datum::Datum;
use setpoint_cf_names::hir::{
    Block, Constructor, Entity, Expression, ExpressionKind, Function, FunctionImplementation, Implement,
    Implementation, Member, MemberKind, Model, Namespace, Place, Relation, Statement, StatementKind,
    TextPart, Variable,
};
use setpoint_cf_names::ids::{EntityId, FunctionId, ImplementationId, NamespaceId, RelationId, Symbol};
use setpoint_cf_syntax::ast::{Literal, Multiplicity};
use setpoint_diagnostics::{FileId, MemoryLoader, SourceMap, Span};

use super::{Execution, Inputs, Options, Slot, execute};

const SPAN: Span = Span::new(FileId(0), 0, 1);

fn expression(kind: ExpressionKind) -> Expression {
    Expression { kind, span: SPAN }
}

fn statement(kind: StatementKind) -> Statement {
    Statement { kind, span: SPAN }
}

fn local(up: u16) -> Expression {
    expression(ExpressionKind::Variable(Place::Local { up, index: 0 }))
}

fn place(index: u32) -> Place {
    Place::Namespace {
        namespace: NamespaceId(0),
        index,
    }
}

fn global(index: u32) -> Expression {
    expression(ExpressionKind::Variable(place(index)))
}

fn call(function: u32, argument: Expression) -> Expression {
    expression(ExpressionKind::Call {
        function: FunctionId(function),
        positional: vec![argument],
        keywords: Vec::new(),
        dicts: Vec::new(),
        name_span: SPAN,
        namespace: NamespaceId(0),
    })
}

/// `std::print` of fields and a text behind them.
fn print(fields: Vec<Expression>, text: &str) -> Statement {
    let mut parts: Vec<TextPart> = fields.into_iter().map(TextPart::Field).collect();
    parts.push(TextPart::Text(text.into()));
    let text = expression(ExpressionKind::Interpolated(parts));
    statement(StatementKind::Expression(call(0, text)))
}

fn block(variables: usize, statements: Vec<Statement>) -> Block {
    let variable = |at: usize| Variable {
        name: Symbol(at as u32),
        span: SPAN,
    };
    Block {
        variables: (0..variables).map(variable).collect(),
        statements,
    }
}

fn for_each(elements: &[i64], statements: Vec<Statement>) -> Statement {
    statement(StatementKind::For {
        iterable: expression(ExpressionKind::ConstantList(
            elements.iter().copied().map(Datum::Int).collect(),
        )),
        body: block(1, statements),
    })
}

fn assign(index: u32, value: Expression) -> Statement {
    statement(StatementKind::AssignVariable {
        target: place(index),
        value,
        target_span: SPAN,
    })
}

/// An entity `A` with a relation `os` to itself, and functions `print` and `count`.
fn model(variables: usize, statements: Vec<Statement>) -> Model {
    let function = |name: &str| {
        let number = number("std", name).expect("std has it");
        Function {
            name: format!("std::{name}").into(),
            implementation: FunctionImplementation::Std(number),
        }
    };
    let os = Symbol(3);
    let implement = Implement {
        namespace: NamespaceId(0),
        using: vec![ImplementationId(0)],
        condition: None,
        span: None,
    };
    Model {
        symbols: ["x", "y", "z", "os"].map(Arc::from).to_vec(),
        namespaces: vec![Namespace {
            name: "__config__".into(),
            file: FileId(0),
            parent: None,
            imports: FxHashMap::default(),
            has_library_functions: false,
            body: block(variables, statements),
        }],
        entities: vec![Entity {
            name: "A".into(),
            namespace: NamespaceId(0),
            span: None,
            parents: Vec::new(),
            ancestors: Vec::new(),
            descendants: Vec::new(),
            members: vec![Member {
                name: os,
                span: None,
                kind: MemberKind::Relation(RelationId(0)),
            }],
            by_name: FxHashMap::from_iter([(os, 0)]),
            indexes: Vec::new(),
            implements: vec![Arc::new(implement)],
            kind: None,
            doc: None,
        }],
        implementations: vec![Implementation {
            name: "none".into(),
            namespace: NamespaceId(0),
            entity: EntityId(0),
            span: None,
            doc: None,
            body: block(0, Vec::new()),
        }],
        relations: vec![Relation {
            owner: EntityId(0),
            name: os,
            target: EntityId(0),
            multiplicity: Multiplicity {
                low: 0,
                high: None,
                span: SPAN,
            },
            inverse: None,
            span: None,
            annotations: Vec::new(),
            namespace: NamespaceId(0),
            doc: None,
        }],
        functions: vec![function("print"), function("count")],
        ..Model::default()
    }
}

fn run(model: &Model) -> Execution {
    let mut sources = SourceMap::new();
    sources.add("main.cf", "a model that is made by hand\n");
    execute(
        model,
        &mut sources,
        &Inputs::default(),
        &MemoryLoader::new(),
        None,
        &Options::default(),
    )
}

fn constructor() -> Expression {
    expression(ExpressionKind::Constructor(Box::new(Constructor {
        entity: EntityId(0),
        keywords: Vec::new(),
        dicts: Vec::new(),
        inferred: None,
    })))
}

fn os_of(instance: Expression) -> Expression {
    expression(ExpressionKind::Attribute {
        of: Box::new(instance),
        name: Symbol(3),
        name_span: SPAN,
    })
}

fn add(index: u32, value: Expression) -> Statement {
    statement(StatementKind::AssignMember {
        instance: global(index),
        member: Symbol(3),
        member_span: SPAN,
        add: true,
        value,
    })
}

#[test]
fn blocks_of_loops_are_set_up_last_statement_first() {
    let inner = vec![
        print(vec![local(1), local(0)], "a"),
        print(vec![local(1), local(0)], "b"),
    ];
    let outer = vec![for_each(&[3, 4], inner), print(vec![local(0)], "")];
    let execution = run(&model(
        0,
        vec![for_each(&[1, 2], outer), print(Vec::new(), "end")],
    ));
    assert!(execution.diagnostics.is_empty(), "{:?}", execution.diagnostics);
    assert_eq!(
        execution.printed,
        [
            "end", "1", "2", "13b", "13a", "14b", "14a", "23b", "23a", "24b", "24a"
        ]
    );
}

#[test]
fn a_relation_is_frozen_after_all_that_can_be_added() {
    // n = count(a.os); a.os += b; the constructors last.
    let statements = vec![
        assign(2, call(1, os_of(global(0)))),
        add(0, global(1)),
        assign(0, constructor()),
        assign(1, constructor()),
    ];
    let execution = run(&model(3, statements));
    assert!(execution.diagnostics.is_empty(), "{:?}", execution.diagnostics);
    assert!(matches!(execution.variables[2].1, Slot::Value(Datum::Int(1))));
}

#[test]
fn an_addition_that_depends_on_the_whole_relation_comes_too_late() {
    // if count(a.os) == 0: a.os += a
    let zero = expression(ExpressionKind::Literal(Literal::Int(0)));
    let condition = expression(ExpressionKind::Operators {
        first: Box::new(call(1, os_of(global(0)))),
        rest: vec![(setpoint_cf_syntax::ast::Operator::Equal, SPAN, zero)],
    });
    let branch = block(0, vec![add(0, global(0))]);
    let statements = vec![
        assign(0, constructor()),
        statement(StatementKind::If {
            branches: vec![(condition, branch)],
            otherwise: None,
        }),
    ];
    let execution = run(&model(1, statements));
    let codes: Vec<&str> = execution
        .diagnostics
        .iter()
        .map(|found| found.code.code)
        .collect();
    assert_eq!(codes, ["E0603"]);
    let cause = execution
        .diagnostics
        .iter()
        .flat_map(|found| found.causes.iter())
        .next();
    assert_eq!(
        cause.map(|cause| cause.class),
        Some("ModifiedAfterFreezeException")
    );
}

#[test]
fn variables_that_need_each_other_are_told() {
    let execution = run(&model(2, vec![assign(0, global(1)), assign(1, global(0))]));
    let codes: Vec<&str> = execution
        .diagnostics
        .iter()
        .map(|found| found.code.code)
        .collect();
    assert_eq!(codes, ["E0632"]);
}
