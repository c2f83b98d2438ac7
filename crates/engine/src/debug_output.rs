//! Of whom debug output is wanted.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use setpoint_graph::ResourceId;
use setpoint_host::sync::RwLock;

/// Of whom debug output is wanted: of nobody at first. It can be changed while the program runs.
#[derive(Debug, Default)]
pub struct DebugOutput {
    /// Whether the selection selects anything. Nearly always it does not.
    is_on: AtomicBool,
    selection: RwLock<DebugSelection>,
}

/// Who is meant: all, or some kinds, resources and functions. As text: `all`, or `KIND`, `KIND[NAME]`, `MODULE.FUNCTION` and so on
/// between commas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DebugSelection {
    all: bool,
    /// Kinds, and functions by their names.
    names: BTreeSet<String>,
    resources: BTreeSet<ResourceId>,
}

impl DebugOutput {
    /// Of these from the beginning.
    #[must_use]
    pub fn of(selection: DebugSelection) -> DebugOutput {
        let output = DebugOutput::default();
        output.select(selection);
        output
    }

    /// Of these from now on, and of nobody else.
    pub fn select(&self, selection: DebugSelection) {
        let is_on = selection != DebugSelection::default();
        *self.selection.write() = selection;
        self.is_on.store(is_on, Ordering::Relaxed);
    }

    /// Of others from now on.
    pub fn change(&self, change: impl FnOnce(&mut DebugSelection)) {
        let mut selection = self.selection();
        change(&mut selection);
        self.select(selection);
    }

    /// Of whom it is wanted.
    #[must_use]
    pub fn selection(&self) -> DebugSelection {
        self.selection.read().clone()
    }

    /// Whether it is wanted of a whole kind.
    #[must_use]
    pub fn is_on_for_kind(&self, kind: &str) -> bool {
        self.is_on.load(Ordering::Relaxed) && {
            let selection = self.selection.read();
            selection.all || selection.names.contains(kind)
        }
    }

    /// Whether it is wanted of a function, which has one of these names. All does not mean functions: what they give may be a secret
    /// that is marked only later, so that whoever wants to see it names them.
    #[must_use]
    pub fn is_on_for_function(&self, names: impl FnOnce() -> [String; 2]) -> bool {
        self.is_on.load(Ordering::Relaxed) && {
            let selection = self.selection.read();
            !selection.names.is_empty() && names().iter().any(|name| selection.names.contains(name))
        }
    }

    /// Whether it is wanted of a resource.
    #[must_use]
    pub fn is_on(&self, id: &ResourceId) -> bool {
        self.is_on.load(Ordering::Relaxed) && {
            let selection = self.selection.read();
            selection.all || selection.names.contains(&*id.kind) || selection.resources.contains(id)
        }
    }
}

impl DebugSelection {
    /// These, too.
    pub fn add(&mut self, others: DebugSelection) {
        self.all |= others.all;
        self.names.extend(others.names);
        self.resources.extend(others.resources);
    }

    /// No longer these; without all, nobody.
    pub fn remove(&mut self, others: &DebugSelection) {
        if others.all {
            *self = DebugSelection::default();
        }
        self.names.retain(|name| !others.names.contains(name));
        self.resources.retain(|id| !others.resources.contains(id));
    }

