//! The `download` kind: a file that is fetched from a server. Not one of mgmt's kinds.
//!
//! Contents arrive in the private directory of the resource, where the next run continues an interrupted download. They are checked there, and then
//! take the place of the file at once.

use setpoint_engine::{
    Apply, Attempting, DriftValue, Failure, Identity, IfSet, Resource, Sends, Wanted, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::{AbsolutePath, Content, Entry, OpenFile, Replace, Stat, Timestamp, umask};
use tokio::task::block_in_place;

use crate::checksum::Checksum;
use crate::enclosing;
use crate::ownership::Ownership;
use crate::presence::Presence;
use crate::remote_contents::{Memory, New, RemoteContents};
use crate::validation::{self, Validation};

/// The largest contents that a command validates, in bytes.
const LARGEST_VALIDATED: u64 = 256 << 20;

/// A file that is fetched from a server.
///
/// With a checksum, the file is right as long as it has it, and the server is asked only for a file that is missing or wrong. Without one, a file that is there
/// stays, unless it was changed since it was fetched; with `every`, the server is asked again whether it has a newer one. An interrupted download continues where it
/// ended. The contents are checked before they take the place of the old ones.
///
/// ```mcl
/// download "/usr/local/bin/kubectl" {
///     url => ["https://dl.k8s.io/release/v1.31.0/bin/linux/amd64/kubectl"],
///     checksum_url => "https://dl.k8s.io/release/v1.31.0/bin/linux/amd64/kubectl.sha256",
///     mode => "0755",
/// }
/// ```
///
/// ```mcl
/// download "/var/lib/blocklist.txt" {
///     url => ["https://example.org/blocklist.txt", "https://mirror.example.org/blocklist.txt"],
///     every => "6h",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "download", autoedge, receives, refreshable, asynchronous, sends = Sent)]
pub(crate) struct Download {
    /// The file. Unset: the resource's name.
    path: IfSet<AbsolutePath>,
    /// Whether the file is there.
    #[param(default = Presence::Exists)]
    state: Presence,
    #[param(flatten(
        url,
        checksum,
        checksum_url,
        checksum_name,
        signature_url,
        signer,
        every,
        headers,
        username,
        password,
        ca,
        client_cert,
        client_key,
        limit,
        timeout
    ))]
    remote: RemoteContents,
    #[param(flatten(owner, group, mode))]
    ownership: Ownership,
    #[param(flatten(validate, validate_timeout))]
    validation: Validation,
    #[name]
    name: String,
}

/// Values that it sends.
#[derive(Sends)]
struct Sent {
    /// The path of the file.
    path: String,
    /// The SHA-256 of the contents that were fetched last, as `sha256:` and digits. Empty if nothing was fetched.
    version: String,
}

#[async_trait]
impl Resource for Download {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        match self.path() {
            Err(message) => invalid.push(Invalid::parameter("path", message)),
            Ok(path) if path.names_directory() => {
                invalid.push(Invalid::parameter("path", "must be a file: it ends in a slash"));
            }
            Ok(_) => {}
        }
        self.remote.refused(self.state == Presence::Exists, invalid);
        self.validation.refused(invalid);
    }

    fn identities(&self) -> Vec<Identity> {
        let path = self.path().ok().filter(|_| self.state == Presence::Exists);
        path.iter().map(enclosing::file).collect()
    }

    fn wanted(&self) -> Vec<Wanted> {
        let path = self.path().ok();
        let directory = path.iter().map(|path| enclosing::wanted(&enclosing::file(path)));
        let first = self.remote.files().into_iter().chain(self.ownership.identities());
        let first = first.chain(self.validation.identities()).collect::<Vec<_>>();
        directory.chain([Wanted::first_of_each(first)]).collect()
    }

    fn watches(&self) -> Vec<Watch> {
        let path = self.path().ok().map(Watch::path);
        path.into_iter().chain(self.remote.watch()).collect()
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path = self
            .path()
            .map_err(|why| Failure::new("use the path").because(why))?;
        let found = look(&path)?;
        if self.state == Presence::Absent {
            return remove(&path, found, apply);
        }
        let memory = self.remote.memory(apply)?;
        let version = self.keep(&path, found, memory, apply).await?;
        apply.send(Sent {
            path: path.to_string(),
            version,
        });
        Ok(())
    }
}

/// The file at the path.
type Found = Option<(Entry, Stat)>;

