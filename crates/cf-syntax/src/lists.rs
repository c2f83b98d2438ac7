//! Where the elements of a written list stand: for errors about one of them.

use setpoint_diagnostics::Span;

use crate::{Token, TokenKind, lex};

/// The places of the elements of a list that is written at `list` in `text`, those of lists in it among them, since they become part of it.
///
/// Nothing if that is no list in brackets: a variable, a comprehension, a call.
pub fn element_places(text: &str, list: Span) -> Vec<Span> {
    let Some(written) = text.get(list.start as usize..list.end as usize) else {
        return Vec::new();
    };
    if !written.starts_with('[') {
        return Vec::new();
    }
    let mut tokens = lex(list.file, written).tokens;
    // The last one is the end of the text.
    tokens.pop();
    let mut places = Vec::new();
    if !add_elements(&tokens, &mut places) {
        return Vec::new();
    }
    let in_file = |place: &Span| Span::new(list.file, list.start + place.start, list.start + place.end);
    places.iter().map(in_file).collect()
}

/// Adds the elements of `[ … ]`, relative to it. Answers whether it is a list of elements, and only that.
fn add_elements(tokens: &[Token], places: &mut Vec<Span>) -> bool {
    let [open, inner @ .., close] = tokens else {
        return false;
    };
    if (open.kind, close.kind) != (TokenKind::LeftBracket, TokenKind::RightBracket) {
        return false;
    }
    let (mut elements, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (index, token) in inner.iter().enumerate() {
        match token.kind {
            TokenKind::LeftBracket | TokenKind::LeftParenthesis | TokenKind::LeftBrace => depth += 1,
            TokenKind::RightBracket | TokenKind::RightParenthesis | TokenKind::RightBrace => {
                // More is closed than was opened: `[a][b]` begins and ends like a list.
                let Some(less) = depth.checked_sub(1) else {
                    return false;
                };
                depth = less;
            }
            TokenKind::For if depth == 0 => return false,
            TokenKind::Comma if depth == 0 => {
                elements.push(&inner[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    elements.push(&inner[start..]);
    for element in elements {
        // Behind the last comma there may be nothing.
        let (Some(first), Some(last)) = (element.first(), element.last()) else {
            continue;
        };
        let before = places.len();
        if !add_elements(element, places) {
            places.truncate(before);
            places.push(Span::new(setpoint_diagnostics::FileId(0), first.start, last.end));
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use setpoint_diagnostics::FileId;

    use super::*;

    /// The texts of the elements of a list behind `x = `.
    fn elements(list: &str) -> Vec<String> {
        let text = format!("x = {list}");
        let place = Span::new(FileId(0), 4, text.len() as u32);
        let places = element_places(&text, place);
        places
            .iter()
            .map(|place| text[place.start as usize..place.end as usize].to_owned())
            .collect()
    }

    #[test]
    fn elements_are_found_through_lists_in_lists() {
        assert_eq!(
            elements("[1, [\"a\", [b.c]], f(1, [2]), {\"k\": [3]},]"),
            ["1", "\"a\"", "b.c", "f(1, [2])", "{\"k\": [3]}"]
        );
        assert_eq!(elements("[ # none\n]"), [""; 0]);
    }

    #[test]
    fn what_is_no_written_list_has_no_elements() {
        for text in ["[x for x in y]", "a[1]", "xs", "[1][2]", "[1, 2"] {
            assert_eq!(elements(text), [""; 0], "{text}");
        }
        // A comprehension in a list gives any number of elements, which counts as one place.
        assert_eq!(elements("[1, [x for x in y]]"), ["1", "[x for x in y]"]);
    }
}
