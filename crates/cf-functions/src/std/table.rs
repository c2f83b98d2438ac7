//! The table of all functions of the language's own modules.

use super::{Default, Parameter, StdFunction, Ty, lists, network, outside, text, values};

const fn p(name: &'static str, ty: Ty) -> Parameter {
    Parameter::new(name, ty)
}

const fn f(
    name: &'static str,
    doc: &'static str,
    parameters: &'static [Parameter],
    result: Ty,
    run: fn(&mut super::Call<'_>) -> Result<setpoint_cf_names::datum::Datum, crate::context::Failure>,
) -> StdFunction {
    StdFunction::new(name, doc, parameters, result, run)
}

const ENTITY: Ty = Ty::Entity("std::Entity");
const INTERFACE: Ty = Ty::Typedef("std::ipv_any_interface");
const ADDRESS: Ty = Ty::Typedef("std::ipv_any_address");
const ADDRESS_4: Ty = Ty::Typedef("std::ipv4_address");
const NETWORK: Ty = Ty::Typedef("std::ipv_any_network");

/// All functions of `std`, in the order of the reference documentation, and behind them that of `setpoint`.
pub static FUNCTIONS: &[StdFunction] = &[
    // Output, templates and files.
    f("print", "Writes a value and the end of a line to where the model prints.",
        &[p("message", Ty::Any).with_references()], Ty::Any, values::print).effect().seeing_marks(),
    f("template", "Renders a template.\nThe path is `module/file`, `/file` of the project, or `./file` of the calling module. \
        Without further arguments the template sees what the call sees, with them only those.",
        &[p("path", Ty::String), p("kwargs", Ty::Any).keywords()], Ty::String, outside::template).reading().seeing_marks(),
    f("source", "The text of a file of a module.\nThe path is `module/file`, `/file` of the project, or `./file` of the calling module.",
        &[p("path", Ty::String)], Ty::String, outside::source).reading(),
    f("file", "A file of a module, for attributes that take the content of a file.\nThe path is as for `source`.",
        &[p("path", Ty::String)], Ty::String, outside::file).reading(),
    f("list_files", "The names of the files in a directory of a module's files, sorted.",
        &[p("path", Ty::String)], Ty::Strings, outside::list_files).reading(),
    // The surroundings.
    f("get_env", "A variable of the environment.\nWithout it and without a default the result is unknown.",
        &[p("name", Ty::String), p("default_value", Ty::OptionalString).or(Default::Null)], Ty::String, outside::get_env).reading(),
    f("get_env_int", "A variable of the environment, as a number.",
        &[p("name", Ty::String), p("default_value", Ty::OptionalInt).or(Default::Null)], Ty::Int, outside::get_env_int)
        .reading().deprecated("`int(std::get_env(…))`"),
    f("getfact", "A fact of a resource.\nWithout it and without a default the result is unknown.",
        &[p("resource", Ty::Any), p("fact_name", Ty::String), p("default_value", Ty::Any).or(Default::Null)], Ty::Any, outside::getfact).reading(),
    f("environment", "The name of the deployment.", &[], Ty::String, outside::environment).reading(),
    f("environment_name", "The name of the project.", &[], Ty::String, outside::environment_name).reading(),
    f("environment_server", "Where the world of the deployment is reached; unknown if there is none.",
        &[], Ty::String, outside::environment_server).reading(),
    f("server_ca", "Empty: there is no server with a certificate.", &[], Ty::String, outside::empty),
    f("server_ssl", "False: there is no server.", &[], Ty::Bool, outside::no),
    f("server_port", "Zero: there is no server.", &[], Ty::Int, outside::zero),
    f("server_token", "Empty: there is no server that wants a token.",
        &[p("client_types", Ty::Strings).or(Default::Strings(&["agent"]))], Ty::String, outside::empty),
    f("timestamp", "Seconds since the beginning of 1970.",
        &[p("dummy", Ty::Any).or(Default::Null)], Ty::Int, outside::timestamp).reading(),
    f("generate_password", "A random password of letters and digits, the same each time for one id.",
        &[p("pw_id", Ty::String), p("length", Ty::Int).or(Default::Int(20))], Ty::String, outside::generate_password).effect(),
    f("password", "A password that is in the file of passwords.",
        &[p("pw_id", Ty::String)], Ty::String, outside::password).reading(),
    // Deferred references.
    f("create_int_reference", "A number as a deferred reference.",
        &[p("value", Ty::Any).with_references()], Ty::Reference, outside::int_reference).seeing_marks(),
    f("create_environment_reference", "A variable of the machine's environment, read each time a resource is applied.",
        &[p("name", Ty::String).with_references()], Ty::Reference, outside::environment_reference).seeing_marks(),
    f("create_fact_reference", "A fact of a resource, read each time a resource is applied.",
        &[p("resource", Ty::Entity("std::Resource")), p("fact_name", Ty::String)], Ty::Reference, outside::fact_reference),
    // Values and instances.
    f("is_unknown", "Whether a value is unknown.",
        &[p("value", Ty::Any).with_unknowns().with_references()], Ty::Bool, values::is_unknown),
    f("is_instance", "Whether a value is an instance of an entity, which is given by its full name, or below it.",
        &[p("obj", Ty::Any), p("cls", Ty::String)], Ty::Bool, values::is_instance).reading(),
    f("isset", "Whether a value is not null.", &[p("value", Ty::Any)], Ty::Bool, values::isset),
    f("getattr", "An attribute of an instance, by name.\nThe default stands for one that there is not and, unless told otherwise, for an unknown.",
        &[p("entity", ENTITY).with_unknowns().with_references(), p("attribute_name", Ty::String),
            p("default_value", Ty::Any).or(Default::Null).with_unknowns().with_references(),
            p("no_unknown", Ty::Bool).or(Default::Bool(true))],
        Ty::Anything, values::getattr).reading().seeing_marks(),
    f("attr", "An attribute of an instance, by name.",
        &[p("obj", Ty::Any).with_references(), p("attr", Ty::String)], Ty::Anything, values::attr).reading(),
    f("objid", "A text that tells a value from others. It may be another one next time.",
        &[p("value", Ty::Any)], Ty::String, values::objid),
    f("type", "Not provided: it has no meaning for any value of the language.", &[p("obj", Ty::Any)], Ty::Any, values::no_type),
    f("assert", "Fails with the message unless the expression is true.",
        &[p("expression", Ty::Bool), p("message", Ty::String).or(Default::Text(""))], Ty::Any, values::assert),
    f("equals", "Fails unless both are equal.",
        &[p("arg1", Ty::Any), p("arg2", Ty::Any), p("desc", Ty::OptionalString).or(Default::Null)], Ty::Any, values::equals)
        .deprecated("`std::assert(a == b)`"),
    f("inlineif", "One of two values, both of which are evaluated.",
        &[p("conditional", Ty::Bool), p("a", Ty::Any), p("b", Ty::Any)], Ty::Any, values::inlineif),
    f("invert", "The opposite.", &[p("value", Ty::Bool)], Ty::Bool, values::invert).deprecated("`not`"),
    f("familyof", "Whether an operating system has this name or belongs to a family of this name.",
        &[p("member", Ty::Entity("std::OS")), p("family", Ty::String)], Ty::Bool, values::familyof).reading(),
    f("json_loads", "The value that a text in JSON stands for. Lists inside of lists stay there.",
        &[p("s", Ty::String)], Ty::Any, values::json_loads),
    f("json_dumps", "A value as a text in JSON.", &[p("obj", Ty::Any)], Ty::String, values::json_dumps),
    f("validate_type", "Whether a value is of a type of the validation library, which is given by its full name, and fulfils the parameters.",
        &[p("fq_type_name", Ty::String), p("value", Ty::Any), p("validation_parameters", Ty::OptionalDict).or(Default::Null)],
        Ty::Bool, values::validate_type),
    // Lists and dicts.
    f("count", "How many elements a list has, unknown ones included.",
        &[p("item_list", Ty::List).with_references()], Ty::Int, lists::count),
    f("len", "How many elements a list has; unknown if one of them is.",
        &[p("item_list", Ty::List).with_references()], Ty::Int, lists::len),
    f("at", "An element of a list. Negative positions count from the end.",
        &[p("objects", Ty::List).with_references(), p("index", Ty::Int)], Ty::Any, lists::at),
    f("item", "The elements at a position of each of the lists in a list.",
        &[p("objects", Ty::List), p("index", Ty::Int)], Ty::List, lists::item),
    f("select", "An attribute of each instance in a list.",
        &[p("objects", Ty::List), p("attr", Ty::String)], Ty::List, lists::select).reading().deprecated("a list comprehension"),
    f("filter", "A list without one of the instances in it.",
        &[p("values", Ty::List), p("not_item", ENTITY)], Ty::List, lists::filter).deprecated("a list comprehension"),
    f("key_sort", "Instances sorted by an attribute, or by several.",
        &[p("items", Ty::List), p("key", Ty::Any)], Ty::List, lists::key_sort).reading(),
    f("unique", "Whether no element is in the list twice.", &[p("item_list", Ty::List)], Ty::Bool, lists::unique),
    f("flatten", "The elements of the lists in a list.", &[p("item_list", Ty::List)], Ty::List, lists::flatten),
    f("sequence", "So many numbers, one after the other.",
        &[p("i", Ty::Int), p("start", Ty::Int).or(Default::Int(0))], Ty::List, lists::sequence),
    f("dict_keys", "The keys of a dict, in order.", &[p("dct", Ty::Dict)], Ty::Strings, lists::dict_keys),
    f("dict_get", "The text at a key of a dict.",
        &[p("dct", Ty::Dict), p("key", Ty::String)], Ty::String, lists::dict_get).deprecated("`dct[key]`"),
    f("contains", "Whether a dict has a key.",
        &[p("dct", Ty::Dict), p("key", Ty::String)], Ty::Bool, lists::contains).deprecated("`key in dct`"),
    // Texts.
    f("split", "The parts of a text between delimiters.",
        &[p("string_list", Ty::String), p("delim", Ty::String)], Ty::Strings, text::split),
    f("replace", "A text with each occurrence of another replaced.",
        &[p("string", Ty::String), p("old", Ty::String), p("new", Ty::String)], Ty::String, text::replace),
    f("capitalize", "A text with its first letter in upper case and the others in lower case.",
        &[p("string", Ty::String)], Ty::String, text::capitalize),
    f("upper", "A text in upper case.", &[p("string", Ty::String)], Ty::String, text::upper),
    f("lower", "A text in lower case.", &[p("string", Ty::String)], Ty::String, text::lower),
    f("limit", "The first characters of a text; with a negative length all but the last ones.",
        &[p("string", Ty::String), p("length", Ty::Int)], Ty::String, text::limit),
    f("length", "How many characters a text has.", &[p("value", Ty::String)], Ty::Int, text::length),
    f("format", "A text whose fields `{}`, `{0}`, `{name}`, `{a[k]}` are filled with values, each with an optional format specification.",
        &[p("string", Ty::String), p("args", Ty::Any).variadic(), p("kwargs", Ty::Any).keywords()], Ty::String, text::format).reading(),
    f("unique_file", "A name of a file between a prefix and a suffix that is always the same for one seed.",
        &[p("prefix", Ty::String), p("seed", Ty::String), p("suffix", Ty::String), p("length", Ty::Int).or(Default::Int(20))],
        Ty::String, text::unique_file),
    f("is_base64_encoded", "Whether a text is strict base64.", &[p("s", Ty::String)], Ty::Bool, text::is_base64_encoded),
    f("hostname", "What stands before the first dot of a name.", &[p("fqdn", Ty::String)], Ty::String, text::hostname),
    // Networks.
    f("prefixlength_to_netmask", "The netmask of an IPv4 network with a prefix of this length.",
        &[p("prefixlen", Ty::Int)], ADDRESS_4, network::prefixlength_to_netmask),
    f("prefixlen", "The length of the prefix of an interface.", &[p("addr", INTERFACE)], Ty::Int, network::prefixlen),
    f("network_address", "The first address of the network of an interface.", &[p("addr", INTERFACE)], ADDRESS, network::network_address),
    f("netmask", "The netmask of an interface.", &[p("addr", INTERFACE)], ADDRESS, network::netmask),
    f("ip_address_from_interface", "The address of an interface.", &[p("ip_interface", INTERFACE)], ADDRESS, network::address),
    f("ipindex", "An address of a network by its position; negative positions count from the end.",
        &[p("addr", NETWORK), p("position", Ty::Int), p("keep_prefix", Ty::Bool).or(Default::Bool(false))], Ty::String, network::ipindex),
    f("add_to_ip", "The address so many behind another.", &[p("addr", ADDRESS), p("n", Ty::Int)], ADDRESS, network::add_to_ip),
    // Resources.
    f("send", "What a resource sends, as a deferred reference: the parameter that it is given to is filled when that resource has been applied.",
        &[p("resource", ENTITY), p("key", Ty::String)], Ty::Reference, outside::send).reading().of("setpoint"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_function_is_there_once_with_its_documentation() {
        assert_eq!(super::super::names("std").len(), 67);
        for (index, function) in FUNCTIONS.iter().enumerate() {
            assert_eq!(
                super::super::number(function.module, function.name).map(usize::from),
                Some(index),
                "{}",
                function.name
            );
            let first = function.doc.lines().next().unwrap_or("");
            assert!(first.ends_with('.'), "{}", function.name);
        }
    }

    #[test]
    fn signatures_read_as_they_are_written() {
        let signature = |name: &str| {
            let number = super::super::number("std", name).expect("there is such a function");
            FUNCTIONS[usize::from(number)].signature()
        };
        assert_eq!(
            signature("replace"),
            "replace(string: string, old: string, new: string) -> string"
        );
        assert_eq!(
            signature("format"),
            "format(string: string, *args: any, **kwargs: any) -> string"
        );
        assert_eq!(
            signature("server_token"),
            "server_token(client_types: string[] = [\"agent\"]) -> string"
        );
        assert_eq!(
            signature("get_env"),
            "get_env(name: string, default_value: string? = null) -> string"
        );
    }
}
