//! A diagnostic as text for people: message, source lines with underlines, reasons, the way there, help.
//!
//! Nothing is hidden: every label, note and help of the data is in the text. Where it is printed, and whether that place
//! has colours, is the caller's.

use std::borrow::Cow;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Patch, Renderer, Snippet};

use crate::visible::deceives;
use crate::{Diagnostic, FileId, Label, Severity, SourceMap, Span, visible};

/// How the text shall look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenderStyle {
    /// With the escapes of a terminal.
    pub colour: bool,
    /// Columns there are; longer source lines are cut around what is underlined.
    pub width: usize,
    /// With box-drawing characters.
    pub unicode: bool,
}

impl RenderStyle {
    /// Without colours, in ASCII, for files, pipes and tests.
    pub const PLAIN: RenderStyle = RenderStyle {
        colour: false,
        width: 140,
        unicode: false,
    };
}

/// Renders one diagnostic, without a newline at the end.
#[must_use]
pub fn render(diagnostic: &Diagnostic, sources: &SourceMap, style: RenderStyle) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(visible(&diagnostic.message))
        .id(diagnostic.code.code);
    let mut group = Group::with_title(title);
    let mut cut = CutLines::default();
    let mut labels = vec![Mark::of(AnnotationKind::Primary, &diagnostic.primary)];
    labels.extend(
        diagnostic
            .secondary
            .iter()
            .map(|label| Mark::of(AnnotationKind::Context, label)),
    );
    group = with_snippets(group, &labels, sources, &mut cut);
    for note in &diagnostic.notes {
        group = group.element(Level::NOTE.message(visible(note)));
    }
    for help in diagnostic.help.iter().filter(|help| help.edit.is_none()) {
        group = group.element(Level::HELP.message(visible(&help.text)));
    }
    let mut report = vec![group];
    for step in &diagnostic.related {
        let title = Level::NOTE.secondary_title(visible(&step.text));
        let place = Mark {
            kind: AnnotationKind::Primary,
            span: step.span,
            text: "",
        };
        report.push(with_snippets(
            Group::with_title(title),
            &[place],
            sources,
            &mut cut,
        ));
    }
    for help in &diagnostic.help {
        let Some(edit) = &help.edit else { continue };
        let title = Level::HELP.secondary_title(visible(&help.text));
        let mut group = Group::with_title(title);
        if let Some(shown) = Shown::of(sources, edit.span.file, std::iter::once(edit.span)) {
            let patch = Patch::new(shown.range(edit.span), shown_text(&edit.replacement));
            // Of a line that is cut no column is told.
            let name = (shown.columns_cut == 0).then_some(shown.name);
            group = group.element(
                Snippet::source(shown.text)
                    .line_start(shown.first_line)
                    .path(name)
                    .patch(patch),
            );
        }
        report.push(group);
    }
    let renderer = if style.colour {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let decoration = if style.unicode {
        DecorStyle::Unicode
    } else {
        DecorStyle::Ascii
    };
    let text = renderer
        .term_width(style.width.max(40))
        .decor_style(decoration)
        .render(&report);
    with_causes(cut.with_headers(text), diagnostic, sources, style)
}

/// Adds the causes, each a report of its own, indented below the one that it led to.
fn with_causes(mut text: String, diagnostic: &Diagnostic, sources: &SourceMap, style: RenderStyle) -> String {
    const INDENT: &str = "  ";
    let causes = &diagnostic.causes;
    if causes.is_empty() {
        return text;
    }
    text.push_str(match causes.omitted() {
        0 => "\ncaused by:",
        _ => "\ncaused, after steps that are not shown, by:",
    });
    let narrower = RenderStyle {
        width: style.width.saturating_sub(INDENT.len()),
        ..style
    };
    for cause in causes {
        for line in render(cause, sources, narrower).lines() {
            text.push('\n');
            if !line.is_empty() {
                text.push_str(INDENT);
                text.push_str(line);
            }
        }
    }
    text
}

/// Something to underline.
struct Mark<'a> {
    kind: AnnotationKind,
    span: Span,
    text: &'a str,
}

