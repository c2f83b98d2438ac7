//! The files that a program came with: its texts, and the `files/` of its modules.

use std::collections::BTreeMap;

use setpoint_diagnostics::{Loader, SourceMap};
use setpoint_mcl::{Compiled, Metadata};
use setpoint_value::Deploy;

use crate::directory_loader::DirectoryLoader;

/// A program's files, by their paths in the deploy, read from where they lie.
pub struct ProgramFiles {
    loader: DirectoryLoader,
    /// Path in the deploy to path for the loader; none for one that is made up.
    files: BTreeMap<String, Option<String>>,
    /// The metadata that a program without its own gets.
    made_up: String,
    plain: bool,
    state_directory: String,
}

impl ProgramFiles {
    /// The files of a compiled program. Below `modules_directory` they go to `/modules/`; `state_directory` ends in `/`.
    #[must_use]
    pub fn new(
        compiled: &Compiled,
        loader: &DirectoryLoader,
        modules_directory: Option<&str>,
        state_directory: String,
    ) -> ProgramFiles {
        let mut program = ProgramFiles {
            loader: loader.clone(),
            files: BTreeMap::new(),
            made_up: String::new(),
            plain: compiled.plain,
            state_directory,
        };
        for path in &compiled.files {
            program.add(path, modules_directory);
            let Some(directory) = path.strip_suffix("metadata.yaml") else {
                continue;
            };
            let text = loader
                .read(path)
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let Some(metadata) = text.ok().and_then(|text| Metadata::parse(&text).ok()) else {
                continue;
            };
            let extra = format!("{directory}{}", metadata.files);
            if !metadata.files.is_empty() && loader.is_directory(&extra) {
                for file in loader.list(&extra).unwrap_or_default() {
                    program.add(&file, modules_directory);
                }
            }
        }
        if compiled.plain {
            let main = compiled.files.first().map_or("main.mcl", String::as_str);
            program.made_up = format!("main: \"{}\"\n", main.rsplit('/').next().unwrap_or(main));
            program.files.entry("/metadata.yaml".to_owned()).or_insert(None);
        }
        program
    }

    /// All of them: their paths, permissions and contents. A text that was compiled is what was compiled, whatever the file is now.
    pub(crate) fn all<'a>(
        &'a self,
        texts: &'a SourceMap,
    ) -> impl Iterator<Item = (String, u32, Result<Vec<u8>, String>)> + 'a {
        self.files.iter().map(|(path, file)| {
            let compiled = file.as_ref().and_then(|file| {
                let mut texts = texts.files().map(|(_, text)| text);
                texts
                    .find(|text| *text.name == **file)
                    .map(|text| text.text.as_bytes().to_vec())
            });
            let content = compiled.map_or_else(|| self.read(path), Ok);
            (path.clone(), self.mode(path), content)
        })
    }

    fn add(&mut self, path: &str, modules_directory: Option<&str>) {
        let module = modules_directory.and_then(|directory| path.strip_prefix(directory));
        let place = match module {
            Some(rest) => format!("/modules/{rest}"),
            None => format!("/{path}"),
        };
        // What lies outside of both roots cannot be named from inside.
        let is_outside =
            place.split('/').any(|part| part == "..") || (module.is_none() && path.starts_with('/'));
        if !is_outside {
            self.files.insert(place, Some(path.to_owned()));
        }
    }
}

impl Deploy for ProgramFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match self.files.get(path) {
            Some(Some(file)) => self
                .loader
                .read(file)
                .map(|bytes| bytes.to_vec())
                .map_err(|error| error.to_string()),
            Some(None) => Ok(self.made_up.clone().into_bytes()),
            None => Err("the program came without such a file".to_owned()),
        }
    }

    fn exists(&self, path: &str) -> bool {
        let below = format!("{}/", path.trim_end_matches('/'));
        self.files.contains_key(path)
            || self
                .files
                .range(below.clone()..)
                .next()
                .is_some_and(|(file, _)| file.starts_with(&below))
    }

    fn mode(&self, path: &str) -> u32 {
        use std::os::unix::fs::PermissionsExt;
        let file = self.files.get(path).and_then(Option::as_ref);
        let found = file.and_then(|file| std::fs::metadata(self.loader.root().join(file)).ok());
        found.map_or(0o644, |found| found.permissions().mode() & 0o7777)
    }

    fn list(&self, directory: &str) -> Vec<String> {
        let below = format!("{}/", directory.trim_end_matches('/'));
        self.files
            .keys()
            .filter(|file| file.starts_with(&below))
            .cloned()
            .collect()
    }

    fn is_plain_file(&self) -> bool {
        self.plain
    }

    fn state_directory(&self) -> String {
        self.state_directory.clone()
    }
}
