//! The `password` kind: a random text for others.
//!
//! Its private directory has a file `password`: the text and a line feed, or without `saved` a line feed alone, the *token*, which says that
//! there was one. A text that is not saved lives as long as the process does. After a restart nothing is sent until a notification makes a
//! new one, so that those who received the old one keep it.

use setpoint_engine::{
    Apply, Attempting, DriftValue, Failure, Handle, Resource, Sends, Watch, Withholding, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Entry, Replace};
use setpoint_host::random;

/// What it is made of.
const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// A random text, made once and sent to others, and made anew when notified.
///
/// What it sends is sensitive: it is shown nowhere.
///
/// ```mcl
/// password "database" {
///     length => 32,
///     saved => true,
/// }
///
/// file "/etc/app/password" {
///     state => "exists",
///     mode => "0600",
/// }
///
/// Password["database"].password -> File["/etc/app/password"].content
/// ```
///
/// Without `saved` only those who receive it have it. Whoever notifies it makes a new one:
///
/// ```mcl
/// password "session key" {}
///
/// file "/run/session-key" {
///     state => "exists",
///     mode => "0600",
/// }
///
/// timer "each day" {
///     interval => 86400,
///
///     Notify => Password["session key"],
/// }
///
/// Password["session key"].password -> File["/run/session-key"].content
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "password", refreshable, sends = Sent)]
pub(crate) struct Password {
    /// How many characters of `a-zA-Z` it has.
    #[param(default = 64)]
    length: u16,
    /// Whether it is kept, as it is, in the private directory of the resource, so that a restart does not lose it.
    saved: bool,
    /// Whether what is kept and does not fit is replaced by a new one, instead of being an error.
    check_recovery: bool,
    /// The one that was made or found.
    #[state]
    current: Option<Secret>,
    #[state]
    file: Option<AbsolutePath>,
}

/// What it sends.
#[derive(Sends)]
struct Sent {
    /// The text, always sensitive. Not sent where nobody has it any more.
    #[send(sensitive)]
    password: Withholding<Option<String>>,
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(sensitive)")
    }
}

#[async_trait]
impl Resource for Password {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.length == 0 {
            invalid.push(Invalid::parameter("length", "must be at least 1"));
        }
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        self.file = Some(handle.var_path().join("password"));
        Ok(())
    }

    fn watches(&self) -> Vec<Watch> {
        self.file.iter().cloned().map(Watch::path).collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path = apply.handle().var_path().join("password");
        let stored = read(&path)?;
        let fits = stored.as_ref().is_none_or(|stored| self.fits(stored));
        if !fits && !self.check_recovery {
            let why = match self.saved {
                true => format!("what is kept is not {} characters of a-zA-Z", self.length),
                false => "one is kept, and `saved` is false".to_owned(),
            };
            let why = format!("{why}; with `check_recovery => true` a new one replaces it");
            return Err(Failure::new("use the password that is kept").because(why));
        }
        let kept = stored.as_ref().filter(|stored| fits && !stored.0.is_empty());
        if let Some(kept) = kept {
            self.current = Some(kept.clone());
        }
        let is_wanted =
            apply.refresh_pending() || stored.is_none() || !fits || (self.saved && kept.is_none());
        let is = match stored.is_some() {
            true => DriftValue::Sensitive,
            false => DriftValue::Absent,
        };
        if is_wanted && apply.existence("password", is, DriftValue::Sensitive) {
            let new = Secret(random::text(usize::from(self.length), ALPHABET));
            let content = match self.saved {
                true => format!("{}\n", new.0),
                false => "\n".to_owned(),
            };
            // The private directory is made where it is missing.
            let file = apply.handle().var_dir()?.join("password");
            apply.replace_at_once(Replace::bytes(file, content.into_bytes()).mode(0o600))?;
            self.current = Some(new);
        }
        let password = match self.current.clone() {
            Some(Secret(text)) => Withholding::Given(Some(text)),
            None => Withholding::Withheld,
        };
        apply.send(Sent { password });
        Ok(())
    }
}

impl Password {
    /// Whether what is kept can be what this resource has kept. An empty one is a token.
    fn fits(&self, Secret(stored): &Secret) -> bool {
        let is_whole = || {
            stored.len() == usize::from(self.length) && stored.bytes().all(|byte| ALPHABET.contains(&byte))
        };
        stored.is_empty() || (self.saved && is_whole())
    }
}

/// What is kept, without white space around it. What is not text fits nobody.
fn read(path: &AbsolutePath) -> Result<Option<Secret>, Failure> {
    let bytes = match Entry::at(path).and_then(|entry| entry.read()) {
        Err(error) if error.is_not_found() => return Ok(None),
        bytes => bytes.attempting("read the password that is kept in", path)?,
    };
    Ok(Some(Secret(
        String::from_utf8_lossy(bytes.trim_ascii()).into_owned(),
    )))
}
