//! What the program that starts a server gives it.

use setpoint_diagnostics::Loader;
use setpoint_graph::Library;

/// What a server is given.
pub struct Setup {
    /// What programs can use.
    pub library: Library,
    /// What models can use.
    pub model_library: Library,
    /// The files on disk.
    pub files: Box<dyn Files>,
    /// The directory of modules from elsewhere, ending in `/`.
    pub modules_directory: Option<String>,
    /// The page that explains a code, as Markdown.
    pub page: fn(&str) -> Option<&'static str>,
    /// The version that is told to clients.
    pub version: &'static str,
}

/// The files on disk, by absolute path.
pub trait Files: Send + Sync {
    /// Reads the files of a program: its root directory, ending in `/`, and the file that it begins with, if it is no directory.
    fn open(&self, root: &str, entry: Option<&str>) -> Box<dyn Loader>;

    /// Reads the files of a model: its root directory, ending in `/`, and what its project says of directories of modules elsewhere.
    fn open_model(&self, root: &str) -> Box<dyn Loader> {
        self.open(root, None)
    }

    /// Directories of modules of models that belong to no project, which [`Files::open_model`] reads too.
    fn module_path(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether a file is there.
    fn is_file(&self, path: &str) -> bool;

    /// The names in a directory, those of directories ending in `/`.
    fn names(&self, directory: &str) -> Vec<String>;
}
