//! Random expressions of a wanted type.

use super::Generator;
use super::environment::Environment;
use super::types::{Chosen, Ty};

/// An expression, and what must be known to put it beside an operator.
pub(super) struct Text {
    text: String,
    /// How tightly it binds, as the table of precedence has it.
    level: u8,
    /// It ends in a default `->f <|> d`, which takes in what follows.
    is_open: bool,
    /// It ends in `->f`, so that a `<|>` behind it would be its default.
    ends_in_field: bool,
}

/// A literal, a name, a call, something in brackets.
fn primary(text: impl Into<String>) -> Text {
    Text {
        text: text.into(),
        level: 10,
        is_open: false,
        ends_in_field: false,
    }
}

impl Text {
    /// Beside an operator, or under a postfix form, that takes what binds at least as tightly. Parentheses that are not needed
    /// are left open. `is_right` is said where nothing follows.
    fn operand(self, level: u8, is_right: bool) -> Text {
        let needs = self.level < level || self.is_open && !is_right;
        let text = if needs {
            format!("({})", self.text)
        } else {
            format!("⟦{}⟧", self.text)
        };
        Text {
            text,
            level: 10,
            is_open: self.is_open && !needs,
            ends_in_field: self.ends_in_field && !needs,
        }
    }
}

impl Generator {
    /// An expression of this type, as text.
    pub(super) fn expression(&mut self, env: &Environment, ty: &Ty, fuel: usize) -> String {
        self.term(env, ty, fuel).text
    }

    fn term(&mut self, env: &Environment, ty: &Ty, fuel: usize) -> Text {
        self.budget = self.budget.saturating_sub(1);
        if fuel == 0 || self.budget == 0 || self.random.chance(18) {
            return self.leaf(env, ty);
        }
        let found = if self.random.chance(60) {
            self.of_the_type(env, ty, fuel - 1)
        } else {
            self.of_any_type(env, ty, fuel - 1)
        };
        found.unwrap_or_else(|| self.leaf(env, ty))
    }

    fn leaf(&mut self, env: &Environment, ty: &Ty) -> Text {
        if (!ty.is_concrete() || self.random.chance(70))
            && let Some(name) = self.variable(env, ty)
        {
            return primary(format!("${name}"));
        }
        match ty {
            Ty::Bool => primary(if self.random.chance(50) { "true" } else { "false" }),
            Ty::Int => primary(
                self.random
                    .below(24)
                    .checked_sub(3)
                    .map_or("-2".to_owned(), |n| n.to_string()),
            ),
            Ty::Float => primary(["0.5", "2.0", "-1.25", "0.0", "3.75", "100.0"][self.random.below(6)]),
            Ty::Str => primary(self.string(env)),
            Ty::List(element) => {
                let items = (0..1 + self.random.below(2)).map(|_| self.leaf(env, element).text);
                let items: Vec<String> = items.collect();
                primary(self.bracketed("[", &items, "]"))
            }
            Ty::Map(key, value) => {
                let entries = (0..1 + self.random.below(2)).map(|index| {
                    let key = self.key(key, index);
                    format!("{key} => {}", self.leaf(env, value).text)
                });
                let entries: Vec<String> = entries.collect();
                primary(self.bracketed("{", &entries, "}"))
            }
            Ty::Struct(fields) => {
                let fields = fields
                    .iter()
                    .map(|(name, ty)| format!("{name} => {}", self.leaf(env, ty).text));
                let fields: Vec<String> = fields.collect();
                primary(self.bracketed("struct{", &fields, "}"))
            }
            Ty::Func(parameters, result) => primary(self.lambda(env, parameters, result, 0)),
            // Whatever has an open type is made where a variable has it, and no name hides that.
            Ty::Any(_) => primary("$nothing"),
        }
    }

    /// Between brackets, at times with a comma at the end or over several lines.
    fn bracketed(&mut self, open: &str, items: &[String], close: &str) -> String {
        match self.random.below(12) {
            0 if !items.is_empty() => format!("{open}{},{close}", items.join(", ")),
            1 if !items.is_empty() => format!("{open}\n{},\n{close}", items.join(",\n")),
            _ => format!("{open}{}{close}", items.join(", ")),
        }
    }

