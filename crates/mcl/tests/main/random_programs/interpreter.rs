//! A naive interpreter of mcl, written from the rules of the language and from nothing else: it reads the syntax, computes
//! what it meets by recursion, knows no types, and gives the resources and edges that statements make.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use setpoint_diagnostics::MemoryLoader;
use setpoint_mcl::syntax::{
    Arguments, Block, BodyItemKind, Callee, EdgeEndpoint, ExprId, ExprKind, Function, Operator, Piece,
    Resource, StmtId, StmtKind, interpolate,
};

use super::datum::{Closure, Datum};
use super::library;
use super::resources::{Edge, Graph, Made, Output};
use super::scopes::{Callable, Definition, Scope, State};

/// Why there is no value.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// Whether `<|>` makes good for it.
    pub(crate) catchable: bool,
    pub(crate) reason: String,
}

impl Failure {
    pub(crate) fn catchable(reason: impl Into<String>) -> Failure {
        Failure {
            catchable: true,
            reason: reason.into(),
        }
    }

    pub(crate) fn fatal(reason: impl Into<String>) -> Failure {
        Failure {
            catchable: false,
            reason: reason.into(),
        }
    }
}

pub(crate) type Outcome<T> = Result<T, Failure>;

/// A program that is interpreted.
pub(crate) struct Interpreter {
    pub(crate) files: MemoryLoader,
    output: RefCell<Output>,
    /// Something failed at a place where the rules leave open whether it is needed.
    pub(crate) undecided: Cell<bool>,
    steps: Cell<u64>,
    /// How many values are being computed, each for the one before.
    depth: Cell<u32>,
    /// All that were made: definitions and their scopes refer to each other, so nothing would free them.
    pub(crate) scopes: RefCell<Vec<Rc<Scope>>>,
}

/// More than this is no program for a naive interpreter.
const MAXIMUM_STEPS: u64 = 300_000;

/// What is computed deeper than this depends on itself: a program that was made smaller may.
const MAXIMUM_DEPTH: u32 = 10_000;

/// The graph of a program whose entry is the file `main.mcl`, or why there is none; and whether the rules leave that open.
pub(crate) fn interpret(files: &MemoryLoader) -> (Outcome<Graph>, bool) {
    let interpreter = Interpreter {
        files: files.clone(),
        output: RefCell::default(),
        undecided: Cell::new(false),
        steps: Cell::new(0),
        depth: Cell::new(0),
        scopes: RefCell::default(),
    };
    let entry = Rc::new(interpreter.read("main.mcl"));
    let scope = interpreter.open(&entry, None, &entry.ast.root, &[]);
    let made = interpreter.run(&scope, &entry.ast.root);
    let graph = made.and_then(|()| interpreter.output.take().graph());
    for scope in interpreter.scopes.take() {
        scope.clear();
    }
    (graph, interpreter.undecided.get())
}

impl Interpreter {
    fn run(&self, scope: &Rc<Scope>, block: &Block) -> Outcome<()> {
        block
            .statements
            .iter()
            .try_for_each(|id| self.statement(scope, *id))
    }

    fn inner(&self, scope: &Rc<Scope>, block: &Block) -> Outcome<()> {
        self.run(&self.open(&scope.file, Some(scope), block, &[]), block)
    }

