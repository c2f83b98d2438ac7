//! A small kind through everything that the derive and a run do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use setpoint_graph::{Invalid, MetaParameters, Parameters, ResourceId};
use setpoint_host::files::{AbsolutePath, Committer, VerifiedFiles};
use setpoint_host::processes::Processes;
use setpoint_host::users::Users;
use setpoint_value::{Type, Value};

use crate::Kind as _;
use crate::{
    Apply, Busy, Cancellation, Drift, DriftValue, Extensions, Failure, Handle, Instance, Observer, Outcome,
    Parameter, ParameterStruct, Resource, RunInput, Sends, Services, Withholding, async_trait, check,
};

/// A lamp.
#[derive(Debug, Resource)]
#[resource(kind = "lamp", receives, sends = Light)]
struct Lamp {
    /// Where it stands.
    #[param(default_from = "name")]
    place: String,
    /// How bright it is.
    #[param(default = 40)]
    watts: u8,
    /// Its colour.
    #[param(default = "white", yaml = "color")]
    colour: String,
    /// Opens its switch.
    key: String,
    /// Labels.
    labels: Option<Vec<Label>>,
    /// Anything by number.
    extras: BTreeMap<i8, Value>,
    #[name]
    name: String,
    #[state]
    runs: u32,
}

/// A label.
#[derive(Debug, Clone, PartialEq, ParameterStruct)]
struct Label {
    text: String,
    size: i16,
}

/// What a lamp sends.
#[derive(Sends)]
struct Light {
    /// How bright it is.
    watts: u8,
    /// The key.
    key: String,
    /// How many runs there were.
    #[send(reveals_nothing)]
    count: u32,
    /// Kept back.
    hidden: Withholding<String>,
}

#[async_trait]
impl Resource for Lamp {
    fn validate(&self, _: &MetaParameters, invalid: &mut Vec<Invalid>) {
        if self.watts == 0 {
            invalid.push(Invalid::parameter("watts", "a lamp gives light"));
            if self.colour != "white" {
                let message = format!("there is no `{}` light", self.colour);
                invalid.push(Invalid::parameter("colour", message));
            }
        }
    }

    async fn check_apply(&mut self, apply: &mut Apply<'_>) -> Result<(), Failure> {
        self.runs += 1;
        let _ = apply.drift("watts", 1u8, self.watts);
        let _ = apply.drift("key", DriftValue::Absent, "opened");
        let _ = apply.drift("labels text", "a", "b");
        let _ = apply.drift("elsewhere", "a", "b");
        // A field that is called like a parameter and shows what another one holds.
        let _ = apply.drift_of("key", "watts", "a", "b");
        let _ = apply.drift("colour", "a", format!("b, opened by {}", self.key));
        apply.log(crate::Level::Info, format!("it is {}", self.colour));
        apply.display(format!("shown: {}", self.colour));
        apply.send(Light {
            watts: self.watts,
            key: self.key.clone(),
            count: self.runs,
            hidden: Withholding::Withheld,
        });
        Ok(())
    }
}

