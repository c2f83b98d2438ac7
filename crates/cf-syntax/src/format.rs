//! The canonical layout of a file: four spaces a block, each statement on lines of its own, one space around operators.
//!
//! Only white space changes: the tokens and comments stay, in their order, so the meaning does too. Where a statement spans
//! lines in a way that shows what belongs together, behind an operator, a comma or a bracket, it goes on to do so; blank lines stay, but no two
//! of them.

use rustc_hash::FxHashSet;
use setpoint_diagnostics::{Diagnostics, FileId, Span};

use crate::ast::{Block, File, Item, Multiplicity, StatementKind};
use crate::{self as syntax, Lexed, Token, TokenKind as K};

/// How far each block and each open bracket moves lines to the right.
const INDENT: usize = 4;

/// The text in its canonical layout.
///
/// # Errors
/// When the text is none of the language; it is not touched then.
pub fn format(file: FileId, text: &str) -> Result<String, Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let tree = syntax::parse(file, text, &mut diagnostics);
    if diagnostics.has_errors() {
        return Err(diagnostics);
    }
    let lexed = syntax::lex(file, text);
    let printer = Printer {
        text,
        lexed: &lexed,
        places: Places::of(&tree),
        comment: 0,
        out: String::with_capacity(text.len() + text.len() / 8),
        level: 0,
        line_indent: 0,
        brackets: Vec::new(),
        conditionals: 0,
    };
    Ok(printer.print())
}

/// What the tree knows about tokens, by where they begin.
#[derive(Default)]
struct Places {
    /// What begins a line of its own.
    lines: FxHashSet<u32>,
    /// The `?` behind a type.
    nullable: FxHashSet<u32>,
    /// The `[` of how many there are at an end of a relation.
    multiplicities: FxHashSet<u32>,
}

impl Places {
    fn of(file: &File) -> Places {
        let mut places = Places::default();
        for item in &file.items {
            places.item(item);
        }
        places
    }

    fn line(&mut self, span: Span) {
        self.lines.insert(span.start);
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Import(import) => self.line(import.span),
            Item::Entity(entity) => {
                self.line(entity.span);
                for attribute in &entity.attributes {
                    self.line(attribute.span);
                    if attribute.ty.nullable {
                        self.nullable.insert(attribute.ty.span.end - 1);
                    }
                }
            }
            Item::Relation(relation) => {
                self.line(relation.span);
                self.multiplicity(relation.left.multiplicity);
                if let Some((_, multiplicity)) = &relation.right.inverse {
                    self.multiplicity(*multiplicity);
                }
            }
            Item::Typedef(typedef) => self.line(typedef.span),
            Item::Index(index) => self.line(index.span),
            Item::Implementation(implementation) => {
                self.line(implementation.span);
                self.block(&implementation.body);
            }
            Item::Implement(implement) => self.line(implement.span),
            Item::Statement(statement) => self.statement(statement.span, &statement.kind),
        }
    }

    fn multiplicity(&mut self, multiplicity: Multiplicity) {
        self.multiplicities.insert(multiplicity.span.start);
    }

    fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            self.statement(statement.span, &statement.kind);
        }
    }

    fn statement(&mut self, span: Span, kind: &StatementKind) {
        self.line(span);
        match kind {
            StatementKind::For { body, .. } => self.block(body),
            StatementKind::If { branches, otherwise } => {
                for (_, block) in branches {
                    self.block(block);
                }
                if let Some(block) = otherwise {
                    self.block(block);
                }
            }
            StatementKind::Assign(_) | StatementKind::Expression(_) => {}
        }
    }
}

/// A bracket that is open.
struct Bracket {
    /// How far the line is indented on which it stands.
    line_indent: usize,
    /// The `?` in it whose `:` are still to come.
    conditionals: usize,
    is_multiplicity: bool,
}

struct Printer<'t> {
    text: &'t str,
    lexed: &'t Lexed,
    places: Places,
    /// The next comment.
    comment: usize,
    out: String,
    level: usize,
    /// How far the current line is indented.
    line_indent: usize,
    brackets: Vec<Bracket>,
    /// The `?` outside of brackets whose `:` are still to come.
    conditionals: usize,
}

