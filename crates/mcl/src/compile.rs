//! The whole way from an entry to a program.

use std::sync::Arc;

use setpoint_diagnostics::{Diagnostics, Loader, SourceMap};
use setpoint_flow::{Program, Stop};
use setpoint_graph::Library;

use crate::hir::Hir;
use crate::scope::{Entry, Extent, ParseCache, RemoteImport, ResolveInput, resolve};
use crate::stack::with_stack;
use crate::types::{Typed, TypedProgram};
use crate::{lower, types};

/// How to compile.
#[derive(Debug, Clone, Default)]
pub struct CompileOptions {
    /// The global modules directory, ending in `/`.
    pub modules_directory: Option<String>,
    /// Whether to stop before types are inferred.
    pub skip_types: bool,
}

/// What compiling gives.
#[derive(Debug, Default)]
pub struct Compiled {
    /// The program; none after errors, or where types were skipped.
    pub program: Option<Arc<Program>>,
    /// Paths of all files that belong to the program, for a deploy and for checking their format.
    pub files: Vec<String>,
    /// Whether the entry came without metadata, so that its `files/` is not part of the program.
    pub plain: bool,
    /// Root directory of the program; empty or ending in `/`.
    pub directory: String,
    /// Imports of modules from elsewhere, in the order in which they were met: those that are there, and those that are missing,
    /// each of which is an error too.
    pub remote_imports: Vec<RemoteImport>,
}

impl Compiled {
    /// Whether a file is the program's own: neither compiled in nor of a module from elsewhere.
    #[must_use]
    pub fn is_own(&self, name: &str) -> bool {
        let is_from_elsewhere = self.remote_imports.iter().any(|import| {
            let directory = import.modules_directory.as_deref();
            let rest = directory.and_then(|directory| name.strip_prefix(directory));
            rest.is_some_and(|rest| rest.starts_with(&import.module))
        });
        name.starts_with('<') || self.files.iter().any(|file| file == name) && !is_from_elsewhere
    }
}

/// Compiles a program. What is wrong with it goes to the sink, what counts first in front; texts go to the map.
pub fn compile(
    entry: &Entry,
    options: &CompileOptions,
    loader: &dyn Loader,
    library: &Library,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Compiled {
    let input = ResolveInput {
        entry,
        loader,
        library,
        modules_directory: options.modules_directory.as_deref(),
        extent: Extent::Program,
        stop: &Stop::default(),
    };
    let compiled = with_stack(|| stages(&input, options.skip_types, sources, diagnostics));
    diagnostics.merge(sources);
    compiled
}

fn stages(
    input: &ResolveInput<'_>,
    skip_types: bool,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Compiled {
    let library = input.library;
    let resolved = resolve(input, &mut ParseCache::new(), sources, diagnostics);
    let program = match diagnostics.has_errors() || skip_types {
        true => None,
        false => {
            let typed = types::infer(&resolved.hir, library, diagnostics);
            lowered(&resolved.hir, &typed, library, diagnostics)
        }
    };
    Compiled {
        program,
        files: resolved.files,
        plain: resolved.plain,
        directory: resolved.directory,
        remote_imports: resolved.remote_imports,
    }
}

/// What a program without errors is made into; none where there are some. That it would be too large goes to the sink.
pub(crate) fn lowered(
    hir: &Hir,
    typed: &Typed,
    library: &Library,
    diagnostics: &mut Diagnostics,
) -> Option<Arc<Program>> {
    if diagnostics.has_errors() {
        return None;
    }
    let program = lower::lower(TypedProgram::new(hir, typed)?, library);
    if let Some(too_large) = lower::too_large(&program) {
        diagnostics.push(too_large);
        return None;
    }
    Some(Arc::new(program))
}

#[cfg(test)]
mod tests;
