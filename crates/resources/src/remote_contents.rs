//! Contents on a server, as parameters: where they are, how they are checked, and how they are fetched.

mod signature;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use setpoint_engine::{Apply, Attempting, Failure, Identity, IfSet, Level, ParameterGroup, Watch};
use setpoint_graph::Invalid;
use setpoint_host::download::{
    Address, Answer, Condition, DownloadError, Fetched, Part, Request, Trust, Validators,
};
use setpoint_host::files::{AbsolutePath, Entry, OpenFile, Replace, Timestamp};
use setpoint_host::state::Stored;
use tokio::sync::Semaphore;
use tokio::task::block_in_place;

use self::signature::Signer;
use crate::checksum::{Algorithm, Checksum, find_in_list};
use crate::enclosing;
use crate::time_span::TimeSpan;

/// The most bytes of a download, if the program does not say it.
const LIMIT: u64 = 10 << 30;

/// The most bytes of a list of checksums, and of a signature.
const LIST_LIMIT: u64 = 4 << 20;

/// The pauses between tries of a request.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(4),
    Duration::from_secs(15),
];

/// The longest pause that a server can ask for.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The downloads at a time.
static AT_ONCE: Semaphore = Semaphore::const_new(4);

/// The name and the version of what a resource remembers of its server.
const MEMORY: (&str, u32) = ("server", 1);

/// The parameters, the same for all kinds that fetch contents.
#[derive(Debug, Clone, ParameterGroup)]
pub(crate) struct RemoteContents {
    /// The address: `https://…`, `http://…` or `file:///…`. Further ones are mirrors, which are tried in order.
    pub(crate) url: Vec<String>,
    /// The checksum of the contents. With it, the server is asked only for contents that are missing or wrong.
    pub(crate) checksum: IfSet<Checksum>,
    /// The address of a list of checksums, as `sha256sum` prints it.
    pub(crate) checksum_url: String,
    /// The name of the file in that list. Unset: the last part of the address.
    pub(crate) checksum_name: String,
    /// The address of a detached signature of the contents; with `checksum_url`, of the list.
    pub(crate) signature_url: String,
    /// The key that must have made the signature: the path of an OpenPGP key ring, or a public key of minisign (`RW…`).
    pub(crate) signer: String,
    /// How often the server is asked for newer contents, such as `6h`. Unset: contents that are there stay.
    pub(crate) every: IfSet<TimeSpan>,
    /// Header fields of the request, such as a token. Mark secrets as sensitive.
    pub(crate) headers: BTreeMap<String, String>,
    /// The user for Basic authentication.
    pub(crate) username: String,
    /// The password for Basic authentication. Mark it as sensitive.
    pub(crate) password: String,
    /// A PEM file with certificates of authorities, in addition to those of the system.
    pub(crate) ca: IfSet<AbsolutePath>,
    /// A PEM file with the certificate of this client. Needs `client_key`.
    pub(crate) client_cert: IfSet<AbsolutePath>,
    /// A PEM file with the private key of this client.
    pub(crate) client_key: IfSet<AbsolutePath>,
    /// The most bytes to download. Unset: 10 GiB.
    pub(crate) limit: Option<i64>,
    /// How long the server may send nothing, such as `60s`, which is the default.
    pub(crate) timeout: IfSet<TimeSpan>,
}

/// The properties of the contents that a resource fetched last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// The address of the contents.
    pub(crate) url: String,
    /// Their SHA-256.
    pub(crate) sha256: String,
    etag: Option<String>,
    modified: Option<String>,
    /// The address of the list of checksums, and the checksum in it.
    listed: Option<(String, String)>,
    /// When the server was asked last, in seconds since 1970.
    asked: u64,
}

/// Contents that were fetched and checked.
#[derive(Debug)]
pub(crate) struct New {
    pub(crate) part: Part,
    pub(crate) url: String,
    pub(crate) length: u64,
    pub(crate) sha256: Checksum,
    validators: Validators,
}

