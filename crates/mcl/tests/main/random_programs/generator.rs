//! Random programs that are well-typed.
//!
//! Everything is made after what it mentions, so that there are no cycles, and shuffled afterwards. Which names a block gives
//! a new meaning is chosen before anything is made in it: until they have it nothing in the block mentions them.

mod environment;
mod expressions;
mod types;

use environment::{Class, Environment, Signature, plain};
use expressions::annotation;
use types::{Chosen, Ty};

use super::template::Template;
use crate::random::Random;

/// The program of a seed.
pub(crate) fn generate(seed: u64) -> Template {
    let mut random = Random::new(seed);
    let size = [1, 1, 1, 2, 4][random.below(5)];
    let mut generator = Generator {
        is_risky: random.chance(12),
        budget: 0,
        random,
        names: [0; 4],
        definitions: 0,
        open: 0,
        resources: 0,
        modules: Vec::new(),
        imported_whole: Vec::new(),
        files: Vec::new(),
        prefix: String::new(),
        way_up: "",
    };
    let modules = [0, 0, 1, 2][generator.random.below(4)];
    for index in 0..modules {
        generator.module(index);
    }
    (generator.prefix, generator.way_up) = (String::new(), "");
    generator.budget = 60 + 100 * size;
    let (text, _) = generator.block(&Environment::base(), Where::Entry, 5 + 5 * size, Vec::new());
    generator.files.push(("main.mcl".to_owned(), text));
    Template {
        files: generator.files,
    }
}

struct Generator {
    random: Random,
    /// How many names there are of variables, functions, classes and aliases. The same words are used for all.
    names: [usize; 4],
    definitions: usize,
    open: u32,
    resources: usize,
    /// Expressions that may still be made before all become short.
    budget: usize,
    /// Whether what may fail stands without a default.
    is_risky: bool,
    modules: Vec<Module>,
    /// Of the file that is being made: what its blocks import `as *`.
    imported_whole: Vec<String>,
    files: Vec<(String, String)>,
    /// In front of the names of a module, so that `as *` does not change what other names mean.
    prefix: String,
    /// From the folder of the file to the root.
    way_up: &'static str,
}

struct Module {
    /// From the root, and what it gives.
    path: String,
    exports: Environment,
}

/// What a block belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Entry,
    Module,
    Class(usize),
    /// The block of an `if` or a loop.
    Inner(usize),
}

#[derive(Clone, Copy)]
enum Namespace {
    Variable,
    Function,
    Class,
    Alias,
}

/// What a block gives a new meaning.
#[derive(Default)]
struct Plan {
    variables: Vec<String>,
    functions: Vec<String>,
    classes: Vec<String>,
    aliases: Vec<String>,
}

const CORE: &[(&str, &[&str])] = &[
    ("fmt", &["printf"]),
    ("iter", &["map", "filter", "reduce", "zip", "range"]),
    ("list", &["concat"]),
    ("map", &["keys", "values"]),
    ("math", &["minus1"]),
    (
        "strings",
        &["contains", "has_prefix", "join_nonempty", "to_upper"],
    ),
    ("convert", &["to_float", "str_to_int"]),
];

impl Environment {
    fn base() -> Environment {
        Environment {
            core: vec![("len".to_owned(), "len".to_owned())],
            ..Environment::default()
        }
    }
}

impl Generator {
    fn module(&mut self, index: usize) {
        let in_folder = self.random.chance(40);
        self.prefix = format!("m{index}");
        self.budget = 40;
        self.way_up = if in_folder { "../" } else { "" };
        let path = if in_folder {
            format!("m{index}/")
        } else {
            format!("m{index}.mcl")
        };
        let count = 3 + self.random.below(6);
        let (text, exports) = self.block(&Environment::base(), Where::Module, count, Vec::new());
        let file = if in_folder {
            format!("{path}main.mcl")
        } else {
            path.clone()
        };
        self.files.push((file, text));
        let exports = exports.without(&Environment::default());
        self.modules.push(Module { path, exports });
    }

    fn fresh(&mut self, namespace: Namespace) -> String {
        let number = &mut self.names[namespace as usize];
        *number += 1;
        let name = format!("{}n{number}", self.prefix);
        self.defined(&name)
    }

    fn defined(&mut self, name: &str) -> String {
        self.definitions += 1;
        format!("{name}‹{}›", self.definitions)
    }

