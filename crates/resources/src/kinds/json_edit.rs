//! The `json:edit` kind: some entries of a JSON document, while the rest of it stays as it is.
//!
//! The document keeps its order, its indentation and whatever else is not edited (`document`). A file is replaced as a whole, with its owner and
//! mode. Edits of one file by several resources follow each other, also those of other processes: what is read is what the one before has
//! written. A document of the store is set only if it still is what was read; else it is edited anew.

mod document;
mod edit;

use std::os::unix::ffi::OsStrExt;

use setpoint_engine::{
    Apply, Attempting, Claim, DriftValue, Failure, Handle, Identity, Resource, Text, Wanted, Watch,
    async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Replace};
use setpoint_host::watch::{Depth, Follow};

use crate::edited_file::EditedFile;
use crate::sorts::ENTRY;
use crate::turns::Turn;
use crate::validation::Validation;
use crate::{Secrecy, SharedKey, SharedStore};
use document::{Before, Document};
use edit::{Edit, What, shown};

/// How often a document is edited anew that others change meanwhile.
const TRIES: u32 = 20;

/// Some entries of a JSON document.
///
/// What is not edited stays as it is, byte by byte. Only values count: a document that says the same in another layout is right.
///
/// ```mcl
/// json:edit "/etc/docker/daemon.json" {
///     edits => [
///         ".dns = [\"10.0.0.1\"]",
///         ".[\"log-opts\"][\"max-size\"] = \"10m\"",
///         "del(.debug)",
///     ],
/// }
/// ```
///
/// A file that need not be there is made before:
///
/// ```mcl
/// exec "empty settings" {
///     cmd => "echo {} > /etc/app.json",
///     shell => "/bin/sh",
///     creates => "/etc/app.json",
///     Before => Json:Edit["/etc/app.json"],
/// }
///
/// json:edit "/etc/app.json" {
///     edits => [".log.level = \"warn\""],
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "json:edit", autoedge)]
pub(crate) struct JsonEdit {
    /// The document: an absolute path, `file:///path`, or `etcd:///key` for a key of the store that hosts share. Unset: the resource's name.
    ///
    /// A file must be there; a key that is not is taken for an empty object.
    store: Text,
    /// The edits, in order: `.path = value` with any JSON value, or `del(.path)`.
    ///
    /// A path is made of names behind dots, and of others in brackets: `.log["max-size"]`. Objects that are missing on the way are made.
    edits: Vec<String>,
    #[param(flatten(validate, validate_timeout))]
    validation: Validation,
    #[name]
    name: Text,
    /// Where it is, and the edits, as they were read.
    #[state]
    read: Option<(Place, Vec<Edit>)>,
    #[state]
    shared: Option<SharedStore>,
}

/// Where a document is.
#[derive(Debug, Clone)]
enum Place {
    File(AbsolutePath),
    /// A key of the shared store.
    Key(String),
}

impl Place {
    fn read(text: &Text) -> Result<Place, String> {
        let Some(uri) = text.as_str() else {
            let path = std::ffi::OsStr::from_bytes(text.as_bytes());
            return AbsolutePath::new(path)
                .map(Place::File)
                .map_err(|error| error.to_string());
        };
        let Some((scheme, rest)) = uri.split_once(":").filter(|_| !uri.starts_with('/')) else {
            return match AbsolutePath::new(uri) {
                Ok(path) => Ok(Place::File(path)),
                Err(_) => Err(format!(
                    "`{uri}` is not an absolute path, `file:///path` or `etcd:///key`"
                )),
            };
        };
        if scheme != "file" && scheme != "etcd" {
            return Err(format!(
                "documents are not found by `{scheme}:`, only by a path, `file:` and `etcd:`"
            ));
        }
        let path = match rest.strip_prefix("//") {
            Some(path) if path.starts_with('/') => path,
            _ => {
                return Err(format!(
                    "`{scheme}:` is followed by three slashes, as no host is named"
                ));
            }
        };
        if path.contains(['?', '#']) {
            return Err(
                "a query or a fragment means nothing here; write `?` as `%3F` and `#` as `%23`".to_owned(),
            );
        }
        let path = percent_encoding::percent_decode_str(path).decode_utf8();
        let path = path.map_err(|_| "it is not valid UTF-8".to_owned())?;
        match scheme {
            "file" => AbsolutePath::new(&*path)
                .map(Place::File)
                .map_err(|error| error.to_string()),
            _ => match &path[1..] {
                "" => Err("a key is missing after `etcd:///`".to_owned()),
                key => Ok(Place::Key(key.to_owned())),
            },
        }
    }
}