impl RemoteContents {
    /// Reports parameters that are invalid. `is_needed` says whether an address must be given.
    pub(crate) fn refused(&self, is_needed: bool, invalid: &mut Vec<Invalid>) {
        if is_needed && self.url.is_empty() {
            invalid.push(Invalid::parameter("url", "the address is missing"));
        }
        let named = self.url.iter().map(|url| ("url", url));
        let others = [
            ("checksum_url", &self.checksum_url),
            ("signature_url", &self.signature_url),
        ];
        let others = others.into_iter().filter(|(_, url)| !url.is_empty());
        for (parameter, url) in named.chain(others) {
            if let Err(why) = Address::parse(url) {
                let help = "parameters `username` and `password` take a login";
                let help = why.contains("password").then(|| help.to_owned());
                invalid
                    .push(Invalid::parameter(parameter, format!("`{}`: {why}", hidden(url))).help_if(help));
            }
        }
        let refusals = [
            (
                self.checksum.is_some() && !self.checksum_url.is_empty(),
                "checksum_url",
                "`checksum` is set, too",
            ),
            (
                self.checksum_url.is_empty() && !self.checksum_name.is_empty(),
                "checksum_name",
                "there is no list: `checksum_url` is not set",
            ),
            (
                self.signature_url.is_empty() != self.signer.is_empty(),
                "signer",
                "`signature_url` and `signer` are set together",
            ),
            (
                self.client_cert.is_some() != self.client_key.is_some(),
                "client_key",
                "`client_cert` and `client_key` are set together",
            ),
            (
                self.username.is_empty() && !self.password.is_empty(),
                "password",
                "`username` is not set",
            ),
            (
                self.checksum.is_some() && self.every.is_some(),
                "every",
                "contents with a `checksum` never change",
            ),
            (
                self.limit.is_some_and(|limit| limit <= 0),
                "limit",
                "must be more than 0",
            ),
        ];
        for (is_wrong, parameter, message) in refusals {
            if is_wrong {
                invalid.push(Invalid::parameter(parameter, message));
            }
        }
        if !self.signer.is_empty()
            && let Err(why) = Signer::read(&self.signer)
        {
            invalid.push(Invalid::parameter("signer", why));
        }
    }

    /// Files of this machine that come first.
    pub(crate) fn files(&self) -> Vec<Identity> {
        let named = [&self.ca, &self.client_cert, &self.client_key].into_iter();
        let named = named.filter_map(|path| path.0.clone());
        let local = self
            .url
            .iter()
            .filter_map(|url| Address::parse(url).ok()?.local());
        let ring = AbsolutePath::new(&self.signer).ok();
        let paths = named
            .chain(local.filter_map(|path| AbsolutePath::new(path).ok()))
            .chain(ring);
        paths.map(|path| enclosing::file(&path)).collect()
    }

    /// The watch that asks the server again.
    pub(crate) fn watch(&self) -> Option<Watch> {
        let every = self.every.as_ref()?.length();
        Some(Watch::own(move |watcher| async move {
            (watcher.event)("the time is followed");
            loop {
                tokio::select! {
                    () = tokio::time::sleep(every) => (watcher.event)("it is time to ask the server"),
                    () = watcher.cancellation.cancelled() => return Ok(()),
                }
            }
        }))
    }

