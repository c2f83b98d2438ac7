//! Statements, blocks and resource bodies.

use setpoint_diagnostics::Span;

use super::ast::{
    Arguments, Bind, Block, BodyItem, BodyItemKind, Class, Edge, EdgeEndpoint, ExprId, ExprKind, Func,
    Function, IfStmt, Import, ImportAlias, Include, Loop, Name, Resource, StmtId, StmtKind, TypeExpr,
};
use super::errors;
use super::foreign;
use super::parser::{Failed, MAXIMUM_ERRORS, Parser, Result, starts_statement};
use super::token::TokenKind as K;

impl Parser<'_> {
    /// All statements of the file.
    pub(super) fn file(&mut self) -> Vec<StmtId> {
        let mut statements = Vec::new();
        loop {
            self.statements(&mut statements);
            self.to_top = false;
            match self.kind {
                K::EndOfFile => return statements,
                K::RightBrace => {
                    let _: Result<()> = self.unexpected("a statement");
                    self.advance();
                }
                // A bracket that recovery left, or a statement at the left margin to go on with.
                kind if starts_statement(kind) => {}
                _ => self.advance(),
            }
        }
    }

    /// Statements up to a closing brace or the end of the file.
    fn statements(&mut self, statements: &mut Vec<StmtId>) {
        let mut after_mistake = false;
        loop {
            match self.kind {
                K::Newline => self.advance(),
                K::EndOfFile | K::RightBrace => return,
                kind if after_mistake && !starts_statement(kind) => {
                    // The rest of what was not understood.
                    let (mark, start) = (self.mark(), self.start);
                    self.advance();
                    self.recover(mark, false);
                    self.damage(start);
                    after_mistake = false;
                    if self.to_top {
                        return;
                    }
                }
                _ => {
                    let (mark, position) = (self.mark(), self.start);
                    let (known, errors) = (self.expr_count(), self.error_count());
                    let word = (self.at(K::Identifier)).then(|| self.here());
                    let parsed = self.statement();
                    after_mistake = match parsed {
                        Ok(id) => {
                            statements.push(id);
                            let ended = self.end_of_statement();
                            if ended.is_err() {
                                self.distrust(id, known);
                            }
                            ended.is_err()
                        }
                        Err(Failed) => true,
                    };
                    if after_mistake {
                        self.recover(mark, false);
                        self.damage(position);
                    }
                    if parsed.is_err() {
                        self.push_kept(position, statements);
                    }
                    if let Some(word) = word
                        && (after_mistake || self.error_count() > errors)
                    {
                        self.explain_word(word, after_mistake);
                    }
                    if self.to_top {
                        return;
                    }
                    if self.start == position {
                        // Recovery stopped at a bracket that opens nothing here.
                        self.advance();
                    }
                }
            }
        }
    }

    /// The value of a bind behind which something stands is not what was meant.
    #[cold]
    fn distrust(&mut self, id: StmtId, known: usize) {
        let start = self.ast.stmt(id).span.start;
        if let StmtKind::Bind(bind) = &self.ast.stmt(id).kind {
            let mut bind = bind.clone();
            bind.value = self.unfinished(known, start);
            self.ast.stmts[id.index()].kind = StmtKind::Bind(bind);
        }
    }

    /// Says what stands here instead of a word with which a statement of another language begins, and nothing else about that statement.
    #[cold]
    fn explain_word(&mut self, word: Span, is_damaged: bool) {
        let text = self.slice(word.start, word.end);
        let Some(instead) = foreign::statement(text).filter(|_| self.explained.len() < MAXIMUM_ERRORS) else {
            return;
        };
        // With what stands behind it, which may be what is not expected.
        let place = Span::new(self.file, word.start, self.end.max(word.end));
        self.explained
            .push((place, errors::foreign_statement(word, text, instead)));
        if !is_damaged {
            self.damage(word.start);
        }
    }

    /// A newline, the end of the block, or a token that can only begin the next statement.
    fn end_of_statement(&mut self) -> Result<()> {
        match self.kind {
            K::Newline | K::EndOfFile | K::RightBrace => Ok(()),
            K::Semicolon => {
                let _: Result<()> = self.unexpected("the end of the line");
                self.advance();
                Ok(())
            }
            kind if starts_statement(kind) => {
                let words = |kind: K| {
                    matches!(
                        kind,
                        K::Identifier
                            | K::Capitalized
                            | K::IntegerNumber
                            | K::FloatNumber
                            | K::True
                            | K::False
                    ) || kind.is_word()
                };
                if self.glued() && words(self.previous) && words(kind) {
                    let help = match (self.previous, kind) {
                        (K::IntegerNumber | K::FloatNumber, _) => {
                            "numbers are written in decimal digits, without exponent or unit"
                        }
                        (_, K::Capitalized) => "names are written in lower case: `foo_bar`",
                        _ => "put a space between two words",
                    };
                    return self.unexpected_because("the end of the line", Some(help));
                }
                if self.at_stray_expression() {
                    return self.unexpected("the end of the line");
                }
                Ok(())
            }
            _ => self.unexpected("the end of the line"),
        }
    }

    /// Whether what follows a statement on its line, and could begin another one, is one expression too many: a variable that
    /// is not bound, a call, a lambda.
    fn at_stray_expression(&self) -> bool {
        match self.kind {
            K::Dollar => {
                let [name, next, behind] = self.following();
                let binds = match next {
                    K::LeftBracket => behind == K::RightBracket,
                    K::Equals | K::Equal | K::LeftBrace => true,
                    K::Bool | K::Str | K::Int | K::Float | K::Variant | K::Map | K::Struct | K::Func => true,
                    _ => false,
                };
                !(name.is_name() && binds)
            }
            K::Func => self.following::<1>() != [K::Identifier],
            K::Identifier | K::Collect => match self.following() {
                [K::Dot] => true,
                [K::LeftParen] => !self.brace_on_this_line(),
                _ => false,
            },
            _ => false,
        }
    }

    fn statement(&mut self) -> Result<StmtId> {
        let start = self.start;
        let kind = match self.kind {
            K::Dollar => self.bind()?,
            K::If => StmtKind::If(self.if_statement()?),
            K::For => self.loop_statement(StmtKind::For)?,
            K::ForKv => self.loop_statement(StmtKind::ForKv)?,
            K::Identifier => self.resource(false)?,
            K::Collect => {
                self.advance();
                if !self.at(K::Identifier) {
                    return self.unexpected("the kind of a resource");
                }
                self.resource(true)?
            }
            K::Capitalized => self.edge()?,
            K::Class => self.class()?,
            K::Include => self.include()?,
            K::Import => self.import()?,
            K::Func => self.func()?,
            K::Panic => {
                self.advance();
                StmtKind::Panic(self.arguments()?)
            }
            K::Else => {
                return self.unexpected_because(
                    "a statement",
                    Some("`else` stands on the line of the `}` that ends the block before: `} else {`"),
                );
            }
            K::Slash if self.following() == [K::Star] => return self.block_comment(),
            K::Bool | K::Str | K::Int | K::Float if self.following() == [K::Dollar] => {
                let help = "the type stands behind the name: `$name int = …`";
                return self.unexpected_because("a statement", Some(help));
            }
            _ => return self.unexpected("a statement"),
        };
        Ok(self.add_statement(kind, self.since(start)))
    }

    /// Skips what was meant as a comment of several lines.
    #[cold]
    fn block_comment<T>(&mut self) -> Result<T> {
        let failed = self.unexpected("a statement");
        let behind = self.behind_block_comment();
        while self.start < behind && !self.at(K::EndOfFile) {
            self.advance();
        }
        failed
    }

    fn block(&mut self) -> Result<Block> {
        self.kept.block = None;
        self.enter()?;
        let start = self.open(K::LeftBrace, "`{`")?;
        let mut statements = Vec::new();
        self.statements(&mut statements);
        let is_closed = !self.to_top && self.close(K::RightBrace, "`}`").is_ok();
        let span = self.since(start);
        let block = Block { statements, span };
        if !is_closed {
            self.kept.block = Some(block);
            return Err(Failed);
        }
        self.leave();
        Ok(block)
    }

    /// Passes on a block of a statement. If it did not parse, `keep` makes what is kept of the statement.
    fn or_keep(&mut self, block: Result<Block>, keep: impl FnOnce(Block) -> StmtKind) -> Result<Block> {
        if block.is_err() {
            let block = self.kept.block.take().unwrap_or_else(|| self.no_block());
            self.kept.statement = Some(keep(block));
        }
        block
    }

    fn bind(&mut self) -> Result<StmtKind> {
        let start = self.start;
        let name = self.variable_name()?;
        match self.kind {
            K::Equal => {
                let operator = self.here();
                self.advance();
                self.expression()?;
                self.report(errors::comparison(self.since(start), operator));
                return Err(Failed);
            }
            K::Dot => {
                return self.unexpected_because(
                    "`=` or a type",
                    Some("a name with a dot belongs to an import or include; it cannot be defined here"),
                );
            }
            K::LeftParen => {
                return self.unexpected_because(
                    "`=` or a type",
                    Some("a call is not a statement; use its value in a definition or a resource"),
                );
            }
            _ => {}
        }
        let annotation = self.optional_type()?;
        self.expect(
            K::Equals,
            if annotation.is_some() {
                "`=`"
            } else {
                "`=` or a type"
            },
        )?;
        let (known, start) = (self.expr_count(), self.start);
        let bind = |annotation: Option<TypeExpr>, value| {
            StmtKind::Bind(Bind {
                name,
                annotation,
                value,
            })
        };
        let Ok(value) = self.expression() else {
            let value = self.unfinished(known, start);
            self.kept.statement = Some(bind(annotation, value));
            return Err(Failed);
        };
        if let Some(annotation) = &annotation {
            self.check_annotation(annotation, value);
        }
        Ok(bind(annotation, value))
    }

    fn if_statement(&mut self) -> Result<IfStmt> {
        let is_behind_value = !matches!(self.previous, K::Newline | K::LeftBrace | K::RightBrace | K::Else);
        self.advance();
        let condition = self.expression()?;
        self.no_assignment()?;
        if is_behind_value && self.at(K::Else) {
            let help = "the condition stands in front: `$x = if $condition { 1 } else { 2 }`";
            return self.unexpected_because("`{`", Some(help));
        }
        let Ok(then_block) = self.block() else {
            return self.keep_if(condition, None);
        };
        if !self.accept(K::Else) {
            return Ok(IfStmt {
                condition,
                then_block,
                else_block: None,
                else_if: false,
            });
        }
        if !self.at(K::If) {
            let Ok(else_block) = self.block() else {
                return self.keep_if(condition, Some(then_block));
            };
            return Ok(IfStmt {
                condition,
                then_block,
                else_block: Some(else_block),
                else_if: false,
            });
        }
        let start = self.start;
        self.enter()?;
        let Ok(inner) = self.if_statement() else {
            return self.keep_else_if(condition, then_block, start);
        };
        self.leave();
        let else_block = Some(self.else_if_block(StmtKind::If(inner), start));
        Ok(IfStmt {
            condition,
            then_block,
            else_block,
            else_if: true,
        })
    }

    /// The block that an `else if` stands for.
    fn else_if_block(&mut self, inner: StmtKind, start: u32) -> Block {
        let span = self.since(start);
        let statements = vec![self.add_statement(inner, span)];
        Block { statements, span }
    }

    // What is kept is put together outside of the functions that call themselves, whose frames it would make larger.

    /// Keeps an `if` whose last block did not parse: the second one if there is a first.
    #[cold]
    fn keep_if(&mut self, condition: ExprId, then_block: Option<Block>) -> Result<IfStmt> {
        let kept = self.kept.block.take().unwrap_or_else(|| self.no_block());
        let (then_block, else_block) = match then_block {
            Some(then_block) => (then_block, Some(kept)),
            None => (kept, None),
        };
        self.kept.statement = Some(StmtKind::If(IfStmt {
            condition,
            then_block,
            else_block,
            else_if: false,
        }));
        Err(Failed)
    }

    /// Keeps an `if` with an `else if` that did not parse.
    #[cold]
    fn keep_else_if(&mut self, condition: ExprId, then_block: Block, start: u32) -> Result<IfStmt> {
        let inner = self.kept.statement.take();
        let else_block = inner.map(|inner| self.else_if_block(inner, start));
        let else_if = else_block.is_some();
        self.kept.statement = Some(StmtKind::If(IfStmt {
            condition,
            then_block,
            else_block,
            else_if,
        }));
        Err(Failed)
    }

    /// Keeps the statement whose place began at `start`, if something was understood of it.
    #[cold]
    fn push_kept(&mut self, start: u32, statements: &mut Vec<StmtId>) {
        if let Some(kind) = self.kept.statement.take() {
            let id = self.add_statement(kind, self.since(start));
            statements.push(id);
        }
    }

    fn loop_statement(&mut self, kind: fn(Loop) -> StmtKind) -> Result<StmtKind> {
        self.advance();
        let key = self.variable_name()?;
        if !self.at(K::Comma) {
            let help = "a loop names two variables, `for $index, $value in …` for a list and `forkv $key, $value in …` for a map";
            return self.unexpected_because("`,` and a second variable", Some(help));
        }
        self.advance();
        let value = self.variable_name()?;
        self.expect(K::In, "`in`")?;
        let iterable = self.expression()?;
        let whole = |body| {
            kind(Loop {
                key: key.clone(),
                value: value.clone(),
                iterable,
                body,
            })
        };
        let body = self.block();
        let body = self.or_keep(body, whole)?;
        Ok(whole(body))
    }

    fn class(&mut self) -> Result<StmtKind> {
        self.advance();
        let name = self.colon_name("the name of a class")?;
        let parameters = if self.at(K::LeftParen) {
            Some(self.parameters()?)
        } else {
            None
        };
        let whole = |body| {
            StmtKind::Class(Class {
                name: name.clone(),
                parameters: parameters.clone(),
                body,
            })
        };
        let body = self.block();
        let body = self.or_keep(body, whole)?;
        Ok(whole(body))
    }

    fn include(&mut self) -> Result<StmtKind> {
        self.advance();
        let class = self.dotted_name("the name of a class")?;
        let (known, start) = (self.expr_count(), self.start);
        let arguments = if self.at(K::LeftParen) {
            match self.arguments() {
                Ok(arguments) => Some(arguments),
                Err(Failed) => {
                    let items = vec![self.unfinished(known, start)];
                    let span = self.since(start);
                    self.kept.statement = Some(StmtKind::Include(Include {
                        class,
                        arguments: Some(Arguments { items, span }),
                        alias: None,
                    }));
                    return Err(Failed);
                }
            }
        } else {
            None
        };
        let whole = |alias| {
            StmtKind::Include(Include {
                class,
                arguments,
                alias,
            })
        };
        if !self.accept(K::As) {
            return Ok(whole(None));
        }
        match self.plain_name("a name for what is included") {
            Ok(alias) => Ok(whole(Some(alias))),
            Err(Failed) => {
                self.kept.statement = Some(whole(None));
                Err(Failed)
            }
        }
    }

    fn import(&mut self) -> Result<StmtKind> {
        self.advance();
        if !self.at(K::String) {
            return self.unexpected("what to import, in quotes");
        }
        let text = self.slice(self.start + 1, self.end - 1);
        let path = Name {
            text: self.intern(text),
            span: self.here(),
        };
        self.advance();
        let alias = if !self.accept(K::As) {
            None
        } else if self.at(K::Star) {
            let star = self.here();
            self.advance();
            Some(ImportAlias::All(star))
        } else {
            Some(ImportAlias::Name(
                self.plain_name("a name for what is imported, or `*`")?,
            ))
        };
        Ok(StmtKind::Import(Import { path, alias }))
    }

    fn func(&mut self) -> Result<StmtKind> {
        let start = self.start;
        self.advance();
        let name = self.plain_name("the name of a function")?;
        let (known, behind) = (self.expr_count(), self.start);
        self.kept.parameters = None;
        let Ok(function) = self.function_rest() else {
            if let Some(parameters) = self.kept.parameters.take() {
                let body = self.unfinished(known, behind);
                let function = Function {
                    parameters,
                    result: None,
                    body,
                    body_span: self.span_of(body),
                };
                self.kept.statement = Some(StmtKind::Func(Func { name, function }));
            }
            return Err(Failed);
        };
        self.check_function_types(&function, self.since(start));
        Ok(StmtKind::Func(Func { name, function }))
    }

    /// A name that is one identifier.
    fn plain_name(&mut self, expected: &'static str) -> Result<Name> {
        if !self.at(K::Identifier) {
            return self.unexpected(expected);
        }
        Ok(self.take_name())
    }

    fn colon_name(&mut self, expected: &'static str) -> Result<Name> {
        if !self.at(K::Identifier) {
            return self.unexpected(expected);
        }
        self.joined_name(K::Colon, expected, |kind| kind == K::Identifier)
    }

    // Edges.

    fn edge(&mut self) -> Result<StmtKind> {
        let first = self.edge_endpoint()?;
        let mut endpoints = vec![first];
        if self.at(K::Dot) {
            endpoints[0].field = Some(self.edge_field()?);
            self.expect(K::Arrow, "`->` and the receiver")?;
            let mut receiver = self.edge_endpoint()?;
            if !self.at(K::Dot) {
                let help = "either both ends of an edge name a field, or none";
                return self.unexpected_because("`.` and the field that receives", Some(help));
            }
            receiver.field = Some(self.edge_field()?);
            endpoints.push(receiver);
            if self.at(K::Arrow) {
                let help = "sending goes from one resource to one other; write further edges as statements";
                return self.unexpected_because("the end of the line", Some(help));
            }
        } else {
            while self.accept(K::Arrow) {
                endpoints.push(self.edge_endpoint()?);
            }
            if self.at(K::Dot) && endpoints.len() > 1 {
                let help = "either both ends of an edge name a field, or none";
                return self.unexpected_because("`->` or the end of the line", Some(help));
            }
        }
        Ok(StmtKind::Edge(Edge { endpoints }))
    }

    fn edge_field(&mut self) -> Result<Name> {
        self.advance();
        self.plain_name("the name of a field")
    }

    /// `Kind["name"]`
    fn edge_endpoint(&mut self) -> Result<EdgeEndpoint> {
        let start = self.start;
        if !self.at(K::Capitalized) {
            if self.at(K::Identifier) {
                let (kind, text) = (self.here(), self.token_text());
                let error = errors::edge_in_small_letters(kind, text, self.first_column());
                self.report(error);
                return Err(Failed);
            }
            return self.unexpected("the other end of the edge, as in `File[\"/a\"]`");
        }
        let mut kind = self.joined_name(K::Colon, "a capitalised name", |kind| kind == K::Capitalized)?;
        kind.text = self.intern(&kind.text.to_ascii_lowercase());
        if self.at(K::Capitalized) {
            let help = "a kind has one capital letter, in front: `Http[\"x\"]`";
            return self.unexpected_because("`[` and the name of the resource", Some(help));
        }
        self.enter()?;
        self.open(K::LeftBracket, "`[` and the name of the resource")?;
        let name = self.expression()?;
        if self.at(K::Comma) {
            let help = "several resources are a list, with brackets of its own: `File[[\"/a\", \"/b\"]]`";
            return self.unexpected_because("`]`", Some(help));
        }
        self.close(K::RightBracket, "`]`")?;
        self.leave();
        Ok(EdgeEndpoint {
            kind,
            name,
            field: None,
            span: self.since(start),
        })
    }

    // Resources.

    fn resource(&mut self, collect: bool) -> Result<StmtKind> {
        let kind = self.colon_name("the kind of a resource")?;
        if matches!(self.kind, K::Equals | K::Equal) {
            let found = self.first_column();
            self.report(errors::definition_without_dollar(kind.span, &kind.text, found));
            return Err(Failed);
        }
        if self.at(K::LeftBrace) && self.following() == [K::String, K::Colon] {
            self.open(K::LeftBrace, "`{`")?;
            self.advance();
            let help = "the name stands before the body, and each parameter is set with `=>`: `file \"/etc/motd\" { state => \"exists\", }`";
            return self.unexpected_because("the end of the text", Some(help));
        }
        let is_end_of_edge = self.at(K::LeftBracket) && self.glued();
        let name = self.expression()?;
        if !self.at(K::LeftBrace) && is_end_of_edge {
            let error = errors::edge_in_small_letters(kind.span, &kind.text, self.first_column());
            self.report(error);
            return Err(Failed);
        }
        if !self.at(K::LeftBrace) {
            let call = "a call is not a statement; a resource has a name and a body: `print \"hello\" {}`";
            let name_is_paren = matches!(self.ast.expr(name).kind, ExprKind::Paren(_));
            return self
                .unexpected_because("`{` and the body of the resource", name_is_paren.then_some(call));
        }
        self.enter()?;
        let start = self.open(K::LeftBrace, "`{`")?;
        let mut items = Vec::new();
        loop {
            match self.kind {
                K::Newline => self.advance(),
                K::RightBrace | K::EndOfFile => break,
                _ => {
                    let mark = self.mark();
                    let position = self.start;
                    match self.body_item() {
                        Ok(item) => items.push(item),
                        Err(Failed) => {
                            items.extend(self.kept.item.take());
                            self.recover(mark, true);
                            self.damage(position);
                        }
                    }
                    if self.to_top {
                        break;
                    }
                    if self.start == position {
                        self.advance();
                    }
                }
            }
        }
        let is_closed = !self.to_top && self.close(K::RightBrace, "`}`").is_ok();
        items.shrink_to_fit();
        let body_span = self.since(start);
        let whole = StmtKind::Resource(Resource {
            collect,
            kind,
            name,
            items,
            body_span,
        });
        if !is_closed {
            self.kept.statement = Some(whole);
            return Err(Failed);
        }
        self.leave();
        Ok(whole)
    }

    fn body_item(&mut self) -> Result<BodyItem> {
        let start = self.start;
        match self.kind {
            K::Identifier => {
                let name = self.take_name();
                self.no_edge_in_small_letters(&name)?;
                let known = self.expr_count();
                let is_set = self.at(K::Rocket);
                let ended = self.item_value().and_then(|(condition, value)| {
                    self.end_of_item(value)?;
                    Ok((condition, value))
                });
                let (condition, value) = match &ended {
                    Ok((condition, value)) => (*condition, *value),
                    Err(Failed) => (None, self.unfinished(known, name.span.end)),
                };
                let item = BodyItem {
                    kind: BodyItemKind::Field { name, value },
                    condition,
                    span: self.since(start),
                };
                if ended.is_err() {
                    self.kept.item = is_set.then_some(item);
                    return Err(Failed);
                }
                Ok(item)
            }
            K::Capitalized => self.capitalised_item(),
            _ => self.unexpected("the name of a parameter, or `}`"),
        }
    }

    /// Refuses `before => Exec["x"]`, an edge property that is written as a parameter.
    fn no_edge_in_small_letters(&mut self, name: &Name) -> Result<()> {
        let is_edge = self.at(K::Rocket)
            && matches!(
                self.following(),
                [K::Capitalized, K::LeftBracket] | [K::LeftBracket, K::Capitalized]
            );
        let Some(property) = foreign::edge(&name.text).filter(|_| is_edge) else {
            return Ok(());
        };
        while !self.at(K::Capitalized) {
            self.advance();
        }
        let error = errors::edge_property(name, property, self.first_column());
        self.report(error);
        Err(Failed)
    }

    /// An edge property or a meta parameter.
    fn capitalised_item(&mut self) -> Result<BodyItem> {
        let start = self.start;
        let word = self.take_name();
        let (kind, condition) = if self.accept(K::Colon) {
            let name = self.plain_name("the name of a meta parameter")?;
            let (condition, value) = self.item_value()?;
            self.end_of_item(value)?;
            (BodyItemKind::Meta { name, value }, condition)
        } else {
            self.rocket()?;
            let mut condition = None;
            if self.at(K::Identifier) && self.following() == [K::LeftBracket] && &*word.text != "Meta" {
                let kind = self.take_name();
                let found = self.first_column();
                self.report(errors::edge_in_small_letters(kind.span, &kind.text, found));
                return Err(Failed);
            }
            if !self.at(K::Capitalized) {
                let value = self.expression()?;
                if self.accept(K::Elvis) {
                    condition = Some(value);
                } else {
                    return self.meta_struct(start, word, None, value);
                }
            }
            if !self.at(K::Capitalized) {
                let value = self.expression()?;
                return self.meta_struct(start, word, condition, value);
            }
            let endpoint = self.edge_endpoint()?;
            if self.at(K::Dot) {
                let help = "sending is a statement of its own: `A[\"x\"].key -> B[\"y\"].field`";
                return self.unexpected_because("`,`", Some(help));
            }
            if !self.accept(K::Comma) {
                self.no_comma(endpoint.kind.span)?;
            }
            return Ok(BodyItem {
                kind: BodyItemKind::EdgeProperty {
                    property: word,
                    endpoint,
                },
                condition,
                span: self.since(start),
            });
        };
        self.check_meta(&word);
        Ok(BodyItem {
            kind,
            condition,
            span: self.since(start),
        })
    }

    fn meta_struct(
        &mut self,
        start: u32,
        word: Name,
        condition: Option<ExprId>,
        value: ExprId,
    ) -> Result<BodyItem> {
        self.end_of_item(value)?;
        self.check_meta(&word);
        Ok(BodyItem {
            kind: BodyItemKind::MetaStruct { value },
            condition,
            span: self.since(start),
        })
    }

    fn check_meta(&mut self, word: &Name) {
        if &*word.text != "Meta" {
            self.report(errors::not_meta(word.span, &word.text));
        }
    }

    fn rocket(&mut self) -> Result<()> {
        self.expect(K::Rocket, "`=>`").map(|_| ())
    }

    /// `=> value` or `=> condition ?: value`
    fn item_value(&mut self) -> Result<(Option<ExprId>, ExprId)> {
        self.rocket()?;
        let first = self.expression()?;
        if self.accept(K::Elvis) {
            Ok((Some(first), self.expression()?))
        } else {
            Ok((None, first))
        }
    }

    /// The comma behind the value of an item.
    fn end_of_item(&mut self, value: ExprId) -> Result<()> {
        if self.accept(K::Comma) {
            return Ok(());
        }
        self.no_comma(self.last_operand(value))
    }

    /// What stands in place of the comma of an item; `last` is where the item's value is to be shown.
    fn no_comma(&mut self, last: Span) -> Result<()> {
        match self.kind {
            K::Newline | K::RightBrace => {
                self.report(errors::missing_comma(last, self.previous_end));
                Ok(())
            }
            _ => self.unexpected("`,`"),
        }
    }
}