    fn variable(&mut self, env: &Environment, ty: &Ty) -> Option<String> {
        let fitting: Vec<&String> = env
            .variables
            .iter()
            .filter(|(_, other)| other == ty)
            .map(|(name, _)| name)
            .collect();
        // What was defined last is asked for most, so that there are chains.
        let recent = fitting.len().saturating_sub(4);
        let some = if self.random.chance(60) {
            &fitting[recent..]
        } else {
            &fitting
        };
        self.random.pick(some).map(|name| (*name).clone())
    }

    /// A literal that is another one for each index.
    fn key(&mut self, ty: &Ty, index: usize) -> String {
        match ty {
            Ty::Int => (index + 1).to_string(),
            Ty::Float => format!("{index}.5"),
            Ty::Struct(_) => format!("struct{{a => {index}}}"),
            _ => format!("\"{}\"", ["k", "l", "m", "n"][index % 4]),
        }
    }

    fn string(&mut self, env: &Environment) -> String {
        let parts = [
            "a", "b", "xyz", "1", " ", "é", "%", "#", "\\n", "\\\"", "\\\\", "$", "\\$", "\\${x}", "-",
        ];
        let mut text = String::new();
        for _ in 0..self.random.below(4) {
            let part = if self.random.chance(35) {
                self.variable(env, &Ty::Str)
            } else {
                None
            };
            match part {
                Some(name) => text.push_str(&format!("${{{name}}}")),
                None => text.push_str(parts[self.random.below(parts.len())]),
            }
        }
        format!("\"{text}\"")
    }

    /// A lambda. Its parameters may have names that are visible already.
    pub(super) fn lambda(
        &mut self,
        env: &Environment,
        parameters: &[Ty],
        result: &Ty,
        fuel: usize,
    ) -> String {
        // Nothing may say the type of a parameter that the body does not use.
        let annotated = self.random.chance(70);
        format!("func{}", self.function(env, parameters, result, annotated, fuel))
    }

    /// Parameters and body of a function.
    pub(super) fn function(
        &mut self,
        env: &Environment,
        parameters: &[Ty],
        result: &Ty,
        annotated: bool,
        fuel: usize,
    ) -> String {
        let mut inside = env.clone();
        let mut names: Vec<String> = Vec::new();
        for ty in parameters {
            let name = self.parameter_name(env, &names);
            names.push(name.clone());
            inside.add_variable(name, ty.clone());
        }
        let ty = |ty: &Ty| {
            if annotated && ty.is_concrete() {
                format!(" {}", ty.text())
            } else {
                annotation(ty)
            }
        };
        let parameters: Vec<String> = names
            .iter()
            .zip(parameters)
            .map(|(name, each)| format!("${name}{}", ty(each)))
            .collect();
        let body = self.expression(&inside, result, fuel);
        format!("({}){} {{ {body} }}", parameters.join(", "), annotation(result))
    }