impl JsonEdit {
    fn place(&self) -> Result<Place, String> {
        let store = match self.store.is_empty() {
            true => &self.name,
            false => &self.store,
        };
        Place::read(store)
    }
}

#[async_trait]
impl Resource for JsonEdit {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if let Err(message) = self.place() {
            invalid.push(Invalid::parameter("store", message));
        }
        self.validation.refused(invalid);
        if self.validation.is_set() && matches!(self.place(), Ok(Place::Key(_))) {
            let message = "only a file is validated, and not a key of the store";
            invalid.push(Invalid::parameter("validate", message));
        }
        if self.edits.is_empty() {
            invalid.push(Invalid::parameter("edits", "at least one edit is needed"));
        }
        for text in &self.edits {
            if let Err(wrong) = Edit::read(text) {
                let message = format!("`{text}`: {}", wrong.message);
                let help = wrong.help.map(ToOwned::to_owned);
                invalid.push(Invalid::parameter("edits", message).help_if(help));
            }
        }
    }

    fn identities(&self) -> Vec<Identity> {
        match self.place() {
            Ok(Place::File(path)) => EditedFile::at(&path).identities(),
            _ => Vec::new(),
        }
    }

    fn claims(&self) -> Vec<Claim> {
        let edits = self.edits.iter().filter_map(|text| Edit::read(text).ok());
        let stakes = edit::stakes(&edits.collect::<Vec<Edit>>());
        let entries = stakes.into_iter();
        match self.place() {
            Ok(Place::File(path)) => {
                let file = EditedFile::at(&path);
                file.claims(entries.map(|(entry, stake)| file.part(&ENTRY, entry.as_bytes(), stake)))
            }
            Ok(Place::Key(key)) => entries
                .map(|(entry, stake)| Claim::of_part(&ENTRY, key.as_bytes(), entry.as_bytes(), stake))
                .collect(),
            Err(_) => Vec::new(),
        }
    }

    fn wanted(&self) -> Vec<Wanted> {
        match self.place() {
            Ok(Place::File(path)) => EditedFile::at(&path).wanted(),
            _ => Vec::new(),
        }
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        let attempted = "use the document";
        let place = self.place().map_err(|why| Failure::new(attempted).because(why))?;
        let edits = self.edits.iter().map(|text| Edit::read(text));
        let edits: Result<Vec<Edit>, _> = edits.collect();
        let edits = edits.map_err(|wrong| Failure::new("read the edits").because(wrong.message))?;
        if let Place::Key(_) = place {
            self.shared = Some(handle.extension::<SharedStore>()?.clone());
        }
        self.read = Some((place, edits));
        Ok(())
    }

    fn watches(&self) -> Vec<Watch> {
        let watch = match (self.place(), &self.shared) {
            (Ok(Place::File(path)), _) => Watch::Path {
                path,
                depth: Depth::Entry,
                follow: Follow::Target,
            },
            (Ok(Place::Key(key)), Some(shared)) => shared.watch(SharedKey::ForAll(&key)),
            _ => return Vec::new(),
        };
        vec![watch]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let Some((place, edits)) = &self.read else {
            return Ok(());
        };
        match (place, &self.shared) {
            (Place::File(path), _) => {
                let _turn = Turn::at_file(path, apply).await?;
                let document = Some(read_file(path)?);
                if self.validation.is_set()
                    && let Some(edited) = edit_all(document.as_deref(), edits, &place.to_string(), None)?
                {
                    self.validation.check(apply, path, edited.as_bytes()).await?;
                }
                let tell = Telling {
                    apply,
                    is_secret: false,
                };
                if let Some(edited) = edit_all(document.as_deref(), edits, &place.to_string(), Some(tell))? {
                    apply.replace_at_once(Replace::bytes(path.clone(), edited.into_bytes()))?;
                }
                Ok(())
            }
            (Place::Key(key), Some(shared)) => edit_key(shared, key, edits, &place.to_string(), apply).await,
            (Place::Key(_), None) => Ok(()),
        }
    }
}