    fn statement(&self, scope: &Rc<Scope>, id: StmtId) -> Outcome<()> {
        match &scope.file.ast[id].kind {
            StmtKind::Bind(_) | StmtKind::Func(_) | StmtKind::Class(_) | StmtKind::Import(_) => Ok(()),
            StmtKind::If(statement) => {
                let block = if self.truth(scope, statement.condition)? {
                    Some(&statement.then_block)
                } else {
                    statement.else_block.as_ref()
                };
                block.map_or(Ok(()), |block| self.inner(scope, block))
            }
            StmtKind::For(statement) | StmtKind::ForKv(statement) => {
                let rounds = match self.value(scope, statement.iterable)? {
                    Datum::List(items) => (0..).map(Datum::Int).zip(items).collect::<Vec<(Datum, Datum)>>(),
                    Datum::Map(entries) => entries,
                    other => return Err(wrong("a list or map", &other)),
                };
                rounds.into_iter().try_for_each(|(key, value)| {
                    let round = self.scope(&scope.file, Some(scope));
                    round.define(&statement.key.text, Definition::known(key));
                    round.define(&statement.value.text, Definition::known(value));
                    self.inner(&round, &statement.body)
                })
            }
            StmtKind::Include(_) => {
                let body = self
                    .include(scope, id)
                    .ok_or_else(|| Failure::fatal("there is no such class"))?;
                let class = self.included_class(scope, id).expect("it is included");
                let StmtKind::Class(class) = &class.scope.file.ast[class.statement].kind else {
                    return Err(Failure::fatal("not a class"));
                };
                self.run(&body, &class.body)
            }
            StmtKind::Panic(arguments) => self.panic(scope, arguments),
            StmtKind::Resource(resource) => self.resource(scope, resource),
            StmtKind::Edge(edge) => {
                let ends: Vec<Vec<(String, String)>> = edge
                    .endpoints
                    .iter()
                    .map(|end| self.endpoint(scope, end))
                    .collect::<Outcome<_>>()?;
                for (index, pair) in ends.windows(2).enumerate() {
                    let field =
                        |index: usize| edge.endpoints[index].field.as_ref().map(|f| f.text.to_string());
                    let send = field(index).zip(field(index + 1));
                    for from in &pair[0] {
                        for to in &pair[1] {
                            let edge = Edge {
                                from: from.clone(),
                                to: to.clone(),
                                notify: false,
                                send: send.clone(),
                            };
                            self.output.borrow_mut().edges.push(edge);
                        }
                    }
                }
                Ok(())
            }
        }
    }

    fn included_class(&self, scope: &Rc<Scope>, id: StmtId) -> Option<super::scopes::Class> {
        match &scope.file.ast[id].kind {
            StmtKind::Include(include) => self.class(scope, &include.class.text),
            _ => None,
        }
    }

    /// The body of the class that a statement includes, without running it. Parameters are visible around the body.
    pub(crate) fn include(&self, scope: &Rc<Scope>, id: StmtId) -> Option<Rc<Scope>> {
        if let Some(body) = scope.included.borrow().get(&id) {
            return Some(body.clone());
        }
        let class = self.included_class(scope, id)?;
        let StmtKind::Include(include) = &scope.file.ast[id].kind else {
            return None;
        };
        let StmtKind::Class(statement) = &class.scope.file.ast[class.statement].kind else {
            return None;
        };
        let around = self.scope(&class.scope.file, Some(&class.scope));
        let parameters = statement
            .parameters
            .iter()
            .flat_map(|parameters| &parameters.items);
        let arguments = include.arguments.iter().flat_map(|arguments| &arguments.items);
        for (parameter, argument) in parameters.zip(arguments) {
            around.define(&parameter.name.text, Definition::open(*argument, scope.clone()));
        }
        let body = self.open(&class.scope.file, Some(&around), &statement.body, &class.inner);
        scope.included.borrow_mut().insert(id, body.clone());
        Some(body)
    }

    fn panic(&self, scope: &Rc<Scope>, arguments: &Arguments) -> Outcome<()> {
        let values = self.values(scope, &arguments.items)?;
        match &*values {
            [Datum::Bool(true), ..] => Err(Failure::fatal("a panic")),
            [Datum::Str(text)] if !text.is_empty() => Err(Failure::fatal("a panic")),
            _ => Ok(()),
        }
    }

    fn resource(&self, scope: &Rc<Scope>, resource: &Resource) -> Outcome<()> {
        let names = self.names(scope, resource.name)?;
        let kind = resource.kind.text.to_string();
        let mut made = Made::new(&kind);
        let mut edges = Vec::new();
        for item in &resource.items {
            let holds = match item.condition {
                Some(condition) => self.truth(scope, condition)?,
                None => true,
            };
            match &item.kind {
                BodyItemKind::Field { name, value } => {
                    let value = self.value(scope, *value)?;
                    if holds {
                        made.parameters.insert(name.text.to_string(), value);
                    }
                }
                BodyItemKind::Meta { name, value } => {
                    let value = self.value(scope, *value)?;
                    if holds {
                        made.meta.insert(name.text.to_string(), value);
                    }
                }
                BodyItemKind::MetaStruct { value } => match self.value(scope, *value)? {
                    Datum::Struct(fields) if holds => made.meta.extend(fields),
                    _ => {}
                },
                BodyItemKind::EdgeProperty { property, endpoint } => {
                    let ends = self.endpoint(scope, endpoint)?;
                    if holds {
                        edges.push((property.text.to_string(), ends));
                    }
                }
            }
        }
        let mut output = self.output.borrow_mut();
        for name in names {
            let id = (kind.clone(), name);
            for (property, ends) in &edges {
                for end in ends {
                    let comes_first = matches!(&**property, "Before" | "Notify");
                    let (from, to) = if comes_first { (&id, end) } else { (end, &id) };
                    let notify = matches!(&**property, "Notify" | "Listen");
                    output.edges.push(Edge {
                        from: from.clone(),
                        to: to.clone(),
                        notify,
                        send: None,
                    });
                }
            }
            output.resources.push((id, made.clone()));
        }
        Ok(())
    }

