//! Kinds for the machine in memory. They follow the rules of real kinds.

use setpoint_engine::{
    Apply, DriftValue, Effect, Failure, Identity, KindSpec, Resource, Sends, Sort, Wanted, WantedOrder,
    WantedReach, async_trait,
};
use setpoint_value::Value;

use crate::host::{ACCOUNTS, File, Machine, PACKAGES, PATHS, SERVICES, above, known};

static FILE: Sort =
    Sort::exact("file").held_by(|file| holders(&String::from_utf8_lossy(&file.key)).collect());
static ACCOUNT: Sort = Sort::exact("account");

/// The kinds of random programs.
pub(crate) static KINDS: &[KindSpec] = &[
    Document::SPEC,
    Account::SPEC,
    Copy::SPEC,
    Package::SPEC,
    Command::SPEC,
    Service::SPEC,
    Message::SPEC,
];

fn file(path: &str) -> Identity {
    FILE.identity(path.as_bytes())
}

fn account(name: &str) -> Identity {
    ACCOUNT.identity(name.as_bytes())
}

/// The directory of a path, if it is one of those that can be missing.
fn directory(path: &str) -> Option<Identity> {
    above(path).map(file)
}

fn holders(path: &str) -> impl Iterator<Item = Identity> {
    std::iter::successors(above(path), |path| above(path)).map(file)
}

/// The nearest of the directories above a path.
fn directories(path: &str) -> Wanted {
    Wanted {
        order: WantedOrder::FoundFirst,
        identities: holders(path).collect(),
        reach: WantedReach::First,
    }
}

/// The directory of a path must exist, now or when the resource runs.
fn needs_room(apply: &mut Apply<'_>, path: &str) -> Result<(), Failure> {
    let machine = apply.handle().extension::<Machine>()?;
    match directory(path) {
        Some(directory) if !machine.lock().has_room(path) && !apply.foresees(&directory, "a directory") => {
            Err(Failure::new("write it").because("there is no directory"))
        }
        _ => Ok(()),
    }
}

#[derive(Sends)]
pub(crate) struct Contents {
    /// The contents.
    content: Option<Value>,
}

/// A file.
#[derive(Debug, Resource)]
#[resource(kind = "document", receives, autoedge, asynchronous, sends = Contents)]
pub(crate) struct Document {
    /// Whether it must not exist.
    absent: bool,
    /// Its contents.
    #[param(independent)]
    content: Option<String>,
    /// Its owner.
    #[param(independent)]
    owner: Option<String>,
    #[name]
    name: String,
}

#[async_trait]
impl Resource for Document {
    fn identities(&self) -> Vec<Identity> {
        vec![file(&self.name)]
    }

    fn wanted(&self) -> Vec<Wanted> {
        let owner = self.owner.as_deref().map(account);
        vec![directories(&self.name), Wanted::first_of_each(owner)]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let machine = apply.handle().extension::<Machine>()?;
        let found = machine.lock().files.get(&*self.name).cloned();
        if self.absent {
            if found.is_some() && apply.remove("there") {
                machine.lock().remove(&self.name);
            }
            apply.send(Contents { content: None });
            return Ok(());
        }
        if let Some(owner) = &self.owner
            && !machine.lock().accounts.contains(&**owner)
            && !apply.foresees(&account(owner), "an account")
        {
            return Err(Failure::new("find its owner"));
        }
        let wanted = File {
            content: self.content.clone().unwrap_or_default(),
            owner: known(&ACCOUNTS, self.owner.as_deref().unwrap_or("root")),
        };
        match found {
            None => {
                needs_room(apply, &self.name)?;
                let is_created = apply.create(vec![("owner", wanted.owner.into())]);
                let mut has_content = false;
                if let Some(content) = &self.content {
                    has_content = apply.drift("content", DriftValue::Absent, content.as_str());
                }
                if is_created || has_content {
                    machine
                        .lock()
                        .files
                        .insert(known(&PATHS, &self.name), wanted.clone());
                }
            }
            Some(found) => {
                if let Some(content) = &self.content
                    && *content != found.content
                    && apply.drift("content", found.content.as_str(), content.as_str())
                {
                    machine
                        .lock()
                        .change(&self.name, |file| file.content.clone_from(content));
                }
                if self.owner.is_some()
                    && wanted.owner != found.owner
                    && apply.drift("owner", found.owner, wanted.owner)
                {
                    machine
                        .lock()
                        .change(&self.name, |file| file.owner = wanted.owner);
                }
            }
        }
        let content = machine
            .lock()
            .files
            .get(&*self.name)
            .map(|file| Value::str(file.content.as_str()));
        apply.send(Contents { content });
        Ok(())
    }
}

/// An account.
#[derive(Debug, Resource)]
#[resource(kind = "account", autoedge, asynchronous)]
pub(crate) struct Account {
    /// Whether it must not exist.
    absent: bool,
    #[name]
    name: String,
}

#[async_trait]
impl Resource for Account {
    fn identities(&self) -> Vec<Identity> {
        vec![account(&self.name)]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let machine = apply.handle().extension::<Machine>()?;
        let exists = machine.lock().accounts.contains(&*self.name);
        let name = known(&ACCOUNTS, &self.name);
        match (exists, self.absent) {
            (true, true) if apply.remove("there") => {
                machine.lock().accounts.remove(name);
            }
            (false, false) if apply.create(Vec::new()) => {
                machine.lock().accounts.insert(name);
            }
            _ => {}
        }
        Ok(())
    }
}

/// A file with the contents of another one.
#[derive(Debug, Resource)]
#[resource(kind = "copy", autoedge, asynchronous)]
pub(crate) struct Copy {
    /// The path of the other file.
    source: String,
    #[name]
    name: String,
}

