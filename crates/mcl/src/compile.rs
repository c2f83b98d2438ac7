//! The whole way from an entry to a program.

use std::sync::Arc;

use setpoint_diagnostics::{Diagnostics, Loader, SourceMap};
use setpoint_flow::Program;
use setpoint_graph::Library;

use crate::scope::{Entry, RemoteImport, resolve};
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
#[derive(Debug)]
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

/// What bounded recursion over the deepest program may need. Only what is touched is taken from the machine.
const STACK: usize = 512 << 20;

/// Compiles a program. What is wrong with it goes to the sink, what counts first in front; texts go to the map.
pub fn compile(
    entry: &Entry,
    options: &CompileOptions,
    loader: &dyn Loader,
    library: &Library,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Compiled {
    let compiled = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("compile".to_owned());
        let work = || stages(entry, options, loader, library, sources, diagnostics);
        let thread = thread.stack_size(STACK).spawn_scoped(scope, work).ok()?;
        let ended = thread.join();
        Some(ended.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked)))
    });
    // Without room for a large stack, the one that is there does for every usual program.
    let compiled = compiled.unwrap_or_else(|| stages(entry, options, loader, library, sources, diagnostics));
    diagnostics.merge(sources);
    compiled
}

fn stages(
    entry: &Entry,
    options: &CompileOptions,
    loader: &dyn Loader,
    library: &Library,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Compiled {
    let modules = options.modules_directory.as_deref();
    let resolved = resolve(entry, loader, library, modules, sources, diagnostics);
    let mut compiled = Compiled {
        program: None,
        files: resolved.files,
        plain: resolved.plain,
        directory: resolved.directory,
        remote_imports: resolved.remote_imports,
    };
    if diagnostics.has_errors() || options.skip_types {
        return compiled;
    }
    let typed = types::infer(&resolved.hir, library, diagnostics);
    if diagnostics.has_errors() {
        return compiled;
    }
    let program = lower::lower(&resolved.hir, &typed, library, diagnostics);
    if !diagnostics.has_errors() {
        compiled.program = Some(Arc::new(program));
    }
    compiled
}

#[cfg(test)]
mod tests;