fn lamp(parameters: &[(&'static str, Value)]) -> Result<Instance, Vec<Invalid>> {
    Instance::new(&Lamp::SPEC, "desk", &Parameters::new(parameters.iter().cloned()))
}

fn handle() -> Handle {
    let committer = Arc::new(Committer::new());
    let nowhere = AbsolutePath::new("/nonexistent/setpoint").unwrap();
    let services = Services {
        program: "setpoint".to_owned(),
        version: "0".to_owned(),
        hostname: "here".to_owned(),
        debug: Arc::default(),
        writable: false,
        committer,
        verified: Arc::new(VerifiedFiles::new()),
        processes: Processes::new(""),
        users: Arc::new(Users::new()),
        graph: Arc::default(),
        extensions: Extensions::default(),
        busy: Busy::default(),
    };
    Handle::new(
        Arc::new(services),
        ResourceId::new("lamp", "desk"),
        Arc::new(nowhere),
    )
}

#[derive(Default)]
struct Listener {
    refuse: bool,
    asked: Mutex<u32>,
    heard: Mutex<Vec<Drift>>,
    said: Mutex<Vec<String>>,
}

impl Observer for Listener {
    fn before_first_repair(&self) -> Result<(), Failure> {
        *self.asked.lock().unwrap() += 1;
        if self.refuse {
            Err(Failure::new("store the notifications"))
        } else {
            Ok(())
        }
    }

    fn drift(&self, drift: &Drift) {
        self.heard.lock().unwrap().push(drift.clone());
    }

    fn log(&self, _: Option<&ResourceId>, _: crate::Level, message: &str) {
        self.said.lock().unwrap().push(message.to_owned());
    }
}

fn run(lamp: &mut Instance, repair: bool, listener: &Listener) -> Outcome {
    let (handle, cancellation) = (handle(), Cancellation::new());
    let mut apply = Apply::new(RunInput {
        handle: &handle,
        repair,
        undoes: false,
        refresh: &[],
        received: &[],
        members: &[],
        cancellation: &cancellation,
        observer: listener,
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(lamp.check_apply(&mut apply)).unwrap();
    apply.finish()
}

#[test]
fn what_is_not_set_has_its_default_and_returns_to_it() {
    let mut desk = lamp(&[]).unwrap();
    let get = |desk: &Instance, name: &str| desk.resource().get(name).unwrap().to_string();
    assert_eq!(get(&desk, "place"), "\"desk\"");
    assert_eq!(get(&desk, "watts"), "40");
    assert_eq!(get(&desk, "colour"), "\"white\"");
    assert_eq!(get(&desk, "labels"), "null");
    assert_eq!(desk.resource().downcast_ref::<Lamp>().unwrap().name, "desk");
    desk.set_parameter("watts", Some(&Value::Int(7))).unwrap();
    desk.set_parameter("place", Some(&Value::str("hall"))).unwrap();
    assert_eq!(
        (get(&desk, "watts"), get(&desk, "place")),
        ("7".to_owned(), "\"hall\"".to_owned())
    );
    desk.set_parameter("watts", None).unwrap();
    desk.set_parameter("place", None).unwrap();
    assert_eq!(
        (get(&desk, "watts"), get(&desk, "place")),
        ("40".to_owned(), "\"desk\"".to_owned())
    );
    let schema = Lamp::SPEC.schema;
    assert_eq!(schema.parameter("colour").unwrap().yaml_name, "color");
    assert_eq!(schema.parameter("colour").unwrap().default, "white");
    assert_eq!(schema.parameter("place").unwrap().default, "the resource's name");
    assert_eq!(schema.parameter("watts").unwrap().default, "40");
}

#[test]
fn everything_that_does_not_fit_is_reported_with_its_place() {
    let label = Type::structure([("text", Type::Str), ("size", Type::Int)]);
    let labels = Value::list(
        label.clone(),
        [Value::structure(label, vec![Value::str("a"), Value::Int(70_000)])],
    );
    let invalid = lamp(&[
        ("watts", Value::Int(300)),
        ("colour", Value::str(b"\xff".as_slice())),
        ("labels", labels),
        ("key", Value::Int(1).sensitive()),
    ])
    .unwrap_err();
    let shown: Vec<String> = invalid
        .iter()
        .map(|i| format!("{}: {}", i.parameter.unwrap(), i.message))
        .collect();
    assert_eq!(
        shown,
        [
            "watts: 300 does not fit 8 bits without a sign",
            "colour: must be valid UTF-8",
            "key: int is not str",
            "labels: at `[0].size`: 70000 does not fit 16 bits",
        ]
    );
}

#[test]
fn structs_come_and_go_whole() {
    let labels = vec![
        Label {
            text: "a".to_owned(),
            size: -3,
        },
        Label {
            text: String::new(),
            size: 0,
        },
    ];
    let encoded = labels.encode();
    assert_eq!(
        encoded.to_string(),
        r#"[struct{text: "a"; size: -3}, struct{text: ""; size: 0}]"#
    );
    assert_eq!(Vec::<Label>::decode(&encoded), Ok(labels));
}

#[test]
fn the_schema_checks_what_is_known_and_waits_for_the_rest() {
    let meta = MetaParameters::default();
    let dark = Parameters::new([("watts", Value::Int(0))]);
    assert_eq!(
        (Lamp::SCHEMA.check)("desk", &dark, &meta),
        [Invalid::parameter("watts", "a lamp gives light")]
    );
    let unknown = Parameters::new([("watts", Value::Int(0)), ("place", Value::unknown(Type::Str))]);
    assert_eq!(check::<Lamp>("desk", &unknown, &meta), []);
}

#[test]
fn sensitive_parameters_redact_their_fields_and_those_of_no_parameter() {
    let listener = Listener::default();
    let values =
        |outcome: &Outcome| -> Vec<String> { outcome.drifts.iter().map(ToString::to_string).collect() };
    let mut plain = lamp(&[]).unwrap();
    assert_eq!(values(&run(&mut plain, false, &listener))[3], "elsewhere: a → b");
    let mut secret = lamp(&[("key", Value::str("1234").sensitive())]).unwrap();
    let outcome = run(&mut secret, false, &listener);
    assert_eq!(
        values(&outcome),
        [
            "watts: 1 → 40",
            "key: (absent) → (sensitive)",
            "labels text: a → b",
            "elsewhere: (sensitive) → (sensitive)",
            "watts: (sensitive) → (sensitive)",
            "colour: a → (sensitive)",
        ]
    );
    assert!(!format!("{secret:?} {outcome:?}").contains("1234"));
    secret.set_parameter("key", Some(&Value::str("open"))).unwrap();
    // What was found may be remembered from when it was secret; what is wanted no longer is.
    assert_eq!(
        values(&run(&mut secret, false, &listener))[3],
        "elsewhere: (sensitive) → b"
    );
}

#[test]
fn what_a_resource_with_a_sensitive_parameter_sends_is_sensitive_but_for_what_cannot_reveal_it() {
    let mut plain = lamp(&[]).unwrap();
    let sent = run(&mut plain, false, &Listener::default()).sent.unwrap();
    assert!(!sent.get("watts").flatten().unwrap().is_sensitive());
    // Received, not written: the same.
    let colour = Value::str("black").sensitive();
    plain.set_parameter("colour", Some(&colour)).unwrap();
    let sent = run(&mut plain, false, &Listener::default()).sent.unwrap();
    assert!(sent.get("watts").flatten().unwrap().is_sensitive());
    assert!(!sent.get("count").flatten().unwrap().is_sensitive());
    assert_eq!(sent.get("hidden"), Some(None));
}

#[test]
fn what_a_kind_says_in_its_own_words_holds_no_sensitive_text() {
    let colour = Value::str("hunter7").sensitive();
    let mut lamp = lamp(&[("colour", colour)]).unwrap();
    let listener = Listener::default();
    run(&mut lamp, false, &listener);
    let said = listener.said.lock().unwrap().clone();
    assert_eq!(said, ["it is (sensitive)", "shown: (sensitive)"]);
    let mut invalid = Vec::new();
    lamp.set_parameter("watts", Some(&Value::Int(0))).unwrap();
    lamp.validate(&MetaParameters::default(), &mut invalid);
    assert!(!format!("{invalid:?}").contains("hunter7"), "{invalid:?}");
}

#[test]
fn what_is_sent_has_its_types_and_marks() {
    let outcome = run(&mut lamp(&[]).unwrap(), false, &Listener::default());
    let sent = outcome.sent.unwrap();
    assert_eq!(sent.get("watts"), Some(Some(&Value::Int(40))));
    assert_eq!(sent.get("key"), Some(Some(&Value::str(""))));
    assert_eq!(sent.get("hidden"), Some(None));
    assert_eq!(sent.get("nothing"), None);
    let keys: Vec<_> = Lamp::SCHEMA
        .sends
        .iter()
        .map(|key| (key.name, key.parameter_type.ty()))
        .collect();
    assert_eq!(
        keys,
        [
            ("watts", Type::Int),
            ("key", Type::Str),
            ("count", Type::Int),
            ("hidden", Type::Str)
        ]
    );
}

#[test]
fn the_first_repair_is_announced_once_and_can_be_refused() {
    let listener = Listener::default();
    let outcome = run(&mut lamp(&[]).unwrap(), true, &listener);
    assert!(outcome.drifts.iter().all(|drift| drift.repaired));
    assert_eq!(*listener.asked.lock().unwrap(), 1);
    assert_eq!(*listener.heard.lock().unwrap(), outcome.drifts);

    let refusing = Listener {
        refuse: true,
        ..Listener::default()
    };
    let outcome = run(&mut lamp(&[]).unwrap(), true, &refusing);
    assert!(outcome.drifts.iter().all(|drift| !drift.repaired));
    assert_eq!(outcome.refused.unwrap().chain(), "store the notifications");

    let checking = Listener::default();
    assert!(
        run(&mut lamp(&[]).unwrap(), false, &checking)
            .drifts
            .iter()
            .all(|drift| !drift.repaired)
    );
    assert_eq!(*checking.asked.lock().unwrap(), 0);
}

#[test]
fn busy_counts_its_guards() {
    let handle = handle();
    let (first, second) = (handle.busy(), handle.busy());
    drop(first);
    assert!(handle.services().busy.is_busy());
    drop(second);
    assert!(!handle.services().busy.is_busy());
}
