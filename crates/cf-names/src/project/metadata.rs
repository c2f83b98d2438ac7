//! What `module.yml` and `setup.cfg` say about a module.

use std::sync::{Arc, LazyLock};

use fancy_regex::Regex;
use setpoint_diagnostics::{Diagnostic, FileId, Span};

use super::modules::PACKAGE_PREFIX;
use super::requirements::{Versions, Written};
use super::settings::texts;
use super::yaml::{self, Node, Yaml};
use super::{Reading, codes};

static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"(?i)^v?(\d+!)?\d+(\.\d+)*([-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?(-\d+|[-_.]?(post|rev|r)[-_.]?\d*)?([-_.]?dev[-_.]?\d*)?(\+[a-z0-9]+([-_.][a-z0-9]+)*)?$";
    Regex::new(pattern).expect("the pattern is right")
});

/// Reads and checks the `module.yml` of a module with the older layout.
pub(super) fn older_module(
    reading: &mut Reading<'_>,
    path: &str,
    name: &str,
    import: Option<Span>,
) -> Versions {
    let mut versions = Versions::default();
    let Some((file, text)) = read(reading, path) else {
        return versions;
    };
    let whole = Span::new(file, 0, text.len() as u32);
    let node = match yaml::parse(file, &text) {
        Ok(node) => node,
        Err(malformed) => {
            let message = format!("`{path}` is no YAML: {}", malformed.reason);
            reading
                .diagnostics
                .push(codes::bad_field(malformed.span, message));
            return versions;
        }
    };
    let Some(fields) = node.map() else {
        let message = format!("`{path}` must be a map, not {}", node.value.sort());
        reading.diagnostics.push(codes::bad_field(node.span, message));
        return versions;
    };
    let field = |wanted: &str| {
        fields
            .iter()
            .find(|(key, _)| &*key.text == wanted)
            .map(|(_, node)| node)
    };
    for required in ["name", "version", "license"] {
        match field(required) {
            None => reading
                .diagnostics
                .push(missing(first_line(whole, &text), required, path)),
            Some(node) => text_field(reading, required, node),
        }
    }
    if let Some(node) = field("version")
        && let Some(version) = node.text()
        && !is_version(&version)
    {
        let message = format!("`version: {version}` is no version");
        let error = codes::bad_field(node.span, message);
        reading
            .diagnostics
            .push(error.help("a version is numbers with dots: `1.0.2`"));
    }
    let deprecated = field("deprecated").is_some_and(|node| matches!(node.value, Yaml::Bool(true)));
    warn_of_age(reading, name, import, deprecated, true);
    versions.own = field("version").and_then(|node| Some((node.text()?, node.span)));
    if let Some((key, node)) = fields.iter().find(|(key, _)| &*key.text == "requires") {
        versions.requires = texts(reading, key, node);
    }
    versions
}

/// Reads and checks the `setup.cfg` of a module with the newer layout.
pub(super) fn package(reading: &mut Reading<'_>, path: &str, name: &str, import: Option<Span>) -> Versions {
    let Some((file, text)) = read(reading, path) else {
        return Versions::default();
    };
    let values = metadata_section(file, &text);
    let value = |wanted: &str| values.iter().find(|value| value.key == wanted);
    let beginning = first_line(Span::new(file, 0, text.len() as u32), &text);
    for required in ["name", "version", "license"] {
        if value(required).is_none() {
            reading
                .diagnostics
                .push(missing(beginning, &format!("[metadata] {required}"), path));
        }
    }
    if let Some(found) = value("name") {
        let wanted = format!("{PACKAGE_PREFIX}{}", name.replace('_', "-"));
        if found.text.replace('_', "-") != wanted {
            let message = format!(
                "the package of module `{name}` is called `{}`, not `{wanted}`",
                found.text
            );
            let error = codes::bad_field(found.span, message);
            reading.diagnostics.push(error.fix(
                "the name of a package follows from that of its module",
                found.span,
                wanted,
            ));
        }
    }
    if let Some(found) = value("version") {
        let is_base = found
            .text
            .split('.')
            .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
        if !is_base {
            let message = format!("`version = {}` is no base version", found.text);
            let error = codes::bad_field(found.span, message);
            reading
                .diagnostics
                .push(error.help("a base version is numbers with dots; `tag_build` adds what follows"));
        }
    }
    let deprecated = value("deprecated").is_some_and(|value| value.text.eq_ignore_ascii_case("true"));
    warn_of_age(reading, name, import, deprecated, false);
    Versions {
        own: value("version").map(|found| (found.text.as_str().into(), found.span)),
        requires: required_packages(file, &text),
    }
}

fn warn_of_age(reading: &mut Reading<'_>, name: &str, import: Option<Span>, deprecated: bool, older: bool) {
    let Some(import) = import else {
        return;
    };
    let warning =
        |message| Diagnostic::warning(&codes::DEPRECATED_MODULE, import, message).label("imported here");
    if deprecated {
        let message = format!("module `{name}` is deprecated");
        reading
            .diagnostics
            .push(warning(message).of_class("ModuleDeprecationWarning"));
    }
    if older {
        let message = format!("module `{name}` has the older layout with a `module.yml`");
        let advice = "the newer layout is a Python package with a `setup.cfg`";
        reading
            .diagnostics
            .push(warning(message).of_class("InmantaWarning").help(advice));
    }
}

