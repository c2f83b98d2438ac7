//! Imports: what an import string means, where its module lies, and its `metadata.yaml` (rules modules.1 to modules.20).

use std::sync::Arc;

use serde::Deserialize;
use setpoint_diagnostics::{Loader, Span};

/// What an import string asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// A module that is compiled in.
    System(String),
    /// A file, relative to the importing one.
    LocalFile(String),
    /// A directory, relative to the importing file, with its trailing slash.
    LocalModule(String),
    /// A module below a modules directory: `HOST/PATH/`.
    Remote(String),
}

/// Reads an import string.
///
/// # Errors
/// Why it is malformed (M3).
pub(super) fn parse_import(text: &str) -> Result<Target, String> {
    if text.is_empty() {
        return Err("the import names nothing".to_owned());
    }
    if text.starts_with('/') {
        return Err("an import cannot be an absolute path".to_owned());
    }
    if text.contains(|c: char| c.is_ascii_control()) {
        return Err("an import cannot hold control characters".to_owned());
    }
    let (scheme, rest) = split_scheme(text)?;
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = match (scheme, rest.strip_prefix("//")) {
        (Some(_), Some(rest)) => match rest.split_once('/') {
            Some((host, path)) => (host, format!("/{path}")),
            None => (rest, String::new()),
        },
        (Some(_), None) if !rest.starts_with('/') => ("", String::new()),
        _ => ("", rest.to_owned()),
    };
    if !escapes_are_whole(host) || !escapes_are_whole(&path) {
        return Err("a `%` in an import stands before two hexadecimal digits".to_owned());
    }
    if path.is_empty() || path == "/" {
        return Err("the import has no path".to_owned());
    }
    if !is_clean(&path) {
        return Err(format!("the path `{path}` is not in its simplest form"));
    }
    if scheme.is_some() {
        let host = host.rsplit('@').next().unwrap_or_default();
        if host.matches(':').count() > 1 {
            return Err(format!("the host `{host}` has more than one colon"));
        }
        let (host, port) = host.split_once(':').unwrap_or((host, ""));
        if !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!("the port `{port}` is not a number"));
        }
        if host.contains([' ', '<', '>', '"', '^', '`', '{', '}', '|', '\\']) {
            return Err(format!("`{host}` is not the name of a host"));
        }
        let module = format!("{host}{}/", path.trim_end_matches('/'));
        return Ok(Target::Remote(module.trim_start_matches('/').to_owned()));
    }
    if path.ends_with('/') {
        Ok(Target::LocalModule(path))
    } else if path.ends_with(".mcl") {
        Ok(Target::LocalFile(path))
    } else {
        Ok(Target::System(path))
    }
}

/// The alias of an import that is written without one.
///
/// # Errors
/// Why it has none (M3).
pub(super) fn default_alias(text: &str) -> Result<String, String> {
    let target = parse_import(text)?;
    let path = text
        .split(['?', '#'])
        .next()
        .unwrap_or_default()
        .trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or_default();
    let last = match last.strip_prefix("mgmt-") {
        Some(rest) if !rest.is_empty() => rest,
        _ => last,
    };
    let alias = last.replace('-', "_");
    if alias.starts_with('_') || alias.ends_with('_') {
        return Err(format!(
            "`{last}` gives no proper name for the module; write one with `as`"
        ));
    }
    let alias = alias.to_lowercase();
    match target {
        Target::LocalFile(_) => Ok(alias.strip_suffix(".mcl").unwrap_or(&alias).to_owned()),
        Target::System(_) | Target::LocalModule(_) | Target::Remote(_) => Ok(alias),
    }
}

fn split_scheme(text: &str) -> Result<(Option<&str>, &str), String> {
    let segment = &text[..text.find(['/', '?', '#']).unwrap_or(text.len())];
    let Some(colon) = segment.find(':') else {
        return Ok((None, text));
    };
    let scheme = &text[..colon];
    let well_formed = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    if well_formed {
        Ok((Some(scheme), &text[colon + 1..]))
    } else {
        Err(format!("`{scheme}` before the colon is not a scheme"))
    }
}

/// Whether every `%` has its two hexadecimal digits.
fn escapes_are_whole(text: &str) -> bool {
    let hexadecimal = |b: Option<&u8>| b.is_some_and(u8::is_ascii_hexdigit);
    let bytes = text.as_bytes();
    bytes
        .iter()
        .enumerate()
        .all(|(at, byte)| *byte != b'%' || (hexadecimal(bytes.get(at + 1)) && hexadecimal(bytes.get(at + 2))))
}

