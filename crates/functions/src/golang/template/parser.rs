//! From tokens to the tree. What can be known without data is checked here: functions, variables, nesting.

use std::collections::BTreeMap;

use super::lexer::{Keyword, Token, TokenKind, tokens};
use super::tree::{Branches, Command, Expression, Node, NodeKind, Pipe, Template};
use super::{builtins, core};

/// Deeper nesting is refused, because parsing and execution go as deep.
const DEEPEST: usize = 100;

/// Parses a template; an error is a message with its line.
pub(super) fn parse(input: &[u8]) -> Result<Template, String> {
    let tokens = tokens(input)?;
    let mut parser = Parser {
        tokens: &tokens,
        at: 0,
        depth: 0,
        loops: 0,
        variables: vec!["$".to_owned()],
        defined: BTreeMap::new(),
    };
    let (main, end) = parser.list()?;
    if let Some(end) = end {
        return parser.error(format!("unexpected {{{{{}}}}}", end.word()));
    }
    Ok(Template {
        main,
        defined: parser.defined,
    })
}

/// What ended a list of nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stop {
    End,
    Else,
}

impl Stop {
    fn word(self) -> &'static str {
        match self {
            Stop::End => "end",
            Stop::Else => "else",
        }
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
    /// How many loops are around this place.
    loops: usize,
    /// Variables in scope.
    variables: Vec<String>,
    defined: BTreeMap<Vec<u8>, Vec<Node>>,
}

impl<'a> Parser<'a> {
    fn line(&self) -> usize {
        let token = self.tokens.get(self.at).or(self.tokens.last());
        token.map_or(1, |token| token.line)
    }

    fn error<T>(&self, message: impl std::fmt::Display) -> Result<T, String> {
        Err(format!("template:{}: {message}", self.line()))
    }

