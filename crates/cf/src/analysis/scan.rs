//! The tokens before a place, read without a parser: which blocks and brackets are open there, and what stands directly before it.

use setpoint_cf_syntax::{Lexed, Token, TokenKind as K, lex};
use setpoint_diagnostics::{FileId, Span};

use super::completion::Wanted;

/// What stands before a place.
pub(super) struct Scan<'t> {
    text: &'t str,
    /// The tokens before the name that is being written.
    tokens: Vec<Token>,
    /// The name that is being written, or nothing at the place.
    pub(super) replaced: Span,
    /// Whether the name begins a line.
    is_first: bool,
    /// What stands before `::`.
    pub(super) qualifier: Option<String>,
    /// The variable and attributes before a dot.
    pub(super) chain: Option<Vec<String>>,
    /// Brackets that are open, outermost first.
    pub(super) brackets: Vec<Bracket>,
    /// Blocks that are open, outermost first.
    pub(super) scopes: Vec<Scope>,
    /// The entity of an `implement` whose condition the place is in.
    pub(super) condition_of: Option<String>,
    /// Whether the place is in a typedef, whose condition sees no variable but `self`.
    pub(super) is_in_typedef: bool,
    /// The first token of the name with its namespaces.
    path_start: usize,
    /// Whether the place is in a text, between braces.
    in_text: bool,
}

/// A bracket that is open.
#[derive(Debug)]
pub(super) struct Bracket {
    is_round: bool,
    /// The function or entity before it.
    pub(super) path: Option<String>,
    /// The variable and attributes before it.
    pub(super) chain: Option<Vec<String>>,
    /// Names of arguments that are given by name.
    pub(super) keywords: Vec<String>,
    /// How many arguments are complete.
    pub(super) commas: usize,
    /// Whether it is that of an `index`.
    pub(super) is_index: bool,
}

impl Bracket {
    /// Whether it holds the arguments of a function or constructor.
    pub(super) fn is_call(&self) -> bool {
        self.is_round && self.path.is_some() && !self.is_index
    }
}

/// A block that is open.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// Whether it is the body of an entity.
    is_entity: bool,
    /// The entity of an implementation.
    pub(super) entity: Option<String>,
    /// Its variables, as far as they stand before the place.
    pub(super) variables: Vec<(String, Span)>,
}

impl<'t> Scan<'t> {
    /// Reads what stands before a place. None in comments and texts.
    pub(super) fn of(file: FileId, text: &'t str, lexed: &Lexed, offset: u32) -> Option<Scan<'t>> {
        let in_comment = |comment: &Span| comment.start < offset && offset <= comment.end;
        if lexed.comments.iter().any(in_comment) {
            return None;
        }
        let mut tokens: Vec<Token> = lexed
            .tokens
            .iter()
            .copied()
            .take_while(|token| token.start < offset && token.kind != K::EndOfFile)
            .collect();
        let mut in_text = false;
        if let Some(last) = tokens
            .last()
            .copied()
            .filter(|last| offset < last.end || last.kind == K::Error)
            && (last.kind.is_string() || last.kind == K::Error)
        {
            tokens.pop();
            tokens.extend(field_tokens(file, text, last, offset)?);
            in_text = true;
        }
        let word = tokens
            .last()
            .copied()
            .filter(|last| offset <= last.end && (last.kind.is_name() || last.kind.is_keyword()));
        let mut replaced = Span::new(file, offset, offset);
        let mut is_first = tokens.last().is_none_or(|last| {
            let between = text.get(last.end as usize..offset as usize).unwrap_or_default();
            between.contains(['\n', '\r'])
        });
        if let Some(word) = word {
            tokens.pop();
            replaced = Span::new(file, word.start, word.end);
            is_first = word.first_on_line;
        }
        let mut scan = Scan {
            text,
            tokens,
            replaced,
            is_first,
            qualifier: None,
            chain: None,
            brackets: Vec::new(),
            scopes: Vec::new(),
            condition_of: None,
            is_in_typedef: false,
            path_start: 0,
            in_text,
        };
        scan.read(file);
        scan.path_start = scan.tokens.len();
        match scan.before(0) {
            Some(K::Separator) => {
                let start = scan.path_before(scan.tokens.len() - 1);
                scan.qualifier = Some(scan.joined(start, scan.tokens.len() - 1));
                scan.path_start = start;
            }
            Some(K::Dot) => scan.chain = Some(scan.chain_before(scan.tokens.len() - 1)),
            _ => {}
        }
        Some(scan)
    }

    /// The kind of a token before the name that is being written, counted backwards.
    pub(super) fn before(&self, count: usize) -> Option<K> {
        let at = self.tokens.len().checked_sub(count + 1)?;
        Some(self.tokens[at].kind)
    }

    fn kind(&self, at: usize) -> Option<K> {
        self.tokens.get(at).map(|token| token.kind)
    }

    fn word(&self, at: usize) -> &str {
        let token = self.tokens[at];
        self.text
            .get(token.start as usize..token.end as usize)
            .unwrap_or_default()
    }

    /// The texts of some tokens, one behind the other.
    fn joined(&self, start: usize, end: usize) -> String {
        (start..end).map(|at| self.word(at)).collect()
    }

    /// Where a name with namespaces begins that ends before a token.
    fn path_before(&self, end: usize) -> usize {
        let mut at = end;
        while at > 0 && self.tokens[at - 1].kind.is_name() {
            at -= 1;
            match at.checked_sub(1).and_then(|before| self.kind(before)) {
                Some(K::Separator) => at -= 1,
                _ => break,
            }
        }
        at
    }

    /// A variable and attributes that end before a token. Nothing if something else stands there.
    fn chain_before(&self, end: usize) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut at = end;
        loop {
            let start = self.path_before(at);
            if start == at {
                return Vec::new();
            }
            names.push(self.joined(start, at));
            match start.checked_sub(1).and_then(|before| self.kind(before)) {
                Some(K::Dot) => at = start - 1,
                _ => break,
            }
        }
        names.reverse();
        names
    }