impl<'a> Mark<'a> {
    fn of(kind: AnnotationKind, label: &'a Label) -> Mark<'a> {
        Mark {
            kind,
            span: label.span,
            text: &label.text,
        }
    }
}

/// The marks as snippets, one a file, the file of the first mark first.
fn with_snippets<'a>(
    mut group: Group<'a>,
    marks: &[Mark<'a>],
    sources: &'a SourceMap,
    cut: &mut CutLines<'a>,
) -> Group<'a> {
    let mut files: Vec<FileId> = Vec::new();
    for mark in marks {
        if !files.contains(&mark.span.file) {
            files.push(mark.span.file);
        }
    }
    for file in files {
        let here: Vec<&Mark<'a>> = marks.iter().filter(|mark| mark.span.file == file).collect();
        let start = here.iter().map(|mark| mark.span.start).min().unwrap_or_default();
        let end = here.iter().map(|mark| mark.span.end).max().unwrap_or_default();
        // What is far apart is shown apart.
        let together = match (end.saturating_sub(start) as usize) < LONGEST {
            true => here.len(),
            false => 1,
        };
        for marks in here.chunks(together) {
            let Some(mut shown) = Shown::of(sources, file, marks.iter().map(|mark| mark.span)) else {
                continue;
            };
            if shown.is_empty {
                // What has no name is no place.
                if !shown.name.is_empty() {
                    group = group.element(Origin::path(shown.name));
                }
                continue;
            }
            let annotations: Vec<Annotation<'a>> = marks
                .iter()
                .map(|mark| {
                    let text = (!mark.text.is_empty()).then(|| visible(mark.text));
                    mark.kind.span(shown.range(mark.span)).label(text)
                })
                .collect();
            if shown.columns_cut > 0 {
                shown.name = cut.header(&shown).into();
            }
            let snippet = Snippet::source(shown.text)
                .line_start(shown.first_line)
                .path(shown.name);
            group = group.element(snippet.annotations(annotations));
        }
    }
    group
}

/// Of a longer line, so many bytes are handed over in front of what is underlined and behind it: more than fit on any terminal.
const AROUND: usize = 1024;

/// Of something longer that is underlined, the beginning is.
const LONGEST: usize = 1 << 16;

/// Lines that are cut at their beginning. The renderer counts their columns from there; it is given a sign in place of their names,
/// for which name and right column are put in.
#[derive(Default)]
struct CutLines<'a> {
    /// Name, number of the line, columns that are cut.
    list: Vec<(Cow<'a, str>, usize, usize)>,
}

/// A control character, which no name or text that is shown holds.
const SIGN: char = '\u{91}';

impl<'a> CutLines<'a> {
    /// What stands for the name of the file.
    fn header(&mut self, shown: &Shown<'a>) -> String {
        self.list
            .push((shown.name.clone(), shown.first_line, shown.columns_cut));
        format!("{SIGN}{}{SIGN}", self.list.len() - 1)
    }

    /// Puts in names and columns.
    fn with_headers(&self, text: String) -> String {
        if self.list.is_empty() {
            return text;
        }
        let mut whole = String::with_capacity(text.len());
        let mut parts = text.split(SIGN);
        whole.push_str(parts.next().unwrap_or_default());
        while let Some(index) = parts.next() {
            let rest = parts.next().unwrap_or_default();
            let Some((name, first_line, columns_cut)) =
                index.parse().ok().and_then(|at: usize| self.list.get(at))
            else {
                continue;
            };
            whole.push_str(name);
            // `:line:column`, and what follows.
            let mut numbers = rest.splitn(3, ':').skip(1);
            let (line, behind) = (
                numbers.next().unwrap_or_default(),
                numbers.next().unwrap_or_default(),
            );
            let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
            match (line.parse::<usize>(), behind[..digits].parse::<usize>()) {
                (Ok(line), Ok(column)) => {
                    let cut = if line == *first_line { *columns_cut } else { 0 };
                    whole.push_str(&format!(":{line}:{}{}", column + cut, &behind[digits..]));
                }
                _ => whole.push_str(rest),
            }
        }
        whole
    }
}

