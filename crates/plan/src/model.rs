//! A plan as data. The fields are those of the JSON form, in its order.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use setpoint_engine::{Effect, Need, ResourceName};
use setpoint_graph::ResourceId;

/// The value of `format`.
pub const FORMAT: &str = "setpoint-plan";
/// The value of `version`. A new field raises the second number, and a changed meaning the first.
pub const VERSION: &str = "1.0";

/// A plan: the changes that a run would make on a machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// Always `setpoint-plan`.
    pub format: String,
    /// The version of this format.
    pub version: String,
    /// The version of Setpoint that made the plan.
    pub setpoint: String,
    /// When the plan was made, in seconds since 1970 UTC.
    pub made: u64,
    /// The machine.
    pub host: Host,
    /// The program.
    pub program: Program,
    /// The agent that uses the state directory, if one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Running>,
    /// The options of the plan that decide what it shows.
    pub options: PlanOptions,
    /// Whether every row says exactly what the run would do: nothing fails, is blocked, or is not known yet.
    pub complete: bool,
    /// How many rows have each action.
    pub summary: Summary,
    /// One row for each resource, by place in the program and then by name. Unchanged resources are left out unless asked for.
    pub rows: Vec<Row>,
    /// The exit code of `setpoint plan --detailed-exitcode`: 0 without changes, 2 with changes, 1 if something would fail.
    pub exit_code: u8,
}

/// The machine of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Host {
    /// Its name, as programs see it.
    pub name: String,
    /// The first 16 digits of a keyed hash of `/etc/machine-id`. Empty without that file.
    pub machine: String,
    /// The user: `root`, or `uid 1000`.
    pub user: String,
}

/// The program of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Program {
    /// The program as the command line names it.
    pub path: String,
    /// The SHA-256 of the list of its files.
    pub digest: String,
    /// Its files, by path below the program's directory.
    pub files: Vec<ProgramFile>,
}

/// A file of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramFile {
    /// The path below the program's directory.
    pub path: String,
    /// The SHA-256 of its contents, in hexadecimal.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
}

/// An agent that uses the state directory of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Running {
    /// The number of its process.
    pub pid: u32,
    /// Its program, as its command line names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

/// The options of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanOptions {
    /// The state directory that was read. Empty if the run has a temporary one.
    pub state_dir: String,
    /// The language of the program, if the command line says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The directory of remote modules, if the command line says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module_path: Option<String>,
    /// Values for inputs of a model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<(String, String)>,
    /// The file with facts for a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<String>,
    /// Whether the commands of the program's functions ran for the plan.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commands: bool,
    /// Whether Python functions of a model do not run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_python: bool,
}

/// How many rows have each action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Would be created.
    pub created: usize,
    /// Would be changed.
    pub changed: usize,
    /// Would be removed.
    pub removed: usize,
    /// Commands that would run, and messages that would be sent.
    pub run: usize,
    /// Services that would reload their configuration.
    pub reloaded: usize,
    /// Services that would restart.
    pub restarted: usize,
    /// Left the program, and would be undone.
    pub undone: usize,
    /// Left the program, and would stay as they are.
    pub let_go: usize,
    /// Cannot be said before an earlier resource has run.
    pub unknown: usize,
    /// Would fail.
    pub failed: usize,
    /// Were not checked, because something before them would fail.
    pub blocked: usize,
    /// Differ, and are not repaired, because of `Meta:noop`.
    pub off: usize,
    /// Are as they should be.
    pub unchanged: usize,
}

/// The JSON Schema of a plan.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Plan).to_value()
}

impl Summary {
    /// Whether the run would change something, or may.
    #[must_use]
    pub fn has_changes(&self) -> bool {
        let Summary {
            created,
            changed,
            removed,
            run,
            reloaded,
            restarted,
            undone,
            unknown,
            ..
        } = self;
        created + changed + removed + run + reloaded + restarted + undone + unknown > 0
    }

    /// Whether the run would fail.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.failed + self.blocked > 0
    }

    pub(crate) fn count_mut(&mut self, action: Action) -> &mut usize {
        match action {
            Action::Create => &mut self.created,
            Action::Change => &mut self.changed,
            Action::Remove => &mut self.removed,
            Action::Run => &mut self.run,
            Action::Reload => &mut self.reloaded,
            Action::Restart => &mut self.restarted,
            Action::Undo => &mut self.undone,
            Action::LetGo => &mut self.let_go,
            Action::Unknown => &mut self.unknown,
            Action::Fail => &mut self.failed,
            Action::Blocked => &mut self.blocked,
            Action::Off => &mut self.off,
            Action::Unchanged => &mut self.unchanged,
        }
    }
}

/// The planned action for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Create it.
    Create,
    /// Change it.
    Change,
    /// Remove it.
    Remove,
    /// Run a command or send a message.
    Run,
    /// Have a service reload its configuration.
    Reload,
    /// Restart a service.
    Restart,
    /// Undo what a resource did that left the program.
    Undo,
    /// Nothing: the resource left the program, and stays.
    LetGo,
    /// It cannot be said before an earlier resource has run.
    Unknown,
    /// It would fail.
    Fail,
    /// It was not checked, because something before it would fail.
    Blocked,
    /// Nothing, because of `Meta:noop`: it differs and stays so.
    Off,
    /// Nothing: it is as it should be.
    Unchanged,
}

/// The name in a row for resources whose names are not known.
pub const SOME_NAME: &str = "…";

/// One resource in a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// The kind.
    pub kind: Arc<str>,
    /// The name.
    pub name: Arc<str>,
    /// The planned action.
    pub action: Action,
    /// Its place in the order of the runs.
    pub order: usize,
    /// The group that applies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<ResourceName>,
    /// Its statement in the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// The fields that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// Properties of a resource that would be created, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<Arc<str>, Arc<str>>,
    /// Things that it needs, and that an earlier resource would create or may bring.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// Whose repairs would notify it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notified_by: Vec<ResourceName>,
    /// The resources that must run before the action is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<ResourceName>,
    /// Why it is not known, would fail, or was not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The row holds only until this resource has run, because it can bring anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<ResourceName>,
}

impl Row {
    /// A row without fields.
    #[must_use]
    pub fn new(id: &ResourceId, action: Action, place: Option<Place>) -> Row {
        Row {
            kind: id.kind.clone(),
            name: id.name.clone(),
            action,
            order: 0,
            group: None,
            place,
            fields: Vec::new(),
            attributes: BTreeMap::new(),
            needs: Vec::new(),
            notified_by: Vec::new(),
            after: Vec::new(),
            why: None,
            until: None,
        }
    }

    /// The resource.
    #[must_use]
    pub fn id(&self) -> ResourceId {
        ResourceId {
            kind: self.kind.clone(),
            name: self.name.clone(),
        }
    }

    /// `file[/etc/motd]`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}[{}]", self.kind, self.name)
    }
}

/// A place in the program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The file.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
}

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Field {
    /// The field, mostly a parameter.
    pub field: Arc<str>,
    /// The effect of the change.
    pub effect: Effect,
    /// The value found.
    pub is: Arc<str>,
    /// The wanted value.
    pub want: Arc<str>,
    /// Whether the value is not known yet. Then `want` says when it will be.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// How two texts differ, as `diff -u` shows it without its head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Arc<str>>,
}
