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

    /// Whether another span lies within this one.
    #[must_use]
    pub fn contains(self, inner: Span) -> bool {
        self.file == inner.file && self.start <= inner.start && inner.end <= self.end
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

/// A place as editors count: line and column from 0, a column is a UTF-16 code unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Utf16Position {
    /// Line, from 0.
    pub line: u32,
    /// Code units before it on its line.
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
    lines: OnceLock<Arc<Lines>>,
}

/// Where lines begin, and which characters are longer than a byte.
#[derive(Debug)]
struct Lines {
    starts: Vec<u32>,
    /// Where characters of more than one byte begin, with how many bytes more than characters, and than UTF-16 code units, there are up
    /// to their ends.
    wide: Vec<Wide>,
}

#[derive(Debug, Clone, Copy)]
struct Wide {
    start: u32,
    bytes_over_characters: u32,
    bytes_over_units: u32,
}

impl Lines {
    fn of(text: &str) -> Lines {
        let bytes = text.bytes().enumerate();
        let ends = bytes.clone().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(end, _)| end as u32 + 1));
        let mut wide = Vec::new();
        let (mut over_characters, mut over_units) = (0, 0);
        // The first byte of a character of several says how many they are.
        for (start, byte) in bytes.filter(|(_, byte)| *byte >= 0xc0) {
            let (length, units) = match byte {
                0xf0.. => (4, 2),
                0xe0.. => (3, 1),
                _ => (2, 1),
            };
            over_characters += length - 1;
            over_units += length - units;
            wide.push(Wide {
                start: start as u32,
                bytes_over_characters: over_characters,
                bytes_over_units: over_units,
            });
        }
        Lines {
            starts: starts.collect(),
            wide,
        }
    }

    fn row(&self, offset: u32) -> usize {
        self.starts.partition_point(|start| *start <= offset) - 1
    }

    /// How many bytes more than characters, and than code units, there are before a place.
    fn over(&self, offset: u32) -> (u32, u32) {
        let before = self.wide.partition_point(|wide| wide.start < offset);
        match before.checked_sub(1) {
            Some(last) => (
                self.wide[last].bytes_over_characters,
                self.wide[last].bytes_over_units,
            ),
            None => (0, 0),
        }
    }
}

impl SourceFile {
    fn new(name: Arc<str>, text: Arc<str>) -> SourceFile {
        SourceFile {
            name,
            text,
            lines: OnceLock::new(),
        }
    }

    fn lines(&self) -> &Lines {
        self.lines.get_or_init(|| Arc::new(Lines::of(&self.text)))
    }

    /// The place of a byte. Offsets past the end, or inside a character, give the nearest place before.
    #[must_use]
    pub fn position(&self, offset: u32) -> Position {
        let (row, start, offset) = self.on_line(offset);
        let lines = self.lines();
        let wide = lines.over(offset).0 - lines.over(start).0;
        Position {
            line: row as u32 + 1,
            column: offset - start - wide + 1,
        }
    }

    /// The place of a byte as editors count. Offsets past the end, or inside a character, give the nearest place before.
    #[must_use]
    pub fn utf16_position(&self, offset: u32) -> Utf16Position {
        let (row, start, offset) = self.on_line(offset);
        let lines = self.lines();
        let wide = lines.over(offset).1 - lines.over(start).1;
        Utf16Position {
            line: row as u32,
            column: offset - start - wide,
        }
    }

    /// The byte at a place as editors count. Lines past the end give the end; columns past the end of a line, or inside a
    /// character, the nearest place before.
    #[must_use]
    pub fn offset(&self, position: Utf16Position) -> u32 {
        let lines = self.lines();
        let length = self.text.len() as u32;
        let Some(start) = lines.starts.get(position.line as usize).copied() else {
            return length;
        };
        let next = lines.starts.get(position.line as usize + 1);
        let end = next.map_or(length, |next| next - 1);
        let line = &self.text[start as usize..end as usize];
        let line = line.strip_suffix('\r').unwrap_or(line);
        if line.is_ascii() {
            return start + position.column.min(line.len() as u32);
        }
        let mut units = 0;
        for (at, character) in line.char_indices() {
            units += character.len_utf16() as u32;
            if units > position.column {
                return start + at as u32;
            }
        }
        start + line.len() as u32
    }

