//! Desired graphs, written down in few words.

use std::collections::BTreeMap;
use std::sync::Arc;

use setpoint_diagnostics::{FileId, Span};
use setpoint_graph::{
    DesiredEdge, DesiredGraph, DesiredMembers, DesiredResource, KindSchema, MetaParameters, ParameterSchema,
    ParameterType, Parameters, ResourceId, Secrecy, SendKey,
};
use setpoint_value::Value;

static TEXT: ParameterType = ParameterType::Str;

const PLAIN: KindSchema = KindSchema {
    kind: "thing",
    doc: "A thing.",
    parameters: &[ParameterSchema {
        name: "content",
        yaml_name: "content",
        parameter_type: &TEXT,
        form: None,
        doc: "What is in it.",
        default: "",
    }],
    sends: &[SendKey {
        name: "out",
        parameter_type: &TEXT,
        doc: "What it sends.",
        secrecy: Secrecy::WithParameters,
    }],
    receives: true,
    ..KindSchema::plain("", "", &[])
};

static THING: KindSchema = KindSchema {
    reversible: true,
    ..PLAIN
};
static SVC: KindSchema = KindSchema {
    kind: "svc",
    refreshable: true,
    ..PLAIN
};
static PORT: KindSchema = KindSchema {
    kind: "port:server",
    exclusive: true,
    ..PLAIN
};
static DEED: KindSchema = KindSchema {
    kind: "deed",
    action: true,
    ..PLAIN
};

/// `a` is `thing[a]`; other kinds are written out.
pub(crate) fn id(text: &str) -> ResourceId {
    match text.split_once('[') {
        Some((kind, name)) => ResourceId::new(kind, name.trim_end_matches(']')),
        None => ResourceId::new("thing", text),
    }
}

pub(crate) fn short(id: &ResourceId) -> String {
    if &*id.kind == "thing" {
        id.name.to_string()
    } else {
        id.to_string()
    }
}

pub(crate) fn text(value: &Value) -> Option<String> {
    Some(value.as_str()?.as_str()?.to_owned())
}

/// What undoes a resource, as a record gives it.
pub(crate) fn reversal(name: &str) -> Arc<DesiredResource> {
    let graph = Graph::default().with(name, |meta| meta.is_reversal = true);
    graph.desired.resources[&id(name)].clone()
}

/// A desired graph that is being written down.
#[derive(Clone, Default)]
pub(crate) struct Graph {
    pub(crate) desired: DesiredGraph,
}

impl Graph {
    pub(crate) fn new(ids: &[&str]) -> Graph {
        let mut graph = Graph::default();
        for id in ids {
            graph = graph.with(id, |_| {});
        }
        graph
    }

    pub(crate) fn with(self, text: &str, change: impl FnOnce(&mut MetaParameters)) -> Graph {
        self.with_content(text, "", change)
    }

    pub(crate) fn with_content(
        mut self,
        text: &str,
        content: &str,
        change: impl FnOnce(&mut MetaParameters),
    ) -> Graph {
        let id = id(text);
        let schema = match &*id.kind {
            "svc" => &SVC,
            "port:server" => &PORT,
            "deed" => &DEED,
            _ => &THING,
        };
        let mut meta = MetaParameters::default();
        change(&mut meta);
        let entries = (!content.is_empty()).then(|| ("content", Value::str(content)));
        let hidden = meta.hidden;
        let resource = Arc::new(DesiredResource {
            id: id.clone(),
            schema,
            parameters: Parameters::new(entries),
            meta: meta.into(),
            span: Span::new(FileId(0), 0, 0),
            parameter_spans: Arc::new([]),
            chain: None,
            members: DesiredMembers::default(),
        });
        if hidden {
            let mut list = self.desired.hidden.get(&id).cloned().unwrap_or_default();
            list.push(resource);
            self.desired.hidden.insert(id, list);
        } else {
            self.desired.resources.insert(id, resource);
        }
        self
    }

