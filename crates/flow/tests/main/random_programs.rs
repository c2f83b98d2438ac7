//! Incremental is from scratch: random programs, random histories, compared after each step with the naive evaluator.

use std::collections::BTreeSet;

use proptest::prelude::*;
use setpoint_diagnostics::Span;
use setpoint_flow::{Slot, Step};
use setpoint_value::{Type, Value, operators};

use crate::library;
use crate::oracle::{Moment, evaluate};
use crate::plain::EVALUATE;
use crate::program_builder::{Built, ProgramBuilder, TemplateBuilder, block};
use crate::world::World;

/// Makes a program of a list of numbers. Where they end, the smallest choice is taken, so that a shorter list is a smaller
/// program.
struct Generator<'a> {
    choices: &'a [u16],
    builder: ProgramBuilder,
    resources: u32,
    /// Function bodies made so far: parameters and result are ints.
    functions: Vec<(setpoint_flow::TemplateId, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Int,
    Bool,
    Str,
    List,
    Map,
    Func,
    Pair,
}

impl Kind {
    fn ty(self) -> Type {
        match self {
            Kind::Int => Type::Int,
            Kind::Bool => Type::Bool,
            Kind::Str => Type::Str,
            Kind::List => Type::list(Type::Int),
            Kind::Map => Type::map(Type::Str, Type::Int),
            Kind::Func => Type::func([("x", Type::Int)], Type::Int),
            Kind::Pair => Type::structure([("a", Type::Int), ("f", Kind::Func.ty())]),
        }
    }
}

/// A template in the making, with the slots that can be used.
struct Open {
    template: TemplateBuilder,
    visible: Vec<(Slot, Kind)>,
}

const KINDS: [Kind; 7] = [
    Kind::Int,
    Kind::Bool,
    Kind::Str,
    Kind::List,
    Kind::Map,
    Kind::Func,
    Kind::Pair,
];

