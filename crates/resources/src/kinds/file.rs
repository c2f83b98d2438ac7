//! The `file` kind: regular files, directories and symbolic links, with contents, owner, group, mode and context.
//!
//! A path that ends in `/` means a directory. A run goes through the steps state, content, source, fragments (`run`),
//! owner, group, mode, context (`metadata`); trees are copied and purged in `tree`.

mod backup;
mod metadata;
mod path;
mod reverse;
mod run;
mod tree;

use setpoint_engine::{
    Apply, Claim, Failure, Handle, Identity, IfSet, Parameter, ParameterAccess, Resource, Stake, Text,
    Wanted, WantedOrder, WantedReach, Watch, async_trait,
};
use setpoint_graph::{Doubt, Invalid, MetaParameters, Parameters};
use setpoint_host::files::{AbsolutePath, Fingerprint};
use setpoint_host::watch::{Depth, Follow};
use setpoint_value::Value;

use crate::enclosing;
use crate::file_mode::Mode;
use crate::presence::Presence;
use crate::sorts::{Account, DROP_IN, FILE, GROUP, USER};
use crate::validation::Validation;

/// A regular file, a directory or a symbolic link.
///
/// A path that ends in a slash means a directory. What is not set is left alone.
#[derive(Debug, Resource)]
#[resource(
    kind = "file",
    receives,
    reversible,
    autoedge,
    constants(state(exists = "exists", absent = "absent", undefined = ""))
)]
pub(crate) struct File {
    /// Absolute path; a trailing slash means a directory. Unset: the resource's name.
    path: Text,
    /// Replaces the directory part of the path; ends in a slash.
    dirname: Text,
    /// Replaces the last component of the path.
    basename: Text,
    /// Whether it is there. Unset: nothing is removed, and only what has contents is created.
    state: IfSet<Presence>,
    /// The exact contents; the empty text makes an empty file.
    ///
    /// At most one of `content`, `source` and `fragments` is set.
    #[param(independent)]
    content: Option<Text>,
    /// A file or directory to copy from; with `symlink` the text of the link.
    source: Text,
    /// Files and directories whose contents follow each other in this one.
    ///
    /// A path that ends in a slash is a directory: its files by name.
    fragments: Vec<AbsolutePath>,
    /// Name or number of the owner.
    #[param(independent)]
    owner: String,
    /// Name or number of the group.
    #[param(independent)]
    group: String,
    /// Permissions: who may read, write and execute.
    #[param(independent)]
    mode: IfSet<Mode>,
    /// Makes missing parents of a directory, removes and copies whole trees.
    recurse: bool,
    /// Allows a file, a directory or a link to take the place of another one.
    force: bool,
    /// Removes from a directory what nobody manages.
    purge: bool,
    /// Whether the contents of a file that exists are replaced. If not, a file gets its contents when it is created, and then others can change them. Owner,
    /// group and mode are repaired in any case. Not one of mgmt's parameters.
    #[param(default = true)]
    replace: bool,
    /// Makes the path a symbolic link whose text is `source`.
    symlink: bool,
    /// A directory in which copies are kept of what this resource replaces or removes: the newest ten of each path.
    /// It is made when it is needed. Not one of mgmt's parameters.
    backup: IfSet<AbsolutePath>,
    /// The SELinux context; the empty text means none.
    #[param(independent)]
    selinux: Option<Text>,
    #[param(flatten(validate, validate_timeout))]
    validation: Validation,
    #[name]
    name: Text,
    /// Stands for the contents in the memory of verified files; none until it is computed.
    #[state]
    fingerprint: Option<Fingerprint>,
    /// Whether it was said that a link has no mode.
    #[state]
    warned: bool,
    /// Whether it was said that others can read a secret.
    #[state]
    warned_of_readers: bool,
}

/// The parameters whose values are what is in the file.
const SECRETS: [&str; 2] = ["content", "fragments"];

