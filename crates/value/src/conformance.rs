//! Conformance: whether a type satisfies a constraint, and where it does not first.
//!
//! A type conforms when it is equal to the constraint, or the constraint says `dynamic` or `number` at that place.
//! Conversion is another thing and lives in `convert`. Fields of structs conform by name, whatever their order.

use std::fmt;

use smallvec::SmallVec;

use crate::{Type, Value};

/// The first place at which a type does not conform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Where: `.a[0].b`; empty for the type itself. Elements of a list are at `[0]`, those of a set and values of a map at
    /// `[*]`, keys of a map at `[key]`.
    pub path: String,
    /// What is wrong there: `int is not str`.
    pub message: String,
}

impl Mismatch {
    fn new(found: &Type, wanted: &Type) -> Mismatch {
        Mismatch::because(format!("{found} is not {wanted}"))
    }

    pub(crate) fn because(message: impl Into<String>) -> Mismatch {
        Mismatch {
            path: String::new(),
            message: message.into(),
        }
    }

    /// The same, one step further out.
    fn within(mut self, step: &str) -> Mismatch {
        self.path.insert_str(0, step);
        self
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for Mismatch {}

/// Whether a type conforms to a constraint. `dynamic` and variables in the constraint take any type; a part
/// of the type that is itself not known yet conforms to anything.
///
/// # Errors
/// The first place that differs.
///
/// ```
/// use setpoint_value::{Type, conforms};
/// let ty = Type::parse("struct{a []struct{b int}}").unwrap();
/// let wanted = Type::parse("struct{a []struct{b str}}").unwrap();
/// assert_eq!(conforms(&ty, &wanted).unwrap_err().to_string(), ".a[0].b: int is not str");
/// ```
pub fn conforms(ty: &Type, constraint: &Type) -> Result<(), Mismatch> {
    Matching::default().matches(ty, constraint)
}

/// Whether a value may stand where `ty` is promised: like conformance of its type, but null fits an optional, and the
/// order of a struct's fields counts. Nothing is allocated when it does.
///
/// # Errors
/// The first place that differs.
pub fn value_conforms(value: &Value, ty: &Type) -> Result<(), Mismatch> {
    match (value, ty) {
        (Value::Marked(inner), _) => value_conforms(&inner.0, ty),
        (_, Type::Dynamic | Type::Variable(_)) => Ok(()),
        (Value::Null(null), _) if null == ty => Ok(()),
        (Value::Null(null), Type::Optional(inner)) => conforms(plain(null), inner),
        (Value::Null(_), _) => Err(Mismatch::because(format!("null is not {ty}"))),
        (Value::Unknown(unknown), _) => conforms_exactly(&unknown.ty, ty),
        (_, Type::Optional(inner)) => value_conforms(value, inner),
        (Value::Bool(_), Type::Bool)
        | (Value::Int(_), Type::Int | Type::Number)
        | (Value::Float(_), Type::Float | Type::Number)
        | (Value::Str(_), Type::Str) => Ok(()),
        (Value::List(list), Type::List(element)) => {
            conforms_exactly(list.element_type(), element).map_err(|m| m.within("[0]"))
        }
        (Value::Set(set), Type::Set(element)) => {
            conforms_exactly(set.element_type(), element).map_err(|m| m.within("[*]"))
        }
        (Value::Map(map), Type::Map(kv)) => {
            conforms_exactly(map.key_type(), &kv.0).map_err(|m| m.within("[key]"))?;
            conforms_exactly(map.value_type(), &kv.1).map_err(|m| m.within("[*]"))
        }
        (Value::Tuple(items), Type::Tuple(types)) if items.len() == types.len() => items
            .iter()
            .zip(types.iter())
            .enumerate()
            .try_for_each(|(i, (v, t))| value_conforms(v, t).map_err(|m| m.within(&format!("[{i}]")))),
        (Value::Struct(s), Type::Struct(wanted)) => {
            if s.ty() == ty {
                return Ok(());
            }
            let names = s.iter().map(|(name, _)| name);
            if s.fields().len() != wanted.fields.len() || !names.eq(wanted.fields.iter().map(|f| &*f.name)) {
                return Err(Mismatch::new(s.ty(), ty));
            }
            s.iter().zip(&wanted.fields).try_for_each(|((name, v), f)| {
                value_conforms(v, &f.ty).map_err(|m| m.within(&format!(".{name}")))
            })
        }
        (Value::Func(func), _) => conforms(func.ty(), ty),
        (Value::Opaque(opaque), Type::Opaque(name)) if opaque.name() == name => Ok(()),
        _ => Err(Mismatch::new(&value.ty(), ty)),
    }
}

/// Equal, or open at places where one is.
fn conforms_exactly(ty: &Type, constraint: &Type) -> Result<(), Mismatch> {
    if ty == constraint {
        Ok(())
    } else {
        conforms(ty, constraint)
    }
}

/// The type without a question mark.
pub(crate) fn plain(ty: &Type) -> &Type {
    match ty {
        Type::Optional(inner) => inner,
        ty => ty,
    }
}

/// Matching of arguments against the parameters of one signature: what its variables have been bound to so far.
#[derive(Default)]
pub(crate) struct Matching<'a> {
    bound: SmallVec<[(u32, Type); 4]>,
    limits: &'a [(u32, Vec<Type>)],
    number: Number,
    /// Whether a part that is not known yet stood where the signature says more than `dynamic`.
    pub(crate) open: bool,
}

/// What has stood at the places of `number`.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Number {
    #[default]
    Unseen,
    Int,
    Float,
    Open,
}

