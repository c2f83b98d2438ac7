//! The `pkg:repository` kind: a source of packages. Not one of mgmt's kinds.
//!
//! For apt it is a file in the form of `sources.list(5)`, section *DEB822-STYLE FORMAT*, and its key another one, which apt believes for this source alone. For dnf it is a file of
//! `/etc/yum.repos.d`, and its key one of rpm's. When they have been written, the lists of this source are fetched, before any package that may come from it.

use setpoint_engine::{
    Apply, Attempting, DriftValue, Failure, Identity, IfSet, Resource, Text, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Entry, Replace};
use setpoint_host::state::Stored;
use sha2::{Digest, Sha256};

use crate::packages::apt::{self, Apt};
use crate::packages::dnf::{self, Dnf};
use crate::presence::{Presence, state_missing};
use crate::sorts::{FILE, REPOSITORY};

/// A source of packages, for apt or dnf.
///
/// The lists of what it has are fetched when it is new or changed, and every `pkg` comes after that.
///
/// ```mcl
/// pkg:repository "internal" {
///     state => "exists",
///     uris => ["https://packages.example.com/debian"],
///     suites => ["bookworm"],
///     components => ["main"],
///     key => deploy.readfile("/files/internal.asc"),
/// }
///
/// pkg "our-tools" {}
///
/// import "deploy"
/// ```
///
/// A directory of packages on this machine, and a source that shall not be:
///
/// ```mcl
/// pkg:repository "local" {
///     state => "exists",
///     uris => ["file:/srv/packages"],
///     suites => ["./"],
///     trusted => true,
/// }
///
/// pkg:repository "former" {
///     state => "absent",
/// }
/// ```
///
/// For dnf, an address is all that there is to say; such sources have neither suites nor components.
#[derive(Debug, Resource)]
#[resource(kind = "pkg:repository", brings = anything, autoedge, asynchronous)]
pub(crate) struct PkgRepository {
    /// Whether it is there. It must be set.
    state: IfSet<Presence>,
    /// Where it is: `https://…`, or `file:/…`.
    ///
    /// If a parameter is sensitive, such as an address with a password in it, only root can read the file of the source, and then only root can ask apt what
    /// packages there are. `apt_auth.conf(5)` has passwords in a file of their own.
    uris: Vec<String>,
    /// The suites, such as `bookworm`; needed for apt. One that ends in a slash is a path below the address, and has no components.
    suites: Vec<String>,
    /// The components, such as `main`.
    components: Vec<String>,
    /// The architectures. Unset: those of the machine.
    architectures: Vec<String>,
    /// The key with which it is signed, as armored text (`-----BEGIN PGP PUBLIC KEY BLOCK-----`). Unset: one of the keys that are believed for all sources.
    key: Text,
    /// Whether it need not be signed.
    trusted: bool,
    /// Whether packages come from it.
    #[param(default = true)]
    enabled: bool,
    #[name]
    name: String,
}

/// Under what the private directory says for which source lists were fetched.
const FETCHED: &str = "fetched";
const FETCHED_VERSION: u32 = 1;

/// How an armored key begins: RFC 9580, section 6.2.
const ARMOR: &[u8] = b"-----BEGIN PGP PUBLIC KEY BLOCK-----";

/// How a machine is told of its sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As apt is.
    Deb,
    /// As dnf is.
    Rpm,
}

impl Form {
    fn of_this_machine() -> Result<Form, Failure> {
        if Apt::is_here() {
            Ok(Form::Deb)
        } else if Dnf::is_here() {
            Ok(Form::Rpm)
        } else {
            let why = "it is known here how apt and dnf are told of sources, and this machine has neither";
            Err(Failure::new("write the source").because(why))
        }
    }
}

