//! A generated program, with everything left open that must not make a difference: parentheses that say what precedence says
//! already, types that inference finds, the order of statements, names that shadow others.
//!
//! Templates are texts with marks: `⟦e⟧` are such parentheses, `⟪ int⟫` is such a type, `❬a❘b❭` is a block of statements, and
//! `n1‹7›` is a name with the number of its definition, which no other definition has.

use setpoint_diagnostics::MemoryLoader;

use crate::random::Random;

/// A program of several files, as templates.
pub(crate) struct Template {
    pub(crate) files: Vec<(String, String)>,
}

/// Whether something is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Present {
    Never,
    Always,
    Sometimes,
}

/// How the open choices are made.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    pub(crate) parentheses: Present,
    pub(crate) annotations: Present,
    /// Whether definitions shadow others; if not, each has a name of its own.
    pub(crate) shadowing: bool,
    /// Whether the program stands in a class that is included.
    pub(crate) wrapped: bool,
    /// For the order of statements, and what is there sometimes.
    pub(crate) seed: u64,
}

impl Template {
    /// The files of the program in a style.
    pub(crate) fn files(&self, style: Style) -> MemoryLoader {
        let mut loader = MemoryLoader::new();
        for (path, text) in &self.files {
            let mut printer = Printer {
                style,
                random: Random::new(style.seed),
                rest: text,
                depth: 0,
                out: String::new(),
            };
            printer.block();
            let mut text = printer.out;
            if style.wrapped && path == "main.mcl" {
                text = format!("class wrapped {{\n{text}\n}}\ninclude wrapped\n");
            }
            loader = loader.with(path, text);
        }
        loader
    }
}

struct Printer<'a> {
    style: Style,
    random: Random,
    rest: &'a str,
    depth: usize,
    out: String,
}

impl Printer<'_> {
    fn has(&mut self, present: Present) -> bool {
        match present {
            Present::Never => false,
            Present::Always => true,
            Present::Sometimes => self.random.chance(50),
        }
    }

    fn next(&mut self) -> Option<char> {
        let character = self.rest.chars().next()?;
        self.rest = &self.rest[character.len_utf8()..];
        Some(character)
    }

    /// The statements up to the end of the block, in some order.
    fn block(&mut self) {
        let before = std::mem::take(&mut self.out);
        let mut statements = Vec::new();
        self.depth += 1;
        loop {
            let end = self.statement();
            let statement = std::mem::take(&mut self.out);
            if !statement.is_empty() {
                statements.push(statement);
            }
            if end != Some('❘') {
                break;
            }
        }
        self.depth -= 1;
        self.random.shuffle(&mut statements);
        self.out = before;
        for statement in statements {
            self.out.push_str(&"\t".repeat(self.depth));
            self.out.push_str(&statement);
            self.out.push('\n');
        }
    }

    /// A statement; answers what ended it.
    fn statement(&mut self) -> Option<char> {
        let mut parentheses = Vec::new();
        while let Some(character) = self.next() {
            match character {
                '❘' | '❭' => return Some(character),
                '❬' => {
                    self.out.push_str("{\n");
                    self.block();
                    self.out.push_str(&"\t".repeat(self.depth.saturating_sub(1)));
                    self.out.push('}');
                }
                '⟦' => {
                    let has = self.has(self.style.parentheses);
                    parentheses.push(has);
                    if has {
                        self.out.push('(');
                    }
                }
                '⟧' => {
                    if parentheses.pop() == Some(true) {
                        self.out.push(')');
                    }
                }
                '⟪' => {
                    let (annotation, rest) = self.rest.split_once('⟫').unwrap_or_default();
                    self.rest = rest;
                    if self.has(self.style.annotations) {
                        self.out.push_str(annotation);
                    }
                }
                '‹' => {
                    let (number, rest) = self.rest.split_once('›').unwrap_or_default();
                    self.rest = rest;
                    if !self.style.shadowing {
                        self.out.push_str(&format!("u{number}"));
                    }
                }
                other => self.out.push(other),
            }
        }
        None
    }
}