/// Edits the document of a key. What other hosts write meanwhile is edited then.
async fn edit_key(
    shared: &SharedStore,
    key: &str,
    edits: &[Edit],
    at: &str,
    apply: &mut Apply<'_>,
) -> Result<(), Failure> {
    let key = SharedKey::ForAll(key);
    let is_sensitive = apply.has_sensitive();
    let mut document = shared.get(key).await?;
    let mut is_told = false;
    for _ in 0..TRIES {
        let text = document.as_ref().and_then(|document| document.text.as_deref());
        if document.is_some() && text.is_none() {
            let why = "it is encrypted, and not for this host";
            return Err(Failure::new("read the document").on(at).because(why));
        }
        // Of a document that is secret no entry is told.
        let is_secret = document
            .as_ref()
            .is_some_and(|document| document.secrecy == Secrecy::Secret);
        let tell = if is_told {
            None
        } else {
            Some(Telling { apply, is_secret })
        };
        let secrecy = Secrecy::of(is_secret || is_sensitive);
        let misses = document.as_ref().and_then(|document| document.misses(secrecy));
        let edited = match (edit_all(text, edits, at, tell)?, text, misses) {
            (Some(edited), _, _) => edited,
            // It is right, and not for those whom it shall be for.
            (None, Some(text), Some((is, want))) if apply.drift_of("store", "readers", is, want) => {
                text.to_owned()
            }
            (None, _, _) => return Ok(()),
        };
        is_told = true;
        if shared.set_if(key, text, &edited, secrecy).await? {
            return Ok(());
        }
        document = shared.get(key).await?;
    }
    let why = format!("others have changed it {TRIES} times meanwhile");
    Err(Failure::new("edit").on(at).because(why))
}

/// Where differences are told.
struct Telling<'a, 'b> {
    apply: &'a mut Apply<'b>,
    /// Whether what the document says is told to nobody.
    is_secret: bool,
}

/// Makes the edits in a document; none is an empty one. Answers what it is then, if it is to be written: where differences are told, that may
/// be refused.
fn edit_all(
    text: Option<&str>,
    edits: &[Edit],
    at: &str,
    mut tell: Option<Telling<'_, '_>>,
) -> Result<Option<String>, Failure> {
    let document = text.map_or_else(|| Ok(Document::empty()), Document::read);
    let mut document = document.map_err(|why| Failure::new("read the document").on(at).because(why))?;
    let mut repairs = false;
    for edit in edits {
        repairs |= edit_one(&mut document, edit, at, tell.as_mut())?;
    }
    Ok(repairs.then(|| document.text()))
}

/// Makes one edit, if the document is not as it says. Answers whether it is to be written.
fn edit_one(
    document: &mut Document,
    edit: &Edit,
    at: &str,
    tell: Option<&mut Telling<'_, '_>>,
) -> Result<bool, Failure> {
    let done = match &edit.what {
        What::Set(value) => document.set(&edit.path, value),
        What::Delete => document.remove(&edit.path),
    };
    // Where nothing is told any more it is not known whether it may be.
    let is_hidden = tell
        .as_ref()
        .is_none_or(|telling| telling.is_secret || telling.apply.is_sensitive("edits"));
    let before = done.map_err(|depth| {
        if is_hidden {
            let why = "what is on the way to the entry is not an object";
            return Failure::new("edit an entry in").on(at).because(why);
        }
        let in_the_way = shown(edit.path.get(..depth).unwrap_or_default());
        let attempted = format!("edit {} in", edit.shown_path());
        Failure::new(attempted)
            .on(at)
            .because(format!("{in_the_way} is not an object"))
    })?;
    let Some(Before(before)) = before else {
        return Ok(false);
    };
    let Some(Telling { apply, is_secret }) = tell else {
        return Ok(true);
    };
    let is = match before {
        Some(_) if *is_secret => DriftValue::Sensitive,
        before => before.map_or(DriftValue::Absent, DriftValue::from),
    };
    let want = match &edit.what {
        What::Set(value) => DriftValue::from(value.compact()),
        What::Delete => DriftValue::Absent,
    };
    Ok(apply.drift(edit.shown_path(), is, want))
}

/// The text of a file, which must be there and be no link: what a link leads to can be named itself.
fn read_file(path: &AbsolutePath) -> Result<String, Failure> {
    let attempted = "read the document";
    let failed = |why: &'static str| Failure::new(attempted).on(path).because(why);
    let entry = setpoint_host::files::Entry::at(path).attempting(attempted, path)?;
    match entry.stat().attempting(attempted, path)? {
        None => {
            return Err(failed(
                "there is no such file; a `file` resource before this one can make it",
            ));
        }
        Some(stat) if stat.is_link() => {
            return Err(failed("it is a symbolic link; name the file that it leads to"));
        }
        Some(stat) if !stat.is_regular() => return Err(failed("it is not a regular file")),
        Some(_) => {}
    }
    let bytes = entry.read().attempting(attempted, path)?;
    String::from_utf8(bytes).map_err(|_| failed("it is not valid UTF-8"))
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::File(path) => write!(f, "{path}"),
            Place::Key(key) => write!(f, "the shared key {key}"),
        }
    }
}