impl Download {
    fn path(&self) -> Result<AbsolutePath, String> {
        match &*self.path {
            Some(path) => Ok(path.clone()),
            None => AbsolutePath::new(&self.name).map_err(|error| format!("{error}: `{}`", self.name)),
        }
    }

    /// Has the file hold the wanted contents. Answers their SHA-256, if it is known.
    async fn keep(
        &self,
        path: &AbsolutePath,
        found: Found,
        memory: Option<Memory>,
        apply: &mut Apply<'_>,
    ) -> Result<String, Failure> {
        let owners = self.ownership.find(apply, path)?;
        // The file came from another address.
        let is_from_elsewhere = memory
            .as_ref()
            .is_some_and(|memory| !self.remote.is_from_here(memory));
        let memory = memory.filter(|_| !is_from_elsewhere);
        let is_due = self.remote.is_due(memory.as_ref(), apply);
        let listed = self.remote.wanted(memory.as_ref(), is_due, apply).await?;
        let put = memory
            .as_ref()
            .and_then(|memory| Checksum::of_digits(memory.sha256.strip_prefix("sha256:")?));
        let wanted = listed.clone().or(put);
        let is_right = match (&found, &wanted) {
            (None, _) => false,
            (Some((entry, stat)), Some(wanted)) => {
                block_in_place(|| holds(path, entry, stat, wanted, apply))?
            }
            // Nothing says what it must hold.
            (Some(_), None) => self.remote.every.is_none() && !apply.refresh_pending() && !is_from_elsewhere,
        };
        let sha256 = memory
            .as_ref()
            .map(|memory| memory.sha256.clone())
            .unwrap_or_default();
        if is_right && (!is_due || listed.is_some() || wanted.is_none()) {
            if is_due
                && apply.may_repair()
                && let Some(memory) = memory
            {
                self.remote.asked(memory, listed.as_ref(), apply)?;
            }
            self.keep_metadata(owners, found, apply)?;
            return Ok(sha256);
        }
        // With contents that are right, only newer ones are fetched.
        let known = memory.as_ref().filter(|_| is_right);
        if known.is_none()
            && !self
                .report(&found, wanted.as_ref(), listed.as_ref(), None, apply)
                .await?
        {
            self.keep_metadata(owners, found, apply)?;
            return Ok(sha256);
        }
        if known.is_some() && !apply.may_repair() {
            self.keep_metadata(owners, found, apply)?;
            return Ok(sha256);
        }
        let Some(new) = self.remote.fetch(listed.as_ref(), known, apply).await? else {
            if let Some(memory) = memory {
                self.remote.asked(memory, None, apply)?;
            }
            self.keep_metadata(owners, found, apply)?;
            return Ok(sha256);
        };
        let is_same = known.is_some_and(|memory| memory.sha256 == new.sha256.to_string());
        if !is_same {
            if known.is_some()
                && !self
                    .report(&found, wanted.as_ref(), None, Some(&new), apply)
                    .await?
            {
                return Ok(sha256);
            }
            self.keep_metadata(owners, found.clone(), apply)?;
            self.put(path, &new, found, apply).await?;
        }
        self.remote.remember(&new, listed.as_ref(), apply)?;
        new.part.remove();
        self.keep_metadata(owners, look(path)?, apply)?;
        Ok(new.sha256.to_string())
    }

    /// Reports that the contents differ, and answers whether to repair that.
    async fn report(
        &self,
        found: &Found,
        wanted: Option<&Checksum>,
        listed: Option<&Checksum>,
        new: Option<&New>,
        apply: &mut Apply<'_>,
    ) -> Result<bool, Failure> {
        let is = match (found, wanted) {
            (None, _) => DriftValue::Absent,
            (Some(_), Some(_)) if new.is_none() && listed.is_none() => DriftValue::from("changed by hand"),
            (Some(_), Some(wanted)) if new.is_some() => DriftValue::from(wanted.short()),
            (Some((_, stat)), _) => DriftValue::from(format!("other contents of {} bytes", stat.size)),
        };
        let length = match new {
            Some(new) => Some(new.length),
            // A run would ask the server, too.
            None if apply.is_plan() => self.remote.length(apply).await?,
            None => None,
        };
        let from = self.remote.url.first().map(String::as_str).unwrap_or_default();
        let mut want = new.map_or(from, |new| new.url.as_str()).to_owned();
        if let Some(length) = length {
            want.push_str(&format!(" ({length} bytes)"));
        }
        if let Some(sum) = new.map(|new| &new.sha256).or(listed) {
            want.push_str(&format!(", {}", sum.short()));
        }
        Ok(match found {
            None => {
                let mode = self.ownership.mode_of(None, new_mode(apply)).unwrap_or_default();
                apply.create(vec![("content", want.into()), ("mode", DriftValue::mode(mode))])
            }
            Some(_) => apply.drift("content", is, want),
        })
    }

