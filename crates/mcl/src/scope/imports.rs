//! Following imports: from an import statement to the names of a module.

use std::collections::HashMap;
use std::sync::Arc;

use setpoint_diagnostics::{Diagnostic, Loader, Span, did_you_mean};

use super::codes;
use super::cycles::{alias_of, alias_twice, import_twice};
use super::mentions::AliasDefinition;
use super::modules::{
    Missing, ModuleLocation, RemoteImport, Target, default_alias, enter_directory, parse_import, simplest,
};
use super::nesting::Entry as NestedEntry;
use super::ranking::Step;
use super::resolve::{Alias, FrameId, Resolver, join};
use super::sharing::{Way, WayId};
use crate::syntax::{Ast, ImportAlias, StmtKind};

/// Files that import two files that import two files … beyond this are refused.
const MAXIMUM_IMPORTS: usize = 10_000;

impl Resolver<'_> {
    /// Follows the imports of a block, in source order, and enters their names.
    pub(super) fn imports(&mut self, frame: FrameId, ast: &Ast, entries: &[NestedEntry]) {
        let is_top = self.frames[frame.0].parent.is_none();
        let mut strings: HashMap<Arc<str>, (Span, Option<Arc<str>>)> = HashMap::new();
        let mut aliases: HashMap<Arc<str>, Span> = HashMap::new();
        for entry in entries {
            let statement = ast.stmt(entry.statement);
            let StmtKind::Import(import) = &statement.kind else {
                continue;
            };
            let span = statement.span;
            let first = strings.get(&import.path.text).cloned();
            if let Some((before, alias)) = &first {
                // In an inner block two of one name were found with the other names that it produces twice.
                if is_top || alias.is_none() || *alias != alias_of(import) {
                    let error = import_twice(&import.path.text, span);
                    self.report_in(Step::Imports, frame, error.because(*before, "the first one"));
                }
            } else {
                strings.insert(import.path.text.clone(), (span, alias_of(import)));
            }
            let target = parse_import(&import.path.text).and_then(|target| match &import.alias {
                None => default_alias(&import.path.text).map(|alias| (target, Some(Arc::from(alias)))),
                Some(ImportAlias::Name(name)) => Ok((target, Some(name.text.clone()))),
                Some(ImportAlias::All(_)) => Ok((target, None)),
            });
            let (target, alias) = match target {
                Ok(found) => found,
                Err(message) => {
                    let mut error =
                        Diagnostic::error(&codes::BAD_IMPORT, span, message).shown_at(import.path.span);
                    if let Some(simplest) = simplest(&import.path.text) {
                        let help = format!("in its simplest form it is `{simplest}`");
                        error = error.fix(help, import.path.span, format!("\"{simplest}\""));
                    }
                    self.report_in(Step::Imports, frame, error);
                    // What it would hold is not missed.
                    let name = match &import.alias {
                        None => simplest(&import.path.text)
                            .and_then(|simplest| default_alias(&simplest).ok())
                            .map(Arc::from),
                        Some(_) => alias_of(import),
                    };
                    if name.is_none() && !matches!(import.alias, Some(ImportAlias::All(_))) {
                        continue;
                    }
                    let definition = AliasDefinition {
                        name,
                        name_span: import.path.span,
                        statement: span,
                        include: None,
                    };
                    self.enter_alias(frame, definition, Alias::Failed);
                    continue;
                }
            };
            if let Some(alias) = &alias {
                if let Some(before) = aliases.get(alias) {
                    if is_top && first.is_none() {
                        let error = alias_twice(alias, span).because(*before, "the first one");
                        self.report_in(Step::Imports, frame, error);
                    }
                    continue;
                }
                aliases.insert(alias.clone(), span);
            }
            let scope = self
                .follow(frame, &target, &import.path.text, span)
                .unwrap_or(Alias::Failed);
            let name_span = match &import.alias {
                Some(ImportAlias::Name(name)) => name.span,
                Some(ImportAlias::All(star)) => *star,
                None => import.path.span,
            };
            let definition = AliasDefinition {
                name: alias,
                name_span,
                statement: span,
                include: None,
            };
            self.enter_alias(frame, definition, scope);
        }
    }

    /// Follows an import. None after an error, which is reported.
    fn follow(&mut self, frame: FrameId, target: &Target, import: &Arc<str>, span: Span) -> Option<Alias> {
        let place = self.files[self.file_of(frame)].place;
        let loader: &dyn Loader = if self.places[place].embedded {
            &*self.library.modules
        } else {
            self.loader
        };
        let next = match target {
            Target::System(name) => return self.follow_system(frame, name, span),
            Target::LocalFile(path) => {
                let path = join(&self.places[place].base(), path);
                if !loader.is_file(&path) {
                    self.not_found(frame, span, format!("there is no file `{path}`"), None);
                    return None;
                }
                ModuleLocation {
                    directory: path
                        .rfind('/')
                        .map(|at| path[..=at].to_owned())
                        .unwrap_or_default(),
                    metadata: None,
                    file: path,
                    parent: Some(place),
                    embedded: self.places[place].embedded,
                }
            }
            Target::LocalModule(path) => {
                let directory = join(&self.places[place].base(), path);
                match enter_directory(loader, &directory, Some(place), false) {
                    Ok(place) => place,
                    Err(missing) => {
                        self.missing(frame, span, missing);
                        return None;
                    }
                }
            }
            Target::Remote(module) => self.find_remote(frame, place, module, import, span)?,
        };
        self.enter(frame, next, span).map(Alias::Module)
    }

    fn follow_system(&mut self, frame: FrameId, name: &str, span: Span) -> Option<Alias> {
        let has_functions = self.library.functions.module(name).is_some_and(|m| !m.is_empty())
            || !self.library.functions.variables(name).is_empty();
        let main = format!("{name}/main.mcl");
        if self.library.modules.is_file(&main) {
            let place = ModuleLocation {
                directory: format!("{name}/"),
                metadata: None,
                file: main,
                parent: None,
                embedded: true,
            };
            let top = self.enter(frame, place, span)?;
            return Some(Alias::System(name.into(), Some(top)));
        }
        if has_functions && !name.is_empty() {
            return Some(Alias::System(name.into(), None));
        }
        let message = format!("there is no system module `{name}`");
        let help = did_you_mean(name, self.library.functions.module_names())
            .or_else(|| self.modules_called_so(name))
            .unwrap_or_else(|| format!("for a file write `{name}.mcl`, for a directory `{name}/`"));
        self.report_in(
            Step::Imports,
            frame,
            Diagnostic::error(&codes::UNKNOWN_MODULE, span, message).help(help),
        );
        None
    }

    /// Names the system modules whose last part is a part of this name: `math` and `golang/math` for `math/trig`.
    fn modules_called_so(&self, name: &str) -> Option<String> {
        let has_part = |module: &&str| {
            let last = module.rsplit('/').next();
            name.split('/').any(|part| !part.is_empty() && Some(part) == last)
        };
        let mut found: Vec<&str> = self.library.functions.module_names().filter(has_part).collect();
        found.sort_unstable();
        let named: Vec<String> = found.iter().map(|module| format!("`{module}`")).collect();
        match named.as_slice() {
            [] => None,
            [one] => Some(format!("there is the module {one}")),
            several => Some(format!("there are the modules {}", several.join(", "))),
        }
    }

    fn find_remote(
        &mut self,
        frame: FrameId,
        importer: usize,
        module: &str,
        import: &Arc<str>,
        span: Span,
    ) -> Option<ModuleLocation> {
        let mut candidates: Vec<String> = Vec::new();
        let mut at = Some(importer);
        while let Some(index) = at {
            let Some(metadata) = &self.places[index].metadata else {
                break;
            };
            if !metadata.path.is_empty() {
                candidates.push(format!("{}{}", self.places[index].directory, metadata.path));
            }
            if metadata.parentpathblock {
                break;
            }
            at = self.places[index].parent;
        }
        candidates.extend(self.modules_directory.map(str::to_owned));
        let found = candidates
            .iter()
            .find(|candidate| self.loader.is_file(&format!("{candidate}{module}metadata.yaml")));
        self.remote_imports.push(RemoteImport {
            import: import.clone(),
            module: module.to_owned(),
            modules_directory: found.or(candidates.first()).cloned(),
            is_there: found.is_some(),
            span,
        });
        if let Some(found) = found {
            let directory = format!("{found}{module}");
            return match enter_directory(self.loader, &directory, Some(importer), true) {
                Ok(place) => Some(place),
                Err(missing) => {
                    self.missing(frame, span, missing);
                    None
                }
            };
        }
        let message = match candidates.first() {
            Some(first) => format!("there is no module at `{first}{module}` (it needs a `metadata.yaml`)"),
            None => format!("the module `{module}` cannot be looked for: there is no modules directory"),
        };
        let help = match candidates.is_empty() {
            true => "set `path` in the module's `metadata.yaml`, or give a directory with `--module-path`",
            false => {
                "`setpoint modules get` fetches what a program imports, and so does the flag `--download`"
            }
        };
        self.not_found(frame, span, message, Some(help));
        None
    }

    fn missing(&mut self, frame: FrameId, span: Span, missing: Missing) {
        match missing {
            Missing::NotFound(message) => self.not_found(frame, span, message, None),
            Missing::BadMetadata(message) => {
                let message = format!("bad `metadata.yaml`: {message}");
                self.report_in(
                    Step::Imports,
                    frame,
                    Diagnostic::error(&codes::BAD_METADATA, span, message),
                );
            }
        }
    }

    fn not_found(&mut self, frame: FrameId, span: Span, message: String, help: Option<&str>) {
        let error = Diagnostic::error(&codes::MODULE_NOT_FOUND, span, message);
        self.report_in(Step::Imports, frame, error.help_if(help.map(str::to_owned)));
    }

    /// Resolves the file of a place, for the import at `span`.
    fn enter(&mut self, frame: FrameId, place: ModuleLocation, span: Span) -> Option<FrameId> {
        let key = place.key();
        if self.loading.contains(&key) || (!place.embedded && self.loading.first() == Some(&place.file)) {
            let message = format!("importing `{}` leads back to itself", place.file);
            self.report_in(
                Step::Imports,
                frame,
                Diagnostic::error(&codes::RECURSIVE_IMPORT, span, message),
            );
            return None;
        }
        let text = match self.read(&place) {
            Ok(text) => text,
            Err(message) => {
                self.not_found(frame, span, message, None);
                return None;
            }
        };
        let is_broken = self.files[self.file_of(frame)].is_broken;
        if !is_broken && let Some(top) = self.shared_top(&place, |this| this.way_from(frame, span)) {
            return Some(top);
        }
        if self.files.len() >= MAXIMUM_IMPORTS {
            let message = format!("this unfolds into more than {MAXIMUM_IMPORTS} imports");
            self.report_in(
                Step::Imports,
                frame,
                Diagnostic::error(&codes::TOO_DEEP, span, message),
            );
            return None;
        }
        let way = self.way_from(frame, span);
        let name = place.file.clone();
        self.places.push(place);
        let index = self.places.len() - 1;
        self.loading.push(key);
        let top = self
            .load(&name, &text, index, way, is_broken)
            .map(|file| self.top(file, false));
        self.loading.pop();
        if let Some(top) = top {
            self.share(top);
        }
        top
    }

    /// The way to what the import at `span` leads to.
    fn way_from(&mut self, frame: FrameId, span: Span) -> WayId {
        let mut order = self.blocks_around(frame);
        order.push((Step::Imports, span.start));
        let importer = &self.files[self.file_of(frame)];
        let import = importer.ways.first().map(|way| (*way, span));
        self.ways.push(Way { import, order });
        WayId(self.ways.len() as u32 - 1)
    }
}