impl Generator<'_> {
    fn choose(&mut self, below: usize) -> usize {
        let Some((first, rest)) = self.choices.split_first() else {
            return 0;
        };
        self.choices = rest;
        usize::from(*first) % below
    }

    /// An expression of a kind.
    fn expression(&mut self, open: &mut Open, kind: Kind, depth: u32) -> Slot {
        let slot = self.fresh(open, kind, depth);
        open.visible.push((slot, kind));
        slot
    }

    fn fresh(&mut self, open: &mut Open, kind: Kind, depth: u32) -> Slot {
        let known: Vec<Slot> = open.visible.iter().filter(|v| v.1 == kind).map(|v| v.0).collect();
        if depth == 0 || self.choices.is_empty() {
            return match known.len() {
                0 => self.leaf(open, kind),
                count => known[self.choose(count)],
            };
        }
        let depth = depth - 1;
        match self.choose(9) {
            0 => self.leaf(open, kind),
            1 | 2 if !known.is_empty() => known[self.choose(known.len())],
            3 => {
                let condition = self.expression(open, Kind::Bool, depth);
                let (then, first) = self.body(open, kind, depth, &[]);
                let (otherwise, second) = self.body(open, kind, depth, &[]);
                open.template.if_(
                    condition,
                    block(then, &first),
                    block(otherwise, &second),
                    kind.ty(),
                )
            }
            4 => {
                let value = self.expression(open, kind, depth);
                let (fallback, captures) = self.body(open, kind, depth, &[]);
                open.template.except(value, block(fallback, &captures), kind.ty())
            }
            _ => self.special(open, kind, depth),
        }
    }

    fn leaf(&mut self, open: &mut Open, kind: Kind) -> Slot {
        let number = self.choose(4);
        let from_outside = self.choose(3) > 0;
        match kind {
            Kind::Func => {
                let (body, captures) = self.body(open, Kind::Int, 1, &[Kind::Int]);
                open.template.closure(block(body, &captures), kind.ty())
            }
            Kind::Pair => {
                let a = self.leaf(open, Kind::Int);
                let f = self.leaf(open, Kind::Func);
                let ty = kind.ty();
                open.template
                    .node(setpoint_flow::Operation::Struct(vec![a, f]), ty)
            }
            _ if from_outside => {
                let key = format!("{}{number}", prefix(kind));
                open.template.outside(&key, kind.ty())
            }
            _ => {
                let value = value_of(kind, number as u16);
                open.template.constant(value)
            }
        }
    }

    fn special(&mut self, open: &mut Open, kind: Kind, depth: u32) -> Slot {
        match kind {
            Kind::Int => self.int(open, depth),
            Kind::Bool => {
                let (a, b) = (
                    self.expression(open, Kind::Int, depth),
                    self.expression(open, Kind::Int, depth),
                );
                open.template.call(&operators::LESS, &[a, b], Type::Bool)
            }
            Kind::Str => {
                let a = self.expression(open, Kind::Int, depth);
                open.template.text_of(a)
            }
            Kind::List => match self.choose(3) {
                0 => {
                    let count = self.choose(4);
                    let items: Vec<Slot> = (0..count)
                        .map(|_| self.expression(open, Kind::Int, depth))
                        .collect();
                    open.template.list(Type::Int, &items)
                }
                1 => {
                    let list = self.expression(open, Kind::List, depth);
                    let function = self.expression(open, Kind::Func, depth);
                    open.template.call(&library::MAP, &[list, function], kind.ty())
                }
                _ => {
                    let list = self.expression(open, Kind::List, depth);
                    let (body, captures) = self.body(open, Kind::Bool, depth, &[Kind::Int]);
                    let ty = Type::func([("x", Type::Int)], Type::Bool);
                    let function = open.template.closure(block(body, &captures), ty);
                    open.template.call(&library::FILTER, &[list, function], kind.ty())
                }
            },
            Kind::Map => {
                let count = self.choose(3);
                let entries: Vec<(Slot, Slot)> = (0..count)
                    .map(|_| {
                        let key = self.expression(open, Kind::Str, depth);
                        (key, self.expression(open, Kind::Int, depth))
                    })
                    .collect();
                open.template
                    .node(setpoint_flow::Operation::Map(entries), kind.ty())
            }
            Kind::Func => {
                let (body, captures) = self.body(open, Kind::Int, depth, &[Kind::Int]);
                open.template.closure(block(body, &captures), kind.ty())
            }
            Kind::Pair => {
                let a = self.expression(open, Kind::Int, depth);
                let f = self.expression(open, Kind::Func, depth);
                open.template
                    .node(setpoint_flow::Operation::Struct(vec![a, f]), kind.ty())
            }
        }
    }

    fn int(&mut self, open: &mut Open, depth: u32) -> Slot {
        match self.choose(12) {
            0 | 1 => {
                let (a, b) = (
                    self.expression(open, Kind::Int, depth),
                    self.expression(open, Kind::Int, depth),
                );
                open.template.add(a, b)
            }
            2 => {
                let (a, b) = (
                    self.expression(open, Kind::Int, depth),
                    self.expression(open, Kind::Int, depth),
                );
                open.template.divide(a, b)
            }
            3 => {
                let list = self.expression(open, Kind::List, depth);
                let index = self.expression(open, Kind::Int, depth);
                let ty = Type::Int;
                open.template.call(&operators::LIST_LOOKUP, &[list, index], ty)
            }
            4 => {
                let map = self.expression(open, Kind::Map, depth);
                let key = self.expression(open, Kind::Str, depth);
                open.template.call(&operators::MAP_LOOKUP, &[map, key], Type::Int)
            }
            5 => {
                let list = self.expression(open, Kind::List, depth);
                open.template.call(&library::LEN, &[list], Type::Int)
            }
            6 => {
                let a = self.expression(open, Kind::Int, depth);
                open.template.call(&library::PICKY, &[a], Type::Int)
            }
            7 => {
                let function = self.expression(open, Kind::Func, depth);
                let a = self.expression(open, Kind::Int, depth);
                open.template.apply(function, &[a], Type::Int)
            }
            8 => {
                // A source whose arguments move.
                let a = self.expression(open, Kind::Int, depth);
                let a = open.template.call(&library::MODULO, &[a], Type::Int);
                let (text, prefix) = (open.template.text_of(a), open.template.str("i"));
                let key = open.template.concat(prefix, text);
                open.template.call(&library::OUTSIDE, &[key], Type::Int)
            }
            9 => {
                let list = self.expression(open, Kind::List, depth);
                let (body, captures) = self.body(open, Kind::Int, depth, &[Kind::Int, Kind::Int]);
                let ty = Type::func([("x", Type::Int), ("y", Type::Int)], Type::Int);
                let function = open.template.closure(block(body, &captures), ty);
                open.template.call(&library::REDUCE, &[list, function], Type::Int)
            }
            10 => {
                let pair = self.expression(open, Kind::Pair, depth);
                let index = self.choose(2) as u32;
                let field = |index| setpoint_flow::Operation::Field { of: pair, index };
                if index == 0 {
                    return open.template.node(field(0), Type::Int);
                }
                let function = open.template.node(field(1), Kind::Func.ty());
                let a = self.expression(open, Kind::Int, depth);
                open.template.apply(function, &[a], Type::Int)
            }
            _ => self.function_call(open, depth),
        }
    }

    /// A call of a named function: of an earlier one, or of a new one.
    fn function_call(&mut self, open: &mut Open, depth: u32) -> Slot {
        let known = self.functions.len();
        let at = self.choose(known + 1);
        let (function, count) = if at < known {
            self.functions[at]
        } else {
            let count = 1 + self.choose(2);
            let template = self.builder.template("a function", count as u32);
            let visible = (0..count).map(|n| (Slot(n as u32), Kind::Int)).collect();
            let mut inner = Open { template, visible };
            let result = self.expression(&mut inner, Kind::Int, depth);
            let second = self.expression(&mut inner, Kind::Int, depth);
            inner.template.exports.push(second);
            let function = self.builder.add(inner.template, Some(result));
            self.functions.push((function, count));
            (function, count)
        };
        let arguments: Vec<Slot> = (0..count)
            .map(|_| self.expression(open, Kind::Int, depth))
            .collect();
        let call = open.template.instance(function, &arguments, Type::Int);
        if self.choose(3) == 0 {
            return open.template.exported(call, 0, Type::Int);
        }
        call
    }

    /// A body that gives a kind, with the slots of the surroundings that it captures.
    fn body(
        &mut self,
        open: &mut Open,
        kind: Kind,
        depth: u32,
        parameters: &[Kind],
    ) -> (setpoint_flow::TemplateId, Vec<Slot>) {
        let (mut inner, captures) = self.inside(open, parameters);
        let result = self.expression(&mut inner, kind, depth);
        (self.builder.add(inner.template, Some(result)), captures)
    }

    fn inside(&mut self, open: &mut Open, parameters: &[Kind]) -> (Open, Vec<Slot>) {
        let mut captured: Vec<(Slot, Kind)> = Vec::new();
        for _ in 0..self.choose(4) {
            if let count @ 1.. = open.visible.len() {
                captured.push(open.visible[self.choose(count)]);
            }
        }
        let kinds: Vec<Kind> = parameters
            .iter()
            .copied()
            .chain(captured.iter().map(|c| c.1))
            .collect();
        let template = self.builder.template("a body", kinds.len() as u32);
        let visible = kinds
            .iter()
            .enumerate()
            .map(|(n, kind)| (Slot(n as u32), *kind))
            .collect();
        (Open { template, visible }, captured.iter().map(|c| c.0).collect())
    }

    fn statements(&mut self, open: &mut Open, depth: u32, loops: &[Slot]) {
        for _ in 0..1 + self.choose(4) {
            self.statement(open, depth, loops);
        }
    }

    fn statement(&mut self, open: &mut Open, depth: u32, loops: &[Slot]) {
        let choice = if depth == 0 {
            self.choose(3)
        } else {
            self.choose(12)
        };
        match choice {
            0..=2 => self.resource(open, depth, loops),
            3 | 4 => {
                let condition = self.expression(open, Kind::Bool, depth);
                let (then, first) = self.nested(open, depth, loops);
                let otherwise = (self.choose(2) == 1).then(|| self.nested(open, depth, loops));
                let otherwise = otherwise.map(|(body, captures)| block(body, &captures));
                open.template
                    .if_statement(condition, Some(block(then, &first)), otherwise);
            }
            5 | 6 => {
                let list = self.expression(open, Kind::List, depth);
                let (body, captures) = self.looped(open, depth, Kind::Int, loops);
                open.template.for_(list, block(body, &captures));
            }
            7 | 8 => {
                let map = self.expression(open, Kind::Map, depth);
                let (body, captures) = self.looped(open, depth, Kind::Str, loops);
                open.template.for_kv(map, block(body, &captures));
            }
            9 => {
                let (body, captures) = self.nested(open, depth, loops);
                open.template.instance(body, &captures, Type::Dynamic);
            }
            10 => {
                let a = self.expression(open, Kind::Int, depth);
                let limit = open.template.int(60);
                let condition = open.template.call(&operators::GREATER, &[a, limit], Type::Bool);
                open.template.panic(condition, None);
            }
            _ => {
                let (a, b) = (open.template.str("r0"), open.template.str("r1"));
                if self.resources >= 2 && loops.is_empty() {
                    open.template.edge(a, b);
                }
            }
        }
    }

    fn resource(&mut self, open: &mut Open, depth: u32, loops: &[Slot]) {
        let number = self.resources;
        self.resources += 1;
        let mut name = open.template.str(&format!("r{number}"));
        for outer in loops {
            name = open.template.concat(name, *outer);
        }
        let kind = KINDS[self.choose(5)];
        let value = self.expression(open, kind, depth.max(1));
        let condition = (self.choose(4) == 1).then(|| self.expression(open, Kind::Bool, depth));
        open.template.resource_if(name, value, condition);
    }

    /// A block of statements; what tells the elements of loops around it apart is captured too.
    fn nested(
        &mut self,
        open: &mut Open,
        depth: u32,
        loops: &[Slot],
    ) -> (setpoint_flow::TemplateId, Vec<Slot>) {
        let (mut inner, captures, inner_loops) = self.inside_loops(open, &[], loops);
        self.statements(&mut inner, depth - 1, &inner_loops);
        (self.builder.add(inner.template, None), captures)
    }

    fn looped(
        &mut self,
        open: &mut Open,
        depth: u32,
        first: Kind,
        loops: &[Slot],
    ) -> (setpoint_flow::TemplateId, Vec<Slot>) {
        let (mut inner, captures, mut inner_loops) = self.inside_loops(open, &[first, Kind::Int], loops);
        let own = if first == Kind::Int {
            inner.template.text_of(Slot(0))
        } else {
            Slot(0)
        };
        inner_loops.push(own);
        self.statements(&mut inner, depth - 1, &inner_loops);
        (self.builder.add(inner.template, None), captures)
    }

    fn inside_loops(
        &mut self,
        open: &mut Open,
        parameters: &[Kind],
        loops: &[Slot],
    ) -> (Open, Vec<Slot>, Vec<Slot>) {
        let count = open.visible.len();
        open.visible.extend(loops.iter().map(|slot| (*slot, Kind::Str)));
        let mut captured: Vec<(Slot, Kind)> = open.visible[count..].to_vec();
        open.visible.truncate(count);
        for _ in 0..self.choose(4) {
            if count > 0 {
                captured.push(open.visible[self.choose(count)]);
            }
        }
        let kinds: Vec<Kind> = parameters
            .iter()
            .copied()
            .chain(captured.iter().map(|c| c.1))
            .collect();
        let template = self.builder.template("a block", kinds.len() as u32);
        let visible = kinds
            .iter()
            .enumerate()
            .map(|(n, kind)| (Slot(n as u32), *kind))
            .collect();
        let first = parameters.len();
        let inner_loops = (0..loops.len()).map(|n| Slot((first + n) as u32)).collect();
        let captures = captured.iter().map(|c| c.0).collect();
        (Open { template, visible }, captures, inner_loops)
    }
}