/// The lines of a file that some spans touch. Handing over no more keeps a large file with many errors cheap.
struct Shown<'a> {
    name: Cow<'a, str>,
    /// The lines as they are in the file.
    lines: &'a str,
    /// The lines as they are shown.
    text: Cow<'a, str>,
    first_line: usize,
    /// Columns of the first line that are left out.
    columns_cut: usize,
    start: usize,
    /// Whether the file itself has no text, as one that could not be read.
    is_empty: bool,
}

impl<'a> Shown<'a> {
    /// None for a file of another map.
    fn of(sources: &'a SourceMap, file: FileId, spans: impl Iterator<Item = Span>) -> Option<Shown<'a>> {
        let (_, source) = sources.files().nth(file.0 as usize)?;
        let text: &str = &source.text;
        let (mut start, mut end) = (text.len(), 0);
        for span in spans {
            start = start.min(span.start as usize);
            end = end.max(span.end as usize);
        }
        let start = start.min(text.len());
        let end = end.clamp(start, text.len()).min(start + LONGEST);
        let before = text.floor_char_boundary(start.saturating_sub(AROUND));
        let line = text.as_bytes()[before..start].iter().rposition(|b| *b == b'\n');
        let start = line.map_or(before, |at| before + at + 1);
        let after = text.ceil_char_boundary((end + AROUND).min(text.len()));
        let line = text.as_bytes()[end..after].iter().position(|b| *b == b'\n');
        let end = line.map_or(after, |at| end + at);
        let lines = &text[start..end];
        let position = source.position(start as u32);
        Some(Shown {
            name: visible(&source.name),
            lines,
            text: shown_text(lines),
            first_line: position.line as usize,
            columns_cut: position.column as usize - 1,
            start,
            is_empty: text.is_empty(),
        })
    }

    /// A span within the lines that are shown, on borders of characters.
    fn range(&self, span: Span) -> std::ops::Range<usize> {
        let place = |offset: u32| {
            let mut at = (offset as usize).saturating_sub(self.start).min(self.lines.len());
            while !self.lines.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let start = place(span.start);
        let mut end = place(span.end).max(start);
        // The end of a line is shown behind the line, not as a span of two.
        if end > start && self.lines.as_bytes()[end - 1] == b'\n' {
            end -= 1;
        }
        // What is shown may be longer than what is there.
        let shown = |at: usize| shown_text(&self.lines[..at]).len();
        shown(start)..shown(end)
    }
}

/// Source text without what could deceive. The control characters of ASCII are left to the renderer, which has signs for them.
fn shown_text(text: &str) -> Cow<'_, str> {
    let replaced = |char: char| deceives(char) && !char.is_ascii();
    if text.chars().any(replaced) {
        Cow::Owned(text.replace(replaced, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CodeInfo, Stage};

    static CODE: CodeInfo = CodeInfo {
        code: "E0101",
        rule: "S1",
        stage: Stage::new("scope"),
        summary: "a test",
    };

    #[test]
    fn every_part_of_a_diagnostic_is_shown() {
        let mut sources = SourceMap::new();
        let main = sources.add("main.mcl", "import \"lib.mcl\"\n$y = 1\n\n\n\n\n\n$z = $yy\n");
        let library = sources.add("lib.mcl", "# a comment\n$q = $nope\n");
        let diagnostic = Diagnostic::error(&CODE, Span::new(main, 34, 37), "no variable `$yy`")
            .label("used here")
            .because(Span::new(main, 17, 19), "this one exists")
            .because(Span::new(library, 17, 22), "and this")
            .via(Span::new(main, 0, 16), "imported here")
            .note("a fact")
            .help("advice")
            .fix("write `$y`", Span::new(main, 34, 37), "$y");
        let text = render(&diagnostic, &sources, RenderStyle::PLAIN);
        assert_eq!(
            text,
            r#"error[E0101]: no variable `$yy`
 --> main.mcl:8:6
  |
2 | $y = 1
  | -- this one exists
...
8 | $z = $yy
  |      ^^^ used here
  |
 ::: lib.mcl:2:6
  |
2 | $q = $nope
  |      ----- and this
  |
  = note: a fact
  = help: advice
note: imported here
 --> main.mcl:1:1
  |
1 | import "lib.mcl"
  | ^^^^^^^^^^^^^^^^
help: write `$y`
  |
8 - $z = $yy
8 + $z = $y
  |"#
        );
    }

    #[test]
    fn nothing_from_outside_acts_on_the_terminal() {
        let mut sources = SourceMap::new();
        let evil = "a\u{1b}[31mb\u{9b}1mc\u{202e}d";
        let file = sources.add(format!("{evil}\n.mcl"), format!("$x = \"{evil}\" + $y\n"));
        let at = sources
            .files()
            .next()
            .map_or(0, |(_, file)| file.text.find("$y").unwrap_or(0)) as u32;
        let span = Span::new(file, at, at + 2);
        let diagnostic = Diagnostic::error(&CODE, span, format!("{evil}\nerror: forged"))
            .label(evil)
            .because(Span::new(file, 0, 2), evil)
            .via(span, format!("{evil}\nforged"))
            .note(format!("{evil}\nforged"))
            .help(format!("{evil}\nforged"))
            .fix(evil, span, evil);
        let text = render(&diagnostic, &sources, RenderStyle::PLAIN);
        let acts: Vec<char> = text
            .chars()
            .filter(|char| *char != '\n' && deceives(*char))
            .collect();
        assert!(acts.is_empty(), "{acts:?} in\n{text}");
        assert!(
            !text
                .lines()
                .any(|line| line.starts_with("forged") || line.starts_with("error: ")),
            "{text}"
        );
        let lines: Vec<&str> = text.lines().collect();
        let source = lines.iter().position(|line| line.contains("| $x")).unwrap_or(0);
        let column = |line: &str, what: &str| line.find(what).map(|at| line[..at].chars().count());
        assert_eq!(
            column(lines[source], "$y"),
            column(lines[source + 1], "^^"),
            "{text}"
        );
    }

    #[test]
    fn of_a_long_line_the_part_around_the_underline_is_shown() {
        let mut sources = SourceMap::new();
        let line = "é}".repeat(400_000);
        let file = sources.add("a.mcl", format!("first\n{line}$x{line}\nlast\n"));
        let at = (6 + line.len()) as u32;
        let span = Span::new(file, at, at + 2);
        let diagnostic = Diagnostic::error(&CODE, span, "wrong")
            .label("here")
            .because(Span::new(file, 0, 5), "the first line")
            .via(span, "on this way")
            .fix("without it", span, "");
        let text = render(&diagnostic, &sources, RenderStyle::PLAIN);
        assert!(text.contains(" --> a.mcl:2:800001\n"), "{text}");
        assert!(text.contains(" ::: a.mcl:1:1\n"), "{text}");
        assert!(text.contains("| first\n  | ----- the first line"), "{text}");
        assert_eq!(text.matches("$x").count(), 3, "{text}");
        assert!(text.len() < 20_000, "{text}");
        // Whatever begins early and ends late is shown from its beginning.
        let all = Span::new(file, 8, at * 2);
        let text = render(
            &Diagnostic::error(&CODE, all, "wrong"),
            &sources,
            RenderStyle::PLAIN,
        );
        assert!(text.contains(" --> a.mcl:2:2\n"), "{}", &text[..200]);
    }

    #[test]
    fn any_span_can_be_shown() {
        let mut sources = SourceMap::new();
        let text = "é\r\n\tx\n";
        let file = sources.add("a.mcl", text);
        let empty = sources.add("b.mcl", "");
        for (file, length) in [(file, text.len() as u32 + 2), (empty, 2), (FileId(7), 1)] {
            for start in 0..length {
                for end in 0..length {
                    let span = Span::new(file, start, end);
                    let diagnostic = Diagnostic::error(&CODE, span, "m\u{7}").fix("h", span, "q\n");
                    assert!(render(&diagnostic, &sources, RenderStyle::PLAIN).starts_with("error[E0101]: m"));
                }
            }
        }
    }
}
