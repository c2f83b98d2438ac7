//! The files of a model: those of its project, and of directories of modules that lie elsewhere.

use std::path::PathBuf;
use std::sync::Arc;

use setpoint_cf::project;
use setpoint_diagnostics::{LoadError, Loader};

use crate::directory_loader::DirectoryLoader;

/// The files of a project: also below directories of modules that it says lie outside of it, and of those that are named here.
pub fn model_loader(root: &str, module_path: &[String]) -> ModelLoader {
    let mut loader = ModelLoader::new(root);
    loader.allow(module_path);
    let of_project = project::module_path(&loader, "");
    loader.allow(&of_project);
    loader
}

/// The files of a project, and of the directories that it has modules in.
pub struct ModelLoader {
    root: PathBuf,
    own: DirectoryLoader,
    /// Directories of modules that lie outside of the project, as the model names them.
    outside: Vec<(String, DirectoryLoader)>,
}

impl ModelLoader {
    fn new(root: &str) -> ModelLoader {
        let root = PathBuf::from(root);
        ModelLoader {
            own: DirectoryLoader::new(&root),
            root,
            outside: Vec::new(),
        }
    }

    /// Reads also below these, where they lie outside of the project.
    fn allow(&mut self, module_path: &[String]) {
        for directory in module_path {
            let name = directory.trim_end_matches('/');
            let leads_out = name.starts_with('/') || name.split('/').any(|part| part == "..");
            if leads_out && self.outside.iter().all(|(known, _)| known != name) {
                let loader = DirectoryLoader::new(self.root.join(name));
                self.outside.push((name.to_owned(), loader));
            }
        }
    }

    /// The loader that has a path, what the path begins with, and what is left of it for the loader.
    fn at<'a>(&'a self, path: &'a str) -> (&'a DirectoryLoader, &'a str, &'a str) {
        let found = self.outside.iter().find_map(|(name, loader)| {
            let rest = path.strip_prefix(name.as_str())?;
            match rest.strip_prefix('/') {
                Some(below) => Some((loader, &path[..=name.len()], below)),
                None => rest.is_empty().then_some((loader, path, "")),
            }
        });
        found.unwrap_or((&self.own, "", path))
    }
}

impl Loader for ModelLoader {
    fn read(&self, path: &str) -> Result<Arc<[u8]>, LoadError> {
        let (loader, _, rest) = self.at(path);
        loader.read(rest)
    }

    fn is_file(&self, path: &str) -> bool {
        let (loader, _, rest) = self.at(path);
        loader.is_file(rest)
    }

    fn is_directory(&self, path: &str) -> bool {
        let (loader, _, rest) = self.at(path);
        loader.is_directory(rest)
    }

    fn list(&self, directory: &str) -> Result<Vec<String>, LoadError> {
        let (loader, before, rest) = self.at(directory);
        let found = loader.list(rest)?;
        Ok(found.into_iter().map(|path| format!("{before}{path}")).collect())
    }
}
