//! The files that a program came with: its texts, and the `files/` of its modules.

use std::collections::BTreeMap;

use setpoint_diagnostics::{Loader, SourceMap};
use setpoint_host::files::AbsolutePath;
use setpoint_mcl::{Compiled, Metadata};
use setpoint_resources::{ProgramFile, ProgramFileContent};
use setpoint_value::Deploy;

use crate::directory_loader::DirectoryLoader;

/// A program's files, by their paths in the deploy, read from where they lie.
pub struct ProgramFiles {
    loader: DirectoryLoader,
    files: BTreeMap<String, Lies>,
    plain: bool,
    state_directory: String,
}

/// Where a file of a deploy lies.
enum Lies {
    /// At this path for the loader.
    At(String),
    /// Nowhere: it is this text.
    Nowhere(String),
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
            if !program.files.contains_key("/metadata.yaml") {
                program.make_up(main.rsplit('/').next().unwrap_or(main));
            }
        }
        program
    }

    /// With this text as the program, which lies in no file.
    #[must_use]
    pub fn with_code(mut self, code: Option<&str>) -> ProgramFiles {
        let Some(code) = code else { return self };
        // Files that it imports lie there, too, and may have any name.
        let further = (2..).map(|number| format!("main-{number}.mcl"));
        let mut names = std::iter::once("main.mcl".to_owned()).chain(further);
        let name = names
            .find(|name| !self.files.contains_key(&format!("/{name}")))
            .expect("there are more names than files");
        self.make_up(&name);
        self.files
            .insert(format!("/{name}"), Lies::Nowhere(code.to_owned()));
        self
    }

    /// Makes the metadata up that a program without its own gets.
    fn make_up(&mut self, main: &str) {
        let text = format!("main: \"{main}\"\n");
        self.files
            .insert("/metadata.yaml".to_owned(), Lies::Nowhere(text));
    }

    /// All of them: their paths, permissions and contents. A text that was compiled is what was compiled, whatever the file is now.
    pub fn all<'a>(
        &'a self,
        texts: &'a SourceMap,
    ) -> impl Iterator<Item = (String, u32, Result<Vec<u8>, String>)> + 'a {
        self.files.iter().map(|(path, file)| {
            let compiled = match file {
                Lies::Nowhere(_) => None,
                Lies::At(file) => {
                    let mut texts = texts.files().map(|(_, text)| text);
                    let found = texts.find(|text| *text.name == **file);
                    found.map(|text| text.text.as_bytes().to_vec())
                }
            };
            let content = compiled.map_or_else(|| self.read(path), Ok);
            (path.clone(), self.mode(path), content)
        })
    }

    /// The places on this machine where they lie.
    pub fn places(&self) -> Vec<std::path::PathBuf> {
        let places = self.files.values().filter_map(|file| match file {
            Lies::At(file) => self.loader.real_path(file).ok(),
            Lies::Nowhere(_) => None,
        });
        places.collect()
    }

    /// All of them, where they lie. What lies nowhere is what was compiled.
    pub fn listed(&self, texts: &SourceMap) -> Vec<ProgramFile> {
        let listed = self.files.iter().map(|(path, file)| {
            let text = |bytes: &[u8]| ProgramFileContent::Bytes(bytes.into());
            let content = match file {
                Lies::Nowhere(made_up) => text(made_up.as_bytes()),
                Lies::At(file) => {
                    let real = self.loader.real_path(file).ok();
                    let real = real.and_then(|path| AbsolutePath::new(path).ok());
                    let mut texts = texts.files().map(|(_, text)| text);
                    match (real, texts.find(|text| *text.name == **file)) {
                        (Some(real), _) => ProgramFileContent::At(real),
                        (None, Some(compiled)) => text(compiled.text.as_bytes()),
                        (None, None) => return None,
                    }
                }
            };
            Some(ProgramFile {
                path: path.clone(),
                content,
            })
        });
        listed.flatten().collect()
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
            self.files.insert(place, Lies::At(path.to_owned()));
        }
    }
}

impl Deploy for ProgramFiles {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        match self.files.get(path) {
            Some(Lies::At(file)) => self
                .loader
                .read(file)
                .map(|bytes| bytes.to_vec())
                .map_err(|error| error.to_string()),
            Some(Lies::Nowhere(text)) => Ok(text.clone().into_bytes()),
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
        let found = match self.files.get(path) {
            Some(Lies::At(file)) => std::fs::metadata(self.loader.root().join(file)).ok(),
            Some(Lies::Nowhere(_)) | None => None,
        };
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
