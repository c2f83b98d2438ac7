//! The text of one file of the model language: tokens, the tree, and what is wrong with the text.
//!
//! The lexer takes the first rule that matches, as the language says, and keeps comments beside the tokens. The parser
//! descends recursively and never fails: what is no statement is reported and left out, and it goes on where the next one begins. Errors
//! come in the order in which somebody who stops at the first one would meet them.

#![forbid(unsafe_code)]

pub mod ast;
mod codes;
mod definitions;
mod errors;
mod expressions;
mod foreign;
pub mod format;
mod format_strings;
mod lexer;
mod lists;
mod parser;
mod pattern;
mod recovery;
pub mod stage;
mod statements;
mod strings;
mod token;
mod walk;
mod words;

pub use codes::{CODES, UNKNOWN_ESCAPE};
pub use foreign::foreign_word;
pub use lexer::{Lexed, lex};
pub use lists::element_places;
pub use parser::{MAXIMUM_HEIGHT, MAXIMUM_NESTING, parse};
pub use pattern::{BadPattern, compile as compile_pattern};
pub use token::{Token, TokenKind};
