//! What can stand at a place, and which call is around it: told from the tokens before it alone, so that a statement that is being
//! written is no obstacle.

use setpoint_diagnostics::{FileId, Span};

use super::{Analysis, ParsedFile};
use crate::syntax::TokenKind as K;

/// A name that is being written, with what is written of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedName {
    /// What stands before the last dot; none without one.
    pub qualifier: Option<String>,
    /// The last part up to the place.
    pub prefix: String,
    /// The last part as a whole: what choosing a name replaces.
    pub replaced: Span,
}

/// What can stand at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// Nothing that there is a list of: a comment, text, a new name.
    Nothing,
    /// A variable, behind its dollar.
    Variable(QualifiedName),
    /// An expression; the name is that of a function, or of a variable without its dollar yet.
    Value {
        /// What is written.
        name: QualifiedName,
        /// The kind and parameter of a resource that it is the value of.
        parameter: Option<(String, String)>,
    },
    /// A statement: a word of the language, or the kind of a resource.
    Statement(QualifiedName),
    /// The class of an `include`.
    Class(QualifiedName),
    /// A kind, behind `collect`.
    Kind(QualifiedName),
    /// The other end of an edge: a kind with capitals.
    EdgeKind(QualifiedName),
    /// What an end of an edge sends or receives.
    EdgeField {
        /// The kind, in lower case.
        kind: String,
        /// Whether it is the end that receives.
        receives: bool,
        /// What is written.
        name: QualifiedName,
    },
    /// A line of a resource's body.
    Parameter {
        /// The kind.
        kind: String,
        /// What is written.
        name: QualifiedName,
        /// Parameters that the body sets already.
        present: Vec<String>,
    },
    /// A meta parameter, behind `Meta:`.
    MetaParameter(QualifiedName),
    /// A field of a struct; `base` ends where the arrow begins.
    Field {
        /// The end of what the field is of.
        base: u32,
        /// What is written.
        name: QualifiedName,
    },
    /// What an import names, inside of its quotes.
    ImportPath {
        /// What is written of it.
        prefix: String,
        /// The text between the quotes.
        replaced: Span,
    },
    /// A type.
    Type(QualifiedName),
}

/// A call around a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallAt {
    /// The name that is called, without a dollar.
    pub name: Span,
    /// Whether it is a variable.
    pub is_variable: bool,
    /// Which argument the place is in, from 0.
    pub argument: usize,
}

impl Analysis {
    /// What can stand at a place.
    #[must_use]
    pub fn expected(&self, file: FileId, offset: u32) -> Expected {
        match self.parsed(file) {
            Some(parsed) => Scan::of(file, parsed, offset).expected(),
            None => Expected::Nothing,
        }
    }

    /// The innermost call whose arguments are around a place.
    #[must_use]
    pub fn call_at(&self, file: FileId, offset: u32) -> Option<CallAt> {
        let scan = Scan::of(file, self.parsed(file)?, offset);
        let call = scan.open.iter().rev().find_map(|bracket| match bracket.kind {
            Around::Call { name, is_variable } => Some((name, is_variable, bracket.commas)),
            _ => None,
        });
        let (name, is_variable, argument) = call?;
        Some(CallAt {
            name: scan.span_of(name),
            is_variable,
            argument,
        })
    }
}

/// What a bracket that is open at a place belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    Statements,
    /// The body of a resource, by the token that its kind begins with.
    Resource {
        kind: usize,
    },
    /// Arguments; `name` is the last token of the name.
    Call {
        name: usize,
        is_variable: bool,
    },
    Parameters,
    /// `struct{` of a type.
    StructType,
    Expression,
}

struct Bracket {
    kind: Around,
    commas: usize,
    /// The first token of the statement, or of the line of a resource's body, that was begun in it.
    head: Option<usize>,
    /// The last token at which a value began: behind `=`, `=>`, `?:`.
    value: Option<usize>,
}

