//! A resolved model as text, one line for each definition and statement.

use std::fmt::Write;

use setpoint_cf::datum::Datum;
use setpoint_cf::hir::{
    Block, Constraint, Constructor, Expression, ExpressionKind, FormatPart, MemberKind, Model, Place,
    Statement, StatementKind, TextPart,
};
use setpoint_cf::ids::{EntityId, RelationId, Symbol};
use setpoint_cf::syntax::ast::{Literal, Multiplicity};
use setpoint_cf::types::{AttributeType, BaseType};

/// The whole model; without `all`, what is built in is left out.
pub(super) fn print(model: &Model, all: bool) -> String {
    let mut printer = Printer {
        model,
        text: String::new(),
        scopes: Vec::new(),
    };
    let shown = |name: &str| all || !(name.starts_with("std::") || name.starts_with("setpoint::"));
    for typedef in model.typedefs.iter().filter(|typedef| shown(&typedef.name)) {
        let constraint = match &typedef.constraint {
            Constraint::Expression(expression) => printer.expression(expression),
            Constraint::Regex(regex, _) => format!("/{}/", regex.pattern),
        };
        let base = printer.base(typedef.base);
        printer.line(
            0,
            &format!("typedef {} as {base} matching {constraint}", typedef.name),
        );
    }
    for entity in 0..model.entities.len() {
        if shown(&model.entities[entity].name) {
            printer.entity(EntityId(entity as u32));
        }
    }
    for (at, relation) in model.relations.iter().enumerate() {
        if !relation.annotations.is_empty() {
            let annotations = printer.expressions(&relation.annotations);
            let end = printer.end(RelationId(at as u32));
            printer.line(0, &format!("annotations of {end}: {annotations}"));
        }
    }
    for implementation in model.implementations.iter().filter(|i| shown(&i.name)) {
        let entity = &model.entities[implementation.entity.index()].name;
        printer.line(0, &format!("implementation {} for {entity}", implementation.name));
        printer.block(1, &implementation.body);
    }
    for namespace in &model.namespaces {
        let built_in = &*namespace.name == "std" || namespace.name.starts_with("setpoint");
        if !namespace.body.statements.is_empty() && (all || !built_in) {
            printer.line(0, &format!("namespace {}", namespace.name));
            for statement in &namespace.body.statements {
                printer.statement(1, statement);
            }
        }
    }
    for (before, after) in &model.precedence {
        let line = format!("{} before {}", printer.end(*before), printer.end(*after));
        printer.line(0, &line);
    }
    printer.text
}

struct Printer<'a> {
    model: &'a Model,
    text: String,
    scopes: Vec<Vec<Symbol>>,
}