#[async_trait]
impl Resource for PkgRepository {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if !self.name.bytes().all(is_sign) || self.name.starts_with('.') {
            let message = "its name is that of a file: letters, digits, `_`, `.` and `-`, and no `.` first";
            invalid.push(Invalid::new(message));
        }
        let Some(state) = *self.state else {
            invalid.push(state_missing());
            return;
        };
        if state == Presence::Absent {
            return;
        }
        if self.uris.is_empty() {
            invalid.push(Invalid::parameter("uris", "at least one address is needed"));
        }
        for (parameter, list) in [
            ("components", &self.components),
            ("architectures", &self.architectures),
        ] {
            if self.suites.is_empty() && !list.is_empty() {
                let message = format!("there are no `{parameter}` without suites");
                invalid
                    .push(Invalid::parameter(parameter, message).help("write `suites => [\"bookworm\",],`"));
            }
        }
        let lists = [
            ("uris", &self.uris),
            ("suites", &self.suites),
            ("components", &self.components),
            ("architectures", &self.architectures),
        ];
        for (parameter, list) in lists {
            for word in list
                .iter()
                .filter(|word| word.is_empty() || word.contains(char::is_whitespace))
            {
                let message = format!("`{word}` must be one word");
                invalid.push(Invalid::parameter(parameter, message));
            }
        }
        for uri in self.uris.iter().filter(|uri| !uri.contains(':')) {
            let message = format!("`{uri}` is not an address");
            invalid.push(Invalid::parameter("uris", message).help("write `https://…` or `file:/…`"));
        }
        let is_flat = |suite: &String| suite.ends_with('/');
        match self.suites.iter().any(is_flat) {
            true if !self.components.is_empty() => {
                let message = "a suite that ends in a slash has none";
                invalid.push(Invalid::parameter("components", message));
            }
            false if self.components.is_empty() && !self.suites.is_empty() => {
                let message = "at least one component is needed, such as `main`";
                invalid.push(Invalid::parameter("components", message));
            }
            _ => {}
        }
        if !self.key.is_empty() && !self.key.as_bytes().trim_ascii_start().starts_with(ARMOR) {
            let message = "must be an armored public key";
            invalid.push(Invalid::parameter("key", message).help("`gpg --armor --export` prints it"));
        }
        if !self.key.is_empty() && self.trusted {
            let message = "what need not be signed needs no key";
            invalid.push(Invalid::parameter("trusted", message));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        let files = [Form::Deb, Form::Rpm]
            .into_iter()
            .flat_map(|form| self.paths(form));
        let files = files.flatten().map(|path| FILE.identity(path.as_bytes()));
        files.chain([REPOSITORY.identity(Vec::new())]).collect()
    }

    fn watches(&self) -> Vec<Watch> {
        let Ok(form) = Form::of_this_machine() else {
            return Vec::new();
        };
        self.paths(form).into_iter().flatten().map(Watch::path).collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let form = Form::of_this_machine()?;
        let [source_path, key_path] = self.paths(form);
        let (source_path, key_path) = (source_path?, key_path?);
        let exists = *self.state == Some(Presence::Exists);
        let key = (exists && !self.key.is_empty()).then(|| self.key.as_bytes().to_vec());
        if exists && form == Form::Deb && self.suites.is_empty() {
            let why = "`suites` must be set for apt";
            return Err(Failure::new("write the source").on(&self.name).because(why));
        }
        let source = exists.then(|| match form {
            Form::Deb => self.deb822(&key_path),
            Form::Rpm => self.repo(&key_path),
        });
        let source = source.map(String::into_bytes);
        // The key first: without it the source would not be believed.
        let digest = Sha256::digest(
            [
                key.clone().unwrap_or_default(),
                source.clone().unwrap_or_default(),
            ]
            .concat(),
        );
        // Others than root read the key: what verifies signatures is another user. Who may not read a source may not ask what packages it has, either.
        let is_secret = apply.has_sensitive();
        let source_mode = if is_secret { 0o600 } else { 0o644 };
        bring("key", key_path, key, 0o644, apply).await?;
        bring("source", source_path.clone(), source, source_mode, apply).await?;
        if !exists || !self.enabled {
            return Ok(());
        }
        let handle = apply.handle().clone();
        let fetched = tokio::task::spawn_blocking(move || handle.load(FETCHED, FETCHED_VERSION)).await;
        let fetched =
            fetched.map_err(|ended| Failure::new("look whether lists were fetched").because(ended))??;
        if matches!(&fetched, Stored::Payload(payload) if payload.as_slice() == digest.as_slice()) {
            return Ok(());
        }
        let field = format!("lists of {}", self.name);
        if apply.drift(field, "not fetched", "fetched") {
            match form {
                Form::Deb => apt::refresh_source(source_path.as_path(), apply).await?,
                Form::Rpm => dnf::refresh_source(&self.name, apply).await?,
            }
            let handle = apply.handle().clone();
            let store = move || handle.store(FETCHED, FETCHED_VERSION, &digest);
            let stored = tokio::task::spawn_blocking(store).await;
            stored.map_err(|ended| Failure::new("remember that lists were fetched").because(ended))??;
        }
        Ok(())
    }
}