/// The tokens before a place, without white space, and the brackets that are open there.
struct Scan<'a> {
    file: FileId,
    parsed: &'a ParsedFile,
    offset: u32,
    /// Indices of the tokens that end before what is being written.
    before: Vec<usize>,
    open: Vec<Bracket>,
    /// The token around the place, if it is one that is being written.
    current: Option<usize>,
}

impl<'a> Scan<'a> {
    fn of(file: FileId, parsed: &'a ParsedFile, offset: u32) -> Scan<'a> {
        let mut scan = Scan {
            file,
            parsed,
            offset,
            before: Vec::new(),
            open: Vec::new(),
            current: None,
        };
        scan.enter(Around::Statements);
        for (index, (kind, range)) in parsed.tokens.iter().enumerate() {
            if range.start >= offset {
                break;
            }
            let is_written = |kind: K| kind.is_word() || matches!(kind, K::Identifier | K::Capitalized);
            if range.end >= offset && (is_written(kind) || matches!(kind, K::String | K::Comment | K::Error))
                || range.end > offset
            {
                // White space around the place is nothing that is being written.
                scan.current = (kind != K::Whitespace && kind != K::CarriageReturn).then_some(index);
                break;
            }
            if !kind.is_trivia() {
                scan.token(index, kind);
            }
        }
        scan
    }

    fn enter(&mut self, kind: Around) {
        self.open.push(Bracket {
            kind,
            commas: 0,
            head: None,
            value: None,
        });
    }

    fn token(&mut self, index: usize, kind: K) {
        match kind {
            K::Newline => {
                if let Some(top) = self.open.last_mut()
                    && matches!(top.kind, Around::Statements | Around::Resource { .. })
                {
                    top.head = None;
                    top.value = None;
                }
            }
            K::LeftBrace | K::LeftParen | K::LeftBracket => {
                let around = self.opened(kind);
                self.head(index);
                self.enter(around);
            }
            K::RightBrace | K::RightParen | K::RightBracket => {
                if self.open.len() > 1 {
                    self.open.pop();
                }
            }
            K::Comma => {
                if let Some(top) = self.open.last_mut() {
                    top.commas += 1;
                    if matches!(top.kind, Around::Resource { .. }) {
                        top.head = None;
                        top.value = None;
                    }
                }
            }
            _ => {
                self.head(index);
                if matches!(kind, K::Equals | K::Rocket | K::Elvis)
                    && let Some(top) = self.open.last_mut()
                {
                    top.value = Some(index);
                }
            }
        }
        self.before.push(index);
    }

    fn head(&mut self, index: usize) {
        if let Some(top) = self.open.last_mut() {
            top.head.get_or_insert(index);
        }
    }

    /// What an opening bracket that comes now belongs to.
    fn opened(&self, bracket: K) -> Around {
        let tokens = &self.parsed.tokens;
        let last = self.before.last().copied();
        let last_kind = last.map_or(K::Newline, |index| tokens.kind(index));
        let Some(top) = self.open.last() else {
            return Around::Expression;
        };
        let head = top.head.map(|index| tokens.kind(index));
        let in_value = top.value.is_some();
        match bracket {
            K::LeftParen => {
                let follows_func = self.before.iter().rev().nth(1).map(|index| tokens.kind(*index));
                let is_parameters = last_kind == K::Func
                    || follows_func == Some(K::Func)
                    || (head == Some(K::Class) && top.kind == Around::Statements);
                match last {
                    _ if is_parameters => Around::Parameters,
                    Some(name) if last_kind.is_name() || last_kind.is_word() => Around::Call {
                        name,
                        is_variable: self.is_variable(),
                    },
                    _ => Around::Expression,
                }
            }
            K::LeftBrace if last_kind == K::Struct && self.awaits_type() => Around::StructType,
            K::LeftBrace if top.kind == Around::Statements && !in_value => match (head, top.head) {
                (Some(K::Identifier), Some(kind)) => Around::Resource { kind },
                (Some(K::Collect), Some(collect)) => {
                    let kind = self.before.iter().copied().find(|index| *index > collect);
                    Around::Resource {
                        kind: kind.unwrap_or(collect),
                    }
                }
                (Some(K::Class | K::If | K::For | K::ForKv | K::RightBrace | K::Else) | None, _) => {
                    Around::Statements
                }
                _ => Around::Expression,
            },
            _ => Around::Expression,
        }
    }

    /// Whether the name that ends at the last token begins with a dollar.
    fn is_variable(&self) -> bool {
        let kinds = self
            .before
            .iter()
            .rev()
            .map(|index| self.parsed.tokens.kind(*index));
        let first = kinds.skip_while(|kind| kind.is_name() || kind.is_word() || *kind == K::Dot);
        first.take(1).any(|kind| kind == K::Dollar)
    }

    /// Whether the statement so far is `$x`, or a parameter is being written, so that a type or `=` follows.
    fn awaits_type(&self) -> bool {
        let Some(top) = self.open.last() else {
            return false;
        };
        let is_bind = top.kind == Around::Statements
            && top.value.is_none()
            && top
                .head
                .is_some_and(|head| self.parsed.tokens.kind(head) == K::Dollar);
        is_bind || matches!(top.kind, Around::Parameters | Around::StructType)
    }

    fn expected(&self) -> Expected {
        let tokens = &self.parsed.tokens;
        let kind = |index: usize| tokens.kind(index);
        let current = self.current.map(kind);
        let Some(top) = self.open.last() else {
            return Expected::Nothing;
        };
        let head = top.head.map(kind);
        match current {
            Some(K::Comment) => return Expected::Nothing,
            Some(K::String | K::Error) => return self.in_text(head),
            _ => {}
        }
        let name = self.name();
        let mut reversed = self.before.iter().rev().copied();
        let last = reversed.next();
        let last_kind = last.map_or(K::Newline, kind);
        // Over the dots and parts of the name that is being written.
        let mut parts = self.before.iter().rev().copied();
        let first = match (&name.qualifier, last_kind) {
            (Some(qualifier), _) => parts.nth(2 * qualifier.split('.').count()),
            (None, K::Dot) => parts.nth(1),
            (None, _) => last,
        };
        let first_kind = first.map_or(K::Newline, kind);
        if first_kind == K::Dollar {
            let defines = self.defines_variable(first);
            return match defines && name.qualifier.is_none() {
                true => Expected::Nothing,
                false => Expected::Variable(name),
            };
        }
        if name.qualifier.is_none() && last_kind == K::Arrow {
            if top.kind == Around::Statements && head == Some(K::Capitalized) {
                return Expected::EdgeKind(name);
            }
            let base = last.map_or(self.offset, |arrow| tokens.range(arrow).start);
            return Expected::Field { base, name };
        }
        if last_kind == K::Dot && first_kind == K::RightBracket {
            return match self.endpoint() {
                Some((kind, receives)) => Expected::EdgeField { kind, receives, name },
                None => Expected::Nothing,
            };
        }
        match (top.kind, head) {
            (Around::Statements, None) => Expected::Statement(name),
            (Around::Statements, Some(K::Include)) => match last_kind {
                K::Include => Expected::Class(name),
                _ if name.qualifier.is_some() && first_kind == K::Include => Expected::Class(name),
                _ => Expected::Nothing,
            },
            (Around::Statements, Some(K::Collect)) if last_kind == K::Collect => Expected::Kind(name),
            (Around::Statements, Some(K::Func)) if last_kind == K::RightParen => Expected::Type(name),
            (Around::Statements, Some(K::Import | K::Class | K::Func)) => Expected::Nothing,
            (Around::Statements, Some(K::Dollar)) if top.value.is_none() => Expected::Type(name),
            (Around::Parameters | Around::StructType, _) => match last_kind {
                K::LeftParen | K::LeftBrace | K::Comma | K::Semicolon => Expected::Nothing,
                _ => Expected::Type(name),
            },
            (Around::Resource { kind }, None) => Expected::Parameter {
                kind: self.joined_from(kind),
                name,
                present: self.present(),
            },
            (Around::Resource { .. }, Some(K::Capitalized)) if last_kind == K::Colon => {
                Expected::MetaParameter(name)
            }
            (Around::Resource { .. }, Some(K::Capitalized)) if top.value.is_some() => {
                let is_meta = top.head.is_some_and(|head| self.text(head) == "Meta");
                match is_meta {
                    true => Expected::Value {
                        name,
                        parameter: None,
                    },
                    false => Expected::EdgeKind(name),
                }
            }
            (Around::Resource { .. }, Some(_)) if top.value.is_none() => Expected::Nothing,
            (Around::Resource { kind }, Some(_)) => {
                let parameter = top.head.map(|head| self.text(head).to_owned());
                Expected::Value {
                    name,
                    parameter: parameter.map(|parameter| (self.joined_from(kind), parameter)),
                }
            }
            _ => Expected::Value {
                name,
                parameter: None,
            },
        }
    }

    /// Inside of quotes, or of what is no token.
    fn in_text(&self, head: Option<K>) -> Expected {
        let Some(current) = self.current else {
            return Expected::Nothing;
        };
        let range = self.parsed.tokens.range(current);
        let text = &self.parsed.text[range.start as usize..range.end as usize];
        if !text.starts_with('"') || self.offset <= range.start {
            return Expected::Nothing;
        }
        let closes = text.len() > 1 && text.ends_with('"');
        let end = if closes { range.end - 1 } else { range.end };
        if self.offset > end {
            return Expected::Nothing;
        }
        let written = &self.parsed.text[range.start as usize + 1..self.offset as usize];
        let top = self.open.last();
        if head == Some(K::Import) && top.is_some_and(|top| top.kind == Around::Statements) {
            return Expected::ImportPath {
                prefix: written.to_owned(),
                replaced: Span::new(self.file, range.start + 1, end),
            };
        }
        let Some((_, inside)) = written.rsplit_once("${") else {
            return Expected::Nothing;
        };
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
        if !inside.chars().all(is_name) {
            return Expected::Nothing;
        }
        let (qualifier, prefix) = match inside.rsplit_once('.') {
            Some((qualifier, prefix)) => (Some(qualifier.to_owned()), prefix),
            None => (None, inside),
        };
        let rest = &self.parsed.text[self.offset as usize..end as usize];
        let behind = rest.find(|c: char| !is_name(c) || c == '.').unwrap_or(rest.len());
        let start = self.offset - prefix.len() as u32;
        Expected::Variable(QualifiedName {
            qualifier,
            prefix: prefix.to_owned(),
            replaced: Span::new(self.file, start, self.offset + behind as u32),
        })
    }

    /// The name that is being written at the place.
    fn name(&self) -> QualifiedName {
        let tokens = &self.parsed.tokens;
        let (start, end) = match self.current {
            Some(index) => (tokens.range(index).start, tokens.range(index).end),
            None => (self.offset, self.offset),
        };
        let written = self.parsed.text.get(start as usize..self.offset as usize);
        let mut parts = Vec::new();
        let mut before = self.before.iter().rev().copied().peekable();
        while before.next_if(|index| tokens.kind(*index) == K::Dot).is_some() {
            let is_part = |index: &usize| tokens.kind(*index).is_name() || tokens.kind(*index).is_word();
            match before.next_if(is_part) {
                Some(part) => parts.push(self.text(part)),
                None => break,
            }
        }
        parts.reverse();
        QualifiedName {
            qualifier: (!parts.is_empty()).then(|| parts.join(".")),
            prefix: written.unwrap_or_default().to_owned(),
            replaced: Span::new(self.file, start, end),
        }
    }

    /// Whether a dollar begins a name that is being defined.
    fn defines_variable(&self, dollar: Option<usize>) -> bool {
        let Some(top) = self.open.last() else {
            return false;
        };
        let head = top.head.map(|head| self.parsed.tokens.kind(head));
        let in_head = !self
            .before
            .iter()
            .any(|index| Some(*index) > top.head && self.parsed.tokens.kind(*index) == K::In);
        match top.kind {
            Around::Parameters => true,
            Around::Statements => top.head == dollar || (matches!(head, Some(K::For | K::ForKv)) && in_head),
            Around::Resource { .. } | Around::Call { .. } | Around::StructType | Around::Expression => false,
        }
    }

    /// The kind of the end of an edge whose bracket closed last.
    /// The kind of the end of an edge before the place, and whether it is the end that receives.
    fn endpoint(&self) -> Option<(String, bool)> {
        let tokens = &self.parsed.tokens;
        let mut depth = 0_usize;
        let mut before = self
            .before
            .iter()
            .rev()
            .copied()
            .skip_while(|index| tokens.kind(*index) == K::Dot);
        for index in before.by_ref() {
            match tokens.kind(index) {
                K::RightBracket => depth += 1,
                K::LeftBracket if depth == 1 => break,
                K::LeftBracket => depth -= 1,
                _ => {}
            }
        }
        let mut parts: Vec<&str> = Vec::new();
        let mut receives = false;
        for index in before {
            match tokens.kind(index) {
                K::Capitalized | K::Colon => parts.push(self.text(index)),
                kind => {
                    receives = kind == K::Arrow;
                    break;
                }
            }
        }
        parts.reverse();
        (!parts.is_empty()).then(|| (parts.concat().to_ascii_lowercase(), receives))
    }

    /// A name with colons that begins at a token.
    fn joined_from(&self, first: usize) -> String {
        let tokens = &self.parsed.tokens;
        let mut name = String::new();
        for index in first..tokens.len() {
            match tokens.kind(index) {
                K::Identifier if name.is_empty() || name.ends_with(':') => name.push_str(self.text(index)),
                K::Colon if !name.ends_with(':') => name.push(':'),
                _ => break,
            }
        }
        name
    }

    /// The parameters that are set in the innermost body, also behind the place.
    fn present(&self) -> Vec<String> {
        let tokens = &self.parsed.tokens;
        let opened = self.before.iter().rev().copied().scan(0_usize, |depth, index| {
            match tokens.kind(index) {
                K::RightBrace | K::RightParen | K::RightBracket => *depth += 1,
                K::LeftBrace | K::LeftParen | K::LeftBracket => {
                    *depth = depth.checked_sub(1)?;
                }
                _ => {}
            }
            Some(index)
        });
        let start = opened.last().or(self.before.last().copied()).unwrap_or(0);
        let mut found = Vec::new();
        let mut depth = 0_usize;
        let mut last = None;
        for index in start..tokens.len() {
            match tokens.kind(index) {
                kind if kind.is_trivia() => continue,
                K::LeftBrace | K::LeftParen | K::LeftBracket => depth += 1,
                K::RightBrace | K::RightParen | K::RightBracket => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None => break,
                },
                K::Rocket if depth == 0 => {
                    let name = last.filter(|index| tokens.kind(*index) == K::Identifier);
                    found.extend(name.map(|index| self.text(index).to_owned()));
                }
                _ => {}
            }
            last = Some(index);
        }
        found
    }

    fn text(&self, index: usize) -> &'a str {
        let range = self.parsed.tokens.range(index);
        self.parsed
            .text
            .get(range.start as usize..range.end as usize)
            .unwrap_or_default()
    }

    /// From the first part of the dotted name that ends at a token to its end.
    fn span_of(&self, last: usize) -> Span {
        let tokens = &self.parsed.tokens;
        let mut start = tokens.range(last).start;
        let mut before = self
            .before
            .iter()
            .rev()
            .copied()
            .skip_while(|index| *index >= last)
            .peekable();
        while before.next_if(|index| tokens.kind(*index) == K::Dot).is_some() {
            match before.next_if(|index| tokens.kind(*index).is_name() || tokens.kind(*index).is_word()) {
                Some(part) => start = tokens.range(part).start,
                None => break,
            }
        }
        Span::new(self.file, start, tokens.range(last).end)
    }
}