fn prefix(kind: Kind) -> &'static str {
    match kind {
        Kind::Int => "i",
        Kind::Bool => "b",
        Kind::Str => "s",
        Kind::List => "l",
        Kind::Map => "m",
        Kind::Func | Kind::Pair => "none",
    }
}

/// A value of a kind.
fn value_of(kind: Kind, number: u16) -> Value {
    let n = i64::from(number % 7);
    match kind {
        Kind::Int => Value::Int(n - 2),
        Kind::Bool => Value::Bool(number.is_multiple_of(2)),
        Kind::Str => Value::str(format!("t{n}")),
        Kind::List => crate::world::ints(&(0..n % 5).map(|i| (i * n) % 4).collect::<Vec<_>>()),
        Kind::Map => {
            let entries = (0..n % 4).map(|i| (Value::str(format!("t{}", (i + n) % 5)), Value::Int(i)));
            Value::map(Type::Str, Type::Int, entries)
        }
        Kind::Func | Kind::Pair => unreachable!("the outside says no functions"),
    }
}

/// What the outside says next under a key: mostly a plain value.
fn said(kind: Kind, number: u16) -> Value {
    let plain = value_of(kind, number >> 4);
    match number % 16 {
        0 if number.is_multiple_of(3) => Value::str("!fail"),
        1 if number.is_multiple_of(5) => Value::str("!fatal"),
        2 if number.is_multiple_of(3) => Value::unknown(kind.ty()),
        3 if number.is_multiple_of(3) => plain.sensitive(),
        4 if kind == Kind::Int => Value::Int(13),
        5 if kind == Kind::Int && number.is_multiple_of(3) => Value::Int(17),
        6 if kind == Kind::List => crate::world::ints(&[1, 666_666]),
        7 if kind == Kind::Int => Value::Int(90),
        _ => plain,
    }
}