/// The path of an import that is not in its simplest form in that form, if it then is one.
pub(super) fn simplest(text: &str) -> Option<String> {
    if text.starts_with('/') || text.contains(':') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match (part, parts.last()) {
            ("..", Some(last)) if *last != ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    let end = if text.ends_with('/') { "/" } else { "" };
    let simplest = parts.join("/") + end;
    (simplest != text && parse_import(&simplest).is_ok()).then_some(simplest)
}

/// Whether a path equals itself after lexical cleaning, one trailing slash aside.
fn is_clean(path: &str) -> bool {
    let body = path.strip_suffix('/').unwrap_or(path);
    if body == "." {
        return true;
    }
    let body = body.strip_prefix('/').unwrap_or(body);
    let mut named = false;
    body.split('/').all(|part| match part {
        "" | "." => false,
        ".." => !named && !path.starts_with('/'),
        _ => {
            named = true;
            true
        }
    })
}

/// An import of a module from elsewhere, and where such a module is kept. This crate only looks there: whoever compiles may fetch
/// what is missing, and compile again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteImport {
    /// The import string.
    pub import: Arc<str>,
    /// The module's directory below a modules directory: `HOST/PATH/`.
    pub module: String,
    /// The modules directory in which it is, or to which it would be fetched; it ends in `/`. None where there is no such directory.
    pub modules_directory: Option<String>,
    /// Whether it is there.
    pub is_there: bool,
    /// The import statement.
    pub span: Span,
}

/// `metadata.yaml` of a module.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Metadata {
    /// Entry file, relative to the metadata.
    pub main: String,
    /// Directory to look for remote modules in; empty for none.
    pub path: String,
    /// Directory of extra files; empty for none.
    pub files: String,
    /// Name of the licence.
    pub license: String,
    /// Whether the search for remote modules stops here.
    pub parentpathblock: bool,
}

impl Default for Metadata {
    fn default() -> Metadata {
        Metadata {
            main: "main.mcl".to_owned(),
            path: String::new(),
            files: "files/".to_owned(),
            license: String::new(),
            parentpathblock: false,
        }
    }
}

impl Metadata {
    /// Reads and checks the text of a `metadata.yaml`.
    ///
    /// # Errors
    /// What is wrong with it (M8).
    pub fn parse(text: &str) -> Result<Metadata, String> {
        let blank = text.lines().all(|line| {
            let line = line.trim();
            line.is_empty() || line.starts_with('#') || line == "---" || line == "..."
        });
        if blank {
            return Ok(Metadata::default());
        }
        let metadata: Option<Metadata> = serde_saphyr::from_str(text).map_err(|error| {
            error
                .to_string()
                .lines()
                .next()
                .unwrap_or("it cannot be read as YAML")
                .to_owned()
        })?;
        let metadata = metadata.unwrap_or_default();
        if metadata.main.is_empty() || metadata.main.starts_with('/') || metadata.main.ends_with('/') {
            return Err(format!(
                "`main: {}` must be the relative path of a file",
                metadata.main
            ));
        }
        for (key, value) in [("path", &metadata.path), ("files", &metadata.files)] {
            if !value.is_empty() && (value.starts_with('/') || !value.ends_with('/')) {
                return Err(format!(
                    "`{key}: {value}` must be a relative path that ends in `/`"
                ));
            }
        }
        for (key, value) in [("main", &metadata.main), ("files", &metadata.files)] {
            if value.split('/').any(|part| part == "..") {
                return Err(format!(
                    "`{key}: {value}` must not lead out of the module's directory"
                ));
            }
        }
        Ok(metadata)
    }
}

/// A module or single file whose text is compiled: where its imports are looked for.
#[derive(Debug, Clone)]
pub(super) struct ModuleLocation {
    /// Directory of the metadata, or of the file; empty or ending in `/`.
    pub(super) directory: String,
    /// Its metadata; none for a plain file.
    pub(super) metadata: Option<Metadata>,
    /// The file.
    pub(super) file: String,
    /// Index of the place that imported it.
    pub(super) parent: Option<usize>,
    /// Whether it lies in [`Library::modules`](setpoint_graph::Library) instead of the program's own files.
    pub(super) embedded: bool,
}

