//! Expressions and types.

use setpoint_diagnostics::Span;

use super::printer::Printer;
use crate::syntax::{
    Arguments, Call, Callee, ExprId, ExprKind, Function, IfExpr, MapEntry, Parameter, Parameters,
    StructField, TypeExpr, TypeKind,
};

impl Printer<'_> {
    pub(super) fn expr(&mut self, id: ExprId) {
        let ast = self.ast;
        let expr = ast.expr(id);
        let span = expr.span;
        match &expr.kind {
            ExprKind::Bool(value) => self.push(if *value { "true" } else { "false" }),
            ExprKind::Integer(value) => self.push(&value.to_string()),
            ExprKind::Float(value) => self.float(*value),
            // What does not parse is not formatted.
            ExprKind::String(_) | ExprKind::Unfinished(_) => self.push_source(span),
            ExprKind::List(elements) => self.expr_list("[", elements, span.start + 1, span.end, "]"),
            ExprKind::Map(entries) => self.map(entries, span),
            ExprKind::Struct(fields) => self.structure(fields, span),
            ExprKind::Variable(name) => {
                self.push("$");
                self.push(&name.text);
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::Lambda(function) => {
                self.push("func");
                self.function(function);
            }
            ExprKind::If(branches) => {
                let several_lines = self.branches_on_several_lines(branches);
                self.if_expr(branches, several_lines);
            }
            ExprKind::Paren(inner) => {
                self.push("(");
                self.expr(*inner);
                self.push(")");
            }
            ExprKind::Operator {
                operator,
                left,
                right,
                ..
            } => self.infix(*left, operator.text(), *right),
            ExprKind::In { left, right } => self.infix(*left, "in", *right),
            ExprKind::Not(operand) => {
                self.push("not ");
                self.operand(*operand);
            }
            ExprKind::Lookup { base, index } => {
                self.operand(*base);
                self.push("[");
                self.expr(*index);
                self.push("]");
            }
            ExprKind::StructLookup { base, field } => {
                self.operand(*base);
                self.push("->");
                self.push(&field.text);
            }
            ExprKind::StructLookupOptional {
                base, field, default, ..
            } => {
                self.operand(*base);
                self.push("->");
                self.push(&field.text);
                self.push(" <|> ");
                self.operand(*default);
            }
            ExprKind::Except { left, right, .. } => {
                self.expr(*left);
                self.push(" <|> ");
                self.operand(*right);
            }
        }
    }

    fn map(&mut self, entries: &[MapEntry], span: Span) {
        let place = |p: &Self, e: &MapEntry| p.ast[e.key].span.to(p.ast[e.value].span);
        self.sequence(
            ("{", "}"),
            entries,
            span.start + 1,
            span.end,
            place,
            |p, entry| {
                p.expr(entry.key);
                p.push(" => ");
                p.expr(entry.value);
            },
        );
    }

    fn structure(&mut self, fields: &[StructField], span: Span) {
        let source = &self.text[span.start as usize..span.end as usize];
        let brace = source.find('{').map_or(span.start, |at| span.start + at as u32);
        let place = |p: &Self, f: &StructField| f.name.span.to(p.ast[f.value].span);
        self.push("struct");
        self.sequence(("{", "}"), fields, brace + 1, span.end, place, |p, field| {
            p.push(&field.name.text);
            p.push(" => ");
            p.expr(field.value);
        });
    }

    fn call(&mut self, call: &Call) {
        match &call.callee {
            Callee::Function(name) => self.push(&name.text),
            Callee::Variable(name) => {
                self.push("$");
                self.push(&name.text);
            }
            Callee::Lambda(lambda) => self.expr(*lambda),
        }
        self.arguments(&call.arguments);
    }

    /// An expression where `<|>` without parentheses would group otherwise. Only the older `||` brings one here.
    fn operand(&mut self, id: ExprId) {
        if matches!(self.ast.expr(id).kind, ExprKind::Except { .. }) {
            self.push("(");
            self.expr(id);
            self.push(")");
        } else {
            self.expr(id);
        }
    }

    fn infix(&mut self, left: ExprId, operator: &str, right: ExprId) {
        self.operand(left);
        self.push(" ");
        self.push(operator);
        self.push(" ");
        self.operand(right);
    }

    fn float(&mut self, value: f64) {
        let text = value.to_string();
        self.push(&text);
        if !text.contains('.') {
            self.push(".0");
        }
    }

    fn expr_list(&mut self, open: &str, elements: &[ExprId], start: u32, end: u32, close: &str) {
        self.sequence(
            (open, close),
            elements,
            start,
            end,
            |p, e| p.ast[*e].span,
            |p, e| p.expr(*e),
        );
    }

    pub(super) fn arguments(&mut self, arguments: &Arguments) {
        let Arguments { items, span } = arguments;
        self.expr_list("(", items, span.start + 1, span.end, ")");
    }

    pub(super) fn parameters(&mut self, parameters: &Parameters) {
        let Parameters { items, span } = parameters;
        let place = |_: &Self, parameter: &Parameter| parameter.span;
        self.sequence(
            ("(", ")"),
            items,
            span.start + 1,
            span.end,
            place,
            |p, parameter| {
                p.push("$");
                p.push(&parameter.name.text);
                p.annotation(parameter.annotation.as_ref());
            },
        );
    }

    /// Elements between brackets, on one line or several as in the source. The opening bracket ends at `start`,
    /// the closing one at `end`.
    fn sequence<T>(
        &mut self,
        (open, close): (&str, &str),
        elements: &[T],
        start: u32,
        end: u32,
        place: impl Fn(&Self, &T) -> Span,
        print: impl Fn(&mut Self, &T),
    ) {
        self.push(open);
        let several_lines = match elements.first() {
            Some(first) => self.below(start - 1, place(self, first).start),
            None => self.comment_in(start, end),
        };
        if several_lines {
            self.begin_block(start);
            for element in elements {
                let span = place(self, element);
                self.begin_line(span.start);
                print(self, element);
                self.push(",");
                self.end_line(span.end);
            }
            self.end_block(end - 1);
        } else {
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    self.push(", ");
                }
                print(self, element);
            }
        }
        self.push(close);
    }

    /// What follows `func` and the name.
    pub(super) fn function(&mut self, function: &Function) {
        self.parameters(&function.parameters);
        self.annotation(function.result.as_ref());
        self.push(" ");
        let several_lines = self.braces_on_several_lines(function.body, function.body_span);
        self.braces(function.body, function.body_span, several_lines);
    }

    fn if_expr(&mut self, branches: &IfExpr, several_lines: bool) {
        self.push("if ");
        self.expr(branches.condition);
        self.push(" ");
        self.braces(branches.then_branch, branches.then_span, several_lines);
        self.push(" else ");
        match &self.ast.expr(branches.else_branch).kind {
            ExprKind::If(inner) if branches.else_if => self.if_expr(inner, several_lines),
            _ => self.braces(branches.else_branch, branches.else_span, several_lines),
        }
    }

    /// The first branch decides for all, but a comment in any of them needs its own line.
    fn branches_on_several_lines(&self, branches: &IfExpr) -> bool {
        if self.below(
            branches.then_span.start,
            self.ast[branches.then_branch].span.start,
        ) {
            return true;
        }
        let mut branches = branches;
        loop {
            if self.comment_around(branches.then_branch, branches.then_span) {
                return true;
            }
            match &self.ast.expr(branches.else_branch).kind {
                ExprKind::If(inner) if branches.else_if => branches = inner,
                _ => return self.comment_around(branches.else_branch, branches.else_span),
            }
        }
    }

    fn braces_on_several_lines(&self, body: ExprId, braces: Span) -> bool {
        self.below(braces.start, self.ast[body].span.start) || self.comment_around(body, braces)
    }

    /// Whether a comment stands in the braces, but not in the expression in them.
    fn comment_around(&self, body: ExprId, braces: Span) -> bool {
        let body = self.ast[body].span;
        self.comment_in(braces.start, body.start) || self.comment_in(body.end, braces.end)
    }

    fn braces(&mut self, body: ExprId, braces: Span, several_lines: bool) {
        if several_lines {
            let span = self.ast[body].span;
            self.push("{");
            self.begin_block(braces.start + 1);
            self.begin_line(span.start);
            self.expr(body);
            self.end_line(span.end);
            self.end_block(braces.end - 1);
            self.push("}");
        } else {
            self.push("{ ");
            self.expr(body);
            self.push(" }");
        }
    }

    /// A type behind a name, if there is one.
    pub(super) fn annotation(&mut self, annotation: Option<&TypeExpr>) {
        if let Some(annotation) = annotation {
            self.push(" ");
            self.type_expr(annotation);
            self.hoist(annotation.span);
        }
    }

    fn type_expr(&mut self, annotation: &TypeExpr) {
        match &annotation.kind {
            TypeKind::Bool => self.push("bool"),
            TypeKind::Str => self.push("str"),
            TypeKind::Int => self.push("int"),
            TypeKind::Float => self.push("float"),
            TypeKind::Variant => self.push("variant"),
            TypeKind::List(element) => {
                self.push("[]");
                self.type_expr(element);
            }
            TypeKind::Map { key, value } => {
                self.push("map{");
                self.type_expr(key);
                self.push(": ");
                self.type_expr(value);
                self.push("}");
            }
            TypeKind::Struct(fields) => {
                self.push("struct{");
                for (index, field) in fields.iter().enumerate() {
                    self.push(if index > 0 { "; " } else { "" });
                    self.push(&field.name.text);
                    self.push(" ");
                    self.type_expr(&field.annotation);
                }
                self.push("}");
            }
            TypeKind::Func { arguments, result } => {
                self.push("func(");
                for (index, argument) in arguments.iter().enumerate() {
                    self.push(if index > 0 { ", " } else { "" });
                    if let Some(name) = &argument.name {
                        self.push("$");
                        self.push(&name.text);
                        self.push(" ");
                    }
                    self.type_expr(&argument.annotation);
                }
                self.push(") ");
                self.type_expr(result);
            }
        }
    }
}
