//! Signatures: the one that Rust types spell, and the names of parameters in written ones.

use syn::{GenericArgument, ItemFn, PathArguments, Type};

use super::Parameter;

/// The signature that the Rust types spell; an error that asks for `signature` where they do not.
pub(super) fn derived_signature(function: &ItemFn, parameters: &[Parameter<'_>]) -> syn::Result<String> {
    let unclear = |ty: &dyn quote::ToTokens| {
        syn::Error::new_spanned(ty, "this type says too little: write `signature = \"func(…) …\"`")
    };
    let mut text = String::from("func(");
    let mut first = true;
    for parameter in parameters {
        let Parameter::Argument { doc, ty } = parameter else {
            continue;
        };
        let name = &doc.name;
        if !first {
            text.push_str(", ");
        }
        first = false;
        text.push_str(&format!("{name} {}", spelling(ty).ok_or_else(|| unclear(ty))?));
    }
    let syn::ReturnType::Type(_, ty) = &function.sig.output else {
        return Err(unclear(&function.sig.ident));
    };
    let ty = generic(ty, "Result").unwrap_or(ty);
    text.push_str(&format!(") {}", spelling(ty).ok_or_else(|| unclear(ty))?));
    Ok(text)
}

/// How a Rust type is spelt in a signature.
fn spelling(ty: &Type) -> Option<String> {
    if let Type::Reference(reference) = ty {
        if let Type::Slice(slice) = &*reference.elem {
            return (last_segment(&slice.elem)? == "u8").then(|| "str".to_owned());
        }
        return spelling(&reference.elem);
    }
    if let Some(inner) = generic(ty, "Option") {
        return Some(format!("{}?", spelling(inner)?));
    }
    if let Some(inner) = generic(ty, "Vec") {
        let inner = spelling_of_element(inner)?;
        return Some(inner);
    }
    Some(
        match last_segment(ty)?.as_str() {
            "str" | "String" | "Str" => "str",
            "i64" => "int",
            "f64" => "float",
            "bool" => "bool",
            "Number" => "number",
            _ => return None,
        }
        .to_owned(),
    )
}

/// `Vec<u8>` is a string, any other `Vec` a list.
fn spelling_of_element(inner: &Type) -> Option<String> {
    if last_segment(inner).is_some_and(|name| name == "u8") {
        Some("str".to_owned())
    } else {
        Some(format!("[]{}", spelling(inner)?))
    }
}

/// The last name of a path: `Value` of `setpoint_value::Value`.
fn last_segment(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        Type::Reference(reference) => last_segment(&reference.elem),
        _ => None,
    }
}

/// The last name of a path behind a reference.
pub(super) fn referenced(ty: &Type) -> Option<String> {
    match ty {
        Type::Reference(reference) => last_segment(&reference.elem),
        _ => None,
    }
}

/// `T` of `name<T, …>`.
pub(super) fn generic<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let Type::Path(path) = ty else {
        return None;
    };
    let segment = path.path.segments.last().filter(|s| s.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    })
}

/// The names of the parameters in `func(a int, b func(?1) ?2) str`.
pub(super) fn parameter_names(signature: &str) -> Vec<String> {
    let mut depth = 0usize;
    let mut parameters = vec![String::new()];
    for c in signature.trim_start().trim_start_matches("func").chars() {
        match c {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 1 => parameters.push(String::new()),
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if let Some(parameter) = parameters.last_mut() {
            parameter.push(c);
        }
    }
    let mut names = Vec::new();
    let mut is_list = false;
    for parameter in &parameters {
        let parameter = parameter.trim_start_matches(['(', ',', ' ']);
        if let Some((name, ty)) = parameter.split_once(' ') {
            names.push(name.to_owned());
            is_list = ty.starts_with('[');
        } else if parameter == "…" && !is_list {
            // Further arguments of any type. After a list it stands for further lists.
            names.push("args".to_owned());
        }
    }
    names
}
