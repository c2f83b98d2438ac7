//! What is known about a kind of resource without touching a machine.

use crate::{MetaParameters, ParameterType, Parameters};

/// The description of a kind. One `static` each, made by `#[derive(Resource)]`.
#[derive(Debug)]
pub struct KindSchema {
    /// Its name, `file`, `http:server:flag`.
    pub kind: &'static str,
    /// Reference documentation; the first line stands alone.
    pub doc: &'static str,
    /// Its parameters, in the order of the documentation.
    pub parameters: &'static [ParameterSchema],
    /// What it sends.
    pub sends: &'static [SendKey],
    /// Whether parameters can be received.
    pub receives: bool,
    /// Whether a pending notification makes it run.
    pub refreshable: bool,
    /// Whether `Meta:reverse` does something.
    pub reversible: bool,
    /// Whether it takes part in automatic edges.
    pub autoedge: bool,
    /// Whether it can be grouped.
    pub autogroup: bool,
    /// Whether no other resource of the kind's first part may be going away while one comes (ports).
    pub exclusive: bool,
    /// Whether its repair is an action rather than a state, so that repeating it is no fight.
    pub action: bool,
    /// Constants `$const.res.KIND.PARAMETER.NAME`.
    pub constants: &'static [Constant],
    /// The kind's own validation over parameters that fit their types: no I/O, everything that is wrong. A value that is
    /// unknown counts as set and as right.
    pub check: fn(&str, &Parameters, &MetaParameters) -> Vec<Invalid>,
    /// Whether `check` has doubts: what it gives is a warning at least. Much cheaper than asking `check`; for linters.
    pub has_doubts: fn(&str, &Parameters) -> bool,
    /// Compatible merging of two resources of one name: what both together want, or none when they contradict.
    pub merge: Option<fn(&Parameters, &Parameters) -> Option<Parameters>>,
}

impl KindSchema {
    /// A kind that has these parameters and nothing special.
    #[must_use]
    pub const fn plain(
        kind: &'static str,
        doc: &'static str,
        parameters: &'static [ParameterSchema],
    ) -> KindSchema {
        KindSchema {
            kind,
            doc,
            parameters,
            sends: &[],
            receives: false,
            refreshable: false,
            reversible: false,
            autoedge: false,
            autogroup: false,
            exclusive: false,
            action: false,
            constants: &[],
            check: |_, _, _| Vec::new(),
            has_doubts: |_, _| false,
            merge: None,
        }
    }

    /// A parameter by name.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&'static ParameterSchema> {
        self.parameters.iter().find(|p| p.name == name)
    }

    /// Whether it is this description: kinds are told apart by name.
    #[must_use]
    pub fn is_same(&self, other: &KindSchema) -> bool {
        std::ptr::eq(self, other) || self.kind == other.kind
    }

    /// A send key by name.
    #[must_use]
    pub fn send_key(&self, name: &str) -> Option<&'static SendKey> {
        self.sends.iter().find(|k| k.name == name)
    }
}

/// The description of a parameter.
#[derive(Debug, Clone, Copy)]
pub struct ParameterSchema {
    /// Its name.
    pub name: &'static str,
    /// Its name in YAML.
    pub yaml_name: &'static str,
    /// How it is stored.
    pub parameter_type: &'static ParameterType,
    /// What its text has to be, for the documentation: `an absolute path`. None where the type says it all.
    pub form: Option<fn() -> String>,
    /// Reference documentation; the first line stands alone.
    pub doc: &'static str,
    /// What holds when it is not set, as text for the documentation; empty for the zero value.
    pub default: &'static str,
}

/// Something a kind sends.
#[derive(Debug)]
pub struct SendKey {
    /// What programs call it.
    pub name: &'static str,
    /// How receivers see it.
    pub parameter_type: &'static ParameterType,
    /// Reference documentation.
    pub doc: &'static str,
    /// When it is sensitive.
    pub secrecy: Secrecy,
}

/// When something that is sent is sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// When any parameter is.
    WithParameters,
    /// Never, as it says nothing about the parameters: a count, an exit status.
    Never,
    /// Always: it is a secret that the kind makes.
    Always,
}

/// A constant that a kind registers.
#[derive(Debug)]
pub struct Constant {
    /// The parameter it is for.
    pub parameter: &'static str,
    /// What programs call it.
    pub name: &'static str,
    /// What it stands for.
    pub value: ConstantValue,
}

/// The value of a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConstantValue {
    /// A text, for parameters of type str.
    Str(&'static str),
    /// A number, for parameters of type int.
    Int(i64),
}

/// Something that a kind's own validation refuses, or doubts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// The parameter to look at, if it is one.
    pub parameter: Option<&'static str>,
    /// What is doubted. A doubt refuses nothing: the resource means something, but probably not what was meant.
    pub doubt: Option<Doubt>,
    /// What is wrong: one line, no full stop.
    pub message: String,
    /// What to do, if that is certain enough to say.
    pub help: Option<String>,
}

impl Invalid {
    /// About the resource as a whole.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Invalid {
        Invalid {
            parameter: None,
            doubt: None,
            message: message.into(),
            help: None,
        }
    }

    /// About a parameter.
    #[must_use]
    pub fn parameter(parameter: &'static str, message: impl Into<String>) -> Invalid {
        Invalid {
            parameter: Some(parameter),
            ..Invalid::new(message)
        }
    }

    /// A doubt about a parameter.
    #[must_use]
    pub fn doubt(doubt: Doubt, parameter: &'static str, message: impl Into<String>) -> Invalid {
        Invalid {
            doubt: Some(doubt),
            ..Invalid::parameter(parameter, message)
        }
    }

    /// Whether it refuses the resource.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.doubt.is_none()
    }

    /// With advice.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Invalid {
        self.help_if(Some(help.into()))
    }

    /// With advice, if there is some.
    #[must_use]
    pub fn help_if(mut self, help: Option<String>) -> Invalid {
        self.help = help;
        self
    }
}

/// What a kind doubts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// It is probably not what was meant.
    Meaning,
    /// Others can read a secret.
    ReadableSecret,
}
