//! The resources that scripts are about: few, so that they meet often, and of kinds that differ in what the engine does with them.

use std::sync::LazyLock;

use setpoint_graph::{KindSchema, ParameterSchema, ParameterType, ResourceId, Secrecy, SendKey};

/// A resource of the cast, by its place in [`CAST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Role(pub(crate) u8);

/// All resources that a script can speak of: kind and name.
pub const CAST: [(&str, &str); 15] = [
    ("part", "m"),
    ("thing", "a"),
    ("thing", "b"),
    ("service", "c"),
    ("thing", "d"),
    ("service", "e"),
    ("deed", "f"),
    ("part", "n"),
    ("port:server", "g"),
    ("port:server", "h"),
    ("thing", "i"),
    ("part", "o"),
    ("service", "j"),
    ("thing", "k"),
    ("thing", "l"),
];

/// A set of roles.
pub(crate) type Roles = u16;

impl Role {
    /// All roles.
    pub fn all() -> impl Iterator<Item = Role> {
        (0..CAST.len() as u8).map(Role)
    }

    /// The role with this place in [`CAST`], if there is one.
    #[must_use]
    pub fn new(place: usize) -> Option<Role> {
        u8::try_from(place)
            .ok()
            .filter(|place| usize::from(*place) < CAST.len())
            .map(Role)
    }

    /// Whose identity this is, if it belongs to the cast.
    #[must_use]
    pub fn of(id: &ResourceId) -> Option<Role> {
        let place = CAST
            .iter()
            .position(|(kind, name)| *id.kind == **kind && *id.name == **name);
        place.and_then(Role::new)
    }

    /// Its identity.
    #[must_use]
    pub fn id(self) -> ResourceId {
        IDENTITIES[self.place()].clone()
    }

    pub(crate) fn place(self) -> usize {
        usize::from(self.0)
    }

    /// It alone, as a set.
    pub(crate) fn bit(self) -> Roles {
        1 << self.0
    }

    pub(crate) fn schema(self) -> &'static KindSchema {
        match CAST[self.place()].0 {
            "service" => &SERVICE,
            "port:server" => &PORT,
            "deed" => &DEED,
            "part" => &PART,
            _ => &THING,
        }
    }

    /// Whether it may be applied together with others.
    pub(crate) fn is_part(self) -> bool {
        self.schema().autogroup
    }

    /// Whether it is the one that is hidden now and then.
    pub(crate) fn may_be_hidden(self) -> bool {
        CAST[self.place()].1 == "l"
    }

    /// Whether it makes way for no other of its sort while one is going away.
    pub(crate) fn is_exclusive(self) -> bool {
        self.schema().exclusive
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, name) = CAST[self.place()];
        write!(f, "{kind}[{name}]")
    }
}

/// The roles of a set.
pub(crate) fn each(roles: Roles) -> impl Iterator<Item = Role> {
    Role::all().filter(move |role| roles & role.bit() != 0)
}

static IDENTITIES: LazyLock<Vec<ResourceId>> = LazyLock::new(|| {
    CAST.iter()
        .map(|(kind, name)| ResourceId::new(*kind, *name))
        .collect()
});

static TEXT: ParameterType = ParameterType::Str;

static CONTENT: [ParameterSchema; 1] = [ParameterSchema {
    name: "content",
    yaml_name: "content",
    parameter_type: &TEXT,
    form: None,
    doc: "What is in it.",
    default: "",
}];

static OUT: [SendKey; 1] = [SendKey {
    name: "out",
    parameter_type: &TEXT,
    doc: "What it sends.",
    secrecy: Secrecy::WithParameters,
}];

static THING: KindSchema = KindSchema {
    sends: &OUT,
    receives: true,
    reversible: true,
    ..KindSchema::plain("thing", "A thing.", &CONTENT)
};

static SERVICE: KindSchema = KindSchema {
    sends: &OUT,
    receives: true,
    refreshable: true,
    ..KindSchema::plain("service", "Something that can be notified.", &CONTENT)
};

static PORT: KindSchema = KindSchema {
    sends: &OUT,
    receives: true,
    exclusive: true,
    ..KindSchema::plain("port:server", "Something of which there can be one.", &CONTENT)
};

/// Of these several may be applied as one.
static PART: KindSchema = KindSchema {
    sends: &OUT,
    receives: true,
    autogroup: true,
    ..KindSchema::plain("part", "Something that can be part of a whole.", &CONTENT)
};

static DEED: KindSchema = KindSchema {
    sends: &OUT,
    receives: true,
    refreshable: true,
    action: true,
    ..KindSchema::plain("deed", "Something that is done.", &CONTENT)
};