    /// The remembered properties.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn memory(&self, apply: &Apply<'_>) -> Result<Option<Memory>, Failure> {
        let stored = block_in_place(|| apply.handle().load(MEMORY.0, MEMORY.1))?;
        let memory = match stored {
            Stored::Payload(payload) => serde_json::from_slice::<Memory>(&payload).ok(),
            Stored::Nothing | Stored::Unusable(_) => None,
        };
        Ok(memory)
    }

    /// Whether remembered contents are from one of the addresses.
    pub(crate) fn is_from_here(&self, memory: &Memory) -> bool {
        self.url.contains(&memory.url)
    }

    /// Remembers contents that were put in place.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn remember(
        &self,
        new: &New,
        listed: Option<&Checksum>,
        apply: &Apply<'_>,
    ) -> Result<(), Failure> {
        let memory = Memory {
            url: new.url.clone(),
            sha256: new.sha256.to_string(),
            etag: new.validators.etag.clone(),
            modified: new.validators.modified.clone(),
            listed: self.listed(listed),
            asked: now(),
        };
        store(&memory, apply)
    }

    /// Remembers that the server was asked, and has nothing new.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn asked(
        &self,
        mut memory: Memory,
        listed: Option<&Checksum>,
        apply: &Apply<'_>,
    ) -> Result<(), Failure> {
        memory.asked = now();
        memory.listed = self.listed(listed);
        store(&memory, apply)
    }

    fn listed(&self, checksum: Option<&Checksum>) -> Option<(String, String)> {
        let checksum = checksum.filter(|_| !self.checksum_url.is_empty());
        checksum.map(|checksum| (self.checksum_url.clone(), checksum.to_string()))
    }

    /// Whether to ask the server for something new.
    pub(crate) fn is_due(&self, memory: Option<&Memory>, apply: &Apply<'_>) -> bool {
        if self.checksum.is_some() {
            return false;
        }
        let Some(memory) = memory else { return true };
        let elapsed = Duration::from_secs(now().saturating_sub(memory.asked));
        // A watch can fire a moment early.
        let is_over = |every: &TimeSpan| elapsed + Duration::from_secs(1) >= every.length();
        apply.refresh_pending() || self.every.as_ref().is_some_and(is_over)
    }

    /// The checksum that the contents must have, as far as the program or a list says it.
    ///
    /// # Errors
    /// When the list cannot be fetched, is not signed, or does not have the file.
    pub(crate) async fn wanted(
        &self,
        memory: Option<&Memory>,
        is_due: bool,
        apply: &Apply<'_>,
    ) -> Result<Option<Checksum>, Failure> {
        if let Some(checksum) = &*self.checksum {
            return Ok(Some(checksum.clone()));
        }
        if self.checksum_url.is_empty() {
            return Ok(None);
        }
        let remembered = memory.and_then(|memory| memory.listed.as_ref());
        let remembered = remembered.filter(|(list, _)| *list == self.checksum_url);
        let remembered = remembered.and_then(|(_, text)| Checksum::of_digits(text.split_once(':')?.1));
        if let Some(checksum) = remembered.filter(|_| !is_due) {
            return Ok(Some(checksum));
        }
        let list = self.small(&self.checksum_url, apply).await?;
        if !self.signature_url.is_empty() && apply.may_repair() {
            let path = apply.handle().var_dir()?.join("list");
            let copy = Replace::bytes(path.clone(), list.clone());
            block_in_place(|| apply.handle().committer().replace(copy))?;
            self.check_signature(&path, apply).await?;
        }
        let text = String::from_utf8_lossy(&list).into_owned();
        let address = self.url.first().and_then(|url| Address::parse(url).ok());
        let name = match self.checksum_name.as_str() {
            "" => address.as_ref().map_or("", Address::file_name),
            name => name,
        };
        let found = find_in_list(&text, name);
        let missing = || {
            let why = format!("there is no checksum of `{name}` in it");
            Failure::new("use the list of checksums")
                .on(&self.checksum_url)
                .because(why)
        };
        found.ok_or_else(missing).map(Some)
    }

    /// Fetches the contents from the first server that has them, into the private directory of the resource. None if they are those that
    /// are remembered.
    ///
    /// # Errors
    /// When no server has them, or they are not the wanted ones.
    pub(crate) async fn fetch(
        &self,
        wanted: Option<&Checksum>,
        known: Option<&Memory>,
        apply: &Apply<'_>,
    ) -> Result<Option<New>, Failure> {
        let _one_of_few = AT_ONCE.acquire().await;
        let part = Part::in_directory(apply.handle().var_dir()?.as_path(), "contents");
        let validators = known.map(|memory| Validators {
            etag: memory.etag.clone(),
            modified: memory.modified.clone(),
        });
        let mut failures: Vec<Failure> = Vec::new();
        let mut fetched = None;
        for url in &self.url {
            match self
                .fetch_one(url, &part, wanted, validators.as_ref(), apply)
                .await
            {
                Ok(new) => {
                    fetched = Some(new);
                    break;
                }
                Err(failure) => {
                    apply.cancellation().check("download")?;
                    failures.push(failure);
                }
            }
        }
        let last = failures.pop_if(|_| fetched.is_none());
        for failure in failures {
            apply.log(Level::Warning, format!("failed to {}", failure.chain()));
        }
        match (fetched, last) {
            (Some(new), _) => Ok(new),
            (None, Some(failure)) => Err(failure),
            (None, None) => Err(Failure::new("download").because("there is no address")),
        }
    }

    async fn fetch_one(
        &self,
        url: &str,
        part: &Part,
        wanted: Option<&Checksum>,
        known: Option<&Validators>,
        apply: &Apply<'_>,
    ) -> Result<Option<New>, Failure> {
        let request = self.request(url).map_err(|error| failed(url, error))?;
        let mut patience = Patience::of(url);
        let fetched = loop {
            let fetching = part.fetch(&request, known, self.most(), |_, _| {});
            match unless_cancelled(fetching, apply).await? {
                Ok(fetched) => break fetched,
                Err(error) => patience.wait(error, apply).await?,
            }
        };
        let Fetched::Complete { validators, length } = fetched else {
            return Ok(None);
        };
        let checked = self.check(url, part, wanted, apply).await;
        // It is no use to go on with wrong contents.
        let sha256 = checked.inspect_err(|_| part.remove())?;
        Ok(Some(New {
            part: part.clone(),
            url: url.to_owned(),
            length,
            sha256,
            validators,
        }))
    }

    /// Checks contents that arrived. Answers their SHA-256.
    async fn check(
        &self,
        url: &str,
        part: &Part,
        wanted: Option<&Checksum>,
        apply: &Apply<'_>,
    ) -> Result<Checksum, Failure> {
        let stop = apply.cancellation().token();
        let of = |algorithm: Algorithm| {
            let mut contents = open(part)?;
            let sum = block_in_place(|| algorithm.of(&mut contents, stop));
            sum.map_err(|error| Failure::new("read what arrived").because(error))
        };
        let sha256 = of(Algorithm::Sha256)?;
        if let Some(wanted) = wanted {
            let is = match wanted.algorithm() {
                Algorithm::Sha256 => sha256.clone(),
                other => of(other)?,
            };
            if is != *wanted {
                let why = format!(
                    "the server sends something else than the program wants: it has {is}, and {wanted} is wanted; if a new file was published, change the checksum"
                );
                return Err(Failure::new("download").on(url).because(why));
            }
        }
        if !self.signature_url.is_empty() && self.checksum_url.is_empty() {
            let path = AbsolutePath::new(part.path()).map_err(|error| Failure::new("use").because(error))?;
            self.check_signature(&path, apply).await?;
        }
        Ok(sha256)
    }

    async fn check_signature(&self, file: &AbsolutePath, apply: &Apply<'_>) -> Result<(), Failure> {
        let signer = Signer::read(&self.signer).map_err(|why| Failure::new("use the signer").because(why))?;
        let signature = self.small(&self.signature_url, apply).await?;
        signer.check(file, &signature, apply).await
    }

    /// Fetches a small file that describes the contents.
    async fn small(&self, url: &str, apply: &Apply<'_>) -> Result<Vec<u8>, Failure> {
        let request = self.request(url).map_err(|error| failed(url, error))?;
        let mut patience = Patience::of(url);
        loop {
            match unless_cancelled(request.read(LIST_LIMIT), apply).await? {
                Ok(bytes) => return Ok(bytes),
                Err(error) => patience.wait(error, apply).await?,
            }
        }
    }

    /// Asks the first server that answers for the length of the contents, without fetching them. None if it does not say it.
    ///
    /// # Errors
    /// When no server has them.
    pub(crate) async fn length(&self, apply: &Apply<'_>) -> Result<Option<u64>, Failure> {
        let mut last = None;
        for url in &self.url {
            let request = self.request(url).map_err(|error| failed(url, error))?;
            if let Some(local) = request.address.local() {
                let path =
                    AbsolutePath::new(local).map_err(|error| Failure::new("read").on(url).because(error))?;
                let path = &path;
                let stat = block_in_place(|| Entry::at(path)?.follow()?.stat()).attempting("read", path)?;
                match stat {
                    Some(stat) => return Ok(Some(stat.size)),
                    None => last = Some(Failure::new("read").on(path).because("there is no such file")),
                }
                continue;
            }
            match request.send(&Condition::None).await {
                Ok(Answer::Contents(contents)) => return Ok(contents.length),
                Ok(Answer::Unchanged) => return Ok(None),
                Err(error) => last = Some(failed(url, error)),
            }
            apply.cancellation().check("download")?;
        }
        Err(last.unwrap_or_else(|| Failure::new("download").because("there is no address")))
    }

    fn request(&self, url: &str) -> Result<Request, DownloadError> {
        let path = |path: &IfSet<AbsolutePath>| path.as_ref().map(|path| path.as_path().to_path_buf());
        let mut request = Request::new(Address::parse(url).map_err(DownloadError::Address)?);
        request.headers = self
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        request.login = (!self.username.is_empty()).then(|| (self.username.clone(), self.password.clone()));
        request.trust = Trust {
            authorities: path(&self.ca),
            identity: path(&self.client_cert).zip(path(&self.client_key)),
        };
        if let Some(timeout) = &*self.timeout {
            request.silence = timeout.length();
        }
        Ok(request)
    }

    fn most(&self) -> u64 {
        self.limit
            .and_then(|limit| limit.try_into().ok())
            .unwrap_or(LIMIT)
    }
}

