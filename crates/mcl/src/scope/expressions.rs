//! Expressions and resource bodies: syntax to resolved form.

use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Help, Span, did_you_mean};
use setpoint_graph::{EdgeProperty, MetaName};
use setpoint_value::{Type, Value};

use super::codes;
use super::mentions::Target;
use super::names::{Found, Meaning, Space};
use super::resolve::{FrameId, Resolver};
use crate::hir::{
    Callee, Definition, DefinitionKind, Endpoint, Expr, ExprId, ExprKind, Function, FunctionId, Item,
    ItemKind, Owner, Part, Resource,
};
use crate::syntax::{self, Ast, BodyItemKind, Name, Piece, TypeExpr, TypeKind};

impl Resolver<'_> {
    fn new_expr(&mut self, kind: ExprKind, span: Span) -> ExprId {
        self.hir.exprs.push(Expr { kind, span });
        ExprId(self.hir.exprs.len() as u32 - 1)
    }

    /// Resolves an expression. Unknown names are reported.
    pub(super) fn expr(&mut self, frame: FrameId, ast: &Ast, id: syntax::ExprId) -> ExprId {
        let expr = ast.expr(id);
        let span = expr.span;
        let kind = match &expr.kind {
            syntax::ExprKind::Bool(value) => ExprKind::Literal(Value::Bool(*value)),
            syntax::ExprKind::Integer(value) => ExprKind::Literal(Value::Int(*value)),
            syntax::ExprKind::Float(value) => ExprKind::Literal(Value::float(*value)),
            syntax::ExprKind::String(raw) => self.string(frame, raw, span),
            syntax::ExprKind::List(items) => {
                ExprKind::List(items.iter().map(|item| self.expr(frame, ast, *item)).collect())
            }
            syntax::ExprKind::Map(entries) => {
                let pair = |this: &mut Self, e: &syntax::MapEntry| {
                    (this.expr(frame, ast, e.key), this.expr(frame, ast, e.value))
                };
                ExprKind::Map(entries.iter().map(|entry| pair(self, entry)).collect())
            }
            syntax::ExprKind::Unfinished(parts) => {
                ExprKind::Unknown(parts.iter().map(|part| self.expr(frame, ast, *part)).collect())
            }
            syntax::ExprKind::Struct(fields) => ExprKind::Struct(
                fields
                    .iter()
                    .map(|f| (f.name.text.clone(), self.expr(frame, ast, f.value)))
                    .collect(),
            ),
            syntax::ExprKind::Variable(name) => self.variable(frame, &name.text, name.span, span),
            syntax::ExprKind::Call(call) => return self.call(frame, ast, call, span),
            syntax::ExprKind::Lambda(function) => {
                let id = FunctionId(self.hir.functions.len() as u32);
                let owner = self.owner_of(frame);
                self.hir.functions.push(Function {
                    name: None,
                    parameters: Vec::new(),
                    result: function.result.as_ref().map(annotation_type),
                    body: ExprId(u32::MAX),
                    span,
                    name_span: None,
                    owner,
                });
                self.function(frame, ast, function, id, owner);
                ExprKind::Lambda(id)
            }
            syntax::ExprKind::If(branches) => ExprKind::If {
                condition: self.expr(frame, ast, branches.condition),
                then: self.expr(frame, ast, branches.then_branch),
                otherwise: self.expr(frame, ast, branches.else_branch),
            },
            syntax::ExprKind::Paren(inner) => return self.expr(frame, ast, *inner),
            syntax::ExprKind::Operator {
                operator,
                left,
                right,
                ..
            } => ExprKind::Operator {
                operator: *operator,
                left: self.expr(frame, ast, *left),
                right: self.expr(frame, ast, *right),
            },
            syntax::ExprKind::Not(inner) => ExprKind::Not(self.expr(frame, ast, *inner)),
            syntax::ExprKind::In { left, right } => ExprKind::In {
                left: self.expr(frame, ast, *left),
                right: self.expr(frame, ast, *right),
            },
            syntax::ExprKind::Lookup { base, index } => ExprKind::Lookup {
                base: self.expr(frame, ast, *base),
                index: self.expr(frame, ast, *index),
            },
            syntax::ExprKind::StructLookup { base, field } => ExprKind::Field {
                base: self.expr(frame, ast, *base),
                field: field.text.clone(),
            },
            syntax::ExprKind::StructLookupOptional {
                base, field, default, ..
            } => ExprKind::FieldOr {
                base: self.expr(frame, ast, *base),
                field: field.text.clone(),
                default: self.expr(frame, ast, *default),
            },
            syntax::ExprKind::Except { left, right, .. } => ExprKind::Except {
                left: self.expr(frame, ast, *left),
                right: self.expr(frame, ast, *right),
            },
        };
        self.new_expr(kind, span)
    }

    fn string(&mut self, frame: FrameId, raw: &str, span: Span) -> ExprKind {
        if !raw.contains(['$', '\\']) {
            return ExprKind::Literal(Value::str(raw));
        }
        let mut parts = Vec::new();
        for piece in pieces(raw, span) {
            match piece {
                Piece::Text(text) => parts.push(Part::Text(text.into())),
                Piece::Variable { name, span: braces } => {
                    let inner = Span::new(span.file, braces.start + 2, braces.end - 1);
                    let kind = self.variable(frame, &name, inner, span);
                    let variable = self.new_expr(kind, span);
                    self.hir.interpolated.insert(variable, braces);
                    parts.push(Part::Variable(variable));
                }
            }
        }
        match parts.as_slice() {
            [] => ExprKind::Literal(Value::str("")),
            [Part::Text(text)] => ExprKind::Literal(Value::str(&**text)),
            _ => ExprKind::Interpolation(parts),
        }
    }

    /// A variable whose name stands at `name_span`. Where it is not known the rules blame `span`, which in a string is the whole of it.
    fn variable(&mut self, frame: FrameId, name: &str, name_span: Span, span: Span) -> ExprKind {
        if let Some(found) = self.find_variable(frame, name, name_span) {
            return found;
        }
        if self.may_have_failed(frame, name) {
            return ExprKind::Unknown(Vec::new());
        }
        let in_string = name_span.end < span.end;
        let help = self.meant_variable(frame, name, in_string);
        let mut error = Diagnostic::error(
            &codes::UNKNOWN_VARIABLE,
            span,
            format!("`${name}` is not defined here"),
        );
        if in_string {
            error = error.shown_at(in_braces(name_span));
        }
        let mut error = error.label("not defined");
        if help.is_none()
            && let Some(inside) = self.defined_elsewhere(frame, name)
        {
            error = match inside.owner {
                Owner::Class(class) if inside.owner != self.owner_of(frame) => {
                    let class = &self.hir.class(class).name;
                    error
                        .because(inside.name_span, "known only in this class")
                        .help(format!(
                            "with a name for the include, `include {class} as it`, this is `$it.{name}`"
                        ))
                }
                Owner::Function(_) => error.because(inside.name_span, "known only in this function"),
                _ if matches!(inside.kind, DefinitionKind::LoopKey | DefinitionKind::LoopValue) => {
                    error.because(inside.name_span, "known only in this loop")
                }
                Owner::Class(_) | Owner::Top(_) => error
                    .because(inside.name_span, "known only in this block")
                    .help("bind it outside of the block, with an `if` as its value where that decides it"),
            };
        }
        self.report(frame, error.help_if(help));
        ExprKind::Unknown(Vec::new())
    }

    /// A variable of this name in a block of the same file that was met before, and that a frame is not in.
    fn defined_elsewhere(&self, frame: FrameId, name: &str) -> Option<&Definition> {
        let file = self.file_of(frame);
        let mut others = self.frames.iter().filter(|other| other.file == file);
        let found = others.find_map(|other| other.variables.get(name))?;
        Some(self.hir.definition(*found))
    }

    /// What may have been meant by a variable that is not known.
    fn meant_variable(&mut self, frame: FrameId, name: &str, in_string: bool) -> Option<String> {
        if let Some((base, field)) = name.rsplit_once('.')
            && self.find(frame, Space::Variable, base).is_some()
        {
            return Some(match in_string {
                true => {
                    format!("in a string only names stand; give the field one: `${field} = ${base}->{field}`")
                }
                false => format!("a field is read with `->`: `${base}->{field}`"),
            });
        }
        if self.find(frame, Space::Function, name).is_some() {
            return Some(format!(
                "`{name}` is a function, which is called as `{name}(…)`; as a value it is written `func($x) {{ {name}($x) }}`"
            ));
        }
        let names = self.similar_names(frame, Space::Variable);
        let close = setpoint_diagnostics::closest(name, names.iter().map(String::as_str));
        close.map(|close| format!("did you mean `${close}`?"))
    }

    fn find_variable(&mut self, frame: FrameId, name: &str, span: Span) -> Option<ExprKind> {
        let Found { path, meaning } = self.find_mentioned(frame, Space::Variable, name, span)?;
        match meaning {
            Meaning::Variable(definition) => Some(ExprKind::Variable { path, definition }),
            Meaning::Function(_) | Meaning::LibraryFunction(_) | Meaning::Class(_) => None,
        }
    }

    fn call(&mut self, frame: FrameId, ast: &Ast, call: &syntax::Call, span: Span) -> ExprId {
        let callee = match &call.callee {
            syntax::Callee::Function(name) => {
                let found = self.find_mentioned(frame, Space::Function, &name.text, name.span);
                match found.map(|found| (found.path, found.meaning)) {
                    Some((path, Meaning::Function(function))) => Callee::Function { path, function },
                    Some((_, Meaning::LibraryFunction(spec))) => {
                        Callee::Library(spec, self.module_directory_of(frame))
                    }
                    Some((_, Meaning::Variable(_) | Meaning::Class(_))) | None => {
                        self.unknown_function(frame, ast, name, span);
                        Callee::Value(self.new_expr(ExprKind::Unknown(Vec::new()), span))
                    }
                }
            }
            syntax::Callee::Variable(name) => {
                // The span of a variable includes its dollar.
                let variable = Span {
                    start: name.span.start.saturating_sub(1),
                    ..name.span
                };
                let kind = self
                    .find_variable(frame, &name.text, name.span)
                    .unwrap_or_else(|| {
                        self.unknown_function_variable(frame, &name.text, variable, span);
                        ExprKind::Unknown(Vec::new())
                    });
                Callee::Value(self.new_expr(kind, variable))
            }
            syntax::Callee::Lambda(id) => Callee::Value(self.expr(frame, ast, *id)),
        };
        let arguments = call
            .arguments
            .items
            .iter()
            .map(|id| self.expr(frame, ast, *id))
            .collect();
        self.new_expr(ExprKind::Call { callee, arguments }, span)
    }

    /// The rules blame the whole call; what is wrong is its name.
    fn unknown_function(&mut self, frame: FrameId, ast: &Ast, called: &Name, span: Span) {
        let name = &*called.text;
        if self.may_have_failed(frame, name) {
            return;
        }
        let error = Diagnostic::error(
            &codes::UNKNOWN_FUNCTION,
            span,
            format!("there is no function `{name}` here"),
        );
        let error = error.shown_at(called.span).label("not defined");
        let help = if self.find(frame, Space::Variable, name).is_some() {
            let text = format!("a function value in a variable is called with `${name}(…)`");
            Some(Help::from(text))
        } else {
            let names = self.similar_names(frame, Space::Function);
            self.import_hint(frame, ast, called).or_else(|| {
                function_of_another_language(name)
                    .or_else(|| did_you_mean(name, names.iter().map(String::as_str)))
                    .map(Help::from)
            })
        };
        self.report(frame, error.help_if(help));
    }

    fn unknown_function_variable(&mut self, frame: FrameId, name: &str, variable: Span, span: Span) {
        if self.may_have_failed(frame, name) {
            return;
        }
        let message = format!("`${name}` is not defined here, so it cannot be called");
        let help = if self.find(frame, Space::Function, name).is_some() {
            Some(format!("the function is called without the dollar: `{name}(…)`"))
        } else {
            self.method_hint(frame, name).or_else(|| {
                let names = self.similar_names(frame, Space::Variable);
                let close = setpoint_diagnostics::closest(name, names.iter().map(String::as_str));
                close.map(|close| format!("did you mean `${close}`?"))
            })
        };
        let error = Diagnostic::error(&codes::UNKNOWN_VARIABLE, span, message);
        let error = error.shown_at(variable).label("not defined");
        self.report(frame, error.help_if(help));
    }

    /// What is written in place of a method: `$list.len()`.
    fn method_hint(&mut self, frame: FrameId, name: &str) -> Option<String> {
        let (base, method) = name.rsplit_once('.')?;
        self.find(frame, Space::Variable, base)?;
        Some(match method {
            "get" => {
                format!("values have no methods; an entry of a map is `${base}[\"key\"] <|> \"default\"`")
            }
            "len" | "length" | "size" | "count" => format!("values have no methods; this is `len(${base})`"),
            "upper" | "lower" | "to_upper" | "to_lower" => {
                let method = method.trim_start_matches("to_");
                format!(
                    "values have no methods; this is `strings.to_{method}(${base})` of `import \"strings\"`"
                )
            }
            _ => format!("values have no methods; a function takes them as arguments, as in `len(${base})`"),
        })
    }

    /// Resolves parameters and body of a function whose place in the arena exists.
    pub(super) fn function(
        &mut self,
        frame: FrameId,
        ast: &Ast,
        function: &syntax::Function,
        id: FunctionId,
        owner: Owner,
    ) {
        let extent = function.parameters.span.to(function.body_span);
        let inner = self.inner_frame(frame, extent, owner);
        let mut parameters = Vec::new();
        for (index, parameter) in function.parameters.items.iter().enumerate() {
            let annotation = parameter.annotation.as_ref().map(annotation_type);
            let kind = DefinitionKind::Parameter {
                function: id,
                index,
                annotation,
            };
            parameters.push(self.define(inner, &parameter.name, parameter.span, kind));
        }
        let body = self.expr(inner, ast, function.body);
        let entry = &mut self.hir.functions[id.index()];
        entry.parameters = parameters;
        entry.body = body;
    }

    pub(super) fn endpoint(
        &mut self,
        frame: FrameId,
        ast: &Ast,
        endpoint: &syntax::EdgeEndpoint,
    ) -> Endpoint {
        let kind = &endpoint.kind;
        self.mentions.plain(kind.span, Target::Kind(kind.text.clone()));
        if let Some(field) = &endpoint.field {
            self.mention_parameter(kind, field);
        }
        Endpoint {
            kind: endpoint.kind.text.clone(),
            name: self.expr(frame, ast, endpoint.name),
            field: endpoint.field.as_ref().map(|f| f.text.clone()),
            span: endpoint.span,
        }
    }

    fn mention_parameter(&mut self, kind: &syntax::Name, name: &syntax::Name) {
        let target = Target::Parameter {
            kind: kind.text.clone(),
            name: name.text.clone(),
        };
        self.mentions.plain(name.span, target);
    }

    pub(super) fn resource(
        &mut self,
        frame: FrameId,
        ast: &Ast,
        resource: &syntax::Resource,
        span: Span,
    ) -> Resource {
        let kind = &resource.kind;
        self.mentions.plain(kind.span, Target::Kind(kind.text.clone()));
        let name = self.expr(frame, ast, resource.name);
        let mut items = Vec::with_capacity(resource.items.len());
        for item in &resource.items {
            let kind = match &item.kind {
                BodyItemKind::Field { name, value } => {
                    self.mention_parameter(kind, name);
                    ItemKind::Field {
                        name: name.text.clone(),
                        name_span: name.span,
                        value: self.expr(frame, ast, *value),
                    }
                }
                BodyItemKind::EdgeProperty { property, endpoint } => ItemKind::EdgeProperty {
                    property: edge_property(&property.text),
                    endpoint: self.endpoint(frame, ast, endpoint),
                },
                BodyItemKind::Meta { name, value } => {
                    let value = self.expr(frame, ast, *value);
                    match MetaName::parse(&name.text) {
                        Some(meta) => {
                            self.mentions.plain(name.span, Target::Meta(meta));
                            ItemKind::Meta { name: meta, value }
                        }
                        None if &*name.text == "meta" => ItemKind::MetaStruct { value },
                        // Refused by the structural checks.
                        None => continue,
                    }
                }
                BodyItemKind::MetaStruct { value } => ItemKind::MetaStruct {
                    value: self.expr(frame, ast, *value),
                },
            };
            let condition = item.condition.map(|condition| self.expr(frame, ast, condition));
            items.push(Item {
                kind,
                condition,
                span: item.span,
            });
        }
        Resource {
            kind: resource.kind.text.clone(),
            kind_span: resource.kind.span,
            collect: resource.collect,
            name,
            items,
            span,
        }
    }
}

