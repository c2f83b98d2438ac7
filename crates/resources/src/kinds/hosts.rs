//! The `hosts` kind: the names of an address in `/etc/hosts`. Not one of mgmt's kinds.

use std::collections::BTreeSet;
use std::net::IpAddr;

use setpoint_engine::{
    Apply, Claim, DriftValue, Failure, Handle, Identity, Level, Resource, Stake, Wanted, Watch, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};

use crate::edited_file::EditedFile;
use crate::home_file::{self, HomeFile};
use crate::presence::Presence;
use crate::sorts::ENTRY;
use crate::text_edit::{Difference, NewText, TextFile};
use crate::text_lines::{bare, end_last_line, end_of_lines, lines};
use crate::validation::Validation;

/// The names of an address in `/etc/hosts`.
///
/// ```mcl
/// hosts "192.0.2.7" {
///     names => ["db.example.org", "db"],
///     comment => "the main database",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "hosts", autoedge, receives)]
pub(crate) struct Hosts {
    /// The address. Unset: the resource's name.
    #[param(default_from = "name")]
    address: String,
    /// Its names. The first one is the canonical name.
    names: Vec<String>,
    /// Whether the address is there. With `absent`, all lines of the address are removed.
    #[param(default = Presence::Exists)]
    state: Presence,
    /// Whether the address has no other names.
    #[param(default = true)]
    exclusive: bool,
    /// Whether a name is removed from other addresses of the same family.
    r#move: bool,
    /// A comment at the end of the line. Unset: unchanged.
    comment: Option<String>,
    /// The file.
    #[param(default = "/etc/hosts".to_owned())]
    file: String,
    #[param(flatten(validate, validate_timeout))]
    validation: Validation,
    #[state]
    found: HomeFile,
    /// Whether names of other addresses were reported.
    #[state]
    is_reported: bool,
}

#[async_trait]
impl Resource for Hosts {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        invalid.extend(home_file::refused(&self.file));
        self.validation.refused(invalid);
        match self.address() {
            None => {
                let message = format!("`{}` is not an address", self.address);
                let help = "write it as `192.0.2.7` or `2001:db8::7`";
                invalid.push(Invalid::parameter("address", message).help(help));
            }
            Some(address) if address.is_loopback() && self.state == Presence::Absent => {
                let message = "the loopback address must stay: programs of the machine need it";
                invalid.push(Invalid::parameter("state", message));
            }
            Some(_) => {}
        }
        if self.names.is_empty() && self.state == Presence::Exists {
            invalid.push(Invalid::parameter("names", "the names are missing"));
        }
        for name in self.names.iter().filter(|name| !is_host_name(name)) {
            invalid.push(Invalid::parameter(
                "names",
                format!("`{name}` is not the name of a host"),
            ));
        }
        if self
            .comment
            .as_ref()
            .is_some_and(|comment| comment.contains(['\n', '\r']))
        {
            invalid.push(Invalid::parameter("comment", "must be one line"));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        EditedFile::named(&self.file).identities()
    }

    fn claims(&self) -> Vec<Claim> {
        let file = EditedFile::named(&self.file);
        let Some(address) = self.address() else {
            return Vec::new();
        };
        let stake = match (self.state, self.exclusive) {
            (Presence::Absent, _) => "absent".to_owned(),
            (Presence::Exists, true) => self.names.join(" "),
            (Presence::Exists, false) => return file.claims([]),
        };
        let place = format!("host {address}");
        file.claims([file.part(&ENTRY, place.as_bytes(), Stake::value(stake.as_bytes()))])
    }

    fn wanted(&self) -> Vec<Wanted> {
        home_file::wanted(&self.file)
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        self.found.init(&self.file, handle);
        Ok(())
    }

    fn watches(&self) -> Vec<Watch> {
        self.found.watches(&self.file)
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let path = self.found.find(&self.file, apply)?;
        let file = TextFile {
            path,
            creates: true,
            validation: &self.validation,
        };
        let mut others = Vec::new();
        file.edit(apply, |text| {
            others = self.names_of_others(text);
            Ok(self.change(text))
        })
        .await?;
        if !others.is_empty() && !std::mem::replace(&mut self.is_reported, true) && !apply.has_sensitive() {
            let note = format!(
                "other addresses have these names, too: {}; `move` removes them there",
                others.join(", ")
            );
            apply.log(Level::Warning, note);
        }
        Ok(())
    }
}