    fn peek(&self) -> Option<&'a TokenKind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    fn next(&mut self) -> Option<&'a TokenKind> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(&token.kind)
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(TokenKind::Space)) {
            self.at += 1;
        }
    }

    fn close(&mut self, context: &str) -> Result<(), String> {
        self.skip_space();
        match self.peek() {
            Some(TokenKind::Close) => {
                self.at += 1;
                Ok(())
            }
            other => self.error(format!("unexpected {} in {context}", describe(other))),
        }
    }

    fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.depth == DEEPEST {
            return self.error(format!("nested more than {DEEPEST} deep"));
        }
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    /// Nodes up to `{{end}}` or `{{else`, or the end of the text.
    fn list(&mut self) -> Result<(Vec<Node>, Option<Stop>), String> {
        let mut nodes = Vec::new();
        loop {
            let line = self.line();
            match self.next() {
                None => return Ok((nodes, None)),
                Some(TokenKind::Text(text)) => nodes.push(Node {
                    line,
                    kind: NodeKind::Text(text.clone()),
                }),
                Some(TokenKind::Open) => {
                    self.skip_space();
                    let keyword = match self.peek() {
                        Some(TokenKind::Keyword(keyword)) => Some(*keyword),
                        _ => None,
                    };
                    match keyword {
                        Some(Keyword::End) => {
                            self.at += 1;
                            self.close("end")?;
                            return Ok((nodes, Some(Stop::End)));
                        }
                        Some(Keyword::Else) => {
                            self.at += 1;
                            return Ok((nodes, Some(Stop::Else)));
                        }
                        _ => {
                            let kind = self.deeper(|parser| parser.action(keyword))?;
                            nodes.extend(kind.map(|kind| Node { line, kind }));
                        }
                    }
                }
                Some(other) => return self.error(format!("unexpected {}", describe(Some(other)))),
            }
        }
    }

    /// What follows `{{`; definitions give no node.
    fn action(&mut self, keyword: Option<Keyword>) -> Result<Option<NodeKind>, String> {
        let Some(keyword) = keyword.filter(|k| *k != Keyword::Nil) else {
            let pipe = self.pipeline("command", false)?;
            self.close("command")?;
            return Ok(Some(NodeKind::Action(pipe)));
        };
        self.at += 1;
        match keyword {
            Keyword::If => self.branches(Keyword::If).map(|b| Some(NodeKind::If(b))),
            Keyword::With => self.branches(Keyword::With).map(|b| Some(NodeKind::With(b))),
            Keyword::Range => self.branches(Keyword::Range).map(|b| Some(NodeKind::Range(b))),
            Keyword::Break | Keyword::Continue => {
                let (word, kind) = if keyword == Keyword::Break {
                    ("break", NodeKind::Break)
                } else {
                    ("continue", NodeKind::Continue)
                };
                if self.loops == 0 {
                    return self.error(format!("{{{{{word}}}}} outside {{{{range}}}}"));
                }
                self.close(word)?;
                Ok(Some(kind))
            }
            Keyword::Template => {
                let name = self.name("template clause")?;
                self.skip_space();
                let argument = match self.peek() {
                    Some(TokenKind::Close) => None,
                    _ => Some(self.pipeline("template clause", false)?),
                };
                self.close("template clause")?;
                Ok(Some(NodeKind::Template { name, argument }))
            }
            Keyword::Define => {
                let name = self.name("define clause")?;
                self.close("define clause")?;
                self.definition(name, "define")?;
                Ok(None)
            }
            Keyword::Block => {
                let name = self.name("block clause")?;
                self.skip_space();
                let argument = self.pipeline("block clause", false)?;
                self.close("block clause")?;
                self.definition(name.clone(), "block")?;
                Ok(Some(NodeKind::Template {
                    name,
                    argument: Some(argument),
                }))
            }
            Keyword::Else | Keyword::End | Keyword::Nil => self.error("unexpected keyword"),
        }
    }

    fn name(&mut self, context: &str) -> Result<Vec<u8>, String> {
        self.skip_space();
        match self.next() {
            Some(TokenKind::Str(name)) => Ok(name.clone()),
            other => self.error(format!("unexpected {} in {context}", describe(other))),
        }
    }

    /// The body of a definition: a template of its own, with its own variables.
    fn definition(&mut self, name: Vec<u8>, context: &str) -> Result<(), String> {
        let variables = std::mem::replace(&mut self.variables, vec!["$".to_owned()]);
        let loops = std::mem::replace(&mut self.loops, 0);
        let (body, stop) = self.list()?;
        if stop != Some(Stop::End) {
            return self.error(match stop {
                Some(_) => format!("unexpected {{{{else}}}} in {context} clause"),
                None => "unexpected EOF".to_owned(),
            });
        }
        self.variables = variables;
        self.loops = loops;
        // An empty definition does not replace one that says something.
        let is_empty = |nodes: &[Node]| {
            nodes.iter().all(|node| match &node.kind {
                NodeKind::Text(text) => text.trim_ascii().is_empty(),
                _ => false,
            })
        };
        if !(self.defined.contains_key(&name) && is_empty(&body)) {
            self.defined.insert(name, body);
        }
        Ok(())
    }

    /// `if`, `with` and `range` with their branches.
    fn branches(&mut self, keyword: Keyword) -> Result<Branches, String> {
        let context = match keyword {
            Keyword::If => "if",
            Keyword::With => "with",
            _ => "range",
        };
        let scope = self.variables.len();
        let pipe = self.pipeline(context, keyword == Keyword::Range)?;
        self.close(context)?;
        let is_loop = usize::from(keyword == Keyword::Range);
        self.loops += is_loop;
        let (then, stop) = self.list()?;
        self.loops -= is_loop;
        let otherwise = match stop {
            None => return self.error("unexpected EOF"),
            Some(Stop::End) => Vec::new(),
            Some(Stop::Else) => self.otherwise(keyword, context)?,
        };
        self.variables.truncate(scope);
        Ok(Branches {
            pipe,
            then,
            otherwise,
        })
    }

    /// What follows `{{else`: the rest of the action, and the nodes to the end.
    fn otherwise(&mut self, keyword: Keyword, context: &str) -> Result<Vec<Node>, String> {
        self.skip_space();
        let line = self.line();
        if let Some(TokenKind::Keyword(next)) = self.peek()
            && *next == keyword
            && keyword != Keyword::Range
        {
            // `{{else if …}}` is an `if` in the else-branch that shares its end.
            self.at += 1;
            let inner = self.deeper(|parser| parser.branches(keyword))?;
            let kind = match keyword {
                Keyword::If => NodeKind::If(inner),
                _ => NodeKind::With(inner),
            };
            return Ok(vec![Node { line, kind }]);
        }
        self.close("else")?;
        let (nodes, stop) = self.list()?;
        match stop {
            Some(Stop::End) => Ok(nodes),
            Some(Stop::Else) => self.error(format!("expected end; found {{{{else}}}} in {context}")),
            None => self.error("unexpected EOF"),
        }
    }

    /// Variables and commands up to what ends them.
    fn pipeline(&mut self, context: &str, is_range: bool) -> Result<Pipe, String> {
        self.skip_space();
        let (variables, assigns) = self.declaration(is_range)?;
        let mut commands = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                Some(TokenKind::Close | TokenKind::CloseParenthesis) => break,
                Some(TokenKind::Pipe) | None => {
                    return self.error(format!("unexpected {} in {context}", describe(self.peek())));
                }
                Some(_) => {}
            }
            commands.push(self.command(context)?);
            self.skip_space();
            if let Some(TokenKind::Pipe) = self.peek() {
                self.at += 1;
                self.skip_space();
                if matches!(self.peek(), Some(TokenKind::Close | TokenKind::CloseParenthesis)) {
                    return self.error(format!("missing value for {context}"));
                }
            }
        }
        if commands.is_empty() {
            return self.error(format!("missing value for {context}"));
        }
        for command in &commands[1..] {
            // Only functions and the like can take a value.
            if let Some(
                Expression::Bool(_)
                | Expression::Dot
                | Expression::Nil
                | Expression::Number(_)
                | Expression::Str(_),
            ) = command.words.first()
            {
                return self.error("non executable command in pipeline");
            }
        }
        if !assigns {
            self.variables.extend(variables.iter().cloned());
        }
        Ok(Pipe {
            variables,
            assigns,
            commands,
        })
    }

    /// `$x :=`, `$x =`, and in a loop `$i, $x :=`.
    fn declaration(&mut self, is_range: bool) -> Result<(Vec<String>, bool), String> {
        let start = self.at;
        let mut names = Vec::new();
        while let Some(TokenKind::Variable(name)) = self.peek() {
            self.at += 1;
            names.push(name.clone());
            self.skip_space();
            match self.peek() {
                Some(TokenKind::Comma) if is_range && names.len() < 2 => {
                    self.at += 1;
                    self.skip_space();
                }
                Some(TokenKind::Declare) => {
                    self.at += 1;
                    return Ok((names, false));
                }
                Some(TokenKind::Assign) => {
                    self.at += 1;
                    for name in &names {
                        self.check_variable(name)?;
                    }
                    return Ok((names, true));
                }
                Some(TokenKind::Comma) => return self.error("too many declarations"),
                _ => break,
            }
        }
        if names.len() > 1 {
            return self.error("range can only initialize variables");
        }
        self.at = start;
        Ok((Vec::new(), false))
    }

    fn check_variable(&self, name: &str) -> Result<(), String> {
        if self.variables.iter().any(|known| known == name) {
            Ok(())
        } else {
            self.error(format!("undefined variable {name:?}"))
        }
    }

    /// Operands separated by space.
    fn command(&mut self, context: &str) -> Result<Command, String> {
        let mut words = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                Some(TokenKind::Close | TokenKind::CloseParenthesis | TokenKind::Pipe) => break,
                _ => words.push(self.operand(context)?),
            }
            match self.peek() {
                Some(TokenKind::Space | TokenKind::Close | TokenKind::CloseParenthesis | TokenKind::Pipe) => {
                }
                other => return self.error(format!("unexpected {} in operand", describe(other))),
            }
        }
        if words.is_empty() {
            return self.error("empty command");
        }
        Ok(Command { words })
    }

    /// A term, perhaps with fields after it.
    fn operand(&mut self, context: &str) -> Result<Expression, String> {
        let term = match self.next() {
            Some(TokenKind::Identifier(name)) => {
                if !builtins::exists(name) && core::find(name).is_none() {
                    self.at -= 1;
                    return self.error(format!("function {name:?} not defined"));
                }
                Expression::Function(name.clone())
            }
            Some(TokenKind::Dot) => Expression::Dot,
            Some(TokenKind::Keyword(Keyword::Nil)) => Expression::Nil,
            Some(TokenKind::Bool(value)) => Expression::Bool(*value),
            Some(TokenKind::Number(number)) => Expression::Number(*number),
            Some(TokenKind::Str(text)) => Expression::Str(text.clone()),
            Some(TokenKind::Variable(name)) => {
                self.check_variable(name)?;
                Expression::Variable(name.clone(), self.fields())
            }
            Some(TokenKind::Field(name)) => {
                let mut names = vec![name.clone()];
                names.extend(self.fields());
                Expression::Field(names)
            }
            Some(TokenKind::OpenParenthesis) => {
                let pipe = self.deeper(|parser| parser.pipeline("parenthesized pipeline", false))?;
                self.skip_space();
                match self.next() {
                    Some(TokenKind::CloseParenthesis) => Expression::Pipe(pipe),
                    other => {
                        return self.error(format!("unclosed left paren: unexpected {}", describe(other)));
                    }
                }
            }
            other => {
                self.at = self.at.saturating_sub(usize::from(other.is_some()));
                return self.error(format!("unexpected {} in {context}", describe(other)));
            }
        };
        let names = self.fields();
        if names.is_empty() {
            return Ok(term);
        }
        match term {
            Expression::Bool(_)
            | Expression::Str(_)
            | Expression::Number(_)
            | Expression::Nil
            | Expression::Dot => self.error(format!("unexpected . after term {:?}", names.join("."))),
            term => Ok(Expression::Chain(Box::new(term), names)),
        }
    }

    /// `.A.B` that follows at once.
    fn fields(&mut self) -> Vec<String> {
        let mut names = Vec::new();
        while let Some(TokenKind::Field(name)) = self.peek() {
            self.at += 1;
            names.push(name.clone());
        }
        names
    }
}

