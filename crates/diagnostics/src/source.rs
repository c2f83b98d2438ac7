//! Source files and spans: which bytes of which text.

use std::sync::{Arc, OnceLock};

/// A file of a [`SourceMap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A range of bytes in one file, `start` inclusive, `end` exclusive.
///
/// ```
/// use setpoint_diagnostics::{FileId, Span};
/// let span = Span::new(FileId(0), 3, 5).to(Span::new(FileId(0), 8, 9));
/// assert_eq!((span.start, span.end), (3, 9));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The file it lies in.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes `start..end` of `file`.
    #[must_use]
    pub const fn new(file: FileId, start: u32, end: u32) -> Span {
        Span { file, start, end }
    }

    /// From the beginning of `self` to the end of `last`, which lies in the same file.
    #[must_use]
    pub fn to(self, last: Span) -> Span {
        Span {
            file: self.file,
            start: self.start.min(last.start),
            end: self.end.max(last.end),
        }
    }
}

/// A place as people count: line and column from 1; a column is one character, a tab is one column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// One text with the name under which users know it.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Name as shown to users: a path, or `<stdin>`, `<argument>`.
    pub name: Arc<str>,
    /// The whole text.
    pub text: Arc<str>,
    /// Found when somebody asks for a line: most texts are right.
    line_starts: OnceLock<Arc<[u32]>>,
    /// Where bytes are that go on with a character, so that a column is found without counting along a line.
    inner_bytes: OnceLock<Arc<[u32]>>,
}

impl SourceFile {
    fn new(name: Arc<str>, text: Arc<str>) -> SourceFile {
        SourceFile {
            name,
            text,
            line_starts: OnceLock::new(),
            inner_bytes: OnceLock::new(),
        }
    }

    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            let starts = ends.map(|(end, _)| end as u32 + 1);
            std::iter::once(0).chain(starts).collect()
        })
    }

    /// How many bytes between two offsets go on with a character.
    fn inner_between(&self, start: usize, end: usize) -> usize {
        let inner = self.inner_bytes.get_or_init(|| {
            let bytes = self.text.bytes().enumerate();
            let inner = bytes.filter(|(_, byte)| byte & 0b1100_0000 == 0b1000_0000);
            inner.map(|(at, _)| at as u32).collect()
        });
        let before = |offset: usize| inner.partition_point(|at| (*at as usize) < offset);
        before(end) - before(start)
    }

    /// The place of a byte. Offsets past the end, or inside a character, give the nearest place before.
    #[must_use]
    pub fn position(&self, offset: u32) -> Position {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let starts = self.line_starts();
        let line = starts.partition_point(|start| *start as usize <= offset) - 1;
        let start = starts[line] as usize;
        let column = offset - start - self.inner_between(start, offset);
        Position {
            line: line as u32 + 1,
            column: column as u32 + 1,
        }
    }

    /// The row of a byte, from 0.
    #[must_use]
    pub fn row(&self, offset: u32) -> u32 {
        self.line_starts().partition_point(|start| *start <= offset) as u32 - 1
    }
}

/// All texts of one compilation.
#[derive(Debug, Clone, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
}

impl SourceMap {
    /// An empty map.
    #[must_use]
    pub fn new() -> SourceMap {
        SourceMap::default()
    }

    /// Takes in a text. The same name may be added again: it is then another file.
    pub fn add(&mut self, name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> FileId {
        self.files.push(SourceFile::new(name.into(), text.into()));
        FileId(self.files.len() as u32 - 1)
    }

    /// The file behind an id of this map.
    ///
    /// # Panics
    /// With an id of another map.
    #[must_use]
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// The text of a span.
    #[must_use]
    pub fn text(&self, span: Span) -> &str {
        let text = &self.file(span.file).text;
        text.get(span.start as usize..(span.end as usize).min(text.len()))
            .unwrap_or("")
    }

    /// Where a span begins and where it ends (exclusive). A span up to and with the end of a line ends on that line.
    #[must_use]
    pub fn positions(&self, span: Span) -> (Position, Position) {
        let file = self.file(span.file);
        let start = file.position(span.start);
        let last = span.end.max(span.start).min(file.text.len() as u32);
        if last > span.start && file.text.as_bytes()[last as usize - 1] == b'\n' {
            let end = file.position(last - 1);
            return (
                start,
                Position {
                    line: end.line,
                    column: end.column + 1,
                },
            );
        }
        (start, file.position(last))
    }

    /// All files, in the order in which they came.
    pub fn files(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        self.files.iter().enumerate().map(|(i, f)| (FileId(i as u32), f))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let mut map = SourceMap::new();
        let file = map.add("a.mcl", "é = 1\n\tx\n");
        assert_eq!(map.file(file).position(3), Position { line: 1, column: 3 });
        assert_eq!(map.file(file).position(8), Position { line: 2, column: 2 });
        assert_eq!(map.file(file).position(99), Position { line: 3, column: 1 });
    }

    #[test]
    fn the_end_of_a_line_is_one_column_wide() {
        let mut map = SourceMap::new();
        let file = map.add("a.mcl", "ab\n\nc");
        let columns = |start, end| {
            let (start, end) = map.positions(Span::new(file, start, end));
            (start.line, start.column, end.line, end.column)
        };
        assert_eq!(columns(2, 3), (1, 3, 1, 4));
        assert_eq!(columns(3, 4), (2, 1, 2, 2));
        assert_eq!(columns(0, 9), (1, 1, 3, 2));
    }
}
