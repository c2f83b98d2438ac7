//! The `gsettings` kind: a setting of a user's desktop, through the program `gsettings`.
//!
//! The program is asked and not the bus, because only it knows what a setting is that nobody has set, and in which of the places of the settings it belongs. What is
//! found is compared with what is wanted as values ([`text`]). That a command set a setting is believed when it is read again: the program succeeds also when
//! nothing could be stored.

mod session;
mod text;
mod watching;

use setpoint_engine::{
    Apply, Claim, Failure, Handle, IfSet, Resource, Stake, Wanted, Watch, Words, async_trait,
};
use setpoint_graph::{Invalid, MetaParameters};
use setpoint_host::files::AbsolutePath;
use setpoint_host::watch::{Depth, Follow};
use setpoint_value::Value;

use crate::sorts::{Account, FILE, PACKAGE_FILE, SETTING};
use session::Session;
use watching::Monitor;

/// A setting of a user's desktop, as `gsettings` and dconf keep it.
///
/// It is set over the session bus of the user, who has to be logged in, or to linger (`loginctl enable-linger USER`). The program has to be installed (`libglib2.0-bin`,
/// and for the settings to last `dconf-gsettings-backend`). What is set is an argument of it, which others can see: a secret has no place there.
///
/// ```mcl
/// gsettings "org.gnome.desktop.interface clock-show-seconds" {
///     type => "bool",
///     value => true,
///     user => "ada",
/// }
/// ```
///
/// A schema that has no place of its own is told where:
///
/// ```mcl
/// gsettings "the folder of tools" {
///     schema => "org.gnome.desktop.app-folders.folder:/org/gnome/desktop/app-folders/folders/tools/",
///     key => "apps",
///     type => "custom",
///     value => "['org.gnome.Calculator.desktop', 'org.gnome.Terminal.desktop']",
///     user => "ada",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "gsettings", autoedge, asynchronous)]
pub(crate) struct Gsettings {
    /// The schema, with a colon and a path if it has none of its own. Neither `schema` nor `key`: both are in the resource's name, with a space in between.
    schema: String,
    /// The key in the schema.
    key: String,
    /// What `value` is: of these types of mcl, or with `custom` a text as GVariant writes values, like `['a', 'b']` or `uint32 5`. It must be set.
    #[param(name = "type")]
    value_type: IfSet<ValueType>,
    /// The value. It must be set. A `str` that is already in quotes, such as `'Adwaita'`, means what is in them.
    value: Option<Value>,
    /// Whose setting it is, by name or number. Unset: our own.
    user: String,
    /// The group that the program runs with, by name or number, instead of the groups of `user`.
    group: String,
    #[name]
    name: String,
    /// Whose session is watched, if the account is known.
    #[state]
    session: Option<Session>,
    /// Whether there was a session bus when it was looked at last.
    #[state]
    had_a_bus: bool,
}

/// What `type` can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueType {
    Bool,
    Str,
    Int,
    Custom,
}

impl Words for ValueType {
    const ONE: &'static str = "a type of settings";

    fn words() -> impl Iterator<Item = (&'static str, ValueType)> {
        let all = [
            ("bool", ValueType::Bool),
            ("str", ValueType::Str),
            ("int", ValueType::Int),
            ("custom", ValueType::Custom),
        ];
        all.into_iter()
    }
}

/// Which setting it is.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setting {
    /// The schema, with a colon and a path if it has none of its own.
    schema: String,
    key: String,
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.schema, self.key)
    }
}

#[async_trait]
impl Resource for Gsettings {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        self.validate_setting(invalid);
        self.validate_value(invalid);
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        // The user may be made by an earlier resource; then each run says that there is none.
        self.session = Session::known(handle, &self.user);
        self.had_a_bus = self.session.as_ref().is_some_and(Session::has_a_bus);
        Ok(())
    }

    fn claims(&self) -> Vec<Claim> {
        let (setting, Some(value)) = (self.setting(), &self.value) else {
            return Vec::new();
        };
        let user = match self.user.as_str() {
            "" => "our own settings",
            user => user,
        };
        let stake = Stake::value(value.to_string().into_bytes());
        vec![Claim::of_part(
            &SETTING,
            user.as_bytes(),
            setting.to_string().as_bytes(),
            stake,
        )]
    }

    fn wanted(&self) -> Vec<Wanted> {
        let program = format!("/usr/bin/{}", session::PROGRAM).into_bytes();
        let mut identities = vec![PACKAGE_FILE.identity(program.clone()), FILE.identity(program)];
        identities.extend(Account::identities(&self.user, &self.group));
        vec![Wanted::first_of_each(identities)]
    }

    fn watches(&self) -> Vec<Watch> {
        let entry = |path: AbsolutePath| Watch::Path {
            path,
            depth: Depth::Entry,
            follow: Follow::Target,
        };
        let Some(session) = &self.session else {
            let accounts = AbsolutePath::new("/etc/passwd");
            return accounts.into_iter().map(entry).collect();
        };
        let monitor = Monitor {
            setting: self.setting(),
            user: self.user.clone(),
            group: self.group.clone(),
        };
        let mut watches: Vec<Watch> = session.bus().map(entry).into_iter().collect();
        watches.push(Watch::own(move |watcher| monitor.follow(watcher)));
        watches
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let session = Session::find(apply.handle(), &self.user, &self.group).await?;
        let has_a_bus = session.has_a_bus();
        if self.session.as_ref().map(Session::uid) != Some(session.uid()) || has_a_bus && !self.had_a_bus {
            apply.watch_anew();
        }
        self.session = Some(session.clone());
        self.had_a_bus = has_a_bus;
        let Some(wanted) = self.wanted_text() else {
            return Ok(());
        };
        let setting = self.setting();
        if !has_a_bus {
            return Err(session.without_a_bus(&self.user));
        }
        let is = session.read(&setting, apply).await?;
        if text::is_same(&wanted, &is) || !apply.drift("value", is, wanted.as_str()) {
            return Ok(());
        }
        let said = session.write(&setting, &wanted, apply).await?;
        let is = session.read(&setting, apply).await?;
        if text::is_same(&wanted, &is) {
            return Ok(());
        }
        let why = match (apply.has_sensitive(), said) {
            (true, _) => "it is another one all the same".to_owned(),
            (false, Some(said)) => format!("it is `{is}` all the same: {said}"),
            (false, None) => format!("it is `{is}` all the same"),
        };
        Err(session.failed("set", &setting, apply).because(why))
    }
}