    fn open_type(&mut self) -> u32 {
        self.open += 1;
        self.open
    }

    /// A name for a definition: one that the block was to give a new meaning, or a new one.
    fn name(&mut self, planned: &mut Vec<String>, namespace: Namespace) -> String {
        if self.random.chance(60)
            && let Some(name) = planned.pop()
        {
            return self.defined(&name);
        }
        self.fresh(namespace)
    }

    fn parameter_name(&mut self, env: &Environment, taken: &[String]) -> String {
        if self.random.chance(35) {
            let names = shadowable(env);
            if let Some(name) = self.random.pick(&names)
                && !taken.iter().any(|other| plain(other) == *name)
            {
                return self.defined(name);
            }
        }
        self.fresh(Namespace::Variable)
    }

    /// Chooses what a block gives a new meaning, and hides it.
    fn plan(&mut self, env: &mut Environment) -> Plan {
        let mut plan = Plan::default();
        for _ in 0..self.random.below(3) {
            if let Some(name) = self.random.pick(&shadowable(env)).cloned() {
                env.hide_variable(&name);
                plan.variables.push(name);
            }
        }
        if self.random.chance(25) {
            let names = env
                .functions
                .iter()
                .map(|f| plain(&f.name))
                .filter(|name| !name.contains('.'));
            let names: Vec<String> = names.collect();
            if let Some(name) = self.random.pick(&names).cloned() {
                env.hide_function(&name);
                plan.functions.push(name);
            }
        }
        if self.random.chance(25) {
            let names = env
                .classes
                .iter()
                .map(|c| plain(&c.name))
                .filter(|name| !name.contains('.'));
            let names: Vec<String> = names.collect();
            if let Some(name) = self.random.pick(&names).cloned() {
                env.hide_class(&name);
                plan.classes.push(name);
            }
        }
        if self.random.chance(25) {
            let names = env.variables.iter().map(|(name, _)| plain(name));
            let names = names.filter_map(|name| name.split_once('.').map(|(alias, _)| alias.to_owned()));
            let names: Vec<String> = names.filter(|name| name.starts_with('n')).collect();
            let holds_open = |alias: &str| {
                let behind = |name: &str| {
                    plain(name)
                        .split_once('.')
                        .is_some_and(|(first, _)| first == alias)
                };
                env.variables
                    .iter()
                    .any(|(name, ty)| behind(name) && !ty.is_concrete())
            };
            if let Some(name) = self.random.pick(&names).cloned()
                && !holds_open(&name)
            {
                env.hide_alias(&name);
                plan.aliases.push(name);
            }
        }
        plan
    }

    /// A block of so many statements behind those that it begins with, and what is visible at its end.
    fn block(
        &mut self,
        outer: &Environment,
        place: Where,
        count: usize,
        mut statements: Vec<String>,
    ) -> (String, Environment) {
        let mut env = outer.clone();
        let mut plan = self.plan(&mut env);
        if matches!(place, Where::Entry | Where::Module) {
            self.imported_whole.clear();
            self.import_core(&mut env, &mut statements);
        }
        if !env.in_loop {
            self.import_modules(&mut env, place, &mut statements);
            // What an import brings keeps its meaning, whatever the block was to do with the name.
            let brought: Vec<String> = env.variables.iter().map(|(name, _)| plain(name)).collect();
            plan.variables.retain(|name| !brought.contains(name));
            plan.functions.retain(|name| {
                env.functions
                    .iter()
                    .all(|function| plain(&function.name) != *name)
            });
            plan.classes
                .retain(|name| env.classes.iter().all(|class| plain(&class.name) != *name));
        }
        for _ in 0..count {
            let statement = self.statement(&mut env, place, &mut plan);
            statements.extend(statement);
        }
        let text = statements.join("❘");
        (
            if matches!(place, Where::Entry | Where::Module) {
                text
            } else {
                format!("❬{text}❭")
            },
            env,
        )
    }

    fn import_core(&mut self, env: &mut Environment, statements: &mut Vec<String>) {
        for (module, functions) in CORE {
            let has_all = !matches!(*module, "iter" | "map") && self.random.chance(12);
            let (text, prefix) = if has_all {
                (" as *".to_owned(), String::new())
            } else if self.random.chance(20) {
                let alias = self.fresh(Namespace::Alias);
                (format!(" as {alias}"), format!("{alias}."))
            } else {
                (String::new(), format!("{module}."))
            };
            statements.push(format!("import \"{module}\"{text}"));
            for function in *functions {
                env.core
                    .push((format!("{module}.{function}"), format!("{prefix}{function}")));
            }
        }
    }