    /// Replaces the file by new contents.
    async fn put(
        &self,
        path: &AbsolutePath,
        new: &New,
        found: Found,
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        let stat = found.map(|(_, stat)| stat);
        let owners = self.ownership.find(apply, path)?;
        let mode = self.ownership.mode_of(stat.as_ref(), new_mode(apply));
        if self.validation.is_set() {
            if new.length > LARGEST_VALIDATED {
                let why = format!("they are larger than {} MiB", LARGEST_VALIDATED >> 20);
                return Err(Failure::new("validate the new contents of").on(path).because(why));
            }
            let mut contents = new.open()?;
            let contents = block_in_place(|| contents.read_all())?;
            let owner = validation::owner(stat, owners.owner, owners.group);
            let shown = mode.or(stat.map(|stat| stat.mode)).unwrap_or(0o644);
            self.validation
                .check_with(apply, path, &contents, owner, shown)
                .await?;
        }
        let request = Replace::new(path.clone(), Content::Copy(new.open()?))
            .owner(owners.owner, owners.group)
            .mode(mode);
        let replaced = block_in_place(|| apply.replace_at_once(request))?;
        let verified = apply.handle().verified();
        verified.record_written(path.as_path(), &replaced, new.sha256.fingerprint(), false);
        Ok(())
    }

    fn keep_metadata(
        &self,
        owners: crate::ownership::Owners,
        found: Found,
        apply: &mut Apply<'_>,
    ) -> Result<(), Failure> {
        match found {
            Some((entry, stat)) => block_in_place(|| self.ownership.keep(owners, &entry, &stat, apply)),
            None => Ok(()),
        }
    }
}

/// The mode of a new file.
fn new_mode(apply: &Apply<'_>) -> u32 {
    match apply.has_sensitive() {
        true => 0o600 & !umask(),
        false => 0o644 & !umask(),
    }
}

fn look(path: &AbsolutePath) -> Result<Found, Failure> {
    let attempted = "look at";
    block_in_place(|| {
        let entry = match Entry::at(path).and_then(|entry| entry.follow()) {
            Err(error) if error.is_not_found() => return Ok(None),
            entry => entry.attempting(attempted, path)?,
        };
        let stat = entry.stat().attempting(attempted, path)?;
        match stat {
            Some(stat) if !stat.is_regular() => {
                let why = format!("it is a {}", stat.file_type);
                Err(Failure::new("replace").on(path).because(why))
            }
            stat => Ok(stat.map(|stat| (entry, stat))),
        }
    })
}

/// Whether a file has a checksum. The result is remembered as long as the file has the same stamp.
fn holds(
    path: &AbsolutePath,
    entry: &Entry,
    stat: &Stat,
    wanted: &Checksum,
    apply: &Apply<'_>,
) -> Result<bool, Failure> {
    let verified = apply.handle().verified();
    let print = wanted.fingerprint();
    if verified.holds(path.as_path(), stat.stamp(), print) {
        return Ok(true);
    }
    let now = Timestamp::now();
    let mut contents = OpenFile::open_found(entry, stat).attempting("read", path)?;
    let stamp = contents.stat().stamp();
    let is = wanted.algorithm().of(&mut contents, apply.cancellation().token());
    apply.cancellation().check("compare the checksum")?;
    let is = is.map_err(|error| Failure::new("read").on(path).because(error))?;
    if is != *wanted {
        return Ok(false);
    }
    verified.record(path.as_path(), stamp, print, now);
    Ok(true)
}

fn remove(path: &AbsolutePath, found: Found, apply: &mut Apply<'_>) -> Result<(), Failure> {
    let Some((_, stat)) = found else { return Ok(()) };
    if apply.remove(format!("a file of {} bytes", stat.size)) {
        block_in_place(|| Entry::at(path).and_then(|entry| entry.remove_file()))
            .attempting("remove", path)?;
    }
    Ok(())
}
