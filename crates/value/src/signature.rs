//! Signatures: the types of a function's parameters and result, with variables and their limits.

use crate::Type;
use crate::conformance::Matching;

/// One way to call a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The parameters that must be given, in order.
    pub parameters: Vec<SignatureParameter>,
    /// What all further arguments are like, if there may be any.
    pub variadic: Option<SignatureParameter>,
    /// The result.
    pub result: Type,
    /// Variables that stand only for some types: the variable's number and the types.
    pub limits: Vec<(u32, Vec<Type>)>,
}

/// A parameter of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignatureParameter {
    /// Its name; `a`, `b`, … where the signature has none.
    pub name: String,
    /// Its type or constraint.
    pub ty: Type,
}

impl Signature {
    /// The number of the variable that stands for `number` where a signature is instantiated statically: one for the whole
    /// signature, and always among its limits when it says `number`.
    pub const NUMBER: u32 = u32::MAX;

    /// Reads `func(a str, b []?1) ?1`. Beyond [`Type::parse`]: a last parameter `…` stands for any number of further
    /// arguments of the parameter's type before it, which is then itself optional when it is written `x T…`; `…` after a
    /// comma alone means further arguments like the one before it (at least one of which must be given), or of any
    /// type when there is none like it (`func(format str, …) str` takes anything); and `?1: int | float` limits a
    /// variable at its first mention.
    ///
    /// ```
    /// use setpoint_value::Signature;
    /// let concat = Signature::parse("func([]?1, …) []?1").unwrap();
    /// assert_eq!((concat.parameters.len(), concat.variadic.is_some()), (1, true));
    /// let modulo = Signature::parse("func(?1: int | float, ?1) ?1").unwrap();
    /// assert_eq!(modulo.limits.len(), 1);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Signature> {
        let rest = text.strip_prefix("func(")?;
        let close = closing(rest)?;
        let (inner, result) = (&rest[..close], rest[close + 1..].trim());
        let mut parameters = Vec::new();
        let mut variadic = None;
        let mut limits = Vec::new();
        for (index, piece) in split(inner, ',').into_iter().enumerate() {
            if piece.is_empty() && inner.trim().is_empty() {
                continue;
            }
            if piece == "…" {
                variadic = Some(match parameters.last() {
                    Some(SignatureParameter {
                        ty: ty @ Type::List(_),
                        name,
                    }) => SignatureParameter {
                        name: name.clone(),
                        ty: ty.clone(),
                    },
                    _ => SignatureParameter {
                        name: "args".to_owned(),
                        ty: Type::Dynamic,
                    },
                });
                continue;
            }
            let (piece, repeated) = match piece.strip_suffix('…') {
                Some(piece) => (piece.trim(), true),
                None => (piece, false),
            };
            let (piece, limit) = match find_limit(piece) {
                Some(colon) => (piece[..colon].trim(), Some(piece[colon + 1..].trim())),
                None => (piece, None),
            };
            let (name, ty) = match piece.find([' ', ',', '{', '(']) {
                Some(at) if piece.as_bytes()[at] == b' ' => (piece[..at].to_owned(), piece[at + 1..].trim()),
                _ => (default_name(index), piece),
            };
            let ty = Type::parse(ty)?;
            if let (Some(limit), Type::Variable(variable)) = (limit, &ty) {
                let types = limit
                    .split('|')
                    .map(|t| Type::parse(t.trim()))
                    .collect::<Option<Vec<_>>>()?;
                limits.push((*variable, types));
            }
            let parameter = SignatureParameter { name, ty };
            if repeated {
                variadic = Some(parameter);
            } else {
                parameters.push(parameter);
            }
        }
        let result = Type::parse(result)?;
        let says_number = |ty: &Type| ty.any_part(&mut |part| *part == Type::Number);
        let number = says_number(&result)
            || parameters
                .iter()
                .chain(&variadic)
                .any(|p: &SignatureParameter| says_number(&p.ty));
        if number {
            limits.push((Signature::NUMBER, vec![Type::Int, Type::Float]));
        }
        Some(Signature {
            parameters,
            variadic,
            result,
            limits,
        })
    }

    /// Whether it can be called with so many arguments.
    #[must_use]
    pub fn accepts_count(&self, count: usize) -> bool {
        count == self.parameters.len() || (count > self.parameters.len() && self.variadic.is_some())
    }

    /// The parameter that the argument at a position belongs to.
    #[must_use]
    pub fn parameter(&self, index: usize) -> Option<&SignatureParameter> {
        self.parameters.get(index).or(self.variadic.as_ref())
    }

    /// Whether it can be called with arguments of these types; none where a type is not known.
    #[must_use]
    pub fn takes(&self, types: &[Option<Type>]) -> bool {
        let mut matching = Matching::new(&self.limits);
        self.accepts_count(types.len())
            && types
                .iter()
                .enumerate()
                .all(|(index, ty)| match (ty, self.parameter(index)) {
                    (Some(ty), Some(parameter)) => matching.matches(ty, &parameter.ty).is_ok(),
                    (None, parameter) => parameter.is_some(),
                    (Some(_), None) => false,
                })
    }

    /// The function type for a number of arguments that it accepts.
    #[must_use]
    pub fn func_type(&self, count: usize) -> Option<Type> {
        if !self.accepts_count(count) {
            return None;
        }
        let mut parameters = Vec::with_capacity(count);
        for index in 0..count {
            let parameter = self.parameter(index)?;
            let name = if index < self.parameters.len() {
                parameter.name.clone()
            } else {
                default_name(index)
            };
            parameters.push((name, parameter.ty.clone()));
        }
        Some(Type::func(parameters, self.result.clone()))
    }
}

/// The name of a parameter that has none: `a` … `z`, `aa`, `ab`, ….
fn default_name(index: usize) -> String {
    let mut name = String::new();
    let mut rest = index + 1;
    while rest > 0 {
        name.insert(0, char::from(b'a' + ((rest - 1) % 26) as u8));
        rest = (rest - 1) / 26;
    }
    name
}

/// The colon of `?1: int | float`, which stands outside all braces.
fn find_limit(piece: &str) -> Option<usize> {
    let mut depth = 0i32;
    for (i, c) in piece.char_indices() {
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => depth -= 1,
            ':' if depth == 0 => return Some(i),
            _ => {}
        }
    }
    None
}

fn closing(text: &str) -> Option<usize> {
    let mut depth = 0i32;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' if depth == 0 => return Some(i),
            ')' | '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn split(text: &str, separator: char) -> Vec<&str> {
    let mut depth = 0i32;
    let mut parts = Vec::new();
    let mut start = 0;
    for (i, c) in text.char_indices() {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth -= 1,
            c if c == separator && depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}