    /// What every type has: choices, lookups, calls.
    fn of_any_type(&mut self, env: &Environment, ty: &Ty, fuel: usize) -> Option<Text> {
        Some(match self.random.below(13) {
            0 | 1 => {
                let condition = self.expression(env, &Ty::Bool, fuel);
                let (then, otherwise) = (self.expression(env, ty, fuel), self.expression(env, ty, fuel));
                if self.random.chance(20) {
                    let second = self.expression(env, &Ty::Bool, fuel);
                    let third = self.expression(env, ty, fuel);
                    primary(format!(
                        "if {condition} {{ {then} }} else if {second} {{ {third} }} else {{ {otherwise} }}"
                    ))
                } else {
                    primary(format!("if {condition} {{ {then} }} else {{ {otherwise} }}"))
                }
            }
            2 => {
                let lookup = self.lookup(env, ty, fuel);
                let left = if self.random.chance(70) {
                    lookup
                } else {
                    self.term(env, ty, fuel)
                };
                let left = if left.ends_in_field {
                    Text { level: 0, ..left }
                } else {
                    left
                };
                let left = left.operand(1, false);
                let right = self.term(env, ty, fuel).operand(2, true);
                Text {
                    text: format!("{} <|> {}", left.text, right.text),
                    level: 1,
                    is_open: right.is_open,
                    ends_in_field: right.ends_in_field,
                }
            }
            3 => {
                let lookup = self.lookup(env, ty, fuel);
                let default = self.term(env, ty, 0);
                // In brackets: how far an older default reaches is not what this is about.
                primary(format!("({} || {})", lookup.text, default.text))
            }
            4 => self.call_of_statement(env, ty, fuel)?,
            5 => self.call_of_variable(env, ty, fuel)?,
            6 => {
                let parameters: Vec<Ty> = (0..self.random.below(3))
                    .map(|_| self.argument_type(env))
                    .collect();
                let arguments: Vec<String> = parameters
                    .iter()
                    .map(|ty| self.expression(env, ty, fuel))
                    .collect();
                let lambda = self.lambda(env, &parameters, ty, fuel);
                let arguments = self.bracketed("(", &arguments, ")");
                primary(format!("{lambda}{arguments}"))
            }
            7 => {
                let items: Vec<String> = (0..1 + self.random.below(3))
                    .map(|_| self.expression(env, ty, fuel))
                    .collect();
                let index = self.random.below(items.len());
                primary(format!("[{}][{index}]", items.join(", ")))
            }
            8 => {
                let count = 1 + self.random.below(3);
                let entries = (0..count).map(|index| {
                    let key = self.key(&Ty::Str, index);
                    format!("{key} => {}", self.expression(env, ty, fuel))
                });
                let entries: Vec<String> = entries.collect();
                let chosen = self.random.below(count);
                let key = self.key(&Ty::Str, chosen);
                primary(format!("{{{}}}[{key}]", entries.join(", ")))
            }
            9 | 10 => self.field(env, ty, fuel),
            11 => {
                let reduce = env.core("iter.reduce")?;
                if !ty.is_data() {
                    return None;
                }
                let list = self.expression(env, &Ty::list(ty.clone()), fuel);
                let first = self.expression(env, ty, fuel);
                let lambda = self.lambda(env, &[ty.clone(), ty.clone()], ty, fuel);
                primary(format!("{reduce}({first}, {list}, {lambda})"))
            }
            _ if self.is_risky => self.lookup(env, ty, fuel),
            _ => return None,
        })
    }

    /// A type for an argument: one that can be written down, or one that is open here.
    fn argument_type(&mut self, env: &Environment) -> Ty {
        let open: Vec<&Ty> = env
            .variables
            .iter()
            .map(|(_, ty)| ty)
            .filter(|ty| matches!(ty, Ty::Any(_)))
            .collect();
        match self.random.pick(&open) {
            Some(ty) if self.random.chance(30) => (*ty).clone(),
            _ => Ty::random(&mut self.random, 1, true),
        }
    }

    /// A lookup that may fail.
    fn lookup(&mut self, env: &Environment, ty: &Ty, fuel: usize) -> Text {
        let key = Ty::key(&mut self.random);
        if self.random.chance(50) {
            let list = self.term(env, &Ty::list(ty.clone()), fuel).operand(8, false);
            let index = if self.random.chance(60) {
                self.random.below(3).to_string()
            } else {
                self.expression(env, &Ty::Int, fuel)
            };
            Text {
                level: 9,
                ..primary(format!("{}[{index}]", list.text))
            }
        } else {
            let map = Ty::Map(Box::new(key.clone()), Box::new(ty.clone()));
            let map = self.term(env, &map, fuel).operand(8, false);
            let index = if self.random.chance(60) {
                let index = self.random.below(3);
                self.key(&key, index)
            } else {
                self.expression(env, &key, fuel)
            };
            Text {
                level: 9,
                ..primary(format!("{}[{index}]", map.text))
            }
        }
    }

