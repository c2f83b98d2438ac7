//! A few kinds of resources, with names in parts and parameters of all sorts.

use setpoint_graph::{KindSchema, ParameterSchema, ParameterType};

const STR: ParameterType = ParameterType::Str;
const INT: ParameterType = ParameterType::Int {
    bits: 16,
    signed: false,
};

pub(crate) const KINDS: [&KindSchema; 3] = [
    &KindSchema {
        kind: "file",
        parameters: &[
            parameter("path", &STR),
            parameter("content", &ParameterType::Optional(&STR)),
            parameter("mode", &STR),
            parameter("fragments", &ParameterType::List(&STR)),
        ],
        ..NOTHING
    },
    &KindSchema {
        kind: "http:server",
        parameters: &[parameter("port", &INT), parameter("name", &STR)],
        ..NOTHING
    },
    &KindSchema {
        kind: "http:server:user_file",
        parameters: &[
            parameter("in", &ParameterType::Bool),
            parameter("weight", &ParameterType::Float { bits: 64 }),
            parameter("codes", &ParameterType::Array(&INT, 3)),
            parameter("tables", &ParameterType::List(&ParameterType::List(&STR))),
            parameter("labels", &ParameterType::Map(&STR, &STR)),
            parameter("owner", &ParameterType::Struct(&[("name", &STR)])),
            parameter("anything", &ParameterType::Any),
            parameter("handler", &ParameterType::Func("func() str")),
        ],
        ..NOTHING
    },
];

const NOTHING: KindSchema = KindSchema::plain("", "A kind for tests.", &[]);

const fn parameter(name: &'static str, parameter_type: &'static ParameterType) -> ParameterSchema {
    ParameterSchema {
        name,
        yaml_name: name,
        parameter_type,
        form: None,
        doc: "",
        default: "",
    }
}