impl File {
    fn effective(&self) -> Vec<u8> {
        path::effective(
            self.name.as_bytes(),
            self.path.as_bytes(),
            self.dirname.as_bytes(),
            self.basename.as_bytes(),
        )
    }

    fn effective_path(&self) -> Result<AbsolutePath, Failure> {
        path::absolute(self.effective()).map_err(|error| Failure::new("use the path").because(error))
    }

    fn is_absent(&self) -> bool {
        *self.state == Some(Presence::Absent)
    }

    fn is_directory(&self) -> bool {
        self.effective().ends_with(b"/")
    }

    fn wanted_mode(&self) -> Option<Mode> {
        self.mode.as_ref().filter(|_| !self.symlink).cloned()
    }
}

#[async_trait]
impl Resource for File {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        self.validate_path(invalid);
        self.validate_contents(invalid);
        self.validate_backup(invalid);
        self.validation.refused(invalid);
        let has_contents = self.content.is_some() || !self.fragments.is_empty() || !self.source.is_empty();
        if self.validation.is_set() && (!has_contents || self.symlink || self.is_directory()) {
            let message =
                "only new contents of a file are validated, from `content`, `source` or `fragments`";
            invalid.push(Invalid::parameter("validate", message));
        }
    }

    fn doubt(_: &str, parameters: &Parameters, invalid: &mut Vec<Invalid>) {
        invalid.extend(without_effect(parameters));
        let is_secret = |parameter| parameters.get(parameter).is_some_and(Value::is_sensitive);
        let Some(mode) = parameters.get("mode").and_then(|mode| Mode::decode(mode).ok()) else {
            return;
        };
        if mode.lets_others_read() && SECRETS.into_iter().any(is_secret) {
            let doubt = Invalid::doubt(
                Doubt::ReadableSecret,
                "mode",
                "everybody on this machine can read the sensitive contents",
            );
            let help = "write `0600`, or leave `mode` out: then a new file is for its owner alone";
            invalid.push(doubt.help(help));
        }
    }

    fn same(name: &str, a: &Parameters, b: &Parameters) -> bool {
        use setpoint_engine::Kind;
        if a == b {
            return true;
        }
        let mut invalid = Vec::new();
        let [a, b] = [a, b].map(|parameters| File::decode(name, parameters, &mut invalid));
        let path = ["path", "dirname", "basename"];
        let rest = Self::SCHEMA.parameters.iter().filter(|p| !path.contains(&p.name));
        invalid.is_empty()
            && a.effective() == b.effective()
            && rest.map(|p| p.name).all(|name| a.get(name) == b.get(name))
    }

    fn identities(&self) -> Vec<Identity> {
        let own = identity(&self.effective());
        let drop_in = drop_in(&own);
        std::iter::once(own).chain(drop_in).collect()
    }

    fn wanted(&self) -> Vec<Wanted> {
        let mut sources: Vec<Identity> = self
            .fragments
            .iter()
            .map(|fragment| identity(fragment.as_bytes()))
            .collect();
        let mut directories = vec![enclosing::wanted(&identity(&self.effective()))];
        if !self.source.is_empty() && !self.symlink {
            let source = identity(self.source.as_bytes());
            directories.push(enclosing::wanted(&source));
            sources.push(source);
        }
        if self.is_absent() {
            directories.push(enclosing::wanted_to_go(&identity(&self.effective())));
        }
        let wanted = |identities, reach| Wanted {
            order: WantedOrder::FoundFirst,
            identities,
            reach,
        };
        // Whoever a file belongs to is there before it. What shall not be there belongs to nobody.
        let owners = [(&self.owner, &USER), (&self.group, &GROUP)];
        let owners = owners
            .into_iter()
            .filter(|(written, _)| !written.is_empty() && !self.is_absent())
            .map(|(written, sort)| Account::written(written).identity(sort));
        let others = [
            wanted(sources, WantedReach::Each),
            wanted(owners.collect(), WantedReach::Each),
            wanted(self.validation.identities(), WantedReach::First),
        ];
        directories.into_iter().chain(others).collect()
    }

    fn claims(&self) -> Vec<Claim> {
        let writes = self.content.is_some() || !self.fragments.is_empty() || !self.source.is_empty();
        let is_whole = (writes || self.is_absent()) && !self.is_directory();
        let own = || Claim {
            place: identity(&self.effective()),
            stake: Stake::Whole,
        };
        is_whole.then(own).into_iter().collect()
    }

    fn decides(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut decided = Vec::new();
        let mut decide = |name, value: &[u8]| decided.push((name, value.to_vec()));
        if self.is_absent() {
            decide("state", b"absent");
            return decided;
        }
        let sort: &[u8] = match (self.symlink, self.is_directory()) {
            (true, _) => b"a symbolic link",
            (_, true) => b"a directory",
            _ => b"a file",
        };
        let fragments = self
            .fragments
            .iter()
            .map(AbsolutePath::as_bytes)
            .collect::<Vec<_>>();
        let fragments = fragments.join(&b'\0');
        // Whether two ways to give contents give the same contents is not known here.
        let contents = [
            ("content", self.content.as_ref().map(Text::as_bytes)),
            (
                "source",
                Some(self.source.as_bytes()).filter(|source| !source.is_empty()),
            ),
            (
                "fragments",
                Some(&*fragments).filter(|fragments| !fragments.is_empty()),
            ),
        ];
        let contents = contents.map(|(name, value)| Some((name, value?)));
        // Without contents or a state nothing is made, and from a source nothing is made without a state.
        if self.state.is_some() || self.content.is_some() || !self.fragments.is_empty() {
            decide("state", sort);
        }
        for (name, value) in contents.into_iter().flatten() {
            decide(name, value);
        }
        // Clauses decide some of the bits.
        if let Some(mode @ Mode::Octal(_)) = self.wanted_mode() {
            decide("mode", mode.to_string().as_bytes());
        }
        let accounts = [("owner", "uid", &self.owner), ("group", "gid", &self.group)];
        for (name, number, written) in accounts {
            let is_number = Account::written(written).id.is_some();
            if !written.is_empty() {
                decide(if is_number { number } else { name }, written.as_bytes());
            }
        }
        decided
    }

    fn watches(&self) -> Vec<Watch> {
        let watch = |path: &[u8], depth, follow| {
            let path = path::absolute(path).ok()?;
            Some(Watch::Path { path, depth, follow })
        };
        let depth = |path: &[u8], recursive| match (path.ends_with(b"/"), recursive) {
            (_, true) => Depth::Recursive,
            (true, false) => Depth::Children,
            (false, false) => Depth::Entry,
        };
        let path = self.effective();
        let follow = if self.symlink {
            Follow::Link
        } else {
            Follow::Target
        };
        let own = watch(&path, depth(&path, self.recurse), follow);
        let source = self.source.as_bytes();
        let source = (!source.is_empty() && !self.symlink)
            .then(|| watch(source, depth(source, source.ends_with(b"/")), Follow::Target))
            .flatten();
        let fragments = self
            .fragments
            .iter()
            .map(AbsolutePath::as_bytes)
            .filter_map(|fragment| watch(fragment, depth(fragment, false), Follow::Target));
        own.into_iter().chain(source).chain(fragments).collect()
    }

    fn reverse(&self, _: &Handle, received: &[&str]) -> Result<Option<Parameters>, Failure> {
        reverse::reverse(self, received)
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        if self.symlink && self.mode.is_some() && !self.warned {
            apply.log(
                setpoint_engine::Level::Warning,
                "`mode` says nothing about a link: links have none",
            );
            self.warned = true;
        }
        if self.fingerprint.is_none()
            && let Some(content) = &self.content
        {
            self.fingerprint = Some(run::fingerprint(content.as_bytes()));
        }
        let run = run::Run::begin(self, apply)?;
        let readers = run.readers_of_a_secret();
        let result = run.finish().await;
        if let (Some(readers), false) = (readers, self.warned_of_readers) {
            apply.log(setpoint_engine::Level::Warning, readers);
            self.warned_of_readers = true;
        }
        result
    }

    fn after_receive(&mut self) {
        self.fingerprint = None;
    }

    fn cleanup(&mut self, handle: &Handle) {
        if let Ok(path) = self.effective_path() {
            handle.verified().release(path.as_path());
        }
    }
}