    /// The field of a struct, or the default for one that it does not have.
    fn field(&mut self, env: &Environment, ty: &Ty, fuel: usize) -> Text {
        let mut fields = vec![("f".to_owned(), ty.clone())];
        if self.random.chance(50) {
            fields.insert(self.random.below(2), ("g".to_owned(), Ty::Int));
        }
        let known = env.variables.iter().filter_map(|(_, known)| match known {
            Ty::Struct(fields) if fields.iter().any(|(_, field)| field == ty) => Some(fields.clone()),
            _ => None,
        });
        let known: Vec<_> = known.collect();
        if let Some(known) = self.random.pick(&known)
            && self.random.chance(70)
        {
            fields = known.clone();
        }
        let name = fields
            .iter()
            .find(|(_, field)| field == ty)
            .map_or("f", |(name, _)| name)
            .to_owned();
        let base = self.term(env, &Ty::Struct(fields), fuel).operand(8, false);
        if self.random.chance(65) {
            let text = format!("{}->{name}", base.text);
            return Text {
                text,
                level: 8,
                is_open: false,
                ends_in_field: true,
            };
        }
        let name = if self.random.chance(50) {
            "nofield".to_owned()
        } else {
            name
        };
        let default = self.term(env, ty, fuel).operand(5, true);
        let sign = if self.random.chance(80) { "<|>" } else { "||" };
        let text = format!("{}->{name} {sign} {}", base.text, default.text);
        if sign == "||" {
            return primary(format!("({text})"));
        }
        Text {
            text,
            level: 8,
            is_open: true,
            ends_in_field: default.ends_in_field,
        }
    }

    fn call_of_statement(&mut self, env: &Environment, ty: &Ty, fuel: usize) -> Option<Text> {
        let fitting = env.functions.iter().filter_map(|function| {
            let mut chosen = Chosen::new();
            function
                .result
                .fits(&function.open, ty, &mut chosen)
                .then(|| (function.clone(), chosen))
        });
        let fitting: Vec<_> = fitting.collect();
        let (function, mut chosen) = self.random.pick(&fitting)?.clone();
        for open in &function.open {
            if !chosen.iter().any(|(number, _)| number == open) {
                chosen.push((*open, Ty::random(&mut self.random, 1, false)));
            }
        }
        let arguments = function
            .parameters
            .iter()
            .map(|ty| self.expression(env, &ty.with(&chosen), fuel));
        let arguments: Vec<String> = arguments.collect();
        let arguments = self.bracketed("(", &arguments, ")");
        Some(primary(format!("{}{arguments}", function.name)))
    }

    fn call_of_variable(&mut self, env: &Environment, ty: &Ty, fuel: usize) -> Option<Text> {
        let fitting = env.variables.iter().filter_map(|(name, known)| match known {
            Ty::Func(parameters, result) if **result == *ty => Some((name.clone(), parameters.clone())),
            _ => None,
        });
        let fitting: Vec<_> = fitting.collect();
        let (name, parameters) = self.random.pick(&fitting)?.clone();
        let arguments: Vec<String> = parameters
            .iter()
            .map(|ty| self.expression(env, ty, fuel))
            .collect();
        let arguments = self.bracketed("(", &arguments, ")");
        Some(primary(format!("${name}{arguments}")))
    }

    fn operator(&mut self, env: &Environment, ty: &Ty, sign: &str, level: u8, fuel: usize) -> Text {
        let is_chain = level != 4;
        let left = self
            .term(env, ty, fuel)
            .operand(if is_chain { level } else { 5 }, false);
        let right = self.term(env, ty, fuel).operand(level + 1, true);
        Text {
            text: format!("{} {sign} {}", left.text, right.text),
            level,
            is_open: right.is_open,
            ends_in_field: right.ends_in_field,
        }
    }

