//! Statements, blocks and resource bodies.

use super::printer::Printer;
use crate::syntax::{
    Block, BodyItem, BodyItemKind, EdgeEndpoint, ExprId, IfStmt, ImportAlias, Include, Loop, Resource,
    StmtId, StmtKind,
};

impl Printer<'_> {
    /// A statement on its own line or lines.
    pub(super) fn statement(&mut self, id: StmtId) {
        let ast = self.ast;
        let span = ast.stmt(id).span;
        self.begin_line(span.start);
        self.statement_text(&ast.stmt(id).kind);
        self.end_line(span.end);
    }

    fn statement_text(&mut self, kind: &StmtKind) {
        match kind {
            StmtKind::Bind(bind) => {
                self.push("$");
                self.push(&bind.name.text);
                self.annotation(bind.annotation.as_ref());
                self.push(" = ");
                self.expr(bind.value);
            }
            StmtKind::If(statement) => self.if_statement(statement),
            StmtKind::For(statement) => self.loop_statement("for", statement),
            StmtKind::ForKv(statement) => self.loop_statement("forkv", statement),
            StmtKind::Resource(resource) => self.resource(resource),
            StmtKind::Edge(edge) => {
                for (index, endpoint) in edge.endpoints.iter().enumerate() {
                    self.push(if index > 0 { " -> " } else { "" });
                    self.edge_endpoint(endpoint);
                }
            }
            StmtKind::Class(class) => {
                self.push("class ");
                self.push(&class.name.text);
                if let Some(parameters) = &class.parameters {
                    self.parameters(parameters);
                }
                self.block(&class.body);
            }
            StmtKind::Include(include) => self.include(include),
            StmtKind::Import(import) => {
                self.push("import ");
                self.push_source(import.path.span);
                match &import.alias {
                    Some(ImportAlias::Name(name)) => {
                        self.push(" as ");
                        self.push(&name.text);
                    }
                    Some(ImportAlias::All(_)) => self.push(" as *"),
                    None => {}
                }
            }
            StmtKind::Func(func) => {
                self.push("func ");
                self.push(&func.name.text);
                self.function(&func.function);
            }
            StmtKind::Panic(arguments) => {
                self.push("panic");
                self.arguments(arguments);
            }
        }
    }

    fn if_statement(&mut self, statement: &IfStmt) {
        self.push("if ");
        self.expr(statement.condition);
        self.block(&statement.then_block);
        let Some(else_block) = &statement.else_block else {
            return;
        };
        self.push(" else");
        let ast = self.ast;
        let inner = else_block.statements.first().map(|id| &ast.stmt(*id).kind);
        match inner {
            Some(StmtKind::If(inner)) if statement.else_if => {
                self.push(" ");
                self.if_statement(inner);
            }
            _ => self.block(else_block),
        }
    }

    fn loop_statement(&mut self, word: &str, statement: &Loop) {
        self.push(word);
        self.push(" $");
        self.push(&statement.key.text);
        self.push(", $");
        self.push(&statement.value.text);
        self.push(" in ");
        self.expr(statement.iterable);
        self.block(&statement.body);
    }

    fn include(&mut self, include: &Include) {
        self.push("include ");
        self.push(&include.class.text);
        if let Some(arguments) = &include.arguments {
            self.arguments(arguments);
        }
        if let Some(alias) = &include.alias {
            self.push(" as ");
            self.push(&alias.text);
        }
    }

    fn block(&mut self, block: &Block) {
        let span = block.span;
        if block.statements.is_empty() && !self.comment_in(span.start, span.end) {
            self.push(" {}");
            return;
        }
        self.push(" {");
        self.begin_block(span.start + 1);
        for statement in &block.statements {
            self.statement(*statement);
        }
        self.end_block(span.end - 1);
        self.push("}");
    }

    fn resource(&mut self, resource: &Resource) {
        if resource.collect {
            self.push("collect ");
        }
        self.push(&resource.kind.text);
        self.push(" ");
        self.expr(resource.name);
        let span = resource.body_span;
        if resource.items.is_empty() && !self.comment_in(span.start, span.end) {
            self.push(" {}");
            return;
        }
        self.push(" {");
        self.begin_block(span.start + 1);
        for item in &resource.items {
            self.begin_line(item.span.start);
            self.body_item(item);
            self.push(",");
            self.end_line(item.span.end);
        }
        self.end_block(span.end - 1);
        self.push("}");
    }

    fn body_item(&mut self, item: &BodyItem) {
        match &item.kind {
            BodyItemKind::Field { name, value } => {
                self.push(&name.text);
                self.item_value(item.condition, *value);
            }
            BodyItemKind::EdgeProperty { property, endpoint } => {
                self.push(&property.text);
                self.condition(item.condition);
                self.edge_endpoint(endpoint);
            }
            BodyItemKind::Meta { name, value } => {
                self.push("Meta:");
                self.push(&name.text);
                self.item_value(item.condition, *value);
            }
            BodyItemKind::MetaStruct { value } => {
                self.push("Meta");
                self.item_value(item.condition, *value);
            }
        }
    }

    fn item_value(&mut self, condition: Option<ExprId>, value: ExprId) {
        self.condition(condition);
        self.expr(value);
    }

    fn condition(&mut self, condition: Option<ExprId>) {
        self.push(" => ");
        if let Some(condition) = condition {
            self.expr(condition);
            self.push(" ?: ");
        }
    }

    fn edge_endpoint(&mut self, endpoint: &EdgeEndpoint) {
        for (index, part) in endpoint.kind.text.split(':').enumerate() {
            self.push(if index > 0 { ":" } else { "" });
            let mut rest = part.chars();
            if let Some(first) = rest.next() {
                self.push(first.to_ascii_uppercase().encode_utf8(&mut [0; 4]));
            }
            self.push(rest.as_str());
        }
        self.push("[");
        self.expr(endpoint.name);
        self.push("]");
        if let Some(field) = &endpoint.field {
            self.push(".");
            self.push(&field.text);
        }
    }
}