    /// Goes over all tokens and keeps which blocks and brackets are open in the end.
    fn read(&mut self, file: FileId) {
        let mut at = 0;
        while at < self.tokens.len() {
            let token = self.tokens[at];
            let is_statement = self.brackets.is_empty();
            if token.kind.is_definition() && token.first_on_line {
                // They only stand at the top: whatever is open was not closed.
                self.brackets.clear();
                self.scopes.clear();
                self.end_condition();
            }
            let goes_on = at
                .checked_sub(1)
                .is_some_and(|before| is_open(self.tokens[before].kind));
            if token.first_on_line && is_statement && !goes_on && !matches!(token.kind, K::When | K::Using) {
                self.end_condition();
            }
            match token.kind {
                K::LeftParenthesis | K::LeftBracket | K::LeftBrace => self.open(at),
                K::RightParenthesis | K::RightBracket | K::RightBrace => {
                    self.brackets.pop();
                }
                K::Comma => {
                    if let Some(bracket) = self.brackets.last_mut() {
                        bracket.commas += 1;
                    }
                }
                K::Assign => self.assigned(file, at),
                K::For if !is_statement => {
                    // A comprehension: what it declares is known up to its bracket, which is near enough.
                    self.declare(file, at + 1);
                }
                K::Entity => self.scopes.push(Scope {
                    is_entity: true,
                    ..Scope::default()
                }),
                K::Implementation => {
                    let start = at + 3;
                    let mut end = start;
                    while matches!(self.kind(end), Some(K::Separator))
                        || self.kind(end).is_some_and(K::is_name)
                    {
                        end += 1;
                    }
                    let entity = (end > start).then(|| self.joined(start, end));
                    self.scopes.push(Scope {
                        entity,
                        ..Scope::default()
                    });
                    at = end.max(at + 1);
                    continue;
                }
                K::Implement => {
                    let mut end = at + 1;
                    while matches!(self.kind(end), Some(K::Separator))
                        || self.kind(end).is_some_and(K::is_name)
                    {
                        end += 1;
                    }
                    self.condition_of = (end > at + 1).then(|| self.joined(at + 1, end));
                }
                K::Typedef => self.is_in_typedef = true,
                K::For => {
                    self.scopes.push(Scope::default());
                    self.declare(file, at + 1);
                }
                K::If if is_statement => self.scopes.push(Scope::default()),
                K::Else | K::Elif => {
                    if let Some(scope) = self.scopes.last_mut() {
                        scope.variables.clear();
                    }
                }
                K::End => {
                    self.scopes.pop();
                }
                _ => {}
            }
            at += 1;
        }
        if self.is_first && !self.before(0).is_some_and(is_open) {
            self.end_condition();
        }
    }

    /// The condition of an `implement` or a typedef ends where another statement begins.
    fn end_condition(&mut self) {
        self.condition_of = None;
        self.is_in_typedef = false;
    }

    fn open(&mut self, at: usize) {
        let start = self.path_before(at);
        let is_behind_dot = start.checked_sub(1).and_then(|before| self.kind(before)) == Some(K::Dot);
        let path = (start < at && !is_behind_dot).then(|| self.joined(start, at));
        let chain = is_behind_dot.then(|| self.chain_before(at));
        self.brackets.push(Bracket {
            is_round: self.tokens[at].kind == K::LeftParenthesis,
            path,
            chain,
            keywords: Vec::new(),
            commas: 0,
            is_index: start.checked_sub(1).and_then(|before| self.kind(before)) == Some(K::Index),
        });
    }