    fn endpoint(&self, scope: &Rc<Scope>, endpoint: &EdgeEndpoint) -> Outcome<Vec<(String, String)>> {
        let names = self.names(scope, endpoint.name)?;
        Ok(names
            .into_iter()
            .map(|name| (endpoint.kind.text.to_string(), name))
            .collect())
    }

    /// One name, or the distinct ones of a list.
    fn names(&self, scope: &Rc<Scope>, name: ExprId) -> Outcome<Vec<String>> {
        let items = match self.value(scope, name)? {
            Datum::List(items) => items,
            one => vec![one],
        };
        let mut names = Vec::new();
        for item in items {
            match item {
                Datum::Str(name) if names.contains(&name) => {}
                Datum::Str(name) => names.push(name),
                other => return Err(wrong("a str", &other)),
            }
        }
        Ok(names)
    }

    /// The value of an expression.
    pub(crate) fn value(&self, scope: &Rc<Scope>, id: ExprId) -> Outcome<Datum> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MAXIMUM_STEPS || self.depth.get() >= MAXIMUM_DEPTH {
            self.undecided.set(true);
            return Err(Failure::fatal("too much to compute"));
        }
        self.depth.set(self.depth.get() + 1);
        let value = self.computed(scope, id);
        self.depth.set(self.depth.get() - 1);
        value
    }

    fn computed(&self, scope: &Rc<Scope>, id: ExprId) -> Outcome<Datum> {
        let expression = &scope.file.ast[id];
        match &expression.kind {
            ExprKind::Unfinished(_) => Err(Failure::fatal("what does not parse has no value")),
            ExprKind::Bool(value) => Ok(Datum::Bool(*value)),
            ExprKind::Integer(value) => Ok(Datum::Int(*value)),
            ExprKind::Float(value) => Ok(Datum::Float(*value)),
            ExprKind::String(raw) => {
                let pieces = interpolate(raw, expression.span)
                    .map_err(|_| Failure::fatal("a string without meaning"))?;
                let mut text = String::new();
                for piece in pieces {
                    match piece {
                        Piece::Text(part) => text.push_str(&part),
                        Piece::Variable { name, .. } => match self.named(scope, &name)? {
                            Datum::Str(part) => text.push_str(&part),
                            other => return Err(wrong("a str", &other)),
                        },
                    }
                }
                Ok(Datum::Str(text))
            }
            ExprKind::List(items) => Ok(Datum::List(self.values(scope, items)?)),
            ExprKind::Map(entries) => {
                let entry = |key, value| Ok((self.value(scope, key)?, self.value(scope, value)?));
                let entries = entries.iter().map(|each| entry(each.key, each.value));
                Ok(Datum::map(entries.collect::<Outcome<Vec<(Datum, Datum)>>>()?))
            }
            ExprKind::Struct(fields) => {
                let fields = fields
                    .iter()
                    .map(|field| Ok((field.name.text.to_string(), self.value(scope, field.value)?)));
                Ok(Datum::Struct(fields.collect::<Outcome<_>>()?))
            }
            ExprKind::Variable(name) => self.named(scope, &name.text),
            ExprKind::Call(call) => self.call(scope, &call.callee, &call.arguments.items),
            ExprKind::Lambda(function) => {
                let closure = Closure {
                    function: (**function).clone(),
                    scope: scope.clone(),
                };
                Ok(Datum::Func(Rc::new(closure)))
            }
            ExprKind::If(branches) => {
                let chosen = if self.truth(scope, branches.condition)? {
                    branches.then_branch
                } else {
                    branches.else_branch
                };
                self.value(scope, chosen)
            }
            ExprKind::Paren(inner) => self.value(scope, *inner),
            ExprKind::Operator {
                operator,
                left,
                right,
                ..
            } => {
                let operands = (self.value(scope, *left)?, self.value(scope, *right)?);
                operate(*operator, operands.0, operands.1)
            }
            ExprKind::Not(inner) => Ok(Datum::Bool(!self.truth(scope, *inner)?)),
            ExprKind::In { left, right } => {
                let operands = [self.value(scope, *left)?, self.value(scope, *right)?];
                self.core("contains", operands.to_vec())
            }
            ExprKind::Lookup { base, index } => {
                let operands = [self.value(scope, *base)?, self.value(scope, *index)?];
                self.core("lookup", operands.to_vec())
            }
            ExprKind::StructLookup { base, field } => match self.value(scope, *base)? {
                Datum::Struct(fields) => {
                    let found = fields.into_iter().find(|(name, _)| **name == *field.text);
                    Ok(found.ok_or_else(|| Failure::fatal("there is no such field"))?.1)
                }
                other => Err(wrong("a struct", &other)),
            },
            ExprKind::StructLookupOptional {
                base, field, default, ..
            } => {
                // Decided by the type alone. Without a value there is no telling here what that is.
                let base = self
                    .value(scope, *base)
                    .inspect_err(|_| self.undecided.set(true))?;
                let Datum::Struct(fields) = base else {
                    return Err(wrong("a struct", &base));
                };
                match fields.into_iter().find(|(name, _)| **name == *field.text) {
                    Some((_, value)) => Ok(value),
                    None => self.value(scope, *default),
                }
            }
            ExprKind::Except { left, right, .. } => match self.value(scope, *left) {
                Err(failure) if failure.catchable => self.value(scope, *right),
                result => result,
            },
        }
    }

    fn values(&self, scope: &Rc<Scope>, ids: &[ExprId]) -> Outcome<Vec<Datum>> {
        ids.iter().map(|id| self.value(scope, *id)).collect()
    }

    fn truth(&self, scope: &Rc<Scope>, id: ExprId) -> Outcome<bool> {
        match self.value(scope, id)? {
            Datum::Bool(value) => Ok(value),
            other => Err(wrong("a bool", &other)),
        }
    }

    fn named(&self, scope: &Rc<Scope>, name: &str) -> Outcome<Datum> {
        let definition = self.variable(scope, name);
        self.force(&*definition.ok_or_else(|| Failure::fatal(format!("there is no variable {name}")))?)
    }

    fn force(&self, definition: &Definition) -> Outcome<Datum> {
        let (expression, scope) = match &*definition.state.borrow() {
            State::Known(result) => return result.clone(),
            State::Open(expression, scope) => (*expression, scope.clone()),
        };
        let result = self.value(&scope, expression);
        *definition.state.borrow_mut() = State::Known(result.clone());
        result
    }

    fn call(&self, scope: &Rc<Scope>, callee: &Callee, arguments: &[ExprId]) -> Outcome<Datum> {
        let (function, place) = match callee {
            Callee::Function(name) => match self.function(scope, &name.text) {
                Some(Callable::Statement(id, place)) => match &place.file.clone().ast[id].kind {
                    StmtKind::Func(func) => (func.function.clone(), place),
                    _ => return Err(Failure::fatal("not a function")),
                },
                Some(Callable::Core(name)) => return self.core(&name, self.values(scope, arguments)?),
                None => return Err(Failure::fatal(format!("there is no function {}", name.text))),
            },
            Callee::Variable(name) => closure(self.named(scope, &name.text)?)?,
            Callee::Lambda(lambda) => closure(self.value(scope, *lambda)?)?,
        };
        let arguments = arguments
            .iter()
            .map(|argument| Definition::open(*argument, scope.clone()));
        self.apply(&function, &place, arguments.collect())
    }

    fn apply(
        &self,
        function: &Function,
        place: &Rc<Scope>,
        arguments: Vec<Rc<Definition>>,
    ) -> Outcome<Datum> {
        let inside = self.scope(&place.file, Some(place));
        for (parameter, argument) in function.parameters.items.iter().zip(&arguments) {
            inside.define(&parameter.name.text, argument.clone());
        }
        let result = self.value(&inside, function.body);
        // An argument that the body does not use: the rules leave open whether it is computed.
        for argument in arguments {
            let is_unused = matches!(&*argument.state.borrow(), State::Open(..));
            if is_unused && self.force(&argument).is_err() {
                self.undecided.set(true);
            }
        }
        result
    }

    /// A call of a function value, with values.
    pub(crate) fn apply_value(&self, function: &Datum, arguments: Vec<Datum>) -> Outcome<Datum> {
        let (function, place) = closure(function.clone())?;
        self.apply(
            &function,
            &place,
            arguments.into_iter().map(Definition::known).collect(),
        )
    }

    fn core(&self, name: &str, arguments: Vec<Datum>) -> Outcome<Datum> {
        library::call(self, name, arguments)
    }
}