    /// The row of a byte, its line's first byte, and the byte itself, moved to where a character begins.
    fn on_line(&self, offset: u32) -> (usize, u32, u32) {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let offset = offset as u32;
        let row = self.lines().row(offset);
        (row, self.lines().starts[row], offset)
    }

    /// The row of a byte, from 0.
    #[must_use]
    pub fn row(&self, offset: u32) -> u32 {
        self.lines().row(offset) as u32
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

    /// Replaces the text of a file, which keeps its name and its id.
    ///
    /// # Panics
    /// With an id of another map.
    pub fn replace(&mut self, id: FileId, text: impl Into<Arc<str>>) {
        let file = &mut self.files[id.0 as usize];
        *file = SourceFile::new(file.name.clone(), text.into());
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

/// Where the lines of texts begin, without the texts: enough to tell places when these are gone.
#[derive(Debug, Clone, Default)]
pub struct Places {
    files: Vec<(Arc<str>, Arc<Lines>)>,
}

impl Places {
    /// Of all files of a map, each under a name of its own.
    #[must_use]
    pub fn of(sources: &SourceMap, name: impl Fn(&str) -> Arc<str>) -> Places {
        let files = sources.files.iter();
        let files = files.map(|file| {
            file.lines();
            let lines = file.lines.get().cloned();
            (name(&file.name), lines.expect("they were just found"))
        });
        Places {
            files: files.collect(),
        }
    }

    /// File and place at which a span begins; none for a span of other texts.
    #[must_use]
    pub fn place(&self, span: Span) -> Option<(&str, Position)> {
        let (name, lines) = self.files.get(span.file.0 as usize)?;
        let row = lines.row(span.start);
        let start = lines.starts[row];
        let wide = lines.over(span.start).0 - lines.over(start).0;
        let position = Position {
            line: row as u32 + 1,
            column: span.start - start - wide + 1,
        };
        Some((name, position))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_known_without_the_texts() {
        let mut map = SourceMap::new();
        let (a, b) = (map.add("a.mcl", "é = 1\n\tx\n"), map.add("b.mcl", ""));
        let places = Places::of(&map, |name| format!("/etc/{name}").into());
        for start in [0, 3, 6, 8] {
            let span = Span::new(a, start, start);
            assert_eq!(
                places.place(span),
                Some(("/etc/a.mcl", map.positions(span).0)),
                "{start}"
            );
        }
        assert!(places.place(Span::new(b, 0, 0)).is_some());
        assert!(places.place(Span::new(FileId(7), 0, 0)).is_none());
    }

    #[test]
    fn columns_count_characters_and_lines_count_from_one() {
        let mut map = SourceMap::new();
        let file = map.add("a.mcl", "é = 1\n\tx\n");
        assert_eq!(map.file(file).position(3), Position { line: 1, column: 3 });
        assert_eq!(map.file(file).position(8), Position { line: 2, column: 2 });
        assert_eq!(map.file(file).position(99), Position { line: 3, column: 1 });
    }

    #[test]
    fn editors_count_utf16_code_units_from_zero() {
        let mut map = SourceMap::new();
        let file = map.add("a.mcl", "a😀é$x\r\n\n€y");
        let file = map.file(file);
        let columns = |offset| {
            let at = file.utf16_position(offset);
            (at.line, at.column)
        };
        // The bytes: a 0, 😀 1 to 4, é 5 and 6, $ 7, x 8, the end of the line 9 and 10, € 12 to 14, y 15.
        assert_eq!(
            [0, 1, 5, 7, 8].map(columns),
            [(0, 0), (0, 1), (0, 3), (0, 4), (0, 5)]
        );
        assert_eq!(
            [11, 12, 15, 16, 99].map(columns),
            [(1, 0), (2, 0), (2, 1), (2, 2), (2, 2)]
        );
        for offset in [0, 1, 5, 7, 8, 9, 11, 12, 15, 16] {
            assert_eq!(file.offset(file.utf16_position(offset)), offset);
        }
        let offset = |line, column| file.offset(Utf16Position { line, column });
        // Inside of a character, past the end of a line, past the last line.
        assert_eq!([offset(0, 2), offset(0, 99), offset(7, 0)], [1, 9, 16]);
        assert_eq!(file.position(8), Position { line: 1, column: 5 });
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