impl Gsettings {
    /// Which setting it is: what is written, or what the name says.
    fn setting(&self) -> Setting {
        let (schema, key) = match (self.schema.as_str(), self.key.as_str()) {
            // There may be blanks in a path, and none in a key.
            ("", "") => self.name.rsplit_once(' ').unwrap_or((&self.name, "")),
            written => written,
        };
        Setting {
            schema: schema.to_owned(),
            key: key.to_owned(),
        }
    }

    fn validate_setting(&self, invalid: &mut Vec<Invalid>) {
        let is_in_name = self.schema.is_empty() && self.key.is_empty();
        let Setting { schema, key } = self.setting();
        if is_in_name && (schema.is_empty() || key.is_empty()) {
            let message = format!(
                "`{}` is not a schema and a key with a space in between",
                self.name
            );
            let help = "set `schema` and `key` if the resource has another name";
            invalid.push(Invalid::new(message).help(help));
            return;
        }
        let wrong = [("schema", why_no_schema(&schema)), ("key", why_no_key(&key))];
        for (parameter, why) in wrong {
            // The place is where the text stands.
            invalid.extend(why.map(|why| match is_in_name {
                true => Invalid::new(why),
                false => Invalid::parameter(parameter, why),
            }));
        }
    }

    fn validate_value(&self, invalid: &mut Vec<Invalid>) {
        let Some(value_type) = *self.value_type else {
            let message = "`type` must be `bool`, `str`, `int` or `custom`";
            invalid.push(Invalid::parameter("type", message).help("it says what `value` is"));
            return;
        };
        let Some(value) = &self.value else {
            let message = "`value` must be set";
            invalid.push(Invalid::parameter("value", message));
            return;
        };
        let (word, ty) = match value_type {
            ValueType::Bool => ("bool", "bool"),
            ValueType::Str => ("str", "str"),
            ValueType::Int => ("int", "int"),
            ValueType::Custom => ("custom", "str"),
        };
        if self.wanted_text().is_none() {
            let message = match value.as_str() {
                Some(_) if ty == "str" => "`value` is not UTF-8".to_owned(),
                _ => format!(
                    "`value` must be of the type `{ty}`, because `type` is `{word}`; it is of the type `{}`",
                    value.ty()
                ),
            };
            invalid.push(Invalid::parameter("value", message));
        } else if value
            .as_str()
            .is_some_and(|text| text.as_bytes().contains(&b'\0'))
        {
            invalid.push(Invalid::parameter("value", "no setting contains a NUL byte"));
        }
    }

    /// The value as `gsettings set` is given it.
    fn wanted_text(&self) -> Option<String> {
        let value = self.value.as_ref()?;
        match (*self.value_type)? {
            ValueType::Bool => value.as_bool().map(|value| value.to_string()),
            ValueType::Int => value.as_int().map(|value| value.to_string()),
            ValueType::Custom => Some(value.as_str()?.as_str()?.to_owned()),
            ValueType::Str => match value.as_str()?.as_str()? {
                quoted if text::is_quoted(quoted) => Some(quoted.to_owned()),
                plain => Some(text::quoted(plain)),
            },
        }
    }
}

/// Why a text is not a schema, if it is not.
fn why_no_schema(schema: &str) -> Option<String> {
    let (id, path) = match schema.split_once(':') {
        Some((id, path)) => (id, Some(path)),
        None => (schema, None),
    };
    if !is_name(id) {
        return Some(match id {
            "" => "there is no schema".to_owned(),
            id => format!("`{id}` is not the name of a schema, such as `org.gnome.desktop.interface`"),
        });
    }
    let path = path?;
    let is_path = path.starts_with('/') && path.ends_with('/') && !path.contains("//");
    (!is_path || path.contains(char::is_control)).then(|| {
        format!(
            "`{path}` is not the path of settings: it begins and ends with one slash, and has no two in a row"
        )
    })
}

/// Why a text is not a key, if it is not.
fn why_no_key(key: &str) -> Option<String> {
    (!is_name(key)).then(|| match key {
        "" => "there is no key".to_owned(),
        key => format!("`{key}` is not a key of a schema, such as `gtk-theme`"),
    })
}

fn is_name(text: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || ['.', '-', '_'].contains(&sign);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.chars().all(is_sign)
}
