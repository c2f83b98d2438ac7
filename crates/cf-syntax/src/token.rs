//! What tokens there are.

use setpoint_diagnostics::{FileId, Span};

/// A token. White space and comments are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Whether a line ends between the token before and this one.
    pub first_on_line: bool,
    /// Its first byte.
    pub start: u32,
    /// One past its last byte.
    pub end: u32,
}

impl Token {
    /// Its place in a file.
    #[must_use]
    pub fn span(self, file: FileId) -> Span {
        Span::new(file, self.start, self.end)
    }
}

macro_rules! kinds {
    (
        texts { $($(#[$doc:meta])* $text:ident)* }
        keywords { $($keyword:ident $word:literal)* }
        symbols { $($symbol:ident $spelling:literal)* }
    ) => {
        /// What a token is.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum TokenKind {
            $($(#[$doc])* $text,)*
            $(#[doc = concat!("`", $word, "`.")] $keyword,)*
            $(#[doc = concat!("`", $spelling, "`.")] $symbol,)*
        }

        impl TokenKind {
            /// The spelling of a token that has only one.
            #[must_use]
            pub const fn text(self) -> Option<&'static str> {
                match self {
                    $(TokenKind::$text => None,)*
                    $(TokenKind::$keyword => Some($word),)*
                    $(TokenKind::$symbol => Some($spelling),)*
                }
            }

            /// Whether it is a reserved word.
            #[must_use]
            pub const fn is_keyword(self) -> bool {
                matches!(self, $(TokenKind::$keyword)|*)
            }

            /// The keyword that is spelled so, if `word` is one.
            #[must_use]
            pub fn of_word(word: &str) -> Option<TokenKind> {
                match word {
                    $($word => Some(TokenKind::$keyword),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    texts {
        /// `matching /…/`.
        Regex
        /// `f"…"`, `f'…'`.
        FormatString
        /// `r"…"`, `r'…'`.
        RawString
        /// `"…"`, `'…'`.
        String
        /// `"""…"""`.
        MultilineString
        /// A name that does not begin with a capital letter.
        Identifier
        /// A name that begins with a capital letter.
        Capitalized
        /// A number with a point.
        Float
        /// A whole number.
        Integer
        /// `--`, `->` and `<-`, which mean the same.
        Relation
        /// Text that is no token. It has been reported.
        Error
        /// The end of the text.
        EndOfFile
    }
    keywords {
        Typedef "typedef"
        As "as"
        Entity "entity"
        Extends "extends"
        End "end"
        In "in"
        Implementation "implementation"
        For "for"
        Matching "matching"
        Index "index"
        Implement "implement"
        Using "using"
        When "when"
        And "and"
        Or "or"
        Not "not"
        True "true"
        False "false"
        Import "import"
        Is "is"
        Defined "defined"
        Dict "dict"
        Null "null"
        Undef "undef"
        Parents "parents"
        If "if"
        Else "else"
        Elif "elif"
    }
    symbols {
        Separator "::"
        NotEqual "!="
        Equal "=="
        GreaterOrEqual ">="
        LessOrEqual "<="
        Less "<"
        Greater ">"
        AddAssign "+="
        Plus "+"
        Minus "-"
        Slash "/"
        DoubleStar "**"
        Colon ":"
        LeftBracket "["
        RightBracket "]"
        LeftParenthesis "("
        RightParenthesis ")"
        Assign "="
        Comma ","
        Dot "."
        LeftBrace "{"
        RightBrace "}"
        Question "?"
        Star "*"
        Percent "%"
    }
}

impl TokenKind {
    /// Whether it begins what only stands at the top of a file.
    #[must_use]
    pub const fn is_definition(self) -> bool {
        matches!(
            self,
            TokenKind::Entity
                | TokenKind::Implementation
                | TokenKind::Implement
                | TokenKind::Typedef
                | TokenKind::Index
                | TokenKind::Import
        )
    }

    /// Whether it is a name.
    #[must_use]
    pub const fn is_name(self) -> bool {
        matches!(self, TokenKind::Identifier | TokenKind::Capitalized)
    }

    /// Whether it is a text of any sort.
    #[must_use]
    pub const fn is_string(self) -> bool {
        matches!(
            self,
            TokenKind::String | TokenKind::RawString | TokenKind::FormatString | TokenKind::MultilineString
        )
    }
}

#[cfg(test)]
mod tests {
    use super::TokenKind;

    #[test]
    fn a_keyword_is_found_by_its_spelling() {
        assert_eq!(TokenKind::of_word("elif"), Some(TokenKind::Elif));
        assert_eq!(TokenKind::of_word("self"), None);
        assert!(TokenKind::Parents.is_keyword() && !TokenKind::Identifier.is_keyword());
        assert_eq!(TokenKind::Separator.text(), Some("::"));
    }
}