    fn import_modules(&mut self, env: &mut Environment, place: Where, statements: &mut Vec<String>) {
        for index in 0..self.modules.len() {
            let at_the_top = matches!(place, Where::Entry | Where::Module);
            let chance = if at_the_top { 70 } else { 12 };
            // Modules are made one after the other, so that none imports itself.
            if !self.random.chance(chance) {
                continue;
            }
            let path = format!("{}{}", self.way_up, self.modules[index].path);
            let exported = &self.modules[index].exports.variables;
            let exported = |kept: &String| exported.iter().any(|(name, _)| plain(name) == plain(kept));
            let hides_kept = env.kept.iter().any(exported);
            // What `as *` brings hides nothing from the order of definitions: where an outer block has taken the name of a class for its own,
            // that would seem to include itself.
            let names = self.modules[index].exports.plain_names();
            let may_seem_a_cycle = names.iter().any(|name| self.imported_whole.contains(name));
            let alias = match self.random.below(4) {
                0 if !hides_kept && !may_seem_a_cycle => None,
                1 => Some(format!("m{index}")),
                _ => Some(self.fresh(Namespace::Alias)),
            };
            let text = match &alias {
                None => " as *".to_owned(),
                Some(alias) if alias.contains('‹') => format!(" as {alias}"),
                Some(_) => String::new(),
            };
            statements.push(format!("import \"{path}\"{text}"));
            if alias.is_none() {
                self.imported_whole.extend(names);
            }
            let exports = self.modules[index].exports.clone();
            env.take_in(&exports, alias.as_deref(), &Chosen::new());
        }
    }

    fn statement(&mut self, env: &mut Environment, place: Where, plan: &mut Plan) -> Vec<String> {
        let depth = match place {
            Where::Entry | Where::Module => 0,
            Where::Class(depth) | Where::Inner(depth) => depth,
        };
        let is_module = place == Where::Module;
        let deep = depth >= 3 || self.budget == 0;
        let statement = match self.random.below(100) {
            0..35 => Some(self.bind(env, plan)),
            35..45 => Some(self.func(env, plan)),
            45..55 if !deep => return self.class(env, depth, plan),
            55..69 if !is_module => self.include(env, plan),
            69..76 if !is_module && !deep => {
                let condition = self.expression(env, &Ty::Bool, 3);
                let count = 1 + self.random.below(3);
                let (then, _) = self.block(env, Where::Inner(depth + 1), count, Vec::new());
                let otherwise = match self.random.below(4) {
                    0 | 1 => String::new(),
                    2 => {
                        let condition = self.expression(env, &Ty::Bool, 2);
                        let (block, _) = self.block(env, Where::Inner(depth + 1), 1, Vec::new());
                        format!(" else if {condition} {block}")
                    }
                    _ => {
                        let (block, _) = self.block(env, Where::Inner(depth + 1), 2, Vec::new());
                        format!(" else {block}")
                    }
                };
                Some(format!("if {condition} {then}{otherwise}"))
            }
            76..85 if !is_module && !deep => self.repetition(env, depth),
            85..88 if !is_module => {
                let condition = self.expression(env, &Ty::Bool, 2);
                Some(match self.random.below(3) {
                    0 => "panic(\"\")".to_owned(),
                    1 => format!("panic(({condition}) and false)"),
                    _ => format!("panic(({condition}) and false, \"why\")"),
                })
            }
            88..92 if !is_module => self.edge(env),
            92.. if !is_module => Some(self.resource(env)),
            _ if is_module => Some(self.bind(env, plan)),
            _ => Some(self.resource(env)),
        };
        statement.into_iter().collect()
    }

    fn bind(&mut self, env: &mut Environment, plan: &mut Plan) -> String {
        if self.random.chance(5) {
            // A list or map without elements is of the type that is written down.
            let element = Ty::random(&mut self.random, 1, true);
            let (ty, value) = if self.random.chance(60) {
                (Ty::list(element), "[]")
            } else {
                (Ty::Map(Box::new(Ty::Str), Box::new(element)), "{}")
            };
            let name = self.name(&mut plan.variables, Namespace::Variable);
            env.add_variable(name.clone(), ty.clone());
            return format!("${name} {} = {value}", ty.text());
        }
        let ty = Ty::random(&mut self.random, 2, true);
        let value = self.expression(env, &ty, 4);
        let name = self.name(&mut plan.variables, Namespace::Variable);
        env.add_variable(name.clone(), ty.clone());
        format!("${name}{} = {value}", annotation(&ty))
    }

