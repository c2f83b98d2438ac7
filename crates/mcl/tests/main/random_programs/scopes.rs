//! The scopes of the naive interpreter: what each block defines, and how a name is looked up (rules of mcl, 4 and 5).
//!
//! A scope is made anew for each instance of a block: each include of a class, each round of a loop. Nothing in it is
//! computed before it is used, so that the order of statements means nothing here.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use setpoint_diagnostics::Loader as _;
use setpoint_diagnostics::{Diagnostics, SourceMap};
use setpoint_mcl::syntax::{Ast, Block, ExprId, ImportAlias, StmtId, StmtKind, parse};

use super::datum::Datum;
use super::interpreter::{Failure, Interpreter};

/// A file of a program.
pub(crate) struct File {
    pub(crate) ast: Ast,
    /// Empty, or ends in `/`.
    pub(crate) directory: String,
}

/// What a block defines.
pub(crate) struct Scope {
    /// Whose text is read in it.
    pub(crate) file: Rc<File>,
    parent: Option<Rc<Scope>>,
    variables: RefCell<HashMap<String, Rc<Definition>>>,
    functions: RefCell<HashMap<String, Callable>>,
    classes: RefCell<HashMap<String, Class>>,
    aliases: RefCell<HashMap<String, Alias>>,
    /// Those of `as *`, the last first.
    everything: RefCell<Vec<Alias>>,
    /// Bodies of included classes, so that a statement has one in this scope however often it is mentioned.
    pub(crate) included: RefCell<HashMap<StmtId, Rc<Scope>>>,
}

/// What a variable stands for: an expression that is computed once, when it is first needed.
pub(crate) struct Definition {
    pub(crate) state: RefCell<State>,
}

pub(crate) enum State {
    Open(ExprId, Rc<Scope>),
    Known(Result<Datum, Failure>),
}

impl Definition {
    pub(crate) fn open(expression: ExprId, scope: Rc<Scope>) -> Rc<Definition> {
        let state = RefCell::new(State::Open(expression, scope));
        Rc::new(Definition { state })
    }

    pub(crate) fn known(value: Datum) -> Rc<Definition> {
        let state = RefCell::new(State::Known(Ok(value)));
        Rc::new(Definition { state })
    }
}

/// What can be called by a name without `$`.
#[derive(Clone)]
pub(crate) enum Callable {
    /// A `func` statement.
    Statement(StmtId, Rc<Scope>),
    /// Of the core library: `fmt.printf`, `len`.
    Core(String),
}

/// A class: its statement, where it is defined, and the classes `a:b` that were written beside it and belong inside.
#[derive(Clone)]
pub(crate) struct Class {
    pub(crate) statement: StmtId,
    pub(crate) scope: Rc<Scope>,
    pub(crate) inner: Vec<(String, StmtId)>,
}

/// What stands before the dot of a name.
#[derive(Clone)]
pub(crate) enum Alias {
    Core(String),
    Module(Rc<Scope>),
    Include(StmtId),
}

impl Scope {
    /// Takes everything out of it, at the end.
    pub(crate) fn clear(&self) {
        #[expect(clippy::iter_over_hash_type, reason = "each is ended on its own")]
        for definition in self.variables.borrow_mut().drain() {
            let nothing = Failure::fatal("the program has ended");
            *definition.1.state.borrow_mut() = State::Known(Err(nothing));
        }
        self.functions.borrow_mut().clear();
        self.classes.borrow_mut().clear();
        self.aliases.borrow_mut().clear();
        self.everything.borrow_mut().clear();
        self.included.borrow_mut().clear();
    }

    pub(crate) fn define(&self, name: &str, definition: Rc<Definition>) {
        self.variables.borrow_mut().insert(name.to_owned(), definition);
    }
}

impl Interpreter {
    /// An empty scope inside of another one, or for the top of a file.
    pub(crate) fn scope(&self, file: &Rc<File>, parent: Option<&Rc<Scope>>) -> Rc<Scope> {
        let scope = Rc::new(Scope {
            file: file.clone(),
            parent: parent.cloned(),
            variables: RefCell::default(),
            functions: RefCell::default(),
            classes: RefCell::default(),
            aliases: RefCell::default(),
            everything: RefCell::default(),
            included: RefCell::default(),
        });
        self.scopes.borrow_mut().push(scope.clone());
        scope
    }

