//! What a program is given as: the forms of `INPUT`.

use std::io::{ErrorKind, Read};
use std::path::Path;

use setpoint_mcl::Entry;

use crate::failure::system_text;

/// A program that was found.
#[derive(Debug, Clone)]
pub struct Input {
    /// Where it begins, relative to `root`.
    pub entry: Entry,
    /// Its root directory, as the user can open it: empty or ending in `/`.
    pub root: String,
    /// Whether it is no text of the language but a graph in YAML.
    pub is_yaml: bool,
}

/// Why there is no program.
#[derive(Debug, PartialEq, Eq)]
pub struct BadInput {
    /// One line.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl Input {
    /// Finds the graph in YAML behind an argument: `-` or a file of any name.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn find_yaml(argument: &str, stdin: &mut dyn Read) -> Result<Input, BadInput> {
        let path = Path::new(argument);
        if argument != "-" && !path.is_file() {
            let message = match path.is_dir() {
                true => format!("`{argument}` is a directory"),
                false => missing("file", argument, path),
            };
            return Err(BadInput { message, help: None });
        }
        let mut input = match argument {
            "-" => Input::find("-", stdin)?,
            _ => Input::file(argument),
        };
        input.is_yaml = true;
        Ok(input)
    }

    /// Finds the program behind an argument: `-`, a `.mcl` file, a `metadata.yaml`, a directory, another file in YAML, or code.
    ///
    /// # Errors
    /// When the argument is none of these.
    pub fn find(argument: &str, stdin: &mut dyn Read) -> Result<Input, BadInput> {
        let bad = |message: String, help: Option<&str>| {
            Err(BadInput {
                message,
                help: help.map(str::to_owned),
            })
        };
        let path = Path::new(argument);
        if argument.is_empty() {
            return bad("there is no program: the argument is empty".to_owned(), None);
        }
        if argument == "-" {
            let mut text = Vec::new();
            return match stdin.read_to_end(&mut text).map(|_| String::from_utf8(text)) {
                Ok(Ok(text)) => Ok(Input::code("<stdin>", text)),
                Ok(Err(_)) => bad("standard input is not UTF-8 text".to_owned(), None),
                Err(error) => bad(
                    format!("standard input cannot be read: {}", system_text(&error)),
                    None,
                ),
            };
        }
        if argument == "metadata.yaml" {
            return bad(
                "`metadata.yaml` alone is taken for code".to_owned(),
                Some("write `./metadata.yaml` to run the module of this directory"),
            );
        }
        if let Some(root) = argument
            .strip_suffix("metadata.yaml")
            .filter(|root| root.ends_with('/'))
        {
            if !path.is_file() {
                return bad(missing("file", argument, path), None);
            }
            return Ok(Input {
                entry: Entry::Directory(String::new()),
                root: root.to_owned(),
                is_yaml: false,
            });
        }
        if argument.ends_with(".mcl") {
            if path.is_dir() {
                return bad(
                    format!("`{argument}` is a directory"),
                    Some("add a slash to its end"),
                );
            }
            if !path.exists() {
                return bad(missing("file", argument, path), None);
            }
            return Ok(Input::file(argument));
        }
        if argument.ends_with('/') || path.is_dir() {
            if !path.is_dir() {
                return bad(missing("directory", argument, path), None);
            }
            let root = if argument.ends_with('/') {
                argument.to_owned()
            } else {
                format!("{argument}/")
            };
            let begins = ["metadata.yaml", "main.mcl"].map(|name| format!("{root}{name}"));
            if !begins.iter().any(|name| Path::new(name).is_file()) {
                if let Some(message) = begins.iter().find_map(|name| hidden(name, Path::new(name))) {
                    return bad(message, None);
                }
                let message = format!("`{root}` has neither a `metadata.yaml` nor a `main.mcl`");
                return bad(message, Some("name the file that the program begins with"));
            }
            return Ok(Input {
                entry: Entry::Directory(String::new()),
                root,
                is_yaml: false,
            });
        }
        if is_yaml(argument) {
            return Input::find_yaml(argument, stdin);
        }
        if path.exists() {
            let help = "the name of a program ends in `.mcl`; `-` reads one from standard input";
            return bad(format!("`{argument}` is not a program by its name"), Some(help));
        }
        if argument.contains('/') && !argument.contains(char::is_whitespace) {
            return bad(missing("file or directory", argument, path), None);
        }
        // No program is a single word.
        let is_word = |char: char| char.is_alphanumeric() || "._-".contains(char);
        if argument.chars().all(is_word) {
            let message =
                format!("there is no file or directory `{argument}`, and as code it is not a program either");
            let file = format!("{argument}.mcl");
            let help = Path::new(&file)
                .is_file()
                .then(|| format!("did you mean `{file}`?"));
            return bad(message, help.as_deref());
        }
        Ok(Input::code("<argument>", argument.to_owned()))
    }

    fn file(path: &str) -> Input {
        let (root, name) = path.split_at(path.rfind('/').map_or(0, |at| at + 1));
        Input {
            entry: Entry::File(name.to_owned()),
            root: root.to_owned(),
            is_yaml: false,
        }
    }

    fn code(name: &str, text: String) -> Input {
        Input {
            entry: Entry::Code {
                name: name.to_owned(),
                text,
            },
            root: String::new(),
            is_yaml: false,
        }
    }

    /// A file of the program as the user can open it.
    pub fn shown(&self, name: &str) -> String {
        if name.starts_with(['/', '<']) {
            name.to_owned()
        } else {
            format!("{}{name}", self.root)
        }
    }
}