    fn assigned(&mut self, file: FileId, at: usize) {
        let Some(name) = at.checked_sub(1).filter(|name| self.tokens[*name].kind.is_name()) else {
            return;
        };
        let word = self.word(name).to_owned();
        if let Some(bracket) = self.brackets.last_mut() {
            bracket.keywords.push(word);
            return;
        }
        let is_plain = !matches!(
            name.checked_sub(1).and_then(|before| self.kind(before)),
            Some(K::Dot | K::Separator)
        );
        if is_plain && self.scopes.last().is_some_and(|scope| !scope.is_entity) {
            self.declare(file, name);
        }
    }

    fn declare(&mut self, file: FileId, name: usize) {
        if !self.kind(name).is_some_and(K::is_name) {
            return;
        }
        let declared = (self.word(name).to_owned(), self.tokens[name].span(file));
        if let Some(scope) = self.scopes.last_mut()
            && scope.variables.iter().all(|(known, _)| *known != declared.0)
        {
            scope.variables.push(declared);
        }
    }

    /// What can stand here.
    pub(super) fn wanted(&self) -> Wanted {
        if self.in_text {
            return Wanted::Value;
        }
        let last = self.path_start.checked_sub(1);
        let kind = |back: usize| last.and_then(|last| self.kind(last.checked_sub(back)?));
        let is_new = |keyword: K| kind(1) == Some(keyword);
        let in_entity = self.brackets.is_empty() && self.scopes.last().is_some_and(|scope| scope.is_entity);
        match kind(0) {
            Some(K::Import) => Wanted::Import,
            Some(K::As) if kind(2) == Some(K::Typedef) => Wanted::Type,
            Some(K::For) if kind(2) == Some(K::Implementation) => Wanted::Entity,
            Some(K::As | K::For | K::Entity | K::Implementation | K::Typedef) => Wanted::Nothing,
            Some(K::Extends | K::Implement | K::Index | K::Relation) => Wanted::Entity,
            Some(K::Using) => Wanted::Implementation,
            Some(K::Comma) if self.brackets.is_empty() => match self.list_of() {
                Some(K::Extends) => Wanted::Entity,
                Some(K::Using) => Wanted::Implementation,
                _ => Wanted::Value,
            },
            _ if in_entity => match kind(0) {
                Some(K::Colon | K::End) | None => Wanted::Type,
                Some(K::Assign) => Wanted::Value,
                _ if self.is_first => Wanted::Type,
                _ => Wanted::Nothing,
            },
            None | Some(K::End) => Wanted::Statement,
            Some(K::Colon) if self.brackets.is_empty() => Wanted::Statement,
            Some(kind) if self.is_first && self.brackets.is_empty() && !is_open(kind) => Wanted::Statement,
            Some(K::Identifier | K::Capitalized) if is_new(K::Typedef) || is_new(K::Entity) => {
                Wanted::Nothing
            }
            _ => Wanted::Value,
        }
    }

    /// The word before a list of names in which the place is.
    fn list_of(&self) -> Option<K> {
        let before = self.tokens[..self.path_start].iter().rev();
        let mut others = before.filter(|token| !token.kind.is_name() && token.kind != K::Separator);
        others
            .find(|token| token.kind != K::Comma)
            .map(|token| token.kind)
    }
}

/// Whether an expression goes on behind a token.
fn is_open(kind: K) -> bool {
    matches!(
        kind,
        K::Assign
            | K::AddAssign
            | K::Plus
            | K::Minus
            | K::Star
            | K::Slash
            | K::DoubleStar
            | K::Percent
            | K::Equal
            | K::NotEqual
            | K::Less
            | K::LessOrEqual
            | K::Greater
            | K::GreaterOrEqual
            | K::And
            | K::Or
            | K::Not
            | K::In
            | K::When
            | K::Question
            | K::Comma
    )
}

/// The tokens between the braces of a text in which a place is.
fn field_tokens(file: FileId, text: &str, token: Token, offset: u32) -> Option<Vec<Token>> {
    let opening = match token.kind {
        K::FormatString => "{",
        K::String | K::MultilineString | K::Error => "{{",
        _ => return None,
    };
    let before = text.get(token.start as usize..offset as usize)?;
    let open = before.rfind(opening)? + opening.len();
    let inside = &before[open..];
    if inside.contains(['}', '\n', '"']) {
        return None;
    }
    let start = token.start + open as u32;
    let moved = lex(file, inside)
        .tokens
        .into_iter()
        .filter(|token| token.kind != K::EndOfFile);
    let moved = moved.map(|token| Token {
        start: token.start + start,
        end: token.end + start,
        first_on_line: false,
        ..token
    });
    // What stands before the text has nothing to do with what is inside.
    Some(moved.collect())
}