    /// Some types of parameters, each open or one that can be written down.
    fn parameters(&mut self) -> (Vec<u32>, Vec<Ty>) {
        let open: Vec<u32> = (0..self.random.below(3)).map(|_| self.open_type()).collect();
        let mut parameters: Vec<Ty> = open.iter().map(|number| Ty::Any(*number)).collect();
        for _ in 0..self.random.below(3) {
            parameters.push(match self.random.pick(&open) {
                Some(number) if self.random.chance(40) => Ty::list(Ty::Any(*number)),
                _ => Ty::random(&mut self.random, 1, true),
            });
        }
        self.random.shuffle(&mut parameters);
        (open, parameters)
    }

    fn func(&mut self, env: &mut Environment, plan: &mut Plan) -> String {
        let (open, parameters) = self.parameters();
        let result = match self.random.pick(&open) {
            Some(number) if self.random.chance(60) => match self.random.below(4) {
                0 => Ty::list(Ty::Any(*number)),
                1 => Ty::Struct(vec![
                    ("a".to_owned(), Ty::Any(*number)),
                    ("b".to_owned(), Ty::Int),
                ]),
                _ => Ty::Any(*number),
            },
            _ => Ty::random(&mut self.random, 1, true),
        };
        let text = self.function(env, &parameters, &result, false, 4);
        let name = self.name(&mut plan.functions, Namespace::Function);
        env.add_function(Signature {
            name: name.clone(),
            open,
            parameters,
            result,
        });
        format!("func {name}{text}")
    }

    /// A class, and at times others that are written beside it and live in it.
    fn class(&mut self, env: &mut Environment, depth: usize, plan: &mut Plan) -> Vec<String> {
        let (open, mut parameters) = self.parameters();
        parameters.insert(0, Ty::Str);
        let mut inside = env.clone();
        let mut names: Vec<String> = Vec::new();
        for ty in &parameters {
            let name = self.parameter_name(env, &names);
            names.push(name.clone());
            inside.add_variable(name, ty.clone());
        }
        inside.tag = Some(names[0].clone());
        inside.kept.push(names[0].clone());
        let count = 2 + self.random.below(5);
        let (body, end) = self.block(&inside, Where::Class(depth + 1), count, Vec::new());
        let mut exports = end.without(env);
        // What the body sees around it can be reached through an alias, too.
        if let Some((name, ty)) = self.random.pick(&end.variables) {
            exports.add_variable(name.clone(), ty.clone());
        }
        let name = self.name(&mut plan.classes, Namespace::Class);
        let written: Vec<String> = names
            .iter()
            .zip(&parameters)
            .map(|(name, ty)| format!("${name}{}", annotation(ty)))
            .collect();
        let mut statements = vec![format!("class {name}({}) {body}", written.join(", "))];
        if depth < 2 && self.random.chance(20) {
            let mut end = end;
            let inner = self.class(&mut end, depth + 1, &mut Plan::default());
            let beside = inner.iter().filter_map(|inner| inner.strip_prefix("class "));
            statements.extend(beside.map(|inner| format!("class {name}:{inner}")));
            if let Some(class) = end.classes.pop() {
                exports.add_class(class);
            }
        }
        env.add_class(Class {
            name,
            open,
            parameters,
            exports: Box::new(exports),
        });
        statements
    }

    fn include(&mut self, env: &mut Environment, plan: &mut Plan) -> Option<String> {
        let class = self.random.pick(&env.classes)?.clone();
        let chosen: Chosen = class
            .open
            .iter()
            .map(|open| (*open, Ty::random(&mut self.random, 1, false)))
            .collect();
        let mut arguments = vec![self.instance_name(env, "t")];
        for ty in &class.parameters[1..] {
            arguments.push(self.expression(env, &ty.with(&chosen), 3));
        }
        let mut text = format!("include {}({})", class.name, arguments.join(", "));
        if self.random.chance(65) {
            let alias = self.name(&mut plan.aliases, Namespace::Alias);
            env.take_in(&class.exports, Some(&alias), &chosen);
            text.push_str(&format!(" as {alias}"));
        }
        Some(text)
    }

