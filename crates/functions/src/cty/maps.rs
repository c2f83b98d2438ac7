//! Maps and structs. A struct's fields count in the order of their names.

use setpoint_value::{ArgumentError, CallError, ConversionError, Map, Type, Value, convert, function, unify};

use super::{MARKED, MODULE, elements, flags, not_null, outer_marks, plain, refuse, type_at};

/// The keys of a map or the names of a struct's fields, sorted.
#[function(
    signature = "func(map map{?1: ?2}) []?1",
    signature = "func(map dynamic) dynamic",
    flags = &[flags("~#")],
    result_type = keys_type,
    refine = not_null,
    example(call = r#"cty.keys({"b" => 1, "a" => 2})"#, result = r#"["a", "b"]"#),
    example(call = "cty.keys(struct{b => 1, a => true})", result = r#"["a", "b"]"#)
)]
pub fn keys(
    /// A map or a struct.
    map: &Value,
    ty: &Type,
) -> Value {
    let marks = outer_marks([map]);
    let map = map.unmarked();
    let keys = match (map, plain(&map.ty())) {
        (Value::Map(map), _) => Value::list(map.key_type().clone(), map.iter().map(|(key, _)| key.clone())),
        // The type of a struct is all that matters.
        (_, Type::Struct(s)) => {
            let mut names: Vec<&str> = s.fields.iter().map(|f| &*f.name).collect();
            names.sort_unstable();
            Value::tuple(names.into_iter().map(Value::str))
        }
        _ => {
            let (least, most) = setpoint_value::length_range(map).unwrap_or((0, None));
            Value::refined(
                ty.clone(),
                setpoint_value::Refinement::not_null().with_length(least, most),
            )
        }
    };
    keys.with_marks(&marks)
}

fn keys_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    match type_at(arguments, 0) {
        Type::Map(kv) => Ok(Type::list(kv.0.clone())),
        Type::Struct(s) => Ok(Type::tuple(s.fields.iter().map(|_| Type::Str))),
        Type::Dynamic => Ok(Type::Dynamic),
        other => Err(ArgumentError::at(0, format!("{other} is not a map or struct"))),
    }
}

/// The values of a map, in the order of its keys, or of a struct, in the order of its fields' names.
#[function(
    signature = "func(map map{?1: ?2}) []?2",
    signature = "func(map dynamic) dynamic",
    flags = MARKED,
    result_type = values_type,
    refine = not_null,
    example(call = r#"cty.values({"b" => 1, "a" => 2})"#, result = "[2, 1]")
)]
pub fn values(
    /// A map or a struct.
    map: &Value,
) -> Result<Value, CallError> {
    let values = match map.unmarked() {
        Value::Map(map) => Value::list(
            map.value_type().clone(),
            map.iter().map(|(_, value)| value.clone()),
        ),
        Value::Struct(s) => {
            let mut fields: Vec<(&str, &Value)> = s.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            Value::tuple(fields.into_iter().map(|(_, value)| value.clone()))
        }
        other => return refuse(0, format!("{} is not a map or struct", other.ty())),
    };
    Ok(values.with_marks(&outer_marks([map])))
}

fn values_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    match type_at(arguments, 0) {
        Type::Map(kv) => Ok(Type::list(kv.1.clone())),
        Type::Struct(s) => {
            let mut fields: Vec<_> = s.fields.iter().collect();
            fields.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(Type::tuple(fields.into_iter().map(|f| f.ty.clone())))
        }
        Type::Dynamic => Ok(Type::Dynamic),
        other => Err(ArgumentError::at(0, format!("{other} is not a map or struct"))),
    }
}

/// The value of a key in a map or of a field in a struct, or `default` where there is none.
///
/// In a struct the name of the field decides the type.
#[function(
    signature = "func(map map{?1: ?2}, key ?1, default ?2) ?2",
    signature = "func(map dynamic, key str, default dynamic) dynamic",
    flags = MARKED,
    result_type = lookup_type,
    example(call = r#"cty.lookup({"a" => 1}, "a", 0)"#, result = "1"),
    example(call = r#"cty.lookup({"a" => 1}, "b", 0)"#, result = "0")
)]
pub fn lookup(
    /// A map or a struct.
    map: &Value,
    /// A key, or the name of a field.
    key: &Value,
    /// The result if the key is missing.
    default: &Value,
    ty: &Type,
) -> Result<Value, CallError> {
    let marks = outer_marks([map, key]);
    let key = key.unmarked();
    let found = match map.unmarked() {
        Value::Map(map) => map.get(key),
        Value::Struct(s) => key.as_str().and_then(|name| s.get(name.as_str()?)),
        other => return refuse(0, format!("{} is not a map or struct", other.ty())),
    };
    let found = match found {
        Some(found) => found.clone(),
        None => convert(default, ty).map_err(|error| error.at_argument(2))?,
    };
    Ok(found.with_marks(&marks))
}