    /// What only this type has.
    fn of_the_type(&mut self, env: &Environment, ty: &Ty, fuel: usize) -> Option<Text> {
        Some(match ty {
            Ty::Bool => match self.random.below(9) {
                0 | 1 => self.operator(env, &Ty::Bool, "and", 3, fuel),
                2 => self.operator(env, &Ty::Bool, "or", 2, fuel),
                3 => {
                    let operand = self.term(env, &Ty::Bool, fuel).operand(7, true);
                    Text {
                        text: format!("not {}", operand.text),
                        level: 7,
                        ..operand
                    }
                }
                4 | 5 => {
                    let ty = if self.random.chance(70) {
                        Ty::Int
                    } else {
                        Ty::Float
                    };
                    let sign = ["<", ">", "<=", ">="][self.random.below(4)];
                    self.operator(env, &ty, sign, 4, fuel)
                }
                6 => {
                    let ty = self.data_type(env);
                    let sign = if self.random.chance(60) { "==" } else { "!=" };
                    self.operator(env, &ty, sign, 4, fuel)
                }
                7 => {
                    let ty = self.data_type(env);
                    let element = self.term(env, &ty, fuel).operand(5, false);
                    let list = self.term(env, &Ty::list(ty), fuel).operand(5, true);
                    Text {
                        text: format!("{} in {}", element.text, list.text),
                        level: 4,
                        ..list
                    }
                }
                _ => {
                    let names = ["strings.contains", "strings.has_prefix"];
                    let function = env.core(names[self.random.below(2)])?;
                    let (a, b) = (
                        self.expression(env, &Ty::Str, fuel),
                        self.expression(env, &Ty::Str, fuel),
                    );
                    primary(format!("{function}({a}, {b})"))
                }
            },
            Ty::Int => match self.random.below(8) {
                0 | 1 => self.operator(env, ty, "+", 5, fuel),
                2 => self.operator(env, ty, "-", 5, fuel),
                3 => self.operator(env, ty, "*", 6, fuel),
                4 | 5 => {
                    let len = env.core("len")?;
                    let of = match self.random.below(3) {
                        0 => Ty::Str,
                        1 => Ty::list(self.data_type(env)),
                        _ => Ty::Map(Box::new(Ty::Str), Box::new(self.data_type(env))),
                    };
                    primary(format!("{len}({})", self.expression(env, &of, fuel)))
                }
                6 => primary(format!(
                    "{}({})",
                    env.core("math.minus1")?,
                    self.expression(env, ty, fuel)
                )),
                _ => {
                    let function = env.core("convert.str_to_int")?;
                    let text = self.expression(env, &Ty::Str, fuel);
                    let default = self.term(env, ty, fuel).operand(2, true);
                    let text = format!("{function}({text}) <|> {}", default.text);
                    Text {
                        text,
                        level: 1,
                        ..default
                    }
                }
            },
            Ty::Float => match self.random.below(6) {
                0 => self.operator(env, ty, "+", 5, fuel),
                1 => self.operator(env, ty, "-", 5, fuel),
                2 => self.operator(env, ty, "*", 6, fuel),
                3 => {
                    let of = if self.random.chance(50) {
                        Ty::Int
                    } else {
                        Ty::Float
                    };
                    let division = self.operator(env, &of, "/", 6, fuel);
                    if self.is_risky {
                        return Some(division);
                    }
                    let left = if division.ends_in_field {
                        Text { level: 0, ..division }
                    } else {
                        division
                    };
                    let left = left.operand(1, false);
                    let default = self.term(env, ty, 0);
                    let text = format!("{} <|> {}", left.text, default.text);
                    Text {
                        text,
                        level: 1,
                        is_open: false,
                        ends_in_field: default.ends_in_field,
                    }
                }
                4 => primary(format!(
                    "{}({})",
                    env.core("convert.to_float")?,
                    self.expression(env, &Ty::Int, fuel)
                )),
                _ => return None,
            },
            Ty::Str => match self.random.below(7) {
                0 | 1 => self.operator(env, ty, "+", 5, fuel),
                2 => primary(self.string(env)),
                3 | 4 => self.printf(env, fuel)?,
                5 => primary(format!(
                    "{}({})",
                    env.core("strings.to_upper")?,
                    self.expression(env, ty, fuel)
                )),
                _ => {
                    let function = env.core("strings.join_nonempty")?;
                    let list = self.expression(env, &Ty::list(Ty::Str), fuel);
                    primary(format!("{function}({list}, {})", self.expression(env, ty, fuel)))
                }
            },
            Ty::List(element) => self.list(env, element, fuel)?,
            Ty::Map(key, value) => {
                let entries = (0..1 + self.random.below(3)).map(|index| {
                    let key = self.key(key, index);
                    format!("{key} => {}", self.expression(env, value, fuel))
                });
                let entries: Vec<String> = entries.collect();
                primary(self.bracketed("{", &entries, "}"))
            }
            Ty::Struct(fields) => {
                let fields = fields.iter();
                let fields = fields.map(|(name, ty)| format!("{name} => {}", self.expression(env, ty, fuel)));
                let fields: Vec<String> = fields.collect();
                primary(self.bracketed("struct{", &fields, "}"))
            }
            Ty::Func(parameters, result) => primary(self.lambda(env, parameters, result, fuel)),
            Ty::Any(_) => return None,
        })
    }