impl Printer<'_> {
    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "  ".repeat(depth));
    }

    fn entity(&mut self, id: EntityId) {
        let model = self.model;
        let entity = &model.entities[id.index()];
        let parents: Vec<&str> = entity
            .parents
            .iter()
            .map(|p| &*model.entities[p.index()].name)
            .collect();
        self.line(
            0,
            &format!("entity {} extends {}", entity.name, parents.join(", ")),
        );
        for member in &entity.members {
            let name = &**model.text(member.name);
            let line = match &member.kind {
                MemberKind::Attribute {
                    ty,
                    default,
                    optional,
                } => {
                    let default = default
                        .as_ref()
                        .map(|default| format!(" = {}", self.expression(default)));
                    let optional = if *optional { " (optional)" } else { "" };
                    format!("{} {name}{}{optional}", self.ty(*ty), default.unwrap_or_default())
                }
                MemberKind::Relation(relation) => {
                    if model.relations[relation.index()].owner == EntityId(0) && id != EntityId(0) {
                        continue;
                    }
                    let relation = &model.relations[relation.index()];
                    let inverse = relation
                        .inverse
                        .map(|inverse| format!(" inverse {}", self.end(inverse)));
                    let target = &model.entities[relation.target.index()].name;
                    let many = multiplicity(relation.multiplicity);
                    format!("relation {name} {many} {target}{}", inverse.unwrap_or_default())
                }
            };
            self.line(1, &line);
        }
        for index in &entity.indexes {
            let index = &model.indexes[index.index()];
            let members: Vec<&str> = index
                .members
                .iter()
                .map(|member| &**model.text(*member))
                .collect();
            let of = &model.entities[index.entity.index()].name;
            self.line(1, &format!("index of {of} ({})", members.join(", ")));
        }
        for implement in &entity.implements {
            let using: Vec<&str> = implement
                .using
                .iter()
                .map(|i| &*model.implementations[i.index()].name)
                .collect();
            let condition = implement
                .condition
                .as_ref()
                .map(|c| format!(" when {}", self.expression(c)));
            self.line(
                1,
                &format!("implement {}{}", using.join(", "), condition.unwrap_or_default()),
            );
        }
    }

    fn end(&self, relation: RelationId) -> String {
        let relation = &self.model.relations[relation.index()];
        let owner = &self.model.entities[relation.owner.index()].name;
        format!("{owner}.{}", self.model.text(relation.name))
    }

    fn base(&self, base: BaseType) -> String {
        match base {
            BaseType::Typedef(id) => self.model.typedefs[id.index()].name.to_string(),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    fn ty(&self, ty: AttributeType) -> String {
        let list = if ty.list { "[]" } else { "" };
        let nullable = if ty.nullable { "?" } else { "" };
        format!("{}{list}{nullable}", self.base(ty.base))
    }

    fn block(&mut self, depth: usize, block: &Block) {
        self.scopes
            .push(block.variables.iter().map(|variable| variable.name).collect());
        for statement in &block.statements {
            self.statement(depth, statement);
        }
        self.scopes.pop();
    }

    fn statement(&mut self, depth: usize, statement: &Statement) {
        match &statement.kind {
            StatementKind::AssignVariable { target, value, .. } => {
                let line = format!("{} = {}", self.place(*target), self.expression(value));
                self.line(depth, &line);
            }
            StatementKind::AssignMember {
                instance,
                member,
                add,
                value,
                ..
            } => {
                let sign = if *add { "+=" } else { "=" };
                let (instance, value) = (self.expression(instance), self.expression(value));
                self.line(
                    depth,
                    &format!("{instance}.{} {sign} {value}", self.model.text(*member)),
                );
            }
            StatementKind::For { iterable, body } => {
                let variable = self.model.text(body.variables[0].name).clone();
                let line = format!("for {variable} in {}", self.expression(iterable));
                self.line(depth, &line);
                self.block(depth + 1, body);
            }
            StatementKind::If { branches, otherwise } => {
                for (condition, block) in branches {
                    let line = format!("if {}", self.expression(condition));
                    self.line(depth, &line);
                    self.block(depth + 1, block);
                }
                if let Some(block) = otherwise {
                    self.line(depth, "else");
                    self.block(depth + 1, block);
                }
            }
            StatementKind::Expression(expression) => {
                let line = self.expression(expression);
                self.line(depth, &line);
            }
        }
    }

    /// Variables of blocks with how many blocks outwards they are, those of namespaces with the namespace, members with a dot.
    fn place(&self, place: Place) -> String {
        let variable = |namespace: setpoint_cf::ids::NamespaceId, index: u32| {
            let namespace = &self.model.namespaces[namespace.index()];
            let name = self.model.text(namespace.body.variables[index as usize].name);
            format!("{}::{name}", namespace.name)
        };
        match place {
            Place::Local { up, index } => {
                let scope = &self.scopes[self.scopes.len() - 1 - usize::from(up)];
                format!("{}^{up}", self.model.text(scope[index as usize]))
            }
            Place::Namespace { namespace, index } => variable(namespace, index),
            Place::Instance => "self".to_owned(),
            Place::Member { name, otherwise } => {
                let otherwise =
                    otherwise.map(|(namespace, index)| format!("|{}", variable(namespace, index)));
                format!(".{}{}", self.model.text(name), otherwise.unwrap_or_default())
            }
            Place::TypedefSelf => "SELF".to_owned(),
            Place::NotFound(name) => format!("NOT_FOUND({})", self.model.text(name)),
        }
    }

    fn expressions(&mut self, list: &[Expression]) -> String {
        let texts: Vec<String> = list
            .iter()
            .map(|expression| self.expression(expression))
            .collect();
        texts.join(", ")
    }

    fn arguments(
        &mut self,
        positional: &[Expression],
        keywords: &[(Symbol, setpoint_diagnostics::Span, Expression)],
        dicts: &[Expression],
    ) -> String {
        let mut texts: Vec<String> = positional.iter().map(|e| self.expression(e)).collect();
        for (name, _, value) in keywords {
            texts.push(format!("{}={}", self.model.text(*name), self.expression(value)));
        }
        texts.extend(dicts.iter().map(|dict| format!("**{}", self.expression(dict))));
        texts.join(", ")
    }

    fn expression(&mut self, expression: &Expression) -> String {
        match &expression.kind {
            ExpressionKind::Literal(value) => literal(value),
            ExpressionKind::ConstantList(elements) => {
                let texts: Vec<String> = elements.iter().map(datum).collect();
                format!("constant [{}]", texts.join(", "))
            }
            ExpressionKind::Matches { place, regex } => {
                format!("{} matches {}", self.place(*place), regex.as_str())
            }
            ExpressionKind::Variable(place) => self.place(*place),
            ExpressionKind::Attribute { of, name, .. } => {
                format!("{}.{}", self.expression(of), self.model.text(*name))
            }
            ExpressionKind::Interpolated(parts) => {
                let part = |part: &TextPart| match part {
                    TextPart::Text(text) => text.to_string(),
                    TextPart::Field(field) => format!("{{{{{}}}}}", self.expression(field)),
                };
                format!("\"{}\"", parts.iter().map(part).collect::<String>())
            }
            ExpressionKind::Format(parts) => format!("f\"{}\"", self.format(parts)),
            ExpressionKind::List(elements) => format!("[{}]", self.expressions(elements)),
            ExpressionKind::Dict(entries) => {
                let entry = |(key, value): &(_, Expression)| format!("{key:?}: {}", self.expression(value));
                let entries: Vec<String> = entries.iter().map(entry).collect();
                format!("{{{}}}", entries.join(", "))
            }
            ExpressionKind::Comprehension(comprehension) => {
                let mut text = String::new();
                for (variable, iterable) in &comprehension.loops {
                    let iterable = self.expression(iterable);
                    let _ = write!(text, " for {} in {iterable}", self.model.text(*variable));
                    self.scopes.push(vec![*variable]);
                }
                for condition in &comprehension.conditions {
                    let _ = write!(text, " if {}", self.expression(condition));
                }
                let value = self.expression(&comprehension.value);
                self.scopes
                    .truncate(self.scopes.len() - comprehension.loops.len());
                format!("[{value}{text}]")
            }
            ExpressionKind::Not(operand) => format!("not {}", self.expression(operand)),
            ExpressionKind::Operators { first, rest } => {
                let mut text = format!("({}", self.expression(first));
                for (operator, _, operand) in rest {
                    let _ = write!(text, " {operator:?} {}", self.expression(operand));
                }
                text + ")"
            }
            ExpressionKind::Conditional {
                condition,
                then,
                otherwise,
            } => format!(
                "({} ? {} : {})",
                self.expression(condition),
                self.expression(then),
                self.expression(otherwise)
            ),
            ExpressionKind::IsDefined(of) => format!("{} is defined", self.expression(of)),
            ExpressionKind::LookupIsDefined(lookup) => {
                format!(
                    "{}[{}] is defined",
                    self.expression(&lookup.dict),
                    self.expression(&lookup.key)
                )
            }
            ExpressionKind::MapLookup(lookup) => {
                format!(
                    "{}[{}]",
                    self.expression(&lookup.dict),
                    self.expression(&lookup.key)
                )
            }
            ExpressionKind::Cast { to, value } => {
                format!("cast {}({})", self.base(*to), self.expression(value))
            }
            ExpressionKind::Call {
                function,
                positional,
                keywords,
                dicts,
                ..
            } => {
                let name = &self.model.functions[function.index()].name;
                format!("call {name}({})", self.arguments(positional, keywords, dicts))
            }
            ExpressionKind::Constructor(constructor) => self.constructor(constructor),
            ExpressionKind::IndexLookup {
                entity,
                keywords,
                dicts,
            } => {
                let name = &self.model.entities[entity.index()].name;
                format!("lookup {name}[{}]", self.arguments(&[], keywords, dicts))
            }
            ExpressionKind::SelectorLookup {
                instance,
                relation,
                keywords,
                dicts,
            } => {
                let relation = self.model.text(*relation);
                let instance = self.expression(instance);
                format!(
                    "lookup {instance}.{relation}[{}]",
                    self.arguments(&[], keywords, dicts)
                )
            }
        }
    }

    fn constructor(&mut self, constructor: &Constructor) -> String {
        let name = &self.model.entities[constructor.entity.index()].name;
        let arguments = self.arguments(&[], &constructor.keywords, &constructor.dicts);
        let inferred = constructor
            .inferred
            .map(|name| format!(" with {} inferred", self.model.text(name)));
        format!("new {name}({arguments}){}", inferred.unwrap_or_default())
    }

    fn format(&mut self, parts: &[FormatPart]) -> String {
        let mut text = String::new();
        for part in parts {
            match part {
                FormatPart::Text(part) => text.push_str(part),
                FormatPart::Field {
                    value,
                    conversion,
                    specification,
                    ..
                } => {
                    let value = value
                        .as_ref()
                        .map(|value| self.expression(value))
                        .unwrap_or_default();
                    let conversion = conversion.map(|c| format!("!{c}")).unwrap_or_default();
                    let specification = self.format(specification);
                    let colon = if specification.is_empty() { "" } else { ":" };
                    let _ = write!(text, "{{{value}{conversion}{colon}{specification}}}");
                }
            }
        }
        text
    }
}

fn multiplicity(multiplicity: Multiplicity) -> String {
    let high = multiplicity.high.map(|high| high.to_string()).unwrap_or_default();
    format!("[{}:{high}]", multiplicity.low)
}

fn literal(literal: &Literal) -> String {
    match literal {
        Literal::Int(number) => number.to_string(),
        Literal::Float(number) => format!("{number:?}"),
        Literal::Text(text) => format!("{text:?}"),
        Literal::Bool(value) => value.to_string(),
        Literal::Null => "null".to_owned(),
    }
}

fn datum(datum: &Datum) -> String {
    match datum {
        Datum::Int(number) => number.to_string(),
        Datum::Float(number) => format!("{number:?}"),
        Datum::Text(text) => format!("{text:?}"),
        Datum::Bool(value) => value.to_string(),
        Datum::Null => "null".to_owned(),
        other => format!("{other:?}"),
    }
}
