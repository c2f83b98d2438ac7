//! Kinds of tokens, and the flat array of all tokens of a text.

use std::ops::Range;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[expect(
    missing_docs,
    reason = "the names say what they are; `TokenKind::text` gives the spelling"
)]
pub enum TokenKind {
    Whitespace,
    Comment,
    /// Ignored like white space once it is reported.
    CarriageReturn,
    Newline,
    LeftBrace,
    RightBrace,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    If,
    Else,
    Elvis,
    Except,
    /// `||`, the older spelling of [`TokenKind::Except`].
    Bars,
    Rocket,
    Comma,
    Colon,
    Semicolon,
    Equals,
    Plus,
    Minus,
    Star,
    Slash,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessEqual,
    GreaterEqual,
    And,
    Or,
    Not,
    In,
    For,
    ForKv,
    Arrow,
    Dot,
    Dollar,
    Bool,
    Str,
    Int,
    Float,
    Map,
    Struct,
    Func,
    Variant,
    Class,
    Include,
    Import,
    As,
    Panic,
    Collect,
    True,
    False,
    String,
    IntegerNumber,
    FloatNumber,
    Identifier,
    Capitalized,
    /// Text that is no token; reported by the lexer.
    Error,
    EndOfFile,
}

impl TokenKind {
    /// Whether the parser does not see it.
    #[must_use]
    pub const fn is_trivia(self) -> bool {
        matches!(
            self,
            TokenKind::Whitespace | TokenKind::Comment | TokenKind::CarriageReturn
        )
    }

    /// The spelling of a token that has only one.
    #[must_use]
    pub const fn text(self) -> Option<&'static str> {
        use TokenKind as K;
        Some(match self {
            K::LeftBrace => "{",
            K::RightBrace => "}",
            K::LeftParen => "(",
            K::RightParen => ")",
            K::LeftBracket => "[",
            K::RightBracket => "]",
            K::If => "if",
            K::Else => "else",
            K::Elvis => "?:",
            K::Except => "<|>",
            K::Bars => "||",
            K::Rocket => "=>",
            K::Comma => ",",
            K::Colon => ":",
            K::Semicolon => ";",
            K::Equals => "=",
            K::Plus => "+",
            K::Minus => "-",
            K::Star => "*",
            K::Slash => "/",
            K::Equal => "==",
            K::NotEqual => "!=",
            K::Less => "<",
            K::Greater => ">",
            K::LessEqual => "<=",
            K::GreaterEqual => ">=",
            K::And => "and",
            K::Or => "or",
            K::Not => "not",
            K::In => "in",
            K::For => "for",
            K::ForKv => "forkv",
            K::Arrow => "->",
            K::Dot => ".",
            K::Dollar => "$",
            K::Bool => "bool",
            K::Str => "str",
            K::Int => "int",
            K::Float => "float",
            K::Map => "map",
            K::Struct => "struct",
            K::Func => "func",
            K::Variant => "variant",
            K::Class => "class",
            K::Include => "include",
            K::Import => "import",
            K::As => "as",
            K::Panic => "panic",
            K::Collect => "collect",
            K::True => "true",
            K::False => "false",
            K::Whitespace
            | K::Comment
            | K::CarriageReturn
            | K::Newline
            | K::String
            | K::IntegerNumber
            | K::FloatNumber
            | K::Identifier
            | K::Capitalized
            | K::Error
            | K::EndOfFile => return None,
        })
    }

    /// The word of the language that is spelled so, if `word` is one.
    #[must_use]
    pub fn of_word(word: &str) -> Option<TokenKind> {
        use TokenKind as K;
        Some(match word {
            "if" => K::If,
            "else" => K::Else,
            "and" => K::And,
            "or" => K::Or,
            "not" => K::Not,
            "in" => K::In,
            "for" => K::For,
            "forkv" => K::ForKv,
            "bool" => K::Bool,
            "str" => K::Str,
            "int" => K::Int,
            "float" => K::Float,
            "map" => K::Map,
            "struct" => K::Struct,
            "func" => K::Func,
            "variant" => K::Variant,
            "class" => K::Class,
            "include" => K::Include,
            "import" => K::Import,
            "as" => K::As,
            "panic" => K::Panic,
            "collect" => K::Collect,
            "true" => K::True,
            "false" => K::False,
            _ => return None,
        })
    }

    /// Whether it is a reserved word.
    #[must_use]
    pub fn is_word(self) -> bool {
        self.text()
            .is_some_and(|text| text.as_bytes()[0].is_ascii_lowercase())
    }

    /// Whether a part of a dotted name may be this token.
    #[must_use]
    pub const fn is_name(self) -> bool {
        matches!(self, TokenKind::Identifier | TokenKind::Map | TokenKind::Collect)
    }

    /// Whether it is an opening bracket.
    #[must_use]
    pub const fn is_opening(self) -> bool {
        matches!(
            self,
            TokenKind::LeftBrace | TokenKind::LeftParen | TokenKind::LeftBracket
        )
    }

    /// The bracket that closes this one.
    #[must_use]
    pub const fn closing(self) -> Option<TokenKind> {
        match self {
            TokenKind::LeftBrace => Some(TokenKind::RightBrace),
            TokenKind::LeftParen => Some(TokenKind::RightParen),
            TokenKind::LeftBracket => Some(TokenKind::RightBracket),
            _ => None,
        }
    }
}

/// All tokens of a text in order, without gaps: their texts joined are the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tokens {
    kinds: Vec<TokenKind>,
    ends: Vec<u32>,
}

impl Tokens {
    pub(super) fn with_capacity(capacity: usize) -> Tokens {
        Tokens {
            kinds: Vec::with_capacity(capacity),
            ends: Vec::with_capacity(capacity),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, kind: TokenKind, end: usize) {
        self.kinds.push(kind);
        self.ends.push(end as u32);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether the text is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kind of a token; past the last one, [`TokenKind::EndOfFile`].
    #[inline]
    #[must_use]
    pub fn kind(&self, index: usize) -> TokenKind {
        self.kinds.get(index).copied().unwrap_or(TokenKind::EndOfFile)
    }

    /// The bytes of a token; past the last one, an empty range at the end of the text.
    #[inline]
    #[must_use]
    pub fn range(&self, index: usize) -> Range<u32> {
        let last = self.ends.last().copied().unwrap_or(0);
        let start = match index {
            0 => 0,
            index => self.ends.get(index - 1).copied().unwrap_or(last),
        };
        start..self.ends.get(index).copied().unwrap_or(last)
    }

    /// All tokens with their bytes.
    pub fn iter(&self) -> impl Iterator<Item = (TokenKind, Range<u32>)> + '_ {
        (0..self.len()).map(|index| (self.kind(index), self.range(index)))
    }

    /// The token that holds the byte `offset`, for editors; the one before an offset between two.
    #[must_use]
    pub fn at(&self, offset: u32) -> usize {
        self.ends.partition_point(|end| *end <= offset)
    }
}