#[async_trait]
impl Resource for Copy {
    fn identities(&self) -> Vec<Identity> {
        vec![file(&self.name)]
    }

    fn wanted(&self) -> Vec<Wanted> {
        vec![
            directories(&self.name),
            Wanted::first_of_each([file(&self.source)]),
        ]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let machine = apply.handle().extension::<Machine>()?;
        let source = file(&self.source);
        let from = machine.lock().files.get(&*self.source).cloned();
        let found = machine.lock().files.get(&*self.name).cloned();
        apply.reads(&source, &self.source);
        let content = match from {
            Some(from) => from.content,
            None if apply.foresees(&source, "its source") => String::new(),
            None => return Err(Failure::new("read its source")),
        };
        let (is, owner) = match found {
            Some(found) if found.content == content => return Ok(()),
            Some(found) => (DriftValue::from(found.content.as_str()), found.owner),
            None => (DriftValue::Absent, "root"),
        };
        needs_room(apply, &self.name)?;
        if apply.existence("content", is, content.as_str()) {
            let name = known(&PATHS, &self.name);
            machine.lock().files.insert(name, File { content, owner });
        }
        Ok(())
    }
}

/// A package, whose files are known only when it is there.
#[derive(Debug, Resource)]
#[resource(kind = "package", brings = anything, asynchronous)]
pub(crate) struct Package {
    /// Unused.
    note: String,
    #[name]
    name: String,
}

#[async_trait]
impl Resource for Package {
    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let machine = apply.handle().extension::<Machine>()?;
        let exists = machine.lock().packages.contains(&*self.name);
        if !exists && apply.create(Vec::new()) {
            let name = known(&PACKAGES, &self.name);
            machine.lock().install(name);
        }
        Ok(())
    }
}

/// A command.
#[derive(Debug, Resource)]
#[resource(kind = "command", brings = anything, refreshable, action(done = "ran", would = "run"), asynchronous)]
pub(crate) struct Command {
    /// It runs only if there is a file at this path.
    only_if: Option<String>,
    /// It runs only if there is no file at this path.
    creates: Option<String>,
    /// It runs only for a notification.
    refresh_only: bool,
    /// The path of the file that it writes.
    writes: Option<String>,
    /// The path of the file that it removes.
    removes: Option<String>,
    /// Whether it fails.
    fails: bool,
    #[name]
    name: String,
}

impl Command {
    fn run(&self, machine: &Machine) -> Result<(), Failure> {
        let mut things = machine.lock();
        *things.ran.entry(self.name.clone()).or_default() += 1;
        if let Some(path) = &self.writes {
            if !things.has_room(path) {
                return Err(Failure::new("run").because("there is no directory"));
            }
            let content = format!("of {}", self.name);
            things.files.insert(
                known(&PATHS, path),
                File {
                    content,
                    owner: "root",
                },
            );
        }
        if let Some(path) = &self.removes {
            things.remove(path);
        }
        match self.fails {
            true => Err(Failure::new("run").because("exit status 1")),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl Resource for Command {
    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let machine = apply.handle().extension::<Machine>()?;
        if self.refresh_only && !apply.refresh_pending() {
            return Ok(());
        }
        if let Some(path) = &self.only_if {
            apply.uncertain(|| format!("runs if {path} is there then"));
            if !machine.lock().files.contains_key(&**path) {
                return Ok(());
            }
        }
        if let Some(path) = &self.creates
            && !apply.refresh_pending()
        {
            let today = machine.lock().files.contains_key(&**path);
            if apply.will_exist(&file(path), today, || format!("runs if {path} is missing then")) {
                return Ok(());
            }
        }
        if apply.act(Effect::Run, "cmd", "always", "run") {
            self.run(machine)?;
        }
        Ok(())
    }
}

/// A service, whose unit is a file.
#[derive(Debug, Resource)]
#[resource(kind = "service", refreshable, autoedge, asynchronous)]
pub(crate) struct Service {
    /// Unused.
    note: String,
    #[name]
    name: String,
}

fn unit(name: &str) -> &'static str {
    let service = SERVICES.iter().find(|(known, _)| *known == name);
    service.expect("a service of the machine").1
}

#[async_trait]
impl Resource for Service {
    fn wanted(&self) -> Vec<Wanted> {
        let unit = unit(&self.name);
        vec![Wanted::first_of_each([file(unit)]), directories(unit)]
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let machine = apply.handle().extension::<Machine>()?;
        let unit = unit(&self.name);
        let (content, runs) = {
            let things = machine.lock();
            let content = things.files.get(unit).map(|file| file.content.clone());
            (content, things.services.contains_key(&*self.name))
        };
        if content.is_none() && !apply.foresees(&file(unit), "its unit") {
            return Err(Failure::new("find its unit"));
        }
        let may = match runs {
            false => apply.drift("state", "stopped", "running"),
            true if apply.refresh_pending() => apply.act(Effect::Restart, "refresh", "notified", "restart"),
            true => false,
        };
        if may {
            let (name, _) = SERVICES
                .iter()
                .find(|(name, _)| *name == self.name)
                .expect("a known service");
            machine.lock().services.insert(name, content.unwrap_or_default());
        }
        Ok(())
    }
}

/// A message, sent for a notification.
#[derive(Debug, Resource)]
#[resource(kind = "message", brings = nothing, refreshable, action(done = "told", would = "tell"), asynchronous)]
pub(crate) struct Message {
    /// Unused.
    note: String,
    #[name]
    name: String,
}

#[async_trait]
impl Resource for Message {
    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        let machine = apply.handle().extension::<Machine>()?;
        if apply.refresh_pending() && apply.act(Effect::Run, "message", "notified", "tell") {
            *machine.lock().ran.entry(self.name.clone()).or_default() += 1;
        }
        Ok(())
    }
}
