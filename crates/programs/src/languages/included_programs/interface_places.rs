//! Places in the modules that stand for programs, told as places in the programs: nobody wrote these modules, so nobody can look at them.

use std::sync::Arc;

use setpoint_diagnostics::{Causes, Diagnostic, FileId, Label, SourceMap, Span};

use super::CLASSES;
use super::module::ProgramModule;

/// The modules among the texts of a model.
pub(super) struct InterfacePlaces {
    modules: Vec<Module>,
}

/// One of them.
struct Module {
    file: FileId,
    name: Arc<str>,
    /// By line: where it begins, and where what it says is in the program, with how that is shown.
    lines: Vec<(u32, Option<(Span, String)>)>,
}

impl InterfacePlaces {
    /// Adds the texts of programs to those of the model, unless they are among them.
    pub(super) fn new(programs: &[Arc<ProgramModule>], sources: &mut SourceMap) -> InterfacePlaces {
        let mut modules = Vec::new();
        for program in programs {
            let name = format!("{}/{CLASSES}", program.directory);
            let found = sources.files().find(|(_, file)| *file.name == *name);
            let Some((file, name)) = found.map(|(id, file)| (id, file.name.clone())) else {
                continue;
            };
            let mut start = 0;
            let text = program.interface.text.split_inclusive('\n');
            let lines = text.zip(&program.interface.lines).map(|(line, span)| {
                let at = start;
                start += line.len() as u32;
                let shown = span.map(|span| {
                    let span = program.place(span, sources);
                    let file = sources.file(span.file);
                    (span, format!("{}:{}", file.name, file.position(span.start).line))
                });
                (at, shown)
            });
            let lines = lines.collect();
            modules.push(Module { file, name, lines });
        }
        InterfacePlaces { modules }
    }

    /// The same, told of the programs.
    pub(super) fn in_programs(&self, told: Diagnostic) -> Diagnostic {
        if self.modules.is_empty() {
            return told;
        }
        let label = |label: Label| Label {
            span: self.span(label.span),
            text: self.text(label.text),
        };
        let labels = |labels: Vec<Label>| labels.into_iter().map(label).collect();
        let is_second_value = self.is_within(told.primary.span) && told.class == "DoubleSetException";
        let mut moved = Diagnostic {
            message: self.text(told.message),
            primary: label(told.primary),
            ruled: told.ruled.map(|span| self.span(span)),
            secondary: labels(told.secondary),
            related: labels(told.related),
            notes: told.notes.into_iter().map(|note| self.text(note)).collect(),
            causes: Causes::default(),
            ..told
        };
        for cause in &told.causes {
            moved = moved.caused_by(self.in_programs(cause.clone()));
        }
        if is_second_value {
            moved = moved.help("the program says what its variables hold: leave it out here");
        }
        moved
    }

    fn module(&self, file: FileId) -> Option<&Module> {
        self.modules.iter().find(|module| module.file == file)
    }

    fn is_within(&self, span: Span) -> bool {
        self.module(span.file).is_some()
    }

    fn span(&self, span: Span) -> Span {
        let Some(module) = self.module(span.file) else {
            return span;
        };
        let line = module
            .lines
            .partition_point(|(start, _)| *start <= span.start)
            .saturating_sub(1);
        match module.lines.get(line) {
            Some((_, Some((place, _)))) => *place,
            _ => span,
        }
    }

    /// A text in which places may be written out.
    fn text(&self, text: String) -> String {
        let mut text = text;
        for module in &self.modules {
            let written = format!("{}:", module.name);
            let mut from = 0;
            while let Some(at) = text[from..].find(&written) {
                let (begin, number) = (from + at, from + at + written.len());
                let digits = text[number..].bytes().take_while(u8::is_ascii_digit).count();
                let line: Option<usize> = text[number..number + digits].parse().ok();
                let place = line
                    .and_then(|line| module.lines.get(line.checked_sub(1)?))
                    .and_then(|(_, place)| place.as_ref());
                from = number + digits;
                if let Some((_, shown)) = place {
                    text.replace_range(begin..from, shown);
                    from = begin + shown.len();
                }
            }
        }
        text
    }
}