fn lookup_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    let default = type_at(arguments, 2);
    let key = arguments.get(1).and_then(Value::as_str);
    match type_at(arguments, 0) {
        Type::Map(kv) => {
            if setpoint_value::converts_safely(&default, &kv.1) || default == Type::Dynamic {
                Ok(kv.1.clone())
            } else {
                Err(ArgumentError::at(
                    2,
                    format!("{default} does not convert to {}", kv.1),
                ))
            }
        }
        Type::Struct(s) => match key {
            Some(key) => Ok(key
                .as_str()
                .and_then(|name| s.field(name))
                .cloned()
                .unwrap_or(default)),
            None => Ok(Type::Dynamic),
        },
        Type::Dynamic => Ok(Type::Dynamic),
        other => Err(ArgumentError::at(0, format!("{other} is not a map or struct"))),
    }
}

/// The entries of all maps, or fields of all structs; later ones replace earlier ones, and nulls are skipped.
///
/// Maps whose values have a type in common give a map, anything else a struct.
#[function(
    raw,
    signature = "func(first map{?1: ?2}, more map{?1: ?2}…) map{?1: ?2}",
    signature = "func(more dynamic…) dynamic",
    parameters(
        /// A map or struct.
        #[default = "nothing"]
        first,
        /// Further maps or structs. Their entries replace earlier ones.
        more,
    ),
    flags = &[flags("!?#")],
    result_type = merge_type,
    refine = not_null,
    example(call = r#"cty.merge({"a" => 1, "b" => 2}, {"b" => 3})"#, result = r#"{"a" => 1, "b" => 3}"#),
    example(call = r#"cty.merge(struct{a => 1}, struct{b => "x"})"#, result = r#"struct{a => 1, b => "x"}"#)
)]
pub fn merge(arguments: &[Value], ty: &Type) -> Result<Value, CallError> {
    let mut entries: Vec<(Value, Value)> = Vec::new();
    for (index, value) in arguments.iter().enumerate() {
        match value.unmarked() {
            Value::Null(_) => {}
            Value::Map(map) => entries.extend(map.iter().map(|(k, v)| (k.clone(), v.clone()))),
            Value::Struct(s) => entries.extend(s.iter().map(|(name, v)| (Value::str(name), v.clone()))),
            other => return refuse(index, format!("{} is not a map or struct", other.ty())),
        }
    }
    let merged = match ty {
        Type::Map(kv) => {
            let entries = entries
                .into_iter()
                .map(|(k, v)| Ok((k, convert(&v, &kv.1)?)))
                .collect::<Result<Vec<_>, ConversionError>>()
                .map_err(|error| CallError::fatal(error.to_string()))?;
            Value::map(kv.0.clone(), kv.1.clone(), entries)
        }
        Type::Struct(s) => {
            let all = Map::new(Type::Str, Type::Dynamic, entries);
            let fields = s.fields.iter().map(|f| all.get(&Value::str(&*f.name)).cloned());
            match fields.collect::<Option<Vec<_>>>() {
                Some(fields) => Value::structure(ty.clone(), fields),
                None => return Err(CallError::fatal("a field is missing")),
            }
        }
        _ => return Ok(Value::unknown(ty.clone()).with_marks(&outer_marks(arguments))),
    };
    Ok(merged.with_marks(&outer_marks(arguments)))
}