fn program(choices: &[u16]) -> Built {
    let builder = ProgramBuilder::new();
    let template = builder.template("the entry", 0);
    let mut generator = Generator {
        choices,
        builder,
        resources: 0,
        functions: Vec::new(),
    };
    let mut open = Open {
        template,
        visible: Vec::new(),
    };
    generator.statements(&mut open, 4, &[]);
    generator.builder.finish(open.template)
}

fn wrong(step: &Step) -> BTreeSet<(&'static str, Span, String)> {
    let of_stage = step.diagnostics.iter().filter(|d| d.stage == EVALUATE);
    of_stage
        .map(|d| {
            let message = match d.message.split_once(" failed: ") {
                Some((_, reason)) => reason.to_owned(),
                None => String::new(),
            };
            (d.code.code, d.primary.span, message)
        })
        .collect()
}

/// Compares what the evaluator says with what holds.
fn check(world: &World, step: &Step, moment: &Moment) {
    assert_eq!(wrong(step), moment.wrong);
    let pending: BTreeSet<Span> = step.pending.iter().map(|pending| pending.span).collect();
    assert_eq!(pending, moment.pending);
    let others = |list: &setpoint_diagnostics::Diagnostics| {
        let codes = list.iter().filter(|d| d.stage != EVALUATE);
        codes
            .map(|d| (d.code.code, d.primary.span))
            .collect::<BTreeSet<_>>()
    };
    match &moment.graph {
        None => {
            assert!(step.graph.is_none());
            assert_eq!(others(&step.diagnostics), others(&moment.statements));
        }
        Some(Err(diagnostics)) => {
            assert!(step.graph.is_none());
            let codes = |list: &setpoint_diagnostics::Diagnostics| {
                list.iter().map(|d| d.code.code).collect::<BTreeSet<_>>()
            };
            assert_eq!(codes(&step.diagnostics), codes(diagnostics));
        }
        Some(Ok(graph)) => {
            assert!(step.diagnostics.iter().all(|d| !d.code.code.starts_with('E')));
            let mine = world.graph.as_ref().expect("a graph was given out");
            assert!(mine.is_equal(graph), "{mine:#?}\nis not\n{graph:#?}");
        }
    }
}

