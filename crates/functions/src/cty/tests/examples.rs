//! The examples of the documentation, in the dynamic protocol; tests of the program run them in mcl.

use setpoint_value::{FunctionSpec, Map, Type, Value, convert, convert_arguments};

use super::super::MODULE;
use super::spec;

/// The function and arguments of each example, and its result.
pub(super) fn all() -> Vec<(&'static FunctionSpec, Vec<Value>, Value)> {
    let mut found = Vec::new();
    for spec in MODULE.functions {
        for example in spec.examples {
            let mut reader = Reader { rest: example.call };
            let (called, arguments) = reader.call_head();
            assert!(
                std::ptr::eq(called, *spec),
                "the example `{}` is about `{spec}`",
                example.call
            );
            found.push((*spec, arguments, Reader::value_of(example.result)));
        }
    }
    found
}

#[test]
fn every_function_has_documentation_and_an_example() {
    for spec in MODULE.functions {
        assert!(!spec.doc.is_empty(), "{spec}");
        assert!(!spec.examples.is_empty(), "{spec}");
        assert!(!spec.alternatives().is_empty());
    }
}

#[test]
fn examples_hold_in_the_dynamic_protocol() {
    for (spec, arguments, wanted) in all() {
        let found = spec
            .call(&convert_arguments(spec, &arguments))
            .unwrap_or_else(|e| panic!("{spec}: {e}"));
        let found = convert(&found, &wanted.ty()).unwrap_or_else(|e| panic!("{spec}: {e}"));
        assert_eq!(found, wanted, "{spec} {arguments:?}");
    }
}

/// Reads the expressions that examples are made of.
struct Reader {
    rest: &'static str,
}

impl Reader {
    fn value_of(text: &'static str) -> Value {
        let mut reader = Reader { rest: text };
        let value = reader.value();
        assert!(reader.rest.trim().is_empty(), "`{text}` is read to its end");
        value
    }

    fn call_head(&mut self) -> (&'static FunctionSpec, Vec<Value>) {
        self.expect("cty.");
        let name = self.word();
        self.expect("(");
        (spec(name), self.until(')', Reader::value))
    }

    fn value(&mut self) -> Value {
        self.rest = self.rest.trim_start();
        let first = self.rest.chars().next().expect("an expression begins");
        match first {
            '"' => self.string(),
            '[' => {
                self.expect("[");
                let items = self.until(']', Reader::value);
                Value::list(items.first().expect("a list has elements").ty(), items)
            }
            '{' => {
                self.expect("{");
                let entries = self.until('}', |reader| {
                    let key = reader.value();
                    reader.expect("=>");
                    (key, reader.value())
                });
                let (key, value) = (entries[0].0.ty(), entries[0].1.ty());
                Value::Map(Map::new(key, value, entries))
            }
            '-' | '0'..='9' => {
                let end = self
                    .rest
                    .find(|c: char| !"-.0123456789".contains(c))
                    .unwrap_or(self.rest.len());
                let (number, rest) = self.rest.split_at(end);
                self.rest = rest;
                setpoint_value::parse_number(number.as_bytes())
                    .map(|v| {
                        if number.contains('.') {
                            convert(&v, &Type::Float).expect("a number")
                        } else {
                            v
                        }
                    })
                    .expect("a number is spelt well")
            }
            _ if self.rest.starts_with("struct{") => {
                self.expect("struct{");
                Value::object(self.until('}', |reader| {
                    let name = reader.word();
                    reader.expect("=>");
                    (name, reader.value())
                }))
            }
            _ if self.rest.starts_with("cty.") => {
                let (spec, arguments) = self.call_head();
                spec.call(&convert_arguments(spec, &arguments))
                    .unwrap_or_else(|error| panic!("{spec}: {error}"))
            }
            _ => match self.word() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                other => panic!("`{other}` is not an expression"),
            },
        }
    }

    fn until<T>(&mut self, close: char, mut read: impl FnMut(&mut Reader) -> T) -> Vec<T> {
        let mut items = Vec::new();
        loop {
            self.rest = self.rest.trim_start();
            if let Some(rest) = self.rest.strip_prefix(close) {
                self.rest = rest;
                return items;
            }
            items.push(read(self));
            self.rest = self
                .rest
                .trim_start()
                .strip_prefix(',')
                .unwrap_or(self.rest.trim_start());
        }
    }

    fn string(&mut self) -> Value {
        let mut text = String::new();
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.rest = &self.rest[1 + at + 1..];
                    return Value::str(text);
                }
                '\\' => text.push(match chars.next().expect("an escape goes on").1 {
                    'n' => '\n',
                    't' => '\t',
                    other => other,
                }),
                c => text.push(c),
            }
        }
        panic!("a string is closed");
    }

    fn word(&mut self) -> &'static str {
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn expect(&mut self, text: &str) {
        self.rest = self.rest.trim_start();
        self.rest = self
            .rest
            .strip_prefix(text)
            .unwrap_or_else(|| panic!("`{text}` before `{}`", self.rest));
    }
}
