//! The `ini` kind: settings in a file of sections, which others write, too. Not one of mgmt's kinds.

mod dialect;
mod document;

use std::collections::BTreeMap;

use setpoint_engine::{Apply, Claim, Failure, Handle, Identity, Resource, Stake, Wanted, Watch, async_trait};
use setpoint_graph::{Invalid, MetaParameters};

use self::dialect::Dialect;
use self::document::{Document, Rules, Section};
use crate::edited_file::EditedFile;
use crate::home_file::{self, HomeFile};
use crate::presence::Presence;
use crate::sorts::ENTRY;
use crate::text_edit::{NewText, TextFile};
use crate::validation::Validation;

/// Settings in a file of sections, such as `php.ini`.
///
/// A setting that exists gets its value where it stands. A setting that is commented out is activated there. Any other is added after the last setting of its
/// section. Everything else in the file is left unchanged. Only values count: `a=1` and `a = 1` are equal.
///
/// ```mcl
/// ini "/etc/php/8.2/fpm/php.ini" {
///     section => "PHP",
///     settings => {"memory_limit" => "256M", "expose_php" => "Off"},
///     lists => {"extension" => ["redis", "intl"]},
/// }
/// ```
///
/// Files of other programs have other dialects:
///
/// ```mcl
/// ini "/etc/default/grub" {
///     dialect => "env",
///     settings => {"GRUB_TIMEOUT" => "1"},
/// }
/// ```
///
/// `where` picks one of several sections with the same name:
///
/// ```mcl
/// ini "the laptop" {
///     file => "/etc/wireguard/wg0.conf",
///     section => "Peer",
///     where => {"PublicKey" => "aGVsbG8="},
///     settings => {"AllowedIPs" => "10.0.0.2/32"},
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "ini", autoedge, receives)]
pub(crate) struct Ini {
    /// The file: an absolute path, or one that begins with `~/` (own home) or `~NAME/` (home of a user). Unset: the resource's name.
    #[param(default_from = "name")]
    file: String,
    /// The section, without its brackets. Empty: the lines before the first section.
    section: String,
    /// Keys with their values. If a key stands in several lines of the section, the last one is kept.
    settings: BTreeMap<String, String>,
    /// Keys that stand in several lines, with the values of these lines in order.
    lists: BTreeMap<String, Vec<String>>,
    /// Keys that must be absent.
    unset: Vec<String>,
    /// Whether the settings are there. With `absent`, all keys of the resource are removed; without any keys, the whole section, with the comments directly above it.
    #[param(default = Presence::Exists)]
    state: Presence,
    /// Settings by which one of several sections with the same name is picked. A section that is created gets them too.
    r#where: BTreeMap<String, String>,
    /// The syntax of the file.
    ///
    /// `properties`: Java properties. `env`: shell assignments, such as `/etc/default/*`. `systemd`: unit files. `git`: `.gitconfig`. `desktop`: `.desktop` files. `properties` and `env` have no sections.
    #[param(default = Dialect::Ini)]
    dialect: Dialect,
    /// The text between key and value of new lines, such as ` = `. Unset: as in the rest of the file.
    separator: Option<String>,
    /// Whether sections and keys are compared without regard to case.
    ignore_case: bool,
    /// Whether a missing file is created.
    #[param(default = true)]
    create: bool,
    #[param(flatten(validate, validate_timeout))]
    validation: Validation,
    #[state]
    found: HomeFile,
}

#[async_trait]
impl Resource for Ini {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        invalid.extend(home_file::refused(&self.file));
        self.validation.refused(invalid);
        self.refuse_keys(invalid);
        self.refuse_values(invalid);
        let has_keys = !(self.settings.is_empty() && self.lists.is_empty() && self.unset.is_empty());
        if !has_keys && self.state == Presence::Exists {
            let message = "there is nothing to set: `settings`, `lists` and `unset` are empty";
            invalid.push(Invalid::parameter("settings", message));
        }
        let removes_section = !has_keys && self.state == Presence::Absent;
        let has_section = !self.section.is_empty();
        if has_section && !self.dialect.has_sections() {
            let message = "files of this dialect have no sections";
            invalid.push(Invalid::parameter("section", message));
        } else if self.section.contains(['\n', '\r'])
            || (self.section.contains(']') && self.dialect != Dialect::Git)
        {
            invalid.push(Invalid::parameter("section", "must be one line without `]`"));
        } else if !has_section && removes_section {
            invalid.push(Invalid::parameter("section", "the section to remove is missing"));
        }
        if !self.r#where.is_empty() && !has_section {
            invalid.push(Invalid::parameter(
                "where",
                "picks one of several sections, and `section` is empty",
            ));
        }
        if let Some(separator) = self
            .separator
            .as_deref()
            .filter(|text| !self.dialect.takes_separator(text))
        {
            let message = format!("`{separator}` separates no key from its value in this dialect");
            invalid.push(Invalid::parameter("separator", message));
        }
    }

    fn identities(&self) -> Vec<Identity> {
        EditedFile::named(&self.file).identities()
    }

    fn claims(&self) -> Vec<Claim> {
        let file = EditedFile::named(&self.file);
        let place = |key: &str| {
            let having = self.r#where.iter().map(|(key, value)| format!("{key}={value} "));
            format!("[{}] {}{key}", self.section, having.collect::<String>())
        };
        let claim = |key: &String, value: String| {
            let value = match self.state {
                Presence::Absent => "absent".to_owned(),
                Presence::Exists => value,
            };
            file.part(&ENTRY, place(key).as_bytes(), Stake::value(value.as_bytes()))
        };
        let settings = self
            .settings
            .iter()
            .map(|(key, value)| claim(key, format!("= {value}")));
        let lists = self
            .lists
            .iter()
            .map(|(key, values)| claim(key, format!("= {}", values.join("\n= "))));
        let unset = self.unset.iter().map(|key| claim(key, "absent".to_owned()));
        file.claims(settings.chain(lists).chain(unset))
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
            creates: self.create || self.state == Presence::Absent,
            validation: &self.validation,
        };
        file.edit(apply, |text| self.change(text)).await
    }
}