/// A line of the file.
struct Line<'a> {
    /// The address, the names and the white space around them.
    fields: &'a str,
    /// The comment with its mark.
    comment: &'a str,
    address: Option<IpAddr>,
    names: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn read(line: &'a [u8]) -> Line<'a> {
        let text = std::str::from_utf8(line).unwrap_or_default();
        let (fields, comment) = text.split_at(text.find('#').unwrap_or(text.len()));
        let mut words = fields.split_whitespace();
        let address = words.next().and_then(|word| word.split('%').next()?.parse().ok());
        Line {
            fields,
            comment,
            address,
            names: words.collect(),
        }
    }

    /// The line with other names. The white space before them stays.
    fn with_names(&self, names: &[&str], comment: Option<&str>) -> String {
        let start = self.fields.len() - self.fields.trim_start().len();
        let address_end = self.fields[start..]
            .find(char::is_whitespace)
            .map_or(self.fields.len(), |end| start + end);
        let rest = &self.fields[address_end..];
        let gap = &rest[..rest.len() - rest.trim_start().len()];
        let gap = if gap.is_empty() { "\t" } else { gap };
        let separator = match self.fields.trim_end().rfind(char::is_whitespace) {
            Some(at) if at > address_end + gap.len() => &self.fields[at..=at],
            _ => " ",
        };
        let mut line = format!("{}{gap}{}", &self.fields[..address_end], names.join(separator));
        match comment {
            Some("") => {}
            Some(comment) => line.push_str(&format!(" # {comment}")),
            None if self.comment.is_empty() => {}
            None => {
                let blanks = &self.fields[self.fields.trim_end().len()..];
                line.push_str(blanks);
                line.push_str(self.comment);
            }
        }
        line
    }

    fn comment_text(&self) -> &str {
        self.comment.trim_start_matches('#').trim()
    }
}

impl Hosts {
    fn address(&self) -> Option<IpAddr> {
        self.address.parse().ok()
    }

    /// The text in which the address has its names; none if it has.
    fn change(&self, text: &[u8]) -> Option<NewText> {
        let address = self.address()?;
        let end = end_of_lines(text);
        let mut new = NewText::default();
        let mut is_there = false;
        for (at, raw) in lines(text).into_iter().enumerate() {
            let line = Line::read(bare(raw));
            let field = || format!("line {}", at + 1);
            let is_ours = line.address == Some(address);
            let changed = if is_ours && self.state == Presence::Exists && !is_there {
                is_there = true;
                self.corrected(&line).map(|text| ("names".to_owned(), Some(text)))
            } else if is_ours && (self.state == Presence::Absent || self.exclusive) {
                Some((field(), None))
            } else {
                self.without_moved(&line, address).map(|text| (field(), text))
            };
            match changed {
                None => new.text.extend_from_slice(raw),
                Some((field, changed)) => {
                    new.differences.push(Difference {
                        field,
                        is: shown(&String::from_utf8_lossy(bare(raw))),
                        want: changed.as_deref().map(shown).into(),
                        is_existence: changed.is_none() && self.state == Presence::Absent,
                    });
                    if let Some(changed) = changed {
                        new.text.extend_from_slice(changed.as_bytes());
                        new.text.extend_from_slice(&raw[bare(raw).len()..]);
                    }
                }
            }
        }
        if !is_there && self.state == Presence::Exists {
            let mut line = format!("{}\t{}", self.address, self.names.join(" "));
            if let Some(comment) = self.comment.as_deref().filter(|comment| !comment.is_empty()) {
                line.push_str(&format!(" # {comment}"));
            }
            end_last_line(&mut new.text, end);
            new.text.extend([line.as_bytes(), end].concat());
            new.differences.push(Difference {
                field: "names".to_owned(),
                is: DriftValue::Absent,
                want: shown(&line),
                is_existence: true,
            });
        }
        (!new.differences.is_empty()).then_some(new)
    }

    /// The first line of the address with the wanted names; none if it has them.
    fn corrected(&self, line: &Line<'_>) -> Option<String> {
        let wanted = self.names.iter().map(String::as_str);
        let mut names: Vec<&str> = wanted.collect();
        if !self.exclusive {
            let others: Vec<&str> = line
                .names
                .iter()
                .copied()
                .filter(|name| !names.contains(name))
                .collect();
            let has_all = names.iter().all(|name| line.names.contains(name));
            if has_all && line.names.first() == names.first() {
                names.clone_from(&line.names);
            } else {
                names.extend(others);
            }
        }
        let is_right_comment = self
            .comment
            .as_deref()
            .is_none_or(|comment| line.comment_text() == comment);
        (names != line.names || !is_right_comment).then(|| line.with_names(&names, self.comment.as_deref()))
    }

