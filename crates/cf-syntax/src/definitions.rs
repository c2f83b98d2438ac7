//! What stands at the top of a file.

use setpoint_diagnostics::Span;

use crate::ast::{
    Attribute, Constraint, Default, Entity, Expression, ExpressionKind, File, Implement, Implementation,
    Import, Index, Item, Literal, Multiplicity, Name, Path, Relation, RelationEnd, RelationTarget, TypeName,
    Typedef, Using,
};
use crate::errors;
use crate::parser::{Failed, Mark, Parser, Result};
use crate::token::TokenKind as K;

impl Parser<'_> {
    pub(super) fn file(mut self) -> File {
        let doc = self.doc();
        let mut items = Vec::new();
        while !self.at(K::EndOfFile) {
            let mark = self.mark();
            match self.item() {
                Ok(Some(item)) => items.push(item),
                Ok(None) => {}
                Err(Failed) => self.recover(mark),
            }
        }
        File {
            file: self.file,
            doc,
            items,
        }
    }

    fn item(&mut self) -> Result<Option<Item>> {
        let is_name = matches!(self.kind_ahead(1), K::Assign | K::AddAssign);
        let item = match self.kind {
            K::End | K::Else | K::Elif if !is_name => {
                self.stray_end();
                return Ok(None);
            }
            kind if kind.is_definition() && !is_name => self.definition()?,
            _ if self.is_relation() => Item::Relation(self.relation()?),
            _ => Item::Statement(self.statement()?),
        };
        Ok(Some(item))
    }

    /// What ends a block or goes on with it, where no block is open.
    fn stray_end(&mut self) {
        let is_end = self.at(K::End);
        if !self.forgives_end {
            let _: Result<()> = self.unexpected("a definition or a statement");
        }
        self.forgives_end = !is_end;
        let line = self.mark();
        self.bump();
        if !is_end {
            self.recover_header(line);
        }
    }

    /// What begins with a keyword and stands only at the top of a file.
    pub(super) fn definition(&mut self) -> Result<Item> {
        Ok(match self.kind {
            K::Entity => Item::Entity(self.entity()?),
            K::Implementation => Item::Implementation(self.implementation()?),
            K::Implement => Item::Implement(self.implement()?),
            K::Typedef => Item::Typedef(self.typedef()?),
            K::Index => Item::Index(self.index()?),
            K::Import => Item::Import(self.import()?),
            _ => return self.unexpected("a definition"),
        })
    }

    fn import(&mut self) -> Result<Import> {
        let first = self.tokens[self.line_first];
        if !self.token().first_on_line && self.slice(first.span(self.file)) == "from" {
            let diagnostic = errors::import_from(first.span(self.file));
            return self.fail(diagnostic);
        }
        let start = self.bump();
        let path = self.namespace("the name of a module")?;
        if self.at(K::Comma) {
            return self.unexpected("the end of the import");
        }
        let is_dotted = matches!(self.kind, K::Dot | K::Separator) && !self.token().first_on_line;
        if is_dotted {
            return self.unexpected("the end of the import");
        }
        for name in path.namespace.iter().chain([&path.name]) {
            if name.text.contains('-') {
                self.report(errors::hyphen_in_module(name));
            }
        }
        let alias = match self.accept(K::As) {
            true => Some(self.declared("import", "the name under which it is visible")?),
            false => None,
        };
        Ok(Import {
            path,
            alias,
            span: self.since(start),
        })
    }

    fn entity(&mut self) -> Result<Entity> {
        let opener = self.mark();
        let start = self.bump();
        let header = self.entity_header();
        let header = self.header(opener, header)?;
        let doc = self.doc();
        let attributes = self.attributes(opener);
        self.end(opener);
        let (name, parents) = header.ok_or(Failed)?;
        Ok(Entity {
            name,
            parents,
            doc,
            attributes,
            span: self.since(start),
        })
    }

    fn entity_header(&mut self) -> Result<(Name, Vec<Path>)> {
        let name = match self.kind {
            K::Capitalized => self.take_name(),
            _ => {
                let name = self.identifier("the name of an entity")?;
                self.report(errors::entity_in_lower_case(&name, self.file));
                name
            }
        };
        let mut parents = Vec::new();
        if self.accept(K::Extends) {
            parents.push(self.class("the name of an entity")?);
            while self.accept(K::Comma) {
                parents.push(self.class("the name of an entity")?);
            }
        }
        Ok((name, parents))
    }

    fn attributes(&mut self, opener: Mark) -> Vec<Attribute> {
        self.blocks.push(opener.position);
        let mut attributes = Vec::new();
        loop {
            let mark = self.mark();
            match self.kind {
                K::End | K::EndOfFile => break,
                kind if kind.is_definition() => {
                    if self.is_at_margin_of(opener) {
                        break;
                    }
                    self.definition_in_block(mark, true);
                    continue;
                }
                _ => {}
            }
            let reported = self.reported();
            match self.attribute() {
                Ok(attribute) => attributes.push(attribute),
                Err(Failed) => {
                    let is_at_margin = self.tokens[mark.position].first_on_line
                        && self.column(mark.position) <= self.column(opener.line_first);
                    if is_at_margin && self.reported().1 == reported.1 + 1 && !self.at(K::EndOfFile) {
                        // What stands at the margin was no attribute: the `end` before it is missing.
                        self.unreport(reported);
                        let opener = self.tokens[opener.position];
                        let diagnostic =
                            errors::missing_end(opener.kind, opener.span(self.file), self.here());
                        self.back_to(mark);
                        let _: Result<()> = self.fail(diagnostic);
                        break;
                    }
                    self.recover(mark);
                }
            }
        }
        self.blocks.pop();
        attributes
    }

    fn attribute(&mut self) -> Result<Attribute> {
        let start = self.here();
        let ty = self.type_name()?;
        let name = if self.at(K::Capitalized) {
            let name = self.take_name();
            self.report(errors::attribute_in_upper_case(&name));
            name
        } else {
            self.declared("attribute", "the name of the attribute")?
        };
        let default = match self.accept(K::Assign) {
            true => Some(self.default(&ty, &name)?),
            false => None,
        };
        Ok(Attribute {
            ty,
            name,
            default,
            span: self.since(start),
        })
    }

    fn type_name(&mut self) -> Result<TypeName> {
        let start = self.here();
        let is_dict = self.at(K::Dict);
        let path = if is_dict {
            let name = self.take_name();
            Path {
                namespace: Vec::new(),
                span: name.span,
                name,
            }
        } else {
            let path = self.namespace("the type of an attribute, or `end`")?;
            if self.at(K::Separator) {
                self.bump();
                return self.unexpected("the type of an attribute");
            }
            path
        };
        let list = !is_dict && self.accept(K::LeftBracket);
        if list {
            self.expect(K::RightBracket, "`]`")?;
        }
        let nullable = self.accept(K::Question);
        Ok(TypeName {
            path,
            list,
            nullable,
            span: self.since(start),
        })
    }

    fn default(&mut self, ty: &TypeName, name: &Name) -> Result<Default> {
        if &*ty.path.name.text == "dict" && ty.path.namespace.is_empty() {
            return self.default_of_dict(ty, name);
        }
        if self.at(K::Undef) {
            return Ok(Default::Undef(self.bump()));
        }
        if self.at(K::LeftBracket) {
            return Ok(Default::Value(self.constants()?));
        }
        let constant = self.constant_of_default()?;
        let is_operated = !self.token().first_on_line
            && !matches!(
                self.kind,
                K::End | K::EndOfFile | K::Identifier | K::Dict | K::Capitalized
            );
        if is_operated {
            return self.unexpected_with("the next attribute, or `end`", Some("a default is one constant"));
        }
        Ok(Default::Value(constant))
    }

    fn default_of_dict(&mut self, ty: &TypeName, name: &Name) -> Result<Default> {
        let span = self.here();
        match self.kind {
            K::LeftBrace => Ok(Default::Value(self.bounded(Parser::dict)?)),
            K::Null => {
                self.bump();
                if !ty.nullable {
                    self.report(errors::null_for_dict(ty, name));
                }
                Ok(Default::Value(Expression {
                    kind: ExpressionKind::Literal(Literal::Null),
                    span,
                }))
            }
            _ => self.unexpected("a dict: `{…}`"),
        }
    }

    fn constant_of_default(&mut self) -> Result<Expression> {
        match self.constant() {
            Some(constant) => constant,
            None => self.unexpected("a constant"),
        }
    }

    /// `[1, 2]`.
    fn constants(&mut self) -> Result<Expression> {
        let start = self.bump();
        let mut elements = Vec::new();
        while !self.at(K::RightBracket) {
            elements.push(self.constant_of_default()?);
            if !self.accept(K::Comma) && !self.at(K::RightBracket) {
                return self.unexpected("`,` or `]`");
            }
        }
        self.bump();
        Ok(Expression {
            kind: ExpressionKind::List(elements),
            span: self.since(start),
        })
    }

    /// Whether an entity with a dot behind it follows.
    fn is_relation(&self) -> bool {
        let mut count = 0;
        while self.kind_ahead(count) == K::Identifier && self.kind_ahead(count + 1) == K::Separator {
            count += 2;
        }
        self.kind_ahead(count) == K::Capitalized && self.kind_ahead(count + 1) == K::Dot
    }

    fn relation(&mut self) -> Result<Relation> {
        let start = self.here();
        let entity = self.class("the name of an entity")?;
        self.expect(K::Dot, "`.`")?;
        let (name, multiplicity) = self.relation_end()?;
        let left = RelationEnd {
            entity,
            name,
            multiplicity,
        };
        let mut annotations = Vec::new();
        if !self.accept(K::Relation) {
            annotations.push(self.annotation()?);
            while self.accept(K::Comma) {
                annotations.push(self.annotation()?);
            }
        }
        let entity = self.class("the name of an entity")?;
        let inverse = match self.accept(K::Dot) {
            true => Some(self.relation_end()?),
            false => None,
        };
        let right = RelationTarget { entity, inverse };
        let span = self.since(start);
        let doc = self.doc();
        Ok(Relation {
            left,
            right,
            annotations,
            span: doc.as_ref().map_or(span, |doc| span.to(doc.span)),
            doc,
        })
    }

    fn annotation(&mut self) -> Result<Expression> {
        let is_entity =
            self.at(K::Capitalized) && !matches!(self.kind_ahead(1), K::LeftParenthesis | K::LeftBracket);
        if is_entity {
            return self.unexpected("`--`");
        }
        self.expression()
    }

    /// A name with how many.
    fn relation_end(&mut self) -> Result<(Name, Multiplicity)> {
        let name = self.declared("relation", "the name of the relation")?;
        Ok((name, self.multiplicity()?))
    }

    fn multiplicity(&mut self) -> Result<Multiplicity> {
        let start = self.expect(K::LeftBracket, "`[` and how many: `[1]`, `[0:1]`, `[0:]`")?;
        let low = match self.kind {
            K::Integer => Some(self.integer()),
            K::Colon => None,
            _ => return self.unexpected("a number"),
        };
        let high = match (self.accept(K::Colon), self.kind, low) {
            (false, _, low) => low,
            (true, K::Integer, _) => Some(self.integer()),
            (true, _, Some(_)) => None,
            (true, _, None) => return self.unexpected("a number"),
        };
        self.expect(K::RightBracket, "`]`")?;
        Ok(Multiplicity {
            low: low.unwrap_or(0),
            high,
            span: self.since(start),
        })
    }

    fn typedef(&mut self) -> Result<Typedef> {
        let start = self.bump();
        if self.at(K::Capitalized) {
            let is_constructor = self.kind_ahead(2) != K::Identifier || self.kind_ahead(3) == K::Separator;
            let name = self.take_name();
            if is_constructor {
                return self.fail(errors::default_constructor(&name));
            }
            self.report(errors::typedef_in_upper_case(&name));
            return self.typedef_behind(start, name);
        }
        let name = self.declared("typedef", "the name of the type")?;
        self.typedef_behind(start, name)
    }

    /// What stands behind the name of a typedef.
    fn typedef_behind(&mut self, start: Span, name: Name) -> Result<Typedef> {
        self.expect(K::As, "`as`")?;
        let base = self.namespace("the name of a type")?;
        let constraint = match self.kind {
            K::Regex => {
                let span = self.here();
                self.regex()
                    .map_or_else(|| Constraint::Expression(missing(span)), Constraint::Regex)
            }
            K::Matching => {
                self.bump();
                let condition = self.expression()?;
                self.check_self(&name, &condition);
                Constraint::Expression(condition)
            }
            _ => return self.unexpected("`matching`"),
        };
        let span = self.since(start);
        let doc = self.doc();
        Ok(Typedef {
            name,
            base,
            constraint,
            span: doc.as_ref().map_or(span, |doc| span.to(doc.span)),
            doc,
        })
    }

    /// A condition looks at the value, as `self` or by the name of the type.
    fn check_self(&mut self, name: &Name, condition: &Expression) {
        let looks = condition.refers_to(&|reference| {
            let variable = &reference.variable;
            variable.namespace.is_empty()
                && (&*variable.name.text == "self" || variable.name.text == name.text)
        });
        if looks || condition.holds_pattern() {
            return;
        }
        let text = match &condition.kind {
            ExpressionKind::Literal(Literal::Text(text)) => Some(&**text),
            _ => None,
        };
        let variables = std::cell::RefCell::new(Vec::new());
        condition.refers_to(&|reference| {
            variables.borrow_mut().push(reference.span);
            false
        });
        let variable = match variables.into_inner().as_slice() {
            [one] => Some(*one),
            _ => None,
        };
        self.report(errors::no_self_in_typedef(name, condition.span, text, variable));
    }

    fn index(&mut self) -> Result<Index> {
        let start = self.bump();
        let entity = self.class("the name of an entity")?;
        self.expect(K::LeftParenthesis, "`(`")?;
        let mut members = vec![self.identifier("the name of an attribute")?];
        while self.accept(K::Comma) {
            members.push(self.identifier("the name of an attribute")?);
        }
        self.expect(K::RightParenthesis, "`,` or `)`")?;
        Ok(Index {
            entity,
            members,
            span: self.since(start),
        })
    }

    fn implementation(&mut self) -> Result<Implementation> {
        let opener = self.mark();
        let start = self.bump();
        let header = self.implementation_header();
        let header = self.header(opener, header)?;
        let doc = self.doc();
        let body = self.block(opener);
        self.end(opener);
        let (name, entity) = header.ok_or(Failed)?;
        Ok(Implementation {
            name,
            entity,
            doc,
            body,
            span: self.since(start),
        })
    }

    fn implementation_header(&mut self) -> Result<(Name, Path)> {
        let name = self.declared("implementation", "the name of the implementation")?;
        self.expect(K::For, "`for` and an entity")?;
        Ok((name, self.class("the name of an entity")?))
    }

    fn implement(&mut self) -> Result<Implement> {
        let start = self.bump();
        let entity = self.class("the name of an entity")?;
        self.expect(K::Using, "`using`")?;
        let mut using = vec![self.using()?];
        while self.accept(K::Comma) {
            using.push(self.using()?);
        }
        if self.at(K::If) && !self.begins_block() {
            let diagnostic = errors::condition_with_if(self.here());
            self.report(diagnostic);
            self.kind = K::When;
        }
        let condition = match self.accept(K::When) {
            true => Some(self.expression()?),
            false => None,
        };
        self.check_parents(&using, condition.as_ref());
        let span = self.since(start);
        let doc = self.doc();
        Ok(Implement {
            entity,
            using,
            condition,
            span: doc.as_ref().map_or(span, |doc| span.to(doc.span)),
            doc,
        })
    }

    /// Whether an `if` is a statement: it begins a line, or has its `:` on it.
    fn begins_block(&self) -> bool {
        let behind = self.tokens[self.position + 1..].iter();
        let mut line = behind.take_while(|token| !token.first_on_line);
        self.token().first_on_line || line.any(|token| token.kind == K::Colon)
    }

    fn using(&mut self) -> Result<Using> {
        if self.at(K::Parents) {
            return Ok(Using::Parents(self.bump()));
        }
        let path = self.namespace("the name of an implementation")?;
        Ok(Using::Implementation(path))
    }

    /// Implementations of parents come with their own conditions.
    fn check_parents(&mut self, using: &[Using], condition: Option<&Expression>) {
        let parents: Option<Span> = using.iter().find_map(|using| match using {
            Using::Parents(span) => Some(*span),
            Using::Implementation(_) => None,
        });
        let is_true =
            |condition: &Expression| matches!(condition.kind, ExpressionKind::Literal(Literal::Bool(true)));
        if let (Some(parents), Some(condition)) = (parents, condition)
            && !is_true(condition)
        {
            self.report(errors::condition_for_parents(parents, condition.span));
        }
    }
}

fn missing(span: Span) -> Expression {
    Expression {
        kind: ExpressionKind::Missing,
        span,
    }
}