    /// A text that nothing else has in any instance of what surrounds it.
    fn instance_name(&mut self, env: &Environment, prefix: &str) -> String {
        self.resources += 1;
        let number = self.resources;
        match &env.tag {
            Some(tag) => format!("\"{prefix}{number}-${{{tag}}}\""),
            None => format!("\"{prefix}{number}\""),
        }
    }

    fn repetition(&mut self, env: &mut Environment, depth: usize) -> Option<String> {
        let printf = env.core("fmt.printf")?.to_owned();
        let element = Ty::random(&mut self.random, 1, true);
        let over_map = self.random.chance(35);
        let key = if over_map {
            Ty::key(&mut self.random)
        } else {
            Ty::Int
        };
        let over = if over_map {
            Ty::Map(Box::new(key.clone()), Box::new(element.clone()))
        } else {
            Ty::list(element.clone())
        };
        let iterable = self.expression(env, &over, 3);
        let key_name = self.parameter_name(env, &[]);
        let value_name = self.parameter_name(env, std::slice::from_ref(&key_name));
        let mut inside = env.clone();
        inside.add_variable(key_name.clone(), key);
        inside.add_variable(value_name.clone(), element);
        let outer = self.instance_name(&inside, "l");
        let tag = self.fresh(Namespace::Variable);
        let statement = format!("${tag} = {printf}(\"%s.%v\", {outer}, ${key_name})");
        inside.add_variable(tag.clone(), Ty::Str);
        inside.in_loop = true;
        inside.kept.extend([tag.clone(), key_name.clone()]);
        inside.tag = Some(tag);
        let count = 1 + self.random.below(4);
        let (block, _) = self.block(&inside, Where::Inner(depth + 1), count, vec![statement]);
        let word = if over_map { "forkv" } else { "for" };
        Some(format!("{word} ${key_name}, ${value_name} in {iterable} {block}"))
    }

