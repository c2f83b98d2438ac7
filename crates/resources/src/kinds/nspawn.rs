//! The `nspawn` kind: a machine of systemd-nspawn, running or not.
//!
//! It is made of the service `systemd-nspawn@NAME`. What systemd-machined says of machines is heard on the bus, so one that ends by itself is seen when it does.

use setpoint_engine::{
    Apply, Attempting, Failure, Handle, HubWatcher, Identity, Kind as _, Resource, Wanted, Watch, Words,
    async_trait,
};
use setpoint_graph::{Invalid, MetaParameters, Parameters};
use setpoint_host::bus::{Following, Method, OwnedObjectPath, signals};
use setpoint_value::Value;

use super::svc::Svc;
use crate::enclosing;
use crate::sorts::{FILE, SERVICE, of_service_manager};
use crate::system_bus::{self, buses};

/// A machine of systemd-nspawn, by its name: what lies in `/var/lib/machines/NAME`, running or not.
///
/// ```mcl
/// nspawn "web" {}
/// ```
///
/// ```mcl
/// nspawn "former" {
///     state => "stopped",
/// }
/// ```
#[derive(Debug, Resource)]
#[resource(kind = "nspawn", refreshable, autoedge, asynchronous)]
pub(crate) struct Nspawn {
    /// Whether it runs.
    #[param(default = State::Running)]
    state: State,
    #[name]
    name: String,
    /// The service that it is.
    #[state]
    service: Option<Svc>,
}

/// What `state` can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Stopped,
}

impl Words for State {
    const ONE: &'static str = "a state of a machine";

    fn words() -> impl Iterator<Item = (&'static str, State)> {
        [("running", State::Running), ("stopped", State::Stopped)].into_iter()
    }
}

/// The service that knows of machines.
const SERVICE_NAME: &str = "org.freedesktop.machine1";
const OBJECT: &str = "/org/freedesktop/machine1";
const INTERFACE: &str = "org.freedesktop.machine1.Manager";

/// The longest name of a machine, in bytes.
const LONGEST: usize = 64;

#[async_trait]
impl Resource for Nspawn {
    fn validate(&self, meta: &MetaParameters, invalid: &mut Vec<Invalid>) {
        let is_sign = |sign: char| sign.is_ascii_alphanumeric() || ['-', '.', '_'].contains(&sign);
        let is_edge = |sign: char| sign.is_ascii_alphanumeric();
        let name = &self.name;
        if name.len() > LONGEST
            || !name.chars().all(is_sign)
            || !name.starts_with(is_edge)
            || !name.ends_with(is_edge)
        {
            let message = format!(
                "`{name}` is not the name of a machine: letters, digits, `-`, `.` and `_`, a letter or a digit at both ends, at most {LONGEST} of them"
            );
            invalid.push(Invalid::new(message));
            return;
        }
        self.made().validate(meta, invalid);
    }

    fn identities(&self) -> Vec<Identity> {
        vec![of_service_manager(&SERVICE, false, &self.unit())]
    }

    fn wanted(&self) -> Vec<Wanted> {
        // Resources that make its image and its settings come first.
        let own = |name: String| FILE.identity(name.into_bytes());
        let settings = own(format!("/etc/systemd/nspawn/{}.nspawn", self.name));
        let image = own(format!("/var/lib/machines/{}/", self.name));
        vec![
            Wanted::first_of_each([settings, image.clone()]),
            enclosing::wanted(&image),
        ]
    }

    fn init(&mut self, handle: &Handle) -> Result<(), Failure> {
        let mut service = self.made();
        service.init(handle)?;
        self.service = Some(service);
        Ok(())
    }

    fn watches(&self) -> Vec<Watch> {
        let name = self.name.clone();
        let mut watches = self.service.as_ref().map(Resource::watches).unwrap_or_default();
        watches.push(Watch::hub(move |watcher| follow(name, watcher)));
        watches
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        if self.state == State::Running {
            self.must_have_an_image(apply).await?;
        }
        match &mut self.service {
            Some(service) => service.check_apply(apply).await,
            None => Ok(()),
        }
    }

    fn cleanup(&mut self, handle: &Handle) {
        if let Some(mut service) = self.service.take() {
            service.cleanup(handle);
        }
    }
}

impl Nspawn {
    fn unit(&self) -> String {
        format!("systemd-nspawn@{}", self.name)
    }

    /// The service in the state that the machine shall be in.
    fn made(&self) -> Svc {
        let state = State::words().find(|(_, state)| *state == self.state);
        let state = state.map_or("", |(word, _)| word);
        let parameters = Parameters::new([("state", Value::str(state))]);
        Svc::decode(&self.unit(), &parameters, &mut Vec::new())
    }

    /// A machine that shall run has an image, or is there already.
    async fn must_have_an_image(&self, apply: &Apply<'_>) -> Result<(), Failure> {
        let attempted = "ask systemd-machined for the machine";
        let link = buses(apply.handle())?.system.link().await;
        let link = link.attempting(attempted, &self.name)?;
        for name in ["GetMachine", "GetImage"] {
            match link
                .call::<OwnedObjectPath>(method(name), &(self.name.as_str(),))
                .await
            {
                Ok(_) => return Ok(()),
                Err(error) if error.is_named("org.freedesktop.machine1.NoSuchMachine") => {}
                Err(error) if error.is_named("org.freedesktop.machine1.NoSuchImage") => {}
                Err(error) => return Err(error).attempting(attempted, &self.name),
            }
        }
        let why = format!(
            "it is not there: neither a machine nor an image below /var/lib/machines is called `{}`",
            self.name
        );
        Err(Failure::new("start the machine").on(&self.name).because(why))
    }
}

fn method(name: &str) -> Method<'_> {
    Method {
        service: SERVICE_NAME,
        path: OBJECT,
        interface: INTERFACE,
        name,
    }
}

/// Hears when the machine comes and goes.
fn follow(name: String, watcher: HubWatcher) -> Result<Following, Failure> {
    let rule = |member| signals(SERVICE_NAME, OBJECT, INTERFACE, member);
    let rules = vec![rule("MachineNew"), rule("MachineRemoved")];
    system_bus::follow(watcher, "systemd-machined", rules, move |message| {
        let told = message.body().deserialize::<(String, OwnedObjectPath)>();
        told.is_ok_and(|(of, _)| of == name)
            .then_some("systemd-machined tells of the machine")
    })
}