    /// A line of another address without the names that move; none if it has none of them. The inner none if no name is left.
    fn without_moved(&self, line: &Line<'_>, address: IpAddr) -> Option<Option<String>> {
        let is_of_family = line
            .address
            .is_some_and(|other| other != address && other.is_ipv4() == address.is_ipv4());
        if !self.r#move || !is_of_family || self.state == Presence::Absent {
            return None;
        }
        let stay: Vec<&str> = line
            .names
            .iter()
            .copied()
            .filter(|name| !self.names.iter().any(|own| own == name))
            .collect();
        (stay.len() < line.names.len()).then(|| (!stay.is_empty()).then(|| line.with_names(&stay, None)))
    }

    /// Names that other addresses of the same family have, too.
    fn names_of_others(&self, text: &[u8]) -> Vec<String> {
        let Some(address) = self
            .address()
            .filter(|_| !self.r#move && self.state == Presence::Exists)
        else {
            return Vec::new();
        };
        let mut others = BTreeSet::new();
        for raw in lines(text) {
            let line = Line::read(bare(raw));
            let Some(other) = line
                .address
                .filter(|other| *other != address && other.is_ipv4() == address.is_ipv4())
            else {
                continue;
            };
            let shared = line
                .names
                .iter()
                .filter(|name| self.names.iter().any(|own| own == *name));
            others.extend(shared.map(|name| format!("{name} ({other})")));
        }
        others.into_iter().collect()
    }
}

/// A line as messages show it.
fn shown(line: &str) -> DriftValue {
    DriftValue::from(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn is_host_name(name: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !name.is_empty() && name.len() <= 253 && name.bytes().all(is_sign) && name.parse::<IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use setpoint_engine::IfSet;

    use super::*;

    fn hosts(address: &str, names: &[&str]) -> Hosts {
        Hosts {
            address: address.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            state: Presence::Exists,
            exclusive: true,
            r#move: false,
            comment: None,
            file: "/etc/hosts".to_owned(),
            validation: Validation {
                validate: String::new(),
                validate_timeout: IfSet::default(),
            },
            found: HomeFile::default(),
            is_reported: false,
        }
    }

    #[track_caller]
    fn becomes(hosts: &Hosts, before: &str, after: &str) {
        let new = hosts.change(before.as_bytes()).expect("it changes");
        assert_eq!(String::from_utf8_lossy(&new.text), after);
        assert_eq!(hosts.change(&new.text), None, "once is enough");
    }

    #[test]
    fn an_address_gets_its_names() {
        becomes(
            &hosts("192.0.2.7", &["a", "b"]),
            "127.0.0.1 localhost",
            "127.0.0.1 localhost\n192.0.2.7\ta b\n",
        );
        becomes(
            &hosts("192.0.2.7", &["a"]),
            "192.0.2.7   b  c  # old\r\n192.0.2.7 d\r\n",
            "192.0.2.7   a  # old\r\n",
        );
        assert_eq!(
            hosts("::1", &["a"]).change(b"0:0::1\ta # x\n"),
            None,
            "addresses are values"
        );
        let mut commented = hosts("192.0.2.7", &["a"]);
        commented.comment = Some("new".to_owned());
        becomes(&commented, "192.0.2.7 a # old\n", "192.0.2.7 a # new\n");
        let mut shared = hosts("192.0.2.7", &["b"]);
        shared.exclusive = false;
        becomes(&shared, "192.0.2.7\ta\n", "192.0.2.7\tb a\n");
        assert_eq!(shared.change(b"192.0.2.7 b a\n"), None);
    }

    #[test]
    fn names_of_other_addresses_move_only_if_they_must() {
        let text = "192.0.2.1 a b\n2001:db8::1 a\n192.0.2.2 a\n";
        let mut moved = hosts("192.0.2.7", &["a"]);
        assert_eq!(
            moved.names_of_others(text.as_bytes()),
            ["a (192.0.2.1)", "a (192.0.2.2)"]
        );
        moved.r#move = true;
        becomes(&moved, text, "192.0.2.1 b\n2001:db8::1 a\n192.0.2.7\ta\n");
        let mut gone = hosts("192.0.2.1", &[]);
        gone.state = Presence::Absent;
        becomes(&gone, text, "2001:db8::1 a\n192.0.2.2 a\n");
    }
}