impl<'a> Matching<'a> {
    pub(crate) fn new(limits: &'a [(u32, Vec<Type>)]) -> Matching<'a> {
        Matching {
            limits,
            ..Matching::default()
        }
    }

    /// Matches a type against a constraint whose variables are bound by what they meet first.
    pub(crate) fn matches(&mut self, ty: &Type, constraint: &Type) -> Result<(), Mismatch> {
        let differs = || Err(Mismatch::new(ty, constraint));
        match (ty, constraint) {
            (_, Type::Dynamic) => Ok(()),
            (_, Type::Variable(variable)) => self.bind(*variable, ty),
            (_, Type::Number) => self.see_number(ty),
            (Type::Dynamic | Type::Variable(_), _) | (Type::Number, Type::Int | Type::Float) => {
                self.open = true;
                Ok(())
            }
            (Type::Optional(a), Type::Optional(b)) => self.matches(a, b),
            (_, Type::Optional(inner)) => self.matches(ty, inner),
            (Type::List(a), Type::List(b)) => self.matches(a, b).map_err(|m| m.within("[0]")),
            (Type::Set(a), Type::Set(b)) => self.matches(a, b).map_err(|m| m.within("[*]")),
            (Type::Map(a), Type::Map(b)) => {
                self.matches(&a.0, &b.0).map_err(|m| m.within("[key]"))?;
                self.matches(&a.1, &b.1).map_err(|m| m.within("[*]"))
            }
            (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
                for (index, (a, b)) in a.iter().zip(b.iter()).enumerate() {
                    self.matches(a, b).map_err(|m| m.within(&format!("[{index}]")))?;
                }
                Ok(())
            }
            (Type::Tuple(a), Type::Tuple(b)) => Err(Mismatch::because(format!(
                "a tuple of {} is not a tuple of {}",
                a.len(),
                b.len()
            ))),
            (Type::Struct(a), Type::Struct(b)) => {
                for field in &b.fields {
                    let Some(found) = a.field(&field.name) else {
                        return Err(Mismatch::because(format!("field `{}` is missing", field.name)));
                    };
                    self.matches(found, &field.ty)
                        .map_err(|m| m.within(&format!(".{}", field.name)))?;
                }
                match a.fields.iter().find(|f| b.index(&f.name).is_none()) {
                    Some(extra) => Err(Mismatch::because(format!(
                        "field `{}` is not expected",
                        extra.name
                    ))),
                    None => Ok(()),
                }
            }
            (Type::Func(a), Type::Func(b)) => {
                if a.parameters.len() != b.parameters.len() {
                    return differs();
                }
                for (index, (a, b)) in a.parameters.iter().zip(&b.parameters).enumerate() {
                    self.matches(&a.ty, &b.ty)
                        .map_err(|m| m.within(&format!("({index})")))?;
                }
                self.matches(&a.result, &b.result).map_err(|m| m.within("()"))
            }
            (Type::Opaque(a), Type::Opaque(b)) if a == b => Ok(()),
            (Type::Bool, Type::Bool)
            | (Type::Int, Type::Int)
            | (Type::Float, Type::Float)
            | (Type::Str, Type::Str) => Ok(()),
            _ => differs(),
        }
    }

    fn bind(&mut self, variable: u32, ty: &Type) -> Result<(), Mismatch> {
        if matches!(ty, Type::Dynamic | Type::Variable(_)) {
            self.open = true;
            return Ok(());
        }
        if let Some((_, bound)) = self.bound.iter_mut().find(|(v, _)| *v == variable) {
            if bound == ty {
                return Ok(());
            }
            if bound.is_open() && conforms(ty, bound).is_ok() {
                *bound = ty.clone();
                return Ok(());
            }
            return conforms(ty, bound);
        }
        if let Some((_, types)) = self.limits.iter().find(|(v, _)| *v == variable)
            && !types.iter().any(|allowed| conforms(ty, allowed).is_ok())
        {
            let allowed: Vec<String> = types.iter().map(Type::to_string).collect();
            return Err(Mismatch::because(format!("{ty} is not {}", allowed.join(" or "))));
        }
        self.bound.push((variable, ty.clone()));
        Ok(())
    }

    fn see_number(&mut self, ty: &Type) -> Result<(), Mismatch> {
        self.number = match (self.number, ty) {
            (Number::Unseen | Number::Int, Type::Int) => Number::Int,
            (Number::Unseen | Number::Int | Number::Float, Type::Float) | (Number::Float, Type::Int) => {
                Number::Float
            }
            (_, Type::Dynamic | Type::Variable(_) | Type::Number)
            | (Number::Open, Type::Int | Type::Float) => Number::Open,
            _ => return Err(Mismatch::new(ty, &Type::Number)),
        };
        self.open |= self.number == Number::Open;
        Ok(())
    }

    /// A result type with what the variables were bound to. `number` is float as soon as one argument is; what no
    /// argument decides is `dynamic`.
    pub(crate) fn resolve(&self, result: &Type) -> Type {
        if !result.is_open() {
            return result.clone();
        }
        result.replace(&mut |part| match part {
            Type::Variable(variable) => {
                let bound = self.bound.iter().find(|(v, _)| v == variable);
                Some(bound.map_or(Type::Dynamic, |(_, ty)| ty.clone()))
            }
            Type::Number => Some(match self.number {
                Number::Int => Type::Int,
                Number::Float => Type::Float,
                Number::Open => Type::Number,
                Number::Unseen => Type::Dynamic,
            }),
            Type::Dynamic => Some(Type::Dynamic),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ty: &str, constraint: &str) -> Result<(), String> {
        let parse = |text| Type::parse(text).unwrap();
        conforms(&parse(ty), &parse(constraint)).map_err(|m| m.to_string())
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        let error = |ty, constraint| check(ty, constraint).unwrap_err();
        assert_eq!(error("int", "str"), "int is not str");
        assert_eq!(
            error("struct{a tuple(struct{b int})}", "struct{a tuple(struct{b str})}"),
            ".a[0].b: int is not str"
        );
        assert_eq!(
            error("map{str: []bool}", "map{str: []int}"),
            "[*][0]: bool is not int"
        );
        assert_eq!(
            error("struct{a int}", "struct{a int; b int}"),
            "field `b` is missing"
        );
        assert_eq!(
            error("struct{a int; b int}", "struct{b int}"),
            "field `a` is not expected"
        );
        assert_eq!(
            error("tuple(int)", "tuple(int, int)"),
            "a tuple of 1 is not a tuple of 2"
        );
        assert_eq!(error("str", "number"), "str is not number");
        assert_eq!(error("int?", "int"), "int? is not int");
    }

    #[test]
    fn dynamic_number_and_question_marks_accept_what_they_say() {
        for (ty, constraint) in [
            ("[]map{str: int}", "dynamic"),
            ("[]map{str: int}", "[]dynamic"),
            ("map{str: float}", "map{str: number}"),
            ("int", "int?"),
            ("int?", "int?"),
            ("dynamic", "[]int"),
            ("struct{a int; b str}", "struct{b str; a int}"),
            ("func(int) str", "func(number) dynamic"),
            ("opaque(x)", "opaque(x)"),
        ] {
            assert_eq!(check(ty, constraint), Ok(()), "{ty} / {constraint}");
        }
        assert!(check("opaque(x)", "opaque(y)").is_err());
    }

    #[test]
    fn a_variable_is_bound_by_what_it_meets_first() {
        let mut matching = Matching::default();
        let parse = |text| Type::parse(text).unwrap();
        matching.matches(&parse("[]int"), &parse("[]?1")).unwrap();
        assert_eq!(
            matching
                .matches(&Type::Str, &parse("?1"))
                .unwrap_err()
                .to_string(),
            "str is not int"
        );
        assert_eq!(
            matching.resolve(&parse("map{str: ?1}")).to_string(),
            "map{str: int}"
        );
        assert_eq!(matching.resolve(&parse("?2")), Type::Dynamic);
    }

    #[test]
    fn a_promised_struct_has_its_fields_in_order() {
        let value = Value::object([("a", Value::Int(1)), ("b", Value::str("x"))]);
        assert!(value_conforms(&value, &Type::parse("struct{a int; b str}").unwrap()).is_ok());
        assert!(value_conforms(&value, &Type::parse("struct{b str; a int}").unwrap()).is_err());
        assert!(value_conforms(&value, &Type::parse("struct{a int?; b dynamic}").unwrap()).is_ok());
        assert!(value_conforms(&Value::Null(Type::Dynamic), &Type::parse("int?").unwrap()).is_ok());
    }
}