    pub(crate) fn without(mut self, text: &str) -> Graph {
        let id = id(text);
        self.desired.resources.remove(&id);
        self.desired.hidden.remove(&id);
        let keys: Vec<_> = self.desired.edges.keys().cloned().collect();
        for key in keys {
            if key.0 == id || key.1 == id {
                self.desired.edges.remove(&key);
            }
        }
        self
    }

    /// `a -> b -> c`, or with `=>` an edge that notifies.
    pub(crate) fn edges(mut self, text: &str) -> Graph {
        let words: Vec<&str> = text.split_whitespace().collect();
        for triple in words.windows(3).step_by(2) {
            let (from, to) = (id(triple[0]), id(triple[2]));
            self = self.edge(DesiredEdge {
                from,
                to,
                notify: triple[1] == "=>",
                send: Vec::new(),
                span: Span::new(FileId(0), 0, 0),
                parts: None,
            });
        }
        self
    }

    pub(crate) fn edge(mut self, edge: DesiredEdge) -> Graph {
        let key = (edge.from.clone(), edge.to.clone());
        self.desired.edges.insert(key, Arc::new(edge));
        self
    }

    /// `from.out -> to.content`.
    pub(crate) fn sends(self, from: &str, to: &str) -> Graph {
        self.edge(DesiredEdge {
            from: id(from),
            to: id(to),
            notify: false,
            send: vec![("out".into(), "content".into())],
            span: Span::new(FileId(0), 0, 0),
            parts: None,
        })
    }

    /// `parent` with these as parts of it, and all edges of them at it.
    pub(crate) fn group(mut self, parent: &str, members: &[&str]) -> Graph {
        let parent = id(parent);
        let members: Vec<ResourceId> = members.iter().map(|member| id(member)).collect();
        let resources = &mut self.desired.resources;
        let taken = members.iter().map(|member| resources.remove(member).unwrap());
        let taken = DesiredMembers::new(taken.collect::<Vec<_>>());
        let before = resources.get(&parent).unwrap();
        let before = (**before).clone();
        let members_before = before.members.direct().to_vec();
        let taken = DesiredMembers::new(members_before.into_iter().chain(taken.direct().to_vec()));
        let group = DesiredResource {
            members: taken,
            ..before
        };
        resources.insert(parent.clone(), Arc::new(group));
        let root = |end: &ResourceId| match members.contains(end) {
            true => parent.clone(),
            false => end.clone(),
        };
        let mut moved: BTreeMap<_, Vec<Arc<DesiredEdge>>> = BTreeMap::new();
        for ((from, to), edge) in &self.desired.edges {
            moved
                .entry((root(from), root(to)))
                .or_default()
                .push(edge.clone());
        }
        self.desired.edges.clear();
        for ((from, to), edges) in moved {
            let is_own = |edge: &&Arc<DesiredEdge>| edge.from == from && edge.to == to;
            let own = edges.iter().find(is_own);
            let parts = edges.iter().flat_map(|edge| match is_own(&edge) {
                true => edge.parts().to_vec(),
                false if edge.parts().is_empty() => vec![edge.clone()],
                false => edge.parts().to_vec(),
            });
            let mut parts: Vec<Arc<DesiredEdge>> = parts.collect();
            parts.sort_by(|a, b| (&a.from, &a.to).cmp(&(&b.from, &b.to)));
            let edge = DesiredEdge {
                from: from.clone(),
                to: to.clone(),
                notify: edges.iter().any(|edge| edge.notify),
                send: own.map(|own| own.send.clone()).unwrap_or_default(),
                span: Span::new(FileId(0), 0, 0),
                parts: (!parts.is_empty()).then(|| parts.into()),
            };
            self.desired.edges.insert((from, to), Arc::new(edge));
        }
        self
    }

    pub(crate) fn without_edge(mut self, from: &str, to: &str) -> Graph {
        self.desired.edges.remove(&(id(from), id(to)));
        self
    }
}
