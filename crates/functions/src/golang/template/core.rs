//! The library's own functions, called from templates.

use setpoint_value::{
    CallContext, CallError, Class, FunctionSpec, Implementation, List, Map, Type, Value, Wake, call,
};

use super::datum::Datum;

/// Functions that templates do not know although their types would allow it: those with state, with a view of the deploy, and
/// those that templates in the reference do not have.
fn is_excluded(spec: &FunctionSpec) -> bool {
    let one_instance = matches!(
        &*spec.name,
        "one_instance_b" | "one_instance_d" | "one_instance_f" | "one_instance_h"
    );
    match &*spec.module {
        "deploy" => !matches!(&*spec.name, "binary_path" | "bootstrap_packages"),
        "local" | "golang" | "fmt" => true,
        "test" => !one_instance,
        _ => false,
    }
}

/// The function that is called so in templates: `strings_to_upper`, `_concat`.
pub(super) fn find(name: &str) -> Option<&'static FunctionSpec> {
    for module in crate::MODULES {
        let path = module.name.replace('/', "_");
        let Some(function) = name.strip_prefix(path.as_str()).and_then(|n| n.strip_prefix('_')) else {
            continue;
        };
        let found = module.functions.iter().find(|spec| spec.name == function);
        if let Some(spec) = found
            && is_plain(spec)
        {
            return Some(spec);
        }
    }
    None
}

/// Whether a function has fixed types and no life of its own.
fn is_plain(spec: &FunctionSpec) -> bool {
    let of_class = match spec.class {
        Class::Pure => matches!(spec.implementation, Implementation::Pure(_)),
        Class::Environment => true,
        Class::Stateful => spec.name == "mkdir_temp",
        Class::Source => false,
    };
    let has_types = match spec.alternatives() {
        [one] => {
            one.variadic.is_none()
                && !one.result.is_open()
                && one
                    .parameters
                    .iter()
                    .all(|p| !p.ty.is_open() && !p.ty.contains_func())
        }
        _ => false,
    };
    of_class && has_types && !is_excluded(spec)
}

/// The types of its parameters.
pub(super) fn parameters(spec: &FunctionSpec) -> Vec<Type> {
    let signature = spec.alternatives().first();
    signature
        .map(|s| s.parameters.iter().map(|p| p.ty.clone()).collect())
        .unwrap_or_default()
}

/// Calls it.
pub(super) fn call(
    name: &str,
    spec: &'static FunctionSpec,
    arguments: &[Datum],
    context: &CallContext<'_>,
) -> Result<Datum, String> {
    let types = parameters(spec);
    let mut values = Vec::with_capacity(arguments.len());
    for (argument, ty) in arguments.iter().zip(&types) {
        let value = to_value(argument, ty).ok_or_else(|| {
            format!(
                "wrong type for value; expected {}; got {}",
                type_name(ty),
                argument.type_name()
            )
        })?;
        values.push(value);
    }
    let result = spec
        .alternatives()
        .first()
        .map_or(Type::Dynamic, |s| s.result.clone());
    let answer = match &spec.implementation {
        Implementation::Pure(_) => call::call_typed(spec, &values, &result),
        Implementation::Source(source) => {
            // Only its first value is wanted, so nobody listens for more.
            let once = CallContext {
                capabilities: context.capabilities,
                wake: Wake::new(|| {}),
                site: context.site.clone(),
                result: &result,
            };
            match source.as_read_once() {
                Some(source) => (source.read)(&once, &values),
                None => Err(CallError::catchable("it follows something and has no value here")),
            }
        }
        Implementation::Shape(_) => Err(CallError::fatal("it takes functions")),
    };
    let value =
        answer.map_err(|error| format!("error calling {name}: function `{name}` errored: {error}"))?;
    Datum::from_value(&value).map_err(|ty| format!("error calling {name}: the result is of type {ty}"))
}

/// A datum as a value of a type; none if it is not such.
fn to_value(datum: &Datum, ty: &Type) -> Option<Value> {
    Some(match (ty, datum) {
        (Type::Bool, Datum::Bool(value)) => Value::Bool(*value),
        (Type::Int, datum) => Value::Int(datum.as_int()?),
        (Type::Float, Datum::Float(value)) => Value::float(*value),
        (Type::Str, Datum::Str(text)) => Value::Str(text.clone()),
        (Type::List(element), Datum::List(items)) => {
            let items: Vec<Value> = items
                .iter()
                .map(|i| to_value(i, element))
                .collect::<Option<_>>()?;
            Value::List(List::new((**element).clone(), items))
        }
        (Type::Map(types), Datum::Map(map)) => {
            let entries = map
                .entries
                .iter()
                .map(|(key, value)| Some((to_value(key, &types.0)?, to_value(value, &types.1)?)));
            let entries: Vec<(Value, Value)> = entries.collect::<Option<_>>()?;
            Value::Map(Map::new(types.0.clone(), types.1.clone(), entries))
        }
        _ => return None,
    })
}

/// Go's name of a type.
fn type_name(ty: &Type) -> String {
    match ty {
        Type::Str => "string".to_owned(),
        Type::Int => "int64".to_owned(),
        Type::Float => "float64".to_owned(),
        Type::List(element) => format!("[]{}", type_name(element)),
        other => other.to_string(),
    }
}