/// What a token is to the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Other,
    /// The `:` behind which a block begins.
    BlockColon,
    /// `?` and `:` of a conditional, and operators between two operands.
    Operator,
    /// The `:` in how many there are, the `=` of an argument, the `**` before one: nothing around them.
    Tight,
}

/// The token, as a name where it is a reserved word behind `::`.
fn named(token: Token, before: Option<(Token, Role)>) -> Token {
    match before {
        Some((before, _)) if before.kind == K::Separator && token.kind.is_keyword() => Token {
            kind: K::Identifier,
            ..token
        },
        _ => token,
    }
}

impl Printer<'_> {
    fn print(mut self) -> String {
        let mut before: Option<(Token, Role)> = None;
        let lexed = self.lexed;
        for token in &lexed.tokens {
            let token = &named(*token, before);
            let commented = self.comments(*token, before);
            if token.kind == K::EndOfFile {
                break;
            }
            let ends_block = matches!(token.kind, K::End | K::Elif | K::Else);
            if ends_block {
                self.level = self.level.saturating_sub(1);
            }
            let role = self.role(*token, before);
            self.separate(*token, role, before, commented);
            self.out
                .push_str(&self.text[token.start as usize..token.end as usize]);
            self.enter(*token, role);
            before = Some((*token, role));
        }
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }

    /// Whether so much white space holds a line end, and whether it holds an empty line.
    fn breaks(&self, start: u32, end: u32) -> (bool, bool) {
        let between = self.text.get(start as usize..end as usize).unwrap_or("");
        let bytes = between.as_bytes();
        let ends =
            |at: &usize| bytes[*at] == b'\n' || (bytes[*at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let count = (0..bytes.len()).filter(ends).take(2).count();
        (count > 0, count > 1)
    }

    fn line(&mut self, indent: usize, blank: bool) {
        if !self.out.is_empty() {
            self.out.push_str(if blank { "\n\n" } else { "\n" });
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.line_indent = indent;
    }

    /// The comments before a token. Answers whether there were any, and whether an empty line follows them.
    fn comments(&mut self, token: Token, before: Option<(Token, Role)>) -> Option<bool> {
        let lexed = self.lexed;
        let mut end = before.map_or(0, |(before, _)| before.end);
        let mut found = None;
        while let Some(comment) = lexed
            .comments
            .get(self.comment)
            .filter(|comment| comment.start < token.start)
        {
            self.comment += 1;
            let (is_line, blank) = self.breaks(end, comment.start);
            if is_line || self.out.is_empty() {
                let opens = matches!(before, Some((_, Role::BlockColon))) && found.is_none();
                let indent = self.continued(None);
                self.line(indent, blank && !opens);
            } else {
                self.out.push_str("  ");
            }
            let written = &self.text[comment.start as usize..comment.end as usize];
            self.out.push_str(written.trim_end());
            end = comment.end;
            found = Some(false);
        }
        found.map(|_| self.breaks(end, token.start).1)
    }

    /// How far a line is indented that goes on with what is open; outside of brackets that is nothing.
    fn continued(&self, token: Option<Token>) -> usize {
        let is_closing = token
            .is_some_and(|token| matches!(token.kind, K::RightBracket | K::RightBrace | K::RightParenthesis));
        match self.brackets.last() {
            Some(bracket) if is_closing => bracket.line_indent,
            Some(bracket) => bracket.line_indent + INDENT,
            None => self.level * INDENT,
        }
    }

    fn role(&self, token: Token, before: Option<(Token, Role)>) -> Role {
        let conditionals = self
            .brackets
            .last()
            .map_or(self.conditionals, |bracket| bracket.conditionals);
        let is_multiplicity = self
            .brackets
            .last()
            .is_some_and(|bracket| bracket.is_multiplicity);
        match token.kind {
            K::Colon if is_multiplicity => Role::Tight,
            K::Colon if conditionals > 0 => Role::Operator,
            K::Colon if self.brackets.is_empty() => Role::BlockColon,
            K::Question if !self.places.nullable.contains(&token.start) => Role::Operator,
            K::Assign if !self.brackets.is_empty() => Role::Tight,
            K::DoubleStar
                if before.is_some_and(|(before, _)| {
                    matches!(before.kind, K::LeftParenthesis | K::LeftBracket | K::Comma)
                }) =>
            {
                Role::Tight
            }
            kind if is_operator(kind) => Role::Operator,
            _ => Role::Other,
        }
    }

    /// White space before a token.
    fn separate(&mut self, token: Token, role: Role, before: Option<(Token, Role)>, commented: Option<bool>) {
        let Some((last, last_role)) = before else {
            if commented.is_some() {
                self.line(0, commented == Some(true));
            }
            return;
        };
        let ends_block = matches!(token.kind, K::End | K::Elif | K::Else);
        let opens = last_role == Role::BlockColon;
        let begins =
            self.brackets.is_empty() && (opens || ends_block || self.places.lines.contains(&token.start));
        if begins {
            let blank = commented.unwrap_or_else(|| !opens && self.breaks(last.end, token.start).1);
            self.line(self.level * INDENT, blank && !ends_block);
            return;
        }
        let tight = self.is_tight(token, role, last, last_role);
        if commented.is_some() || (token.first_on_line && self.may_break(token, role, last, last_role, tight))
        {
            let is_doc = token.kind == K::MultilineString && self.brackets.is_empty();
            let indent = match self.brackets.is_empty() && !is_doc {
                true => self.level * INDENT + INDENT,
                false => self.continued(Some(token)),
            };
            self.line(indent, false);
        } else if !tight {
            self.out.push(' ');
        }
    }

    fn is_tight(&self, token: Token, role: Role, last: Token, last_role: Role) -> bool {
        if role == Role::Tight && token.kind != K::DoubleStar || last_role == Role::Tight {
            return true;
        }
        let opened = matches!(
            last.kind,
            K::Dot | K::Separator | K::LeftParenthesis | K::LeftBracket | K::LeftBrace
        );
        opened
            || match token.kind {
                K::Dot | K::Separator | K::RightParenthesis | K::RightBracket | K::RightBrace | K::Comma => {
                    true
                }
                K::Colon | K::Question => role != Role::Operator,
                K::LeftParenthesis => last.kind.is_name(),
                K::LeftBracket => {
                    let continues = last.kind.is_name() || last.kind == K::RightBracket;
                    continues && !self.places.multiplicities.contains(&token.start)
                }
                _ => false,
            }
    }

    /// Whether a line that somebody ended before a token stays ended there.
    fn may_break(&self, token: Token, role: Role, last: Token, last_role: Role, tight: bool) -> bool {
        let at_bracket = matches!(last.kind, K::LeftParenthesis | K::LeftBracket | K::LeftBrace)
            || matches!(token.kind, K::RightParenthesis | K::RightBracket | K::RightBrace);
        let at_operator = role == Role::Operator || last_role == Role::Operator;
        let at_word = matches!(
            token.kind,
            K::When | K::Using | K::MultilineString | K::For | K::If
        );
        at_bracket || last.kind == K::Comma || (!tight && (at_operator || at_word))
    }

    /// What a token changes for those behind it.
    fn enter(&mut self, token: Token, role: Role) {
        match token.kind {
            K::LeftParenthesis | K::LeftBracket | K::LeftBrace => self.brackets.push(Bracket {
                line_indent: self.line_indent,
                conditionals: 0,
                is_multiplicity: self.places.multiplicities.contains(&token.start),
            }),
            K::RightParenthesis | K::RightBracket | K::RightBrace => {
                self.brackets.pop();
            }
            K::Colon if role == Role::BlockColon => self.level += 1,
            K::Question | K::Colon if role == Role::Operator => {
                let open = match self.brackets.last_mut() {
                    Some(bracket) => &mut bracket.conditionals,
                    None => &mut self.conditionals,
                };
                *open = match token.kind {
                    K::Question => *open + 1,
                    _ => open.saturating_sub(1),
                };
            }
            _ => {}
        }
    }
}

fn is_operator(kind: K) -> bool {
    matches!(
        kind,
        K::Or
            | K::And
            | K::Not
            | K::In
            | K::Equal
            | K::NotEqual
            | K::Less
            | K::LessOrEqual
            | K::Greater
            | K::GreaterOrEqual
            | K::Plus
            | K::Minus
            | K::Star
            | K::Slash
            | K::Percent
            | K::DoubleStar
    )
}