fn read(reading: &mut Reading<'_>, path: &str) -> Option<(FileId, Arc<str>)> {
    match reading.text(path) {
        Ok(text) => Some((super::source_file(reading.sources, path, &text), text)),
        Err(reason) => {
            let file = super::source_file(reading.sources, path, "");
            let message = format!("`{path}` cannot be read: {reason}");
            let error = codes::bad_field(Span::new(file, 0, 0), message);
            reading.diagnostics.push(error);
            None
        }
    }
}

fn missing(place: Span, field: &str, path: &str) -> Diagnostic {
    codes::bad_field(place, format!("`{path}` has no `{field}`"))
}

fn first_line(whole: Span, text: &str) -> Span {
    let line = text.lines().next().unwrap_or("");
    Span::new(whole.file, 0, line.len() as u32)
}

fn text_field(reading: &mut Reading<'_>, name: &str, node: &Node) {
    if node.text().is_none() {
        let message = format!("`{name}` must be a text, not {}", node.value.sort());
        reading.diagnostics.push(codes::bad_field(node.span, message));
    }
}

fn is_version(text: &str) -> bool {
    VERSION.is_match(text.trim()).unwrap_or(false)
}

/// A value of a `setup.cfg`.
struct Value {
    key: String,
    text: String,
    span: Span,
}

/// The values of section `[metadata]`. Further lines of a value, which are indented, are none of those that are asked for.
fn metadata_section(file: FileId, text: &str) -> Vec<Value> {
    let mut values = Vec::new();
    let mut inside = false;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let at = start;
        start += line.len();
        let bare = line.trim_end();
        if bare.starts_with(['#', ';', ' ', '\t']) || bare.is_empty() {
            continue;
        }
        if let Some(section) = bare.strip_prefix('[') {
            inside = section.trim_end_matches(']').trim() == "metadata";
            continue;
        }
        let Some(separator) = bare.find(['=', ':']).filter(|_| inside) else {
            continue;
        };
        let (key, value) = (&bare[..separator], &bare[separator + 1..]);
        let text = value.trim();
        let from = at + separator + 1 + (value.len() - value.trim_start().len());
        values.push(Value {
            key: key.trim().to_lowercase(),
            text: text.to_owned(),
            span: Span::new(file, from as u32, (from + text.len()) as u32),
        });
    }
    values
}

/// What stands behind `install_requires` in section `[options]`: the rest of the line, and indented lines below it.
fn required_packages(file: FileId, text: &str) -> Vec<Written> {
    let mut found = Vec::new();
    let (mut in_options, mut in_list) = (false, false);
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let at = start;
        start += line.len();
        let bare = line.trim_end();
        let is_indented = bare.starts_with([' ', '\t']);
        let mut value = bare;
        if bare.trim_start().starts_with(['#', ';']) {
            continue;
        }
        if let Some(section) = bare.strip_prefix('[') {
            in_options = section.trim_end_matches(']').trim() == "options";
            in_list = false;
            continue;
        }
        if !is_indented && !bare.is_empty() {
            let key = bare.split_once(['=', ':']);
            in_list = in_options && key.is_some_and(|(key, _)| key.trim() == "install_requires");
            value = key.map_or("", |(_, value)| value);
        }
        let requirement = value.trim();
        if in_list && !requirement.is_empty() {
            let from = at + bare.len() - value.trim_start().len();
            let span = Span::new(file, from as u32, (from + requirement.len()) as u32);
            found.push((requirement.into(), span));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_packages() {
        for right in ["1", "1.0.2", "1.0.dev5", "2.0a1", "1!2.0.post1", "1.0rc1+local.1"] {
            assert!(is_version(right), "{right}");
        }
        for wrong in ["", "one", "1..2", "1.0-", "1.0 beta x"] {
            assert!(!is_version(wrong), "{wrong}");
        }
    }

    #[test]
    fn required_packages_know_where_they_stand() {
        let text = "[options]\npackages = a\n  b\ninstall_requires = first>=1\n    second~=2.0\n  # a comment\n\n    third\nother = x\n  y\n[more]\ninstall_requires = z\n";
        let found = required_packages(FileId(0), text);
        let texts: Vec<&str> = found.iter().map(|(text, _)| &**text).collect();
        assert_eq!(texts, ["first>=1", "second~=2.0", "third"]);
        for (requirement, span) in &found {
            assert_eq!(&text[span.start as usize..span.end as usize], &**requirement);
        }
    }

    #[test]
    fn values_of_the_metadata_section_know_where_they_stand() {
        let text = "[other]\nname = x\n\n[metadata]\n# a comment\nname = a-b\nversion: 1.2\nlong =\n  more\n[egg_info]\nversion = 3\n";
        let values = metadata_section(FileId(0), text);
        let found: Vec<(&str, &str)> = values.iter().map(|v| (&*v.key, &*v.text)).collect();
        assert_eq!(found, [("name", "a-b"), ("version", "1.2"), ("long", "")]);
        let span = values[0].span;
        assert_eq!(&text[span.start as usize..span.end as usize], "a-b");
    }
}