/// What is called so elsewhere.
fn function_of_another_language(name: &str) -> Option<String> {
    let help = match name {
        "range" => "numbers in a row are `iter.range(0, 3)` of `import \"iter\"`",
        "str" | "string" | "int" | "float" | "bool" => {
            "conversions are in `import \"convert\"`; a text of several values is `fmt.printf(\"%d\", $number)`"
        }
        "length" | "size" | "count" => "how many there are is `len(…)`",
        "join" | "split" | "upper" | "lower" | "replace" | "trim" => {
            "functions of texts are in `import \"strings\"`: `strings.split(…)`"
        }
        "printf" | "sprintf" | "format" => "a text by a format is `fmt.printf(…)` of `import \"fmt\"`",
        "lookup" => "a value by its key is `$map[\"key\"] <|> \"default\"`",
        "template" | "templatefile" => "a template is `golang.template(…)` of `import \"golang\"`",
        "file" | "read_file" => "the content of a file is `os.readfile(…)` of `import \"os\"`",
        "env" | "getenv" => "a variable of the environment is `sys.getenv(…)` of `import \"sys\"`",
        _ => return None,
    };
    Some(help.to_owned())
}

/// From the dollar to the closing brace around a name in a string.
fn in_braces(name: Span) -> Span {
    Span::new(name.file, name.start.saturating_sub(2), name.end + 1)
}

