//! One compilation: an input, what is known about its text, and what is wrong with it.

use setpoint_diagnostics::{Diagnostic, Diagnostics, SourceMap, Span};
use setpoint_graph::Library;
use setpoint_mcl::{CompileOptions, Compiled, compile};

use crate::codes;
use crate::directory_loader::DirectoryLoader;
use crate::input::Input;
use crate::output;

/// A compilation.
pub(crate) struct Session {
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

impl Session {
    /// Finds and compiles a program.
    pub(crate) fn compile(argument: &str, options: &CompileOptions, library: &Library) -> Session {
        let mut session = Session {
            input: None,
            loader: DirectoryLoader::new(""),
            sources: SourceMap::new(),
            diagnostics: Diagnostics::new(),
            compiled: None,
        };
        let input = match Input::find(argument, &mut std::io::stdin().lock()) {
            Ok(input) => input,
            Err(bad) => {
                let file = session.sources.add(argument, "");
                let error = Diagnostic::error(codes::module_not_found(), Span::new(file, 0, 0), bad.message);
                session.diagnostics.push(error.help_if(bad.help));
                return session;
            }
        };
        session.loader = DirectoryLoader::new(&input.root);
        session.compiled = Some(compile(
            &input.entry,
            options,
            &session.loader,
            library,
            &mut session.sources,
            &mut session.diagnostics,
        ));
        session.input = Some(input);
        session
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