impl ModuleLocation {
    /// What tells its file from all others, also where loaders have some of one name.
    pub(super) fn key(&self) -> String {
        let prefix = if self.embedded { "embedded:" } else { "" };
        format!("{prefix}{}", self.file)
    }

    /// Where local imports are relative to; empty or ending in `/`.
    pub(super) fn base(&self) -> String {
        match self.file.rfind('/') {
            Some(at) => self.file[..=at].to_owned(),
            None => String::new(),
        }
    }
}

/// Why a module cannot be entered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// No such directory or file (M7).
    NotFound(String),
    /// Its metadata is bad (M8).
    BadMetadata(String),
}

/// The place of a module directory (ending in `/` or empty).
///
/// # Errors
/// When it has neither metadata nor `main.mcl`, or bad metadata.
pub(super) fn enter_directory(
    loader: &dyn Loader,
    directory: &str,
    parent: Option<usize>,
    needs_metadata: bool,
) -> Result<ModuleLocation, Missing> {
    let metadata_path = format!("{directory}metadata.yaml");
    let place = |metadata: Option<Metadata>, file: String| ModuleLocation {
        directory: directory.to_owned(),
        metadata,
        file,
        parent,
        embedded: false,
    };
    if loader.is_file(&metadata_path) {
        let bytes = loader
            .read(&metadata_path)
            .map_err(|e| Missing::BadMetadata(e.to_string()))?;
        let text = String::from_utf8_lossy(&bytes);
        let metadata = Metadata::parse(&text).map_err(Missing::BadMetadata)?;
        let file = format!("{directory}{}", metadata.main);
        if !loader.is_file(&file) {
            return Err(Missing::NotFound(format!(
                "`{file}`, which its metadata names as `main`, does not exist"
            )));
        }
        return Ok(place(Some(metadata), file));
    }
    if needs_metadata {
        return Err(Missing::NotFound(format!("`{metadata_path}` does not exist")));
    }
    let file = format!("{directory}main.mcl");
    if loader.is_file(&file) {
        return Ok(place(None, file));
    }
    Err(Missing::NotFound(format!(
        "`{directory}` has neither a `metadata.yaml` nor a `main.mcl`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_follow_the_last_segment() {
        for (import, alias) in [
            ("golang/strings", "strings"),
            ("a/srv.mcl", "srv"),
            ("b/baz/", "baz"),
            ("git://h/u/mgmt-foo", "foo"),
            ("git://h/u/FOO-bar/", "foo_bar"),
            ("map", "map"),
        ] {
            assert_eq!(default_alias(import).as_deref(), Ok(alias), "{import}");
        }
        assert!(default_alias("git://h/u/foo-").is_err());
    }

    #[test]
    fn malformed_imports_are_refused_and_clean_ones_classified() {
        for text in [
            "",
            "/x",
            "./x.mcl",
            "a//b/",
            "a/../b/",
            "git:////x/",
            "git://h",
            "a/./b",
            "git://h:1:2/x",
            "git:x",
            "git://h:port/x",
            "a%zz/",
            "a\nb",
        ] {
            assert!(parse_import(text).is_err(), "{text}");
        }
        assert_eq!(parse_import("../x.mcl"), Ok(Target::LocalFile("../x.mcl".into())));
        assert_eq!(parse_import("../m/"), Ok(Target::LocalModule("../m/".into())));
        assert_eq!(parse_import("git:///srv/x/"), Ok(Target::Remote("srv/x/".into())));
        assert_eq!(
            parse_import("https://h:80/u/x?a=b"),
            Ok(Target::Remote("h/u/x/".into()))
        );
    }

    #[test]
    fn metadata_has_defaults_and_checks() {
        assert_eq!(Metadata::parse(""), Ok(Metadata::default()));
        assert_eq!(Metadata::parse("# nothing\n---\n"), Ok(Metadata::default()));
        assert_eq!(
            Metadata::parse("main: x/y.mcl\nother: 3\n")
                .map(|m| m.main)
                .as_deref(),
            Ok("x/y.mcl")
        );
        for text in [
            "main: /x.mcl",
            "main: x/",
            "path: x",
            "path: /x/",
            "files: y",
            "main: [1]",
        ] {
            assert!(Metadata::parse(text).is_err(), "{text}");
        }
    }
}