    /// Each of them, as it is written.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let all = self.all.then(|| "all".to_owned());
        let resources = self.resources.iter().map(ToString::to_string);
        all.into_iter()
            .chain(self.names.iter().cloned())
            .chain(resources)
            .collect()
    }

    /// Whether a kind or function of this name is one of them.
    #[must_use]
    pub fn has_name(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Whether this resource is one of them by itself, and not only as one of all or of its kind.
    #[must_use]
    pub fn has_resource(&self, id: &ResourceId) -> bool {
        self.resources.contains(id)
    }

    /// Each of the others that these include, as it is written: because all are meant, or its kind is.
    #[must_use]
    pub fn covered(&self, others: &DebugSelection) -> Vec<String> {
        let names = others.names.iter().filter(|name| self.all || self.has_name(name));
        let is_covered = |id: &&ResourceId| self.all || self.has_name(&id.kind) || self.has_resource(id);
        let resources = others.resources.iter().filter(is_covered);
        names.cloned().chain(resources.map(ToString::to_string)).collect()
    }

    /// The kinds and functions among them, by their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// The resources among them.
    pub fn resources(&self) -> impl Iterator<Item = &ResourceId> {
        self.resources.iter()
    }

    /// Lines of everybody.
    #[must_use]
    pub fn all() -> DebugSelection {
        DebugSelection {
            all: true,
            ..DebugSelection::default()
        }
    }
}

/// A text that selects nobody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotSelected(String);

impl fmt::Display for NotSelected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` is neither `all` nor a kind, a resource like `file[/etc/motd]` or a function like `os.readfile`",
            self.0
        )
    }
}

impl std::error::Error for NotSelected {}

impl FromStr for DebugSelection {
    type Err = NotSelected;

    fn from_str(text: &str) -> Result<DebugSelection, NotSelected> {
        let mut selection = DebugSelection::default();
        let mut rest = text;
        while !rest.is_empty() {
            // A name may hold commas: it ends with its bracket, before a comma or the end.
            let bracket = rest.find('[').filter(|at| !rest[..*at].contains(','));
            let end = match bracket {
                Some(_) => match rest.find("],") {
                    Some(at) => at + 1,
                    None => rest.len(),
                },
                None => rest.find(',').unwrap_or(rest.len()),
            };
            let (one, further) = rest.split_at(end);
            rest = further.strip_prefix(',').unwrap_or(further);
            match bracket {
                Some(at) if at > 0 && one.ends_with(']') => {
                    let (kind, name) = (&one[..at], &one[at + 1..one.len() - 1]);
                    selection
                        .resources
                        .insert(ResourceId::new(kind.to_lowercase(), name));
                }
                None if one == "all" => selection.all = true,
                None if !one.is_empty() && !one.contains(char::is_whitespace) => {
                    selection.names.insert(one.to_lowercase());
                }
                _ => return Err(NotSelected(one.to_owned())),
            }
        }
        Ok(selection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_is_of_kinds_and_of_resources_whatever_their_names_hold() {
        let output = DebugOutput::of("exec,File[/a,b],file[c]".parse().unwrap());
        for (kind, name, wanted) in [
            ("exec", "x", true),
            ("file", "/a,b", true),
            ("file", "c", true),
            ("file", "/a", false),
            ("print", "c", false),
        ] {
            assert_eq!(
                output.is_on(&ResourceId::new(kind, name)),
                wanted,
                "{kind}[{name}]"
            );
        }
        output.select("os.readfile".parse().unwrap());
        let function = |name: &str| output.is_on_for_function(|| [format!("golang/{name}"), name.to_owned()]);
        assert!(function("os.readfile") && !function("os.file_exists"));
        output.select(DebugSelection::all());
        assert!(
            !function("os.readfile"),
            "what functions give is shown of those who are named"
        );
        assert!(output.is_on(&ResourceId::new("print", "c")));
        output.select("exec,file[a],os.readfile".parse().unwrap());
        output.change(|selection| {
            selection.remove(&"exec,file[b]".parse().unwrap());
            selection.add("print".parse().unwrap());
        });
        let selection = output.selection();
        assert_eq!(selection.words(), ["os.readfile", "print", "file[a]"]);
        assert_eq!((selection.names().count(), selection.resources().count()), (2, 1));
        output.change(|selection| selection.remove(&DebugSelection::all()));
        assert!(!output.is_on(&ResourceId::new("exec", "x")));
        for wrong in ["file[x", "[x]", "a b"] {
            assert!(wrong.parse::<DebugSelection>().is_err(), "{wrong}");
        }
    }
}
