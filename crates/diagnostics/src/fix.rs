//! Quick fixes: the changes that diagnostics carry, put together for a text.

use crate::{Diagnostic, Edit, FileId};

/// The changes of a file that follow from these diagnostics, in the order of the text. Where two touch each other the earlier one is
/// taken: the other one is found again in the text that comes of it, if there still is a reason.
pub fn fixes<'a>(diagnostics: impl IntoIterator<Item = &'a Diagnostic>, file: FileId) -> Vec<&'a Edit> {
    let mut edits: Vec<&Edit> = diagnostics
        .into_iter()
        // Of several ways to mend something none is certain.
        .filter_map(|found| {
            let mut edits = found.help.iter().filter_map(|help| help.edit.as_ref());
            edits.next().filter(|_| edits.next().is_none())
        })
        .filter(|edit| edit.span.file == file)
        .collect();
    edits.sort_by_key(|edit| (edit.span, edit.replacement.len()));
    let mut kept: Vec<&Edit> = Vec::new();
    for edit in edits {
        if kept.last().is_none_or(|last| {
            last.span.end < edit.span.start
                || last.span.end == edit.span.start && last.span.start < last.span.end
        }) {
            kept.push(edit);
        }
    }
    kept
}

/// A text after changes that are in its order and do not touch each other.
#[must_use]
pub fn apply(text: &str, edits: &[&Edit]) -> String {
    let mut changed = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        let (start, end) = (edit.span.start as usize, edit.span.end as usize);
        let (Some(before), Some(_)) = (text.get(at..start), text.get(start..end)) else {
            continue;
        };
        changed.push_str(before);
        changed.push_str(&edit.replacement);
        at = end;
    }
    changed.push_str(&text[at..]);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CodeInfo, SourceMap, Span, Stage};

    static CODE: CodeInfo = CodeInfo {
        code: "W0000",
        rule: "",
        stage: Stage::new("test"),
        summary: "a test",
    };

    #[test]
    fn edits_that_touch_are_not_both_taken() {
        let file = SourceMap::new().add("a", "abcdef");
        let fix = |start, end, text: &str| {
            Diagnostic::warning(&CODE, Span::new(file, start, end), "m").fix(
                "h",
                Span::new(file, start, end),
                text,
            )
        };
        let found = [fix(3, 5, "Y"), fix(0, 2, "X"), fix(1, 4, "Z"), fix(5, 6, "")];
        let edits = fixes(&found, file);
        assert_eq!(apply("abcdef", &edits), "XcY");
        let unsure = [fix(0, 1, "X").fix("other", Span::new(file, 0, 1), "Y")];
        assert!(fixes(&unsure, file).is_empty());
    }
}