/// Parameters that say where the file is or how it is written, and not its state.
const WITHOUT_EFFECT: [&str; 10] = [
    "path",
    "dirname",
    "basename",
    "backup",
    "force",
    "recurse",
    "purge",
    "symlink",
    "validate",
    "validate_timeout",
];

/// A doubt about a resource that does nothing, whatever is on the machine.
fn without_effect(parameters: &Parameters) -> Option<Invalid> {
    let state = parameters.get("state").map(Value::unmarked);
    let has_state =
        state.is_some_and(|state| !matches!(state, Value::Str(text) if text.as_bytes().is_empty()));
    let is_true = |parameter| {
        parameters
            .get(parameter)
            .is_some_and(|value| *value.unmarked() == Value::Bool(true))
    };
    if has_state {
        return None;
    }
    let help = "set `state` to `exists` to have it made";
    if is_true("symlink") {
        let message = "no link is made while `state` is not set";
        return Some(Invalid::doubt(Doubt::Meaning, "symlink", message).help(help));
    }
    let has_effect = |parameter: &str| parameter != "state" && !WITHOUT_EFFECT.contains(&parameter);
    if is_true("purge") || parameters.iter().any(|(parameter, _)| has_effect(parameter)) {
        return None;
    }
    let message = "nothing is set: it is neither made nor looked at";
    Some(Invalid::doubt(Doubt::Meaning, "state", message).help(help))
}