impl Ini {
    /// Reports keys that no line can have, or that are given twice.
    fn refuse_keys(&self, invalid: &mut Vec<Invalid>) {
        let all = [
            ("settings", self.settings.keys().collect::<Vec<_>>()),
            ("lists", self.lists.keys().collect()),
            ("unset", self.unset.iter().collect()),
            ("where", self.r#where.keys().collect()),
        ];
        let mut seen: Vec<&str> = Vec::new();
        for (parameter, keys) in all {
            for key in keys {
                let line = key.as_bytes();
                let is_whole = self
                    .dialect
                    .setting(format!("{key}=").as_bytes(), 0, true)
                    .is_some_and(|setting| setting.key == (0..line.len()));
                let is_special =
                    self.dialect.comment(line).is_some() || matches!(self.dialect.section(line), Ok(Some(_)));
                if !is_whole || is_special || key.contains(['\n', '\r']) {
                    let message = format!("`{key}` cannot be a key in this dialect");
                    invalid.push(Invalid::parameter(parameter, message));
                } else if parameter != "where" && seen.contains(&key.as_str()) {
                    let message = format!("`{key}` is in another parameter, too");
                    invalid.push(Invalid::parameter(parameter, message));
                }
                seen.push(key);
            }
        }
    }

    /// Reports values that the dialect cannot hold.
    fn refuse_values(&self, invalid: &mut Vec<Invalid>) {
        let settings = self.settings.iter().map(|(key, value)| ("settings", key, value));
        let having = self.r#where.iter().map(|(key, value)| ("where", key, value));
        let lists = self
            .lists
            .iter()
            .flat_map(|(key, values)| values.iter().map(move |value| ("lists", key, value)));
        for (parameter, key, value) in settings.chain(having).chain(lists) {
            if value.contains(['\n', '\r']) && !self.dialect.takes_line_feeds() {
                let message = format!("the value of `{key}` must be one line in this dialect");
                invalid.push(Invalid::parameter(parameter, message));
                continue;
            }
            let written = self.dialect.encoded(value);
            if written.trim() != written || self.dialect.decoded(written.as_bytes()) != value.as_bytes() {
                let message = format!("the value of `{key}` would be read back differently");
                let help = "in this dialect, a value neither begins nor ends with blanks, and does not end with a backslash";
                invalid.push(Invalid::parameter(parameter, message).help(help));
            }
        }
    }

    /// The text with all settings as they must be; none if they are.
    ///
    /// Each edit is proved before it counts: the new text, read again, has nothing to edit.
    fn change(&self, text: &[u8]) -> Result<Option<NewText>, String> {
        let Some(new) = self.edited(text)? else {
            return Ok(None);
        };
        match self.edited(&new.text)? {
            None => Ok(Some(new)),
            Some(again) => {
                let fields: Vec<&str> = again.differences.iter().map(|one| one.field.as_str()).collect();
                Err(format!(
                    "the lines around {} cannot be edited: the new text would be read differently",
                    fields.join(", ")
                ))
            }
        }
    }

    /// The text after one edit; none if nothing differs.
    fn edited(&self, text: &[u8]) -> Result<Option<NewText>, String> {
        let rules = Rules {
            dialect: self.dialect,
            ignore_case: self.ignore_case,
            separator: self.separator.clone(),
        };
        let section = Section {
            name: &self.section,
            having: &self.r#where,
        };
        let mut document = Document::read(text, &rules)?;
        let keys = || self.settings.keys().chain(self.lists.keys()).chain(&self.unset);
        match self.state {
            Presence::Absent if keys().next().is_none() => document.remove_section(&section)?,
            Presence::Absent => {
                for key in keys() {
                    document.unset(&section, key)?;
                }
            }
            Presence::Exists => {
                for (key, value) in &self.settings {
                    document.set(&section, key, value)?;
                }
                for (key, values) in &self.lists {
                    document.set_list(&section, key, values)?;
                }
                for key in &self.unset {
                    document.unset(&section, key)?;
                }
            }
        }
        Ok((!document.differences.is_empty()).then(|| NewText {
            text: document.text(),
            differences: document.differences,
        }))
    }
}

#[cfg(test)]
mod tests;