/// The structural checks leave only these four.
fn edge_property(name: &str) -> EdgeProperty {
    match name.to_lowercase().as_str() {
        "notify" => EdgeProperty::Notify,
        "depend" => EdgeProperty::Depend,
        "listen" => EdgeProperty::Listen,
        _ => EdgeProperty::Before,
    }
}

/// The pieces of a string that has been checked.
pub(super) fn pieces(raw: &str, span: Span) -> Vec<Piece> {
    syntax::interpolate(raw, span).unwrap_or_default()
}

/// A written type.
pub(super) fn annotation_type(ty: &TypeExpr) -> Type {
    match &ty.kind {
        TypeKind::Bool => Type::Bool,
        TypeKind::Str => Type::Str,
        TypeKind::Int => Type::Int,
        TypeKind::Float => Type::Float,
        TypeKind::Variant => Type::Dynamic,
        TypeKind::List(element) => Type::list(annotation_type(element)),
        TypeKind::Map { key, value } => Type::map(annotation_type(key), annotation_type(value)),
        TypeKind::Struct(fields) => Type::structure(
            fields
                .iter()
                .map(|f| (f.name.text.clone(), annotation_type(&f.annotation))),
        ),
        TypeKind::Func { arguments, result } => {
            let parameters = arguments.iter().enumerate().map(|(index, argument)| {
                let name = argument
                    .name
                    .as_ref()
                    .map_or_else(|| index.to_string().into(), |n| n.text.clone());
                (name, annotation_type(&argument.annotation))
            });
            Type::func(
                parameters.collect::<Vec<(Arc<str>, Type)>>(),
                annotation_type(result),
            )
        }
    }
}