impl File {
    fn validate_path(&self, invalid: &mut Vec<Invalid>) {
        let effective = self.effective();
        if !self.dirname.is_empty() && !self.dirname.as_bytes().ends_with(b"/") {
            invalid.push(Invalid::parameter("dirname", "must end with a slash"));
        }
        if self.basename.as_bytes().starts_with(b"/") {
            invalid.push(Invalid::parameter("basename", "must not begin with a slash"));
        }
        if let Err(error) = path::absolute(effective.as_slice()) {
            let shown = String::from_utf8_lossy(&effective);
            invalid.push(Invalid::parameter("path", format!("{error}: `{shown}`")));
        }
    }

    fn validate_backup(&self, invalid: &mut Vec<Invalid>) {
        let (Some(backup), Ok(path)) = (&*self.backup, path::absolute(self.effective())) else {
            return;
        };
        if backup.cleaned().is_at_or_under(&path.cleaned()) {
            let message = "must not lie in what the resource itself manages";
            invalid.push(Invalid::parameter("backup", message));
        }
    }

    /// Whether one of the source and the path is in the other.
    fn is_copied_into_itself(&self) -> bool {
        let path = path::absolute(self.effective());
        let source = path::absolute(self.source.as_bytes());
        let (Ok(path), Ok(source)) = (path, source) else {
            return false;
        };
        let (path, source) = (path.cleaned(), source.cleaned());
        path.is_at_or_under(&source) || source.is_at_or_under(&path)
    }