    fn edge(&mut self, env: &Environment) -> Option<String> {
        if env.resources.len() < 2 {
            return None;
        }
        let mut picked: Vec<usize> = (0..2 + self.random.below(2))
            .map(|_| self.random.below(env.resources.len()))
            .collect();
        if !self.is_risky {
            picked.sort_unstable();
            picked.dedup();
        }
        if picked.len() < 2 {
            return None;
        }
        let half = |(kind, name): &(&str, String)| format!("{}[{name}]", capital(kind));
        let ends: Vec<&(&'static str, String)> = picked.iter().map(|index| &env.resources[*index]).collect();
        if ends[0].0 == "test" && ends[1].0 == "print" && self.random.chance(50) {
            return Some(format!("{}.hello -> {}.msg", half(ends[0]), half(ends[1])));
        }
        let mut halves: Vec<String> = ends.iter().map(|end| half(end)).collect();
        if ends.len() == 3 && ends[1].0 == ends[2].0 && self.random.chance(50) {
            halves.truncate(1);
            halves.push(format!("{}[[{}, {}]]", capital(ends[1].0), ends[1].1, ends[2].1));
        }
        Some(halves.join(" -> "))
    }

    fn resource(&mut self, env: &mut Environment) -> String {
        let kind = ["test", "test", "test", "print", "print", "noop", "noop", "file"][self.random.below(8)];
        let prefix = if kind == "file" { "/f/r" } else { "r" };
        let first = self.instance_name(env, prefix);
        let mut names = vec![first.clone()];
        let name = match self.random.below(9) {
            0 => {
                let second = self.instance_name(env, prefix);
                names.push(second.clone());
                format!("[{first}, {second}, {first}]")
            }
            1 => format!("{first} + \"\""),
            2 => format!(
                "if {} {{ {first} }} else {{ {first} }}",
                self.expression(env, &Ty::Bool, 2)
            ),
            3 if kind != "file" => {
                names.clear();
                let list = self.expression(env, &Ty::list(Ty::Str), 2);
                match env.core("iter.map") {
                    Some(map) => format!("{map}({list}, func($name) {{ {first} + $name }})"),
                    None => "[]".to_owned(),
                }
            }
            4 if self.is_risky && kind != "file" => {
                names.clear();
                self.expression(env, &Ty::Str, 2)
            }
            _ => first.clone(),
        };
        let mut items = self.parameters_of(env, kind);
        items.extend(self.meta(env));
        for _ in 0..self.random.below(3) {
            let Some((other, name)) = self.random.pick(&env.resources).cloned() else {
                break;
            };
            let property = match self.random.below(20) {
                0 if self.is_risky => "Before",
                0..10 => "Depend",
                _ => "Listen",
            };
            let condition = self.condition(env);
            items.push(format!("{property} => {condition}{}[{name}]", capital(other)));
        }
        self.random.shuffle(&mut items);
        env.resources.extend(names.into_iter().map(|name| (kind, name)));
        if items.is_empty() {
            return format!("{kind} {name} {{}}");
        }
        format!("{kind} {name} {{\n{},\n}}", items.join(",\n"))
    }

    fn condition(&mut self, env: &Environment) -> String {
        if self.random.chance(20) {
            format!("{} ?: ", self.expression(env, &Ty::Bool, 2))
        } else {
            String::new()
        }
    }

    fn parameters_of(&mut self, env: &Environment, kind: &str) -> Vec<String> {
        let mixed = ["somebool", "somestr", "someint", "somefloat"].map(ToOwned::to_owned);
        let mixed = mixed
            .into_iter()
            .zip([Ty::Bool, Ty::Str, Ty::Int, Ty::Float])
            .collect();
        let anything = match self.random.pick(&env.variables) {
            Some((_, ty)) if ty.is_data() => ty.clone(),
            _ => Ty::random(&mut self.random, 2, false),
        };
        let all: Vec<(&str, Ty)> = match kind {
            "test" => vec![
                ("int64", Ty::Int),
                ("float64", Ty::Float),
                ("stringptr", Ty::Str),
                ("boolptr", Ty::Bool),
                ("anotherstr", Ty::Str),
                ("slicestring", Ty::list(Ty::Str)),
                ("mapintfloat", Ty::Map(Box::new(Ty::Int), Box::new(Ty::Float))),
                ("mixedstruct", Ty::Struct(mixed)),
                ("interface", anything.clone()),
                ("interface", anything),
            ],
            "print" => vec![("msg", Ty::Str)],
            "file" => vec![("content", Ty::Str)],
            _ => Vec::new(),
        };
        let mut items: Vec<(&str, String)> = Vec::new();
        for _ in 0..4.min(all.len()) {
            let (name, ty) = &all[self.random.below(all.len())];
            if items.iter().all(|(other, _)| other != name) {
                let condition = self.condition(env);
                items.push((
                    name,
                    format!("{name} => {condition}{}", self.expression(env, ty, 4)),
                ));
            }
        }
        if kind == "test" && self.random.chance(10) {
            let limit = if self.is_risky { 300 } else { 100 };
            items.push(("int8", format!("int8 => {}", self.random.below(limit))));
        }
        items.into_iter().map(|(_, text)| text).collect()
    }

    fn meta(&mut self, env: &Environment) -> Vec<String> {
        let mut items = Vec::new();
        if self.random.chance(5) {
            return vec![format!(
                "Meta => struct{{noop => {}, retry => 3}}",
                self.expression(env, &Ty::Bool, 2)
            )];
        }
        for name in ["noop", "autoedge", "retryreset", "reset", "rewatch"] {
            if self.random.chance(4) {
                let condition = self.condition(env);
                items.push(format!(
                    "Meta:{name} => {condition}{}",
                    self.expression(env, &Ty::Bool, 2)
                ));
            }
        }
        if self.random.chance(5) {
            items.push(format!("Meta:retry => {}", self.random.below(9)));
        }
        if self.random.chance(4) {
            items.push("Meta:sema => [\"s:2\", \"t\"]".to_owned());
        }
        if self.random.chance(3) {
            items.push("Meta:limit => 2.5, Meta:burst => 3".to_owned());
        }
        if self.random.chance(3) {
            items.push("Meta:hidden => true".to_owned());
        }
        items
    }
}

fn capital(kind: &str) -> String {
    let (first, rest) = kind.split_at(1);
    first.to_uppercase() + rest
}

/// Variables that may be given another meaning. What an instance is told apart by, and what has an open type, stays.
fn shadowable(env: &Environment) -> Vec<String> {
    let names = env
        .variables
        .iter()
        .filter(|(name, ty)| !name.contains('.') && !env.kept.contains(name) && ty.is_concrete());
    names.map(|(name, _)| plain(name)).collect()
}
