//! Text to syntax: lexer, parser, abstract syntax, strings.
//!
//! [`parse`] never fails: it gives the best [`Ast`] it can and reports beside it. The lossless layer is the flat
//! array of all [`Tokens`], white space and comments included, whose texts joined are the input; the abstract
//! syntax points into the text by spans. The formatter and an editor need no more than these two, so there is no
//! separate tree of all tokens. Statements and body items that do not parse are reported; what was understood of them is
//! kept, with [`ExprKind::Unfinished`] for values that were not, so that one mistake does not hide the names of a file.
//!
//! Nesting is bounded ([`MAXIMUM_NESTING`], [`MAXIMUM_HEIGHT`]), so later stages may recurse over the syntax.

mod ast;
mod codes;
mod errors;
mod expressions;
pub(crate) mod foreign;
mod interpolation;
mod lexer;
mod parser;
mod statements;
#[cfg(test)]
mod tests;
mod token;
mod types;
mod unexpected;

pub use ast::*;
pub use codes::*;
pub use interpolation::{Piece, StringError, StringErrorKind, interpolate};
pub(crate) use interpolation::{check_strings, interpolated_names};
pub use parser::{Comment, MAXIMUM_HEIGHT, MAXIMUM_NESTING, Parsed, parse};
pub use token::{TokenKind, Tokens};