fn closure(function: Datum) -> Outcome<(Function, Rc<Scope>)> {
    match function {
        Datum::Func(closure) => Ok((closure.function.clone(), closure.scope.clone())),
        other => Err(wrong("a function", &other)),
    }
}

pub(crate) fn wrong(wanted: &str, got: &Datum) -> Failure {
    Failure::fatal(format!("{} where {wanted} must be", got.text()))
}

fn operate(operator: Operator, left: Datum, right: Datum) -> Outcome<Datum> {
    let overflow = || Failure::catchable("overflow");
    let number = |value: Option<i64>| value.map(Datum::Int).ok_or_else(overflow);
    Ok(match (operator, left, right) {
        (Operator::Equal, left, right) => Datum::Bool(left.equals(&right)),
        (Operator::NotEqual, left, right) => Datum::Bool(!left.equals(&right)),
        (Operator::And, Datum::Bool(left), Datum::Bool(right)) => Datum::Bool(left && right),
        (Operator::Or, Datum::Bool(left), Datum::Bool(right)) => Datum::Bool(left || right),
        (Operator::Add, Datum::Str(left), Datum::Str(right)) => Datum::Str(left + &right),
        (Operator::Add, Datum::Int(left), Datum::Int(right)) => number(left.checked_add(right))?,
        (Operator::Subtract, Datum::Int(left), Datum::Int(right)) => number(left.checked_sub(right))?,
        (Operator::Multiply, Datum::Int(left), Datum::Int(right)) => number(left.checked_mul(right))?,
        (Operator::Divide, Datum::Int(_), Datum::Int(0)) => {
            return Err(Failure::catchable("division by zero"));
        }
        (Operator::Divide, Datum::Int(left), Datum::Int(right)) => Datum::Float(left as f64 / right as f64),
        (Operator::Add, Datum::Float(left), Datum::Float(right)) => Datum::Float(left + right),
        (Operator::Subtract, Datum::Float(left), Datum::Float(right)) => Datum::Float(left - right),
        (Operator::Multiply, Datum::Float(left), Datum::Float(right)) => Datum::Float(left * right),
        (Operator::Divide, Datum::Float(_), Datum::Float(0.0)) => {
            return Err(Failure::catchable("division by zero"));
        }
        (Operator::Divide, Datum::Float(left), Datum::Float(right)) => Datum::Float(left / right),
        (Operator::Less, left, right) => Datum::Bool(compare(&left, &right, f64::lt, i64::lt)?),
        (Operator::Greater, left, right) => Datum::Bool(compare(&left, &right, f64::gt, i64::gt)?),
        (Operator::LessEqual, left, right) => Datum::Bool(compare(&left, &right, f64::le, i64::le)?),
        (Operator::GreaterEqual, left, right) => Datum::Bool(compare(&left, &right, f64::ge, i64::ge)?),
        (_, left, _) => return Err(wrong("another operand", &left)),
    })
}

fn compare(
    left: &Datum,
    right: &Datum,
    floats: fn(&f64, &f64) -> bool,
    ints: fn(&i64, &i64) -> bool,
) -> Outcome<bool> {
    match (left, right) {
        (Datum::Int(left), Datum::Int(right)) => Ok(ints(left, right)),
        (Datum::Float(left), Datum::Float(right)) => Ok(floats(left, right)),
        (left, _) => Err(wrong("a number", left)),
    }
}
