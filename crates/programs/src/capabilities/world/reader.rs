//! What programs read of what hosts share.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_value::{Exported, StoredText, Wake, WorldAnswer, WorldFeed, WorldQuery, WorldReader};
use setpoint_world::{Entry, Selection};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::elections::{SCHEDULES, chosen};
use super::exports::{EVERYONE, EXPORTED, read_exported};
use super::mirror::{Mirror, Seen};
use super::secrets::{Sealed, Unreadable};
use super::strings::{HOST_STRINGS, STRINGS};
use super::{Member, SharedWorld, keys, unencrypted};
use crate::host_key::HostKey;

impl WorldReader for SharedWorld {
    fn follow(&self, query: &WorldQuery, wake: Wake) -> Box<dyn WorldFeed> {
        let member = &self.member;
        let parts: Vec<Part> = member
            .selections(query)
            .into_iter()
            .map(|one| Part::of(member, one, &wake))
            .collect();
        let waking = match query {
            WorldQuery::Schedule(_) => Some(member.wake_at_changes_of_standing(&wake)),
            _ => None,
        };
        Box::new(Feed {
            query: query.clone(),
            _waking: waking,
            member: member.clone(),
            parts,
            last: None,
        })
    }

    fn knows_kind(&self, kind: &str) -> bool {
        self.kinds.contains(kind)
    }
}

impl Member {
    fn wake_at_changes_of_standing(&self, wake: &Wake) -> Waking {
        let (mut changed, wake) = (self.standing_changed.subscribe(), wake.clone());
        Waking(self.runtime().spawn(async move {
            while changed.changed().await.is_ok() {
                wake.wake();
            }
        }))
    }

    /// What an answer consists of.
    fn selections(&self, query: &WorldQuery) -> Vec<Selection> {
        match query {
            WorldQuery::String(key) => vec![keys::key(STRINGS, &[key]).into()],
            // A host has its own together, so that it can be allowed to write those alone.
            WorldQuery::Strings(_) => vec![Selection::prefix(format!("{HOST_STRINGS}/"))],
            WorldQuery::Schedule(namespace) => vec![keys::key(SCHEDULES, &[namespace]).into()],
            // For whom, and from whom, comes before the kind in the key: one watch is enough for all kinds.
            WorldQuery::Exports(_) => {
                let whom = [EVERYONE, &self.hostname];
                whom.map(|to| Selection::prefix(keys::below(EXPORTED, &[to])))
                    .to_vec()
            }
        }
    }
}

/// A part of the store that an answer needs.
struct Part {
    seen: watch::Receiver<Seen>,
    /// Held, so that it is followed.
    _mirror: Arc<Mirror>,
    /// Wakes who asked.
    _waking: Waking,
}

/// A task that wakes who asked, until it is dropped.
struct Waking(JoinHandle<()>);

impl Drop for Waking {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Part {
    fn of(member: &Arc<Member>, selection: Selection, wake: &Wake) -> Part {
        let mirror = member.mirror(selection);
        let (seen, mut heard, wake) = (mirror.look(), mirror.look(), wake.clone());
        let waking = member.runtime().spawn(async move {
            // What is there already, too.
            wake.wake();
            while heard.changed().await.is_ok() {
                wake.wake();
            }
        });
        Part {
            seen,
            _mirror: mirror,
            _waking: Waking(waking),
        }
    }
}

struct Feed {
    query: WorldQuery,
    /// Wakes who asked, where the answer also depends on what this host stands for.
    _waking: Option<Waking>,
    member: Arc<Member>,
    parts: Vec<Part>,
    last: Option<Result<WorldAnswer, String>>,
}

impl WorldFeed for Feed {
    fn latest(&mut self) -> Option<Result<WorldAnswer, String>> {
        let answer = self.answer()?;
        if self.last.as_ref() == Some(&answer) {
            return None;
        }
        self.last = Some(answer.clone());
        Some(answer)
    }
}

impl Feed {
    /// The answer as it is seen now; none as long as nothing was seen. What was seen holds while the store is away.
    fn answer(&self) -> Option<Result<WorldAnswer, String>> {
        let mut all: Vec<Entry> = Vec::new();
        for part in &self.parts {
            let seen = part.seen.borrow();
            match (&seen.entries, &seen.away) {
                (Some(entries), _) => all.extend(entries.values().cloned()),
                // Where nothing was seen yet there is nothing to go on with. Waiting does not mend every error.
                (None, Some(error)) if !error.is_passing() || !self.member.waits => {
                    return Some(Err(error.to_string()));
                }
                (None, _) => return None,
            }
        }
        self.read(&all).map(Ok)
    }

    /// A text that may be encrypted. What this host cannot read is told, and is as if it had not been seen.
    fn readable(
        &self,
        entry: &Entry,
        read: impl FnOnce(String, &HostKey) -> Result<StoredText, Unreadable>,
    ) -> Option<StoredText> {
        let text = String::from_utf8_lossy(&entry.value).into_owned();
        let Some(key) = &self.member.key else {
            return Some(unencrypted::text(text));
        };
        let read = read(text, key);
        read.map_err(|why| self.member.telling.unreadable(&entry.key, &why))
            .ok()
    }

    fn string(&self, entry: &Entry) -> Option<StoredText> {
        self.readable(entry, |text, key| match Sealed::read(&text) {
            Some(sealed) => sealed.open(key).map(StoredText::secret),
            None => Ok(text.into()),
        })
    }

    /// None where all of the answer is what this host cannot read.
    fn read(&self, entries: &[Entry]) -> Option<WorldAnswer> {
        Some(match &self.query {
            WorldQuery::String(_) => match entries.first() {
                Some(entry) => WorldAnswer::String(Some(self.string(entry)?)),
                None => WorldAnswer::String(None),
            },
            WorldQuery::Strings(namespace) => {
                let strings = entries.iter().filter_map(|entry| {
                    let [host, key] = keys::parts(&entry.key, &format!("{HOST_STRINGS}/"))?;
                    (key == *namespace).then_some(())?;
                    Some((host, self.string(entry)?))
                });
                WorldAnswer::Strings(strings.collect())
            }
            WorldQuery::Schedule(namespace) => {
                let mut hosts = entries.first().map(chosen).unwrap_or_default();
                let is_away = self.parts.iter().any(|part| part.seen.borrow().away.is_some());
                // Other hosts may already have replaced a host that is cut off.
                if !self.member.may_be_chosen(namespace, is_away) {
                    hosts.retain(|host| *host != self.member.hostname);
                }
                hosts.sort();
                WorldAnswer::Hosts(hosts)
            }
            WorldQuery::Exports(wanted) => {
                let exported = entries.iter().filter_map(|entry| {
                    let [_, host, kind, name] = keys::parts(&entry.key, &format!("{EXPORTED}/"))?;
                    if kind != *wanted {
                        return None;
                    }
                    Some(((name, host), self.readable(entry, read_exported)?))
                });
                // Of what a host exports to all and to this one, that for this one holds, which comes last.
                let exported: BTreeMap<(String, String), StoredText> = exported.collect();
                let exported = exported
                    .into_iter()
                    .map(|((name, host), data)| Exported { name, host, data });
                let exported = exported.collect();
                WorldAnswer::Exports(exported)
            }
        })
    }
}
