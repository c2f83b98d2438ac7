//! One compilation: an input, what is known about its text, and what is wrong with it.

use setpoint_diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use setpoint_graph::Library;
use setpoint_mcl::{CompileOptions, Compiled, compile};

use crate::codes;
use crate::directory_loader::DirectoryLoader;
use crate::input::Input;
use crate::output;

/// A compilation.
pub(crate) struct Compilation {
    /// The input; none when it could not be found.
    pub(crate) input: Option<Input>,
    /// Where its files are.
    pub(crate) loader: DirectoryLoader,
    /// Texts, named relative to the program's root directory.
    pub(crate) sources: SourceMap,
    /// What is wrong.
    pub(crate) diagnostics: Diagnostics,
    /// What compiling gave; none when there was no input.
    pub(crate) compiled: Option<Compiled>,
}

impl Compilation {
    /// Finds and compiles a program.
    pub(crate) fn compile(argument: &str, options: &CompileOptions, library: &Library) -> Compilation {
        let mut compilation = Compilation {
            input: None,
            loader: DirectoryLoader::new(""),
            sources: SourceMap::new(),
            diagnostics: Diagnostics::new(),
            compiled: None,
        };
        let input = match Input::find(argument, &mut std::io::stdin().lock()) {
            Ok(input) => input,
            Err(bad) => {
                let file = compilation.sources.add(argument, "");
                let error = Diagnostic::error(codes::module_not_found(), Span::new(file, 0, 0), bad.message);
                compilation.diagnostics.push(error.help_if(bad.help));
                return compilation;
            }
        };
        compilation.loader = DirectoryLoader::new(&input.root);
        compilation.compiled = Some(compile(
            &input.entry,
            options,
            &compilation.loader,
            library,
            &mut compilation.sources,
            &mut compilation.diagnostics,
        ));
        compilation.input = Some(input);
        compilation
    }

    /// The texts under names that the user can open.
    pub(crate) fn shown_sources(&self) -> SourceMap {
        let mut shown = SourceMap::new();
        for (_, file) in self.sources.files() {
            let name = match &self.input {
                Some(input) => input.shown(&file.name),
                None => file.name.to_string(),
            };
            shown.add(name, file.text.clone());
        }
        shown
    }

    /// Says what is wrong, with all of it.
    pub(crate) fn talk(&self) {
        output::talk_diagnostics(&self.diagnostics, &self.shown_sources());
    }
}