/// The tries of a request.
struct Patience<'a> {
    url: &'a str,
    pauses: std::array::IntoIter<Duration, 3>,
}

impl Patience<'_> {
    fn of(url: &str) -> Patience<'_> {
        Patience {
            url,
            pauses: PAUSES.into_iter(),
        }
    }

    /// Waits until the next try.
    ///
    /// # Errors
    /// The reason why there is none.
    async fn wait(&mut self, error: DownloadError, apply: &Apply<'_>) -> Result<(), Failure> {
        let next = self.pauses.next();
        let Some(pause) = next.filter(|_| error.is_passing() && apply.may_repair()) else {
            return Err(failed(self.url, error));
        };
        let asked_for = match &error {
            DownloadError::Refused {
                retry_after: Some(seconds),
                ..
            } => Duration::from_secs(*seconds),
            _ => Duration::ZERO,
        };
        let pause = pause.max(asked_for).min(LONGEST_PAUSE);
        unless_cancelled(tokio::time::sleep(pause), apply).await
    }
}

/// The result of work, unless the run is cancelled before.
async fn unless_cancelled<T>(work: impl Future<Output = T>, apply: &Apply<'_>) -> Result<T, Failure> {
    tokio::select! {
        result = work => Ok(result),
        () = apply.cancellation().cancelled() => {
            apply.cancellation().check("download")?;
            Err(Failure::new("download").because("cancelled"))
        }
    }
}

fn failed(url: &str, error: DownloadError) -> Failure {
    Failure::new("download").on(url).because(error)
}

impl New {
    /// The contents, opened.
    ///
    /// # Errors
    /// When they cannot be read.
    pub(crate) fn open(&self) -> Result<OpenFile, Failure> {
        open(&self.part)
    }
}

fn open(part: &Part) -> Result<OpenFile, Failure> {
    let attempted = "read what arrived";
    let path = AbsolutePath::new(part.path()).map_err(|error| Failure::new(attempted).because(error))?;
    Entry::at(&path)
        .and_then(|entry| entry.open())
        .attempting(attempted, &path)
}

fn store(memory: &Memory, apply: &Apply<'_>) -> Result<(), Failure> {
    let payload = serde_json::to_vec(memory).expect("it has only texts and numbers");
    block_in_place(|| apply.handle().store(MEMORY.0, MEMORY.1, &payload))
}

fn now() -> u64 {
    Timestamp::now().seconds.unsigned_abs()
}

/// An address without what looks like a login.
fn hidden(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(start), Some(end)) if start + 3 < end => format!("{}…{}", &url[..start + 3], &url[end..]),
        _ => url.to_owned(),
    }
}