/// A token for a message.
fn describe(token: Option<&TokenKind>) -> String {
    match token {
        None => "EOF".to_owned(),
        Some(TokenKind::Text(_)) => "text".to_owned(),
        Some(TokenKind::Open) => "\"{{\"".to_owned(),
        Some(TokenKind::Close) => "\"}}\"".to_owned(),
        Some(TokenKind::Space) => "space".to_owned(),
        Some(TokenKind::Identifier(name)) => format!("<{name}>"),
        Some(TokenKind::Field(name)) => format!("<.{name}>"),
        Some(TokenKind::Variable(name)) => format!("<{name}>"),
        Some(TokenKind::Dot) => "<.>".to_owned(),
        Some(TokenKind::Bool(value)) => format!("{value}"),
        Some(TokenKind::Number(_)) => "number".to_owned(),
        Some(TokenKind::Str(text)) => setpoint_value::quote(text),
        Some(TokenKind::Keyword(keyword)) => format!("<{}>", format!("{keyword:?}").to_lowercase()),
        Some(TokenKind::Declare) => "\":=\"".to_owned(),
        Some(TokenKind::Assign) => "\"=\"".to_owned(),
        Some(TokenKind::Comma) => "\",\"".to_owned(),
        Some(TokenKind::Pipe) => "\"|\"".to_owned(),
        Some(TokenKind::OpenParenthesis) => "\"(\"".to_owned(),
        Some(TokenKind::CloseParenthesis) => "\")\"".to_owned(),
    }
}