    /// A type whose values can be compared and printed: one that can be written down, or one that is open here.
    fn data_type(&mut self, env: &Environment) -> Ty {
        match self.argument_type(env) {
            ty if ty.is_data() => ty,
            _ => Ty::Int,
        }
    }

    fn printf(&mut self, env: &Environment, fuel: usize) -> Option<Text> {
        let function = env.core("fmt.printf")?;
        let mut format = String::new();
        let mut arguments = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let ty = self.data_type(env);
            let verb = match ty {
                Ty::Str if self.random.chance(20) => "%q",
                Ty::Str if self.random.chance(50) => "%s",
                Ty::Int if self.random.chance(50) => "%d",
                Ty::Bool if self.random.chance(50) => "%t",
                Ty::Float if self.random.chance(50) => "%f",
                _ => "%v",
            };
            format.push_str(["", "a", " é", "%%", "-"][self.random.below(5)]);
            format.push_str(verb);
            arguments.push(self.expression(env, &ty, fuel));
        }
        Some(primary(format!(
            "{function}(\"{format}\", {})",
            arguments.join(", ")
        )))
    }

    fn list(&mut self, env: &Environment, element: &Ty, fuel: usize) -> Option<Text> {
        let of = Ty::list(element.clone());
        Some(match self.random.below(9) {
            0 | 1 => {
                let items: Vec<String> = (0..1 + self.random.below(4))
                    .map(|_| self.expression(env, element, fuel))
                    .collect();
                primary(self.bracketed("[", &items, "]"))
            }
            2 | 3 => {
                let function = env.core("iter.map")?;
                let from = self.argument_type(env);
                let list = self.expression(env, &Ty::list(from.clone()), fuel);
                primary(format!(
                    "{function}({list}, {})",
                    self.function_value(env, &[from], element, fuel)
                ))
            }
            4 => {
                let function = env.core("iter.filter")?;
                let list = self.expression(env, &of, fuel);
                let lambda = self.function_value(env, std::slice::from_ref(element), &Ty::Bool, fuel);
                primary(format!("{function}({list}, {lambda})"))
            }
            5 => {
                let function = env.core("list.concat")?;
                let (a, b) = (self.expression(env, &of, fuel), self.expression(env, &of, fuel));
                primary(format!("{function}({a}, {b})"))
            }
            6 => {
                let function = env.core("map.values")?;
                let map = Ty::Map(Box::new(Ty::Str), Box::new(element.clone()));
                primary(format!("{function}({})", self.expression(env, &map, fuel)))
            }
            7 if *element == Ty::Int => {
                let function = env.core("iter.range")?;
                primary(format!("{function}({})", self.random.below(5)))
            }
            7 if *element == Ty::Str => {
                let keys = env.core("map.keys")?;
                let map = Ty::Map(Box::new(Ty::Str), Box::new(self.data_type(env)));
                primary(format!("{keys}({})", self.expression(env, &map, fuel)))
            }
            _ => {
                let function = env.core("iter.zip")?;
                let (a, b) = (self.argument_type(env), self.argument_type(env));
                let left = self.expression(env, &Ty::list(a.clone()), fuel);
                let right = self.expression(env, &Ty::list(b.clone()), fuel);
                let lambda = self.function_value(env, &[a, b], element, fuel);
                primary(format!("{function}({left}, {right}, {lambda})"))
            }
        })
    }

    /// A function for a function of the library: a lambda, or anything else that gives one.
    fn function_value(&mut self, env: &Environment, parameters: &[Ty], result: &Ty, fuel: usize) -> String {
        if self.random.chance(25) {
            let ty = Ty::Func(parameters.to_vec(), Box::new(result.clone()));
            if ty.is_concrete() {
                return self.expression(env, &ty, fuel);
            }
        }
        self.lambda(env, parameters, result, fuel)
    }
}

/// A type that may be left out.
pub(super) fn annotation(ty: &Ty) -> String {
    if ty.is_concrete() {
        format!("⟪ {}⟫", ty.text())
    } else {
        String::new()
    }
}