fn merge_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    for (index, argument) in arguments.iter().enumerate() {
        match type_at(arguments, index) {
            Type::Map(_) | Type::Struct(_) | Type::Dynamic => {}
            other => {
                return Err(ArgumentError::at(
                    index,
                    format!("{other} is not a map or struct"),
                ));
            }
        }
        // What may yet be null may yet be skipped.
        let nullable = matches!(argument.ty(), Type::Optional(_));
        if nullable
            && argument
                .as_unknown()
                .is_some_and(|unknown| !unknown.refinement.not_null)
        {
            return Ok(Type::Dynamic);
        }
    }
    let present = || arguments.iter().enumerate().filter(|(_, v)| !v.is_null());
    let mut keys = Vec::new();
    let mut values = Vec::new();
    let mut only_maps = true;
    for (index, _) in present() {
        match type_at(arguments, index) {
            Type::Map(kv) => {
                keys.push(kv.0.clone());
                values.push(kv.1.clone());
            }
            Type::Struct(_) => only_maps = false,
            _ => return Ok(Type::Dynamic),
        }
    }
    if only_maps && !keys.is_empty() {
        let same_keys = keys.iter().all(|key| *key == keys[0]);
        if same_keys && let Ok(value) = unify(&values) {
            return Ok(Type::map(keys.swap_remove(0), value));
        }
    }
    let mut fields: Vec<(String, Type)> = Vec::new();
    let mut put = |name: String, ty: Type| match fields.iter_mut().find(|(known, _)| *known == name) {
        Some(field) => field.1 = ty,
        None => fields.push((name, ty)),
    };
    for (index, value) in present() {
        match (value.unmarked(), type_at(arguments, index)) {
            (Value::Map(map), _) => {
                for (key, value) in map.iter() {
                    let Some(name) = key.as_str().and_then(|k| k.as_str()) else {
                        return Err(ArgumentError::at(
                            index,
                            "only a map with texts as keys goes with structs",
                        ));
                    };
                    put(name.to_owned(), value.ty());
                }
            }
            (_, Type::Struct(s)) => {
                for field in &s.fields {
                    put(field.name.to_string(), field.ty.clone());
                }
            }
            // Which keys it has will be seen later.
            _ => return Ok(Type::Dynamic),
        }
    }
    Ok(Type::structure(fields))
}

/// A map, or with a tuple of values a struct, of keys and the values at the same positions.
#[function(
    signature = "func(keys []str, values []?1) map{str: ?1}",
    signature = "func(keys []str, values dynamic) dynamic",
    flags = MARKED,
    result_type = zipmap_type,
    refine = not_null,
    example(call = r#"cty.zipmap(["a", "b"], [1, 2])"#, result = r#"{"a" => 1, "b" => 2}"#)
)]
pub fn zipmap(
    /// The keys, or names of fields.
    keys: &Value,
    /// The values in the same order, as many as there are keys.
    values: &Value,
    ty: &Type,
) -> Result<Value, CallError> {
    let mut marks = outer_marks([keys, values]);
    let keys = elements(keys).unwrap_or_default();
    let Some(values) = elements(values) else {
        return refuse(1, "is not a list or tuple");
    };
    if keys.len() != values.len() {
        return refuse(
            1,
            format!("there are {} values for {} keys", values.len(), keys.len()),
        );
    }
    let keys: Vec<Value> = keys.into_iter().map(|key| key.unmark_deep(&mut marks)).collect();
    if let Some(at) = keys.iter().position(Value::is_null) {
        return refuse(0, format!("key {at} is null"));
    }
    if keys.iter().any(Value::is_unknown) {
        return Ok(Value::unknown(ty.clone()).with_marks(&marks));
    }
    let entries = keys.into_iter().zip(values.into_iter().cloned());
    let zipped = match ty {
        Type::Struct(s) => {
            let all = Map::new(Type::Str, Type::Dynamic, entries);
            let fields = s
                .fields
                .iter()
                .filter_map(|f| all.get(&Value::str(&*f.name)).cloned());
            Value::structure(ty.clone(), fields.collect::<Vec<_>>())
        }
        Type::Map(kv) => Value::map(Type::Str, kv.1.clone(), entries),
        _ => return Ok(Value::unknown(ty.clone()).with_marks(&marks)),
    };
    Ok(zipped.with_marks(&marks))
}

fn zipmap_type(arguments: &[Value]) -> Result<Type, ArgumentError> {
    match type_at(arguments, 1) {
        Type::List(element) => Ok(Type::map(Type::Str, (*element).clone())),
        Type::Tuple(types) => {
            let Some(keys) = arguments.first().and_then(Value::as_list) else {
                return Ok(Type::Dynamic);
            };
            if keys.len() != types.len() {
                let message = format!("there are {} values for {} keys", types.len(), keys.len());
                return Err(ArgumentError::at(1, message));
            }
            let mut fields: Vec<(String, Type)> = Vec::new();
            for (key, ty) in keys.iter().zip(types.iter()) {
                let Some(name) = key.as_str().and_then(|name| name.as_str()) else {
                    return Ok(Type::Dynamic);
                };
                match fields.iter_mut().find(|(known, _)| known == name) {
                    Some(field) => field.1 = ty.clone(),
                    None => fields.push((name.to_owned(), ty.clone())),
                }
            }
            Ok(Type::structure(fields))
        }
        Type::Dynamic => Ok(Type::Dynamic),
        other => Err(ArgumentError::at(1, format!("{other} is not a list or tuple"))),
    }
}