impl PkgRepository {
    /// The file of the source, and that of its key.
    fn paths(&self, form: Form) -> [Result<AbsolutePath, Failure>; 2] {
        let name = &self.name;
        let paths = match form {
            Form::Deb => [
                format!("/etc/apt/sources.list.d/{name}.sources"),
                format!("/etc/apt/keyrings/{name}.asc"),
            ],
            Form::Rpm => [
                format!("/etc/yum.repos.d/{name}.repo"),
                format!("/etc/pki/rpm-gpg/{name}.asc"),
            ],
        };
        paths.map(|path| AbsolutePath::new(path).map_err(|error| Failure::new("use the name").because(error)))
    }

    /// What is in the file of the source, for dnf.
    fn repo(&self, key: &AbsolutePath) -> String {
        let name = &self.name;
        let yes = |is: bool| if is { "1" } else { "0" };
        let mut text = format!("# Setpoint writes this file.\n[{name}]\nname={name}\n");
        text.push_str(&format!("baseurl={}\n", self.uris.join(" ")));
        text.push_str(&format!(
            "enabled={}\ngpgcheck={}\n",
            yes(self.enabled),
            yes(!self.trusted)
        ));
        if !self.key.is_empty() {
            text.push_str(&format!("gpgkey=file://{key}\n"));
        }
        text
    }

    /// What is in the file of the source, for apt.
    fn deb822(&self, key: &AbsolutePath) -> String {
        let mut text = "# Setpoint writes this file.\nTypes: deb\n".to_owned();
        let mut field = |name: &str, words: &[String]| {
            if !words.is_empty() {
                text.push_str(&format!("{name}: {}\n", words.join(" ")));
            }
        };
        field("URIs", &self.uris);
        field("Suites", &self.suites);
        field("Components", &self.components);
        field("Architectures", &self.architectures);
        if !self.key.is_empty() {
            field("Signed-By", &[key.to_string()]);
        }
        if self.trusted {
            field("Trusted", &["yes".to_owned()]);
        }
        if !self.enabled {
            field("Enabled", &["no".to_owned()]);
        }
        text
    }
}

/// Brings a file to these contents, or removes it.
async fn bring(
    field: &'static str,
    path: AbsolutePath,
    wanted: Option<Vec<u8>>,
    mode: u32,
    apply: &mut Apply<'_>,
) -> Result<(), Failure> {
    let at = path.clone();
    let read = move || {
        let found = Entry::at(&at).and_then(|entry| Ok((entry.read()?, entry.stat()?)));
        match found {
            Err(error) if error.is_not_found() => Ok((None, None)),
            found => found
                .map(|(content, stat)| (Some(content), stat))
                .attempting("read", &at),
        }
    };
    let read = tokio::task::spawn_blocking(read).await;
    let (is, stat) = read.map_err(|ended| Failure::new("read").on(&path).because(ended))??;
    if is == wanted {
        // What was no secret before may have become one.
        let Some(open) = stat.map(|stat| stat.mode).filter(|is| is & !mode & 0o044 != 0) else {
            return Ok(());
        };
        if wanted.is_none()
            || !apply.drift(
                format!("mode of the {field}"),
                format!("{open:04o}"),
                format!("{mode:04o}"),
            )
        {
            return Ok(());
        }
        let set = move || {
            Entry::at(&path)?
                .set_mode(mode)
                .attempting("set the mode of", &path)
        };
        let set = tokio::task::spawn_blocking(set).await;
        return set.map_err(|ended| Failure::new("set the mode").because(ended))?;
    }
    let shown = |content: &Option<Vec<u8>>| match content {
        Some(content) => DriftValue::content(content),
        None => DriftValue::Absent,
    };
    if !apply.existence(field, shown(&is), shown(&wanted)) {
        return Ok(());
    }
    let committer = apply.handle().services().committer.clone();
    let at = path.clone();
    let work = move || -> Result<(), Failure> {
        let Some(content) = wanted else {
            return Entry::at(&at)?.remove_file().attempting("remove", &at);
        };
        if let Some(directory) = at.parent() {
            Entry::create_directories(&directory, 0o755, 0o755)?;
        }
        committer
            .replace(Replace::bytes(at, content).mode(mode))
            .map(drop)
            .map_err(Failure::from)
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|ended| Failure::new("write").on(&path).because(ended))?
}