    fn validate_contents(&self, invalid: &mut Vec<Invalid>) {
        let mut refuse = |parameter, message: &str| invalid.push(Invalid::parameter(parameter, message));
        let (content, fragments) = (self.content.is_some(), !self.fragments.is_empty());
        let source = !self.source.is_empty();
        let directory = self.is_directory();
        let absent = self.is_absent();
        if [content, source, fragments]
            .into_iter()
            .filter(|given| *given)
            .count()
            > 1
        {
            let parameter = if source { "source" } else { "fragments" };
            refuse(
                parameter,
                "only one of `content`, `source` and `fragments` can be set",
            );
        }
        if self.symlink && !source && *self.state == Some(Presence::Exists) {
            refuse("symlink", "a link needs its text in `source`");
        }
        if absent && (content || source || fragments) {
            refuse(
                "state",
                "what shall be absent has no `content`, `source` or `fragments`",
            );
        }
        if !(self.replace || content || source || fragments) {
            refuse(
                "replace",
                "there are no contents: set `content`, `source` or `fragments`",
            );
        }
        if absent && self.selinux.is_some() {
            refuse("selinux", "what shall be absent has no context");
        }
        let source_directory = self.source.as_bytes().ends_with(b"/");
        if source && !self.symlink {
            if directory != source_directory {
                refuse("source", "path and `source` must both end in a slash, or neither");
            }
            if !self.source.as_bytes().starts_with(b"/") {
                refuse("source", "must be an absolute path");
            }
            if source_directory && directory && self.is_copied_into_itself() {
                refuse(
                    "source",
                    "the source and the path lie in each other: a directory cannot be copied into itself",
                );
            }
            if source_directory && !self.recurse {
                refuse("recurse", "a directory is copied only with `recurse`");
            }
            if !source_directory && self.recurse {
                refuse("recurse", "a single file is copied without `recurse`");
            }
        }
        if directory && (content || fragments || self.symlink) {
            refuse(
                "path",
                "a directory, as the trailing slash says, has no `content` or `fragments` and is not a `symlink`",
            );
        }
        if self.purge && !self.recurse {
            refuse("purge", "a directory is purged only with `recurse`");
        }
        if self.purge && !directory {
            refuse(
                "purge",
                "only a directory can be purged: the path needs a trailing slash",
            );
        }
        for fragment in &self.fragments {
            self.validate_fragment(fragment, &mut refuse);
        }
        if self.purge && (content || fragments) {
            refuse("purge", "what has `content` or `fragments` is not a directory");
        }
        if self.symlink && (content || fragments || self.recurse || self.purge) {
            refuse(
                "symlink",
                "a link has no `content`, `fragments`, `recurse` or `purge`",
            );
        }
    }

    fn validate_fragment(&self, fragment: &AbsolutePath, refuse: &mut impl FnMut(&'static str, &str)) {
        if let Ok(own) = path::absolute(self.effective())
            && own.cleaned().is_at_or_under(&fragment.cleaned())
        {
            let message = format!("the file itself would be a part of the fragment `{fragment}`");
            refuse("fragments", &message);
        }
    }
}

/// What a path is for automatic edges: the same in each spelling, `/a//b` and `/a/./b`. A text that is not a path stays as it is.
fn identity(path: &[u8]) -> Identity {
    match path::absolute(path) {
        Ok(absolute) => FILE.identity(absolute.cleaned().as_bytes()),
        Err(_) => FILE.identity(path),
    }
}

/// What a file is beside, if it is in a directory of drop-ins (`nginx.service.d/`): whoever reads those wants all of them.
fn drop_in(path: &Identity) -> Option<Identity> {
    let end = path.key.strip_suffix(b"/").unwrap_or(&path.key).len();
    let slash = path.key[..end].iter().rposition(|byte| *byte == b'/')?;
    let directory = path.beginning(slash + 1);
    directory.key.ends_with(b".d/").then_some(Identity {
        sort: &DROP_IN,
        key: directory.key,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_a_directory_of_drop_ins_is_found_by_it() {
        let of = |path: &[u8]| drop_in(&identity(path)).map(|found| found.key.to_vec());
        assert_eq!(
            of(b"/etc/a.service.d/b.conf"),
            Some(b"/etc/a.service.d/".to_vec())
        );
        assert_eq!(of(b"/etc/a.service.d/"), None);
        assert_eq!(of(b"/etc/a"), None);
    }
}