    /// The scope of an instance of a block.
    pub(crate) fn open(
        &self,
        file: &Rc<File>,
        around: Option<&Rc<Scope>>,
        block: &Block,
        inner: &[(String, StmtId)],
    ) -> Rc<Scope> {
        let scope = self.scope(file, around);
        let mut classes: Vec<(String, StmtId)> = inner.to_vec();
        for &id in &block.statements {
            match &scope.file.ast[id].kind {
                StmtKind::Bind(bind) => {
                    scope.define(&bind.name.text, Definition::open(bind.value, scope.clone()));
                }
                StmtKind::Func(func) => {
                    let name = func.name.text.to_string();
                    scope
                        .functions
                        .borrow_mut()
                        .insert(name, Callable::Statement(id, scope.clone()));
                }
                StmtKind::Class(class) => classes.push((class.name.text.to_string(), id)),
                StmtKind::Include(include) => {
                    if let Some(alias) = &include.alias {
                        scope
                            .aliases
                            .borrow_mut()
                            .insert(alias.text.to_string(), Alias::Include(id));
                    }
                }
                StmtKind::Import(import) => {
                    let path = &import.path.text;
                    let imported = self.import(&scope.file, path);
                    match &import.alias {
                        Some(ImportAlias::All(_)) => scope.everything.borrow_mut().insert(0, imported),
                        Some(ImportAlias::Name(name)) => {
                            scope.aliases.borrow_mut().insert(name.text.to_string(), imported);
                        }
                        None => {
                            let segments = path.trim_end_matches('/').rsplit('/');
                            let last = segments.clone().next().unwrap_or_default();
                            let alias = last.trim_end_matches(".mcl").replace('-', "_").to_lowercase();
                            scope.aliases.borrow_mut().insert(alias, imported);
                        }
                    }
                }
                _ => {}
            }
        }
        let (outer, mut coloned): (Vec<_>, Vec<_>) =
            classes.into_iter().partition(|(name, _)| !name.contains(':'));
        for (name, statement) in outer {
            let belongs = |(other, _): &(String, StmtId)| other.split(':').next() == Some(&*name);
            let (mine, others): (Vec<_>, Vec<_>) = coloned.into_iter().partition(belongs);
            coloned = others;
            let inside = |(name, id): (String, StmtId)| {
                (
                    name.split_once(':')
                        .map(|(_, rest)| rest.to_owned())
                        .unwrap_or_default(),
                    id,
                )
            };
            let inner = mine.into_iter().map(inside).collect();
            let class = Class {
                statement,
                scope: scope.clone(),
                inner,
            };
            scope.classes.borrow_mut().insert(name, class);
        }
        scope
    }

    fn import(&self, file: &Rc<File>, path: &str) -> Alias {
        let local = match path {
            path if path.ends_with(".mcl") => format!("{}{path}", file.directory),
            path if path.ends_with('/') => format!("{}{path}main.mcl", file.directory),
            core => return Alias::Core(core.to_owned()),
        };
        let file = Rc::new(self.read(&local));
        Alias::Module(self.open(&file, None, &file.ast.root, &[]))
    }

    /// A file of the program. Whatever is wrong with it is left out, as the parser does.
    pub(crate) fn read(&self, path: &str) -> File {
        let bytes = self.files.read(path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let id = SourceMap::new().add(path, &*text);
        let ast = parse(id, &text, &mut Diagnostics::new()).ast;
        let directory = path
            .rsplit_once('/')
            .map(|(directory, _)| format!("{directory}/"));
        File {
            ast,
            directory: directory.unwrap_or_default(),
        }
    }

    /// What a variable stands for.
    pub(crate) fn variable(&self, scope: &Rc<Scope>, name: &str) -> Option<Rc<Definition>> {
        self.look_up(
            scope,
            name,
            &|scope, name| scope.variables.borrow().get(name).cloned(),
            &|_, _| None,
        )
    }

    /// What a function's name stands for.
    pub(crate) fn function(&self, scope: &Rc<Scope>, name: &str) -> Option<Callable> {
        let core = |module: &str, name: &str| {
            let name = if module.is_empty() {
                name.to_owned()
            } else {
                format!("{module}.{name}")
            };
            super::library::has(&name).then_some(Callable::Core(name))
        };
        let found = self.look_up(
            scope,
            name,
            &|scope, name| scope.functions.borrow().get(name).cloned(),
            &core,
        );
        found.or_else(|| core("", name))
    }

    /// What a class's name stands for.
    pub(crate) fn class(&self, scope: &Rc<Scope>, name: &str) -> Option<Class> {
        self.look_up(
            scope,
            name,
            &|scope, name| scope.classes.borrow().get(name).cloned(),
            &|_, _| None,
        )
    }

    /// Looks a name up from the innermost scope outwards. The names behind an alias are those that are visible at the end
    /// of what it stands for.
    fn look_up<T>(
        &self,
        scope: &Rc<Scope>,
        name: &str,
        own: &dyn Fn(&Scope, &str) -> Option<T>,
        core: &dyn Fn(&str, &str) -> Option<T>,
    ) -> Option<T> {
        let mut next = Some(scope.clone());
        while let Some(scope) = next {
            let found = match name.split_once('.') {
                None => own(&scope, name),
                Some((alias, rest)) => {
                    let alias = scope.aliases.borrow().get(alias).cloned();
                    alias.and_then(|alias| self.behind(&scope, &alias, rest, own, core))
                }
            };
            let found = found.or_else(|| {
                let everything = scope.everything.borrow().clone();
                everything
                    .iter()
                    .find_map(|alias| self.behind(&scope, alias, name, own, core))
            });
            if let Some(value) = found {
                return Some(value);
            }
            next = scope.parent.clone();
        }
        None
    }

    fn behind<T>(
        &self,
        scope: &Rc<Scope>,
        alias: &Alias,
        name: &str,
        own: &dyn Fn(&Scope, &str) -> Option<T>,
        core: &dyn Fn(&str, &str) -> Option<T>,
    ) -> Option<T> {
        match alias {
            Alias::Core(module) => core(module, name),
            Alias::Module(module) => self.look_up(module, name, own, core),
            Alias::Include(statement) => {
                let body = self.include(scope, *statement)?;
                self.look_up(&body, name, own, core)
            }
        }
    }
}