/// Whether an argument names a file in YAML.
fn is_yaml(argument: &str) -> bool {
    let extension = Path::new(argument)
        .extension()
        .and_then(|extension| extension.to_str());
    !argument.contains(char::is_whitespace) && matches!(extension, Some("yaml" | "yml"))
}

/// Says that nothing is there; or, where that cannot be known, why not.
fn missing(what: &str, argument: &str, path: &Path) -> String {
    hidden(argument, path).unwrap_or_else(|| format!("there is no {what} `{argument}`"))
}

/// Why it cannot be known whether something is there, if it cannot.
fn hidden(argument: &str, path: &Path) -> Option<String> {
    let error = std::fs::metadata(path).err()?;
    let is_known = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    (!is_known).then(|| format!("`{argument}` cannot be looked at: {}", system_text(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(argument: &str) -> Result<Input, BadInput> {
        Input::find(argument, &mut &b"from stdin\n"[..])
    }

    #[test]
    fn every_form_of_input_is_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
        for (name, text) in [
            ("a.mcl", ""),
            ("m/metadata.yaml", ""),
            ("d/main.mcl", ""),
            ("other.txt", ""),
            ("graph.yaml", ""),
        ] {
            std::fs::create_dir_all(directory.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        std::fs::create_dir(directory.path().join("empty")).unwrap();
        let form = |argument: &str| match find(argument).unwrap().entry {
            Entry::Code { name, text } => format!("code {name} {}", text.trim()),
            Entry::File(name) => format!("file {name}"),
            Entry::Directory(name) => format!("directory {name:?}"),
        };
        assert_eq!(form("-"), "code <stdin> from stdin");
        assert_eq!(form("test \"/x\" {}"), "code <argument> test \"/x\" {}");
        assert_eq!(form(&path("graph.yaml")), "file graph.yaml");
        assert!(find(&path("graph.yaml")).unwrap().is_yaml);
        assert_eq!(form(&path("a.mcl")), "file a.mcl");
        assert_eq!(form(&path("m/metadata.yaml")), "directory \"\"");
        assert_eq!(form(&path("d/")), "directory \"\"");
        assert_eq!(form(&path("d")), "directory \"\"");
        assert_eq!(find(&path("d")).unwrap().shown("main.mcl"), path("d/main.mcl"));
        for wrong in [
            "",
            "metadata.yaml",
            "no/such",
            "no.mcl",
            "no/",
            "nope",
            "main.cf",
            "graph.yaml",
            &path("other.txt"),
            &path("empty/"),
        ] {
            assert!(find(wrong).is_err(), "{wrong}");
        }
        assert!(
            find("metadata.yaml")
                .unwrap_err()
                .help
                .unwrap()
                .contains("./metadata.yaml")
        );
    }

    #[test]
    fn what_cannot_be_looked_at_is_not_said_to_be_missing() {
        let directory = tempfile::tempdir().unwrap();
        let main = directory.path().join("main.mcl");
        std::os::unix::fs::symlink("main.mcl", &main).unwrap();
        for argument in [directory.path(), &main] {
            let message = find(&argument.to_string_lossy()).unwrap_err().message;
            let wanted = format!(
                "`{}` cannot be looked at: Too many levels of symbolic links",
                main.display()
            );
            assert_eq!(message, wanted);
        }
    }
}