/// In one step a node is computed once at most: none sees a mixture of old and new.
fn no_node_twice(world: &mut World) {
    let mut seen = BTreeSet::new();
    for node in world.evaluator.take_record() {
        assert!(seen.insert(node.node), "{node:?} was computed twice");
    }
}

const SAYABLE: [Kind; 5] = [Kind::Int, Kind::Bool, Kind::Str, Kind::List, Kind::Map];

fn run(choices: &[u16], first: &[u16], events: &[(u8, u16)]) {
    let built = program(choices);
    let machine = setpoint_simulated::SimulatedCapabilities::new();
    for (index, number) in first.iter().enumerate() {
        let kind = SAYABLE[index % 5];
        // A key of another kind may be without a value at first; keys that move always have one.
        if kind == Kind::Int || number % 8 != 0 {
            let key = format!("{}{}", prefix(kind), index / 5);
            machine.set_value(&key, Some(said(kind, *number)));
        }
    }
    let program = built.program.clone();
    let mut world = World::on(machine, built, &[]);
    let step = world.step();
    check(&world, &step, &evaluate(&program, &world.machine));
    no_node_twice(&mut world);
    for (which, number) in events {
        let kind = SAYABLE[usize::from(*which) % 5];
        let key = format!("{}{}", prefix(kind), (which / 5) % 4);
        world.machine.set_value(&key, Some(said(kind, *number)));
        if which % 3 == 0 {
            // Comes together with the next.
            continue;
        }
        let step = world.step();
        check(&world, &step, &evaluate(&program, &world.machine));
        no_node_twice(&mut world);
        let again = world.step();
        assert_eq!(again.recomputed, 0);
        assert!(again.graph.is_none());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn incremental_is_from_scratch(
        choices in prop::collection::vec(any::<u16>(), 0..500),
        first in prop::collection::vec(any::<u16>(), 20),
        events in prop::collection::vec((any::<u8>(), any::<u16>()), 0..20),
    ) {
        run(&choices, &first, &events);
    }
}

/// More of them when `PROPTEST_CASES` says so.
fn cases() -> u32 {
    ProptestConfig::default().cases.max(400)
}
