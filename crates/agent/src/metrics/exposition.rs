//! The figures as text: all of them, in one order, in the form that was asked for.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, prometheus_text, text};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use setpoint_engine::Engine;
use setpoint_engine::machine::{KindCounts, Standing, StandingCounts, Summary};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::counting::{Counting, KindCounting};
use super::families::{self, Family};
use super::process::ProcessFigures;
use super::store::{Operation, Requests, StoreMeter};
use crate::health::Health;
use crate::program_state::ProgramState;

/// How old an answer may be: whoever asks without end makes no more work than this.
const FRESH: Duration = Duration::from_millis(250);

/// How long the engine may take to say how things are. It takes long only when it is held up.
const ENGINE_WITHIN: Duration = Duration::from_secs(5);

/// A form of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    OpenMetrics,
    Plain,
}

impl Format {
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Plain => prometheus_text::CONTENT_TYPE,
        }
    }

    /// What a client accepts rather, as its header `Accept` says. Who accepts neither, or says nothing, gets plain text.
    pub(super) fn accepted(accept: &str) -> Format {
        let (mut open, mut plain) = (None, None);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let sort = parts.next().unwrap_or_default();
            let (mut quality, mut version) = (1.0, None);
            for (name, value) in parts.filter_map(|part| part.split_once('=')) {
                let value = value.trim().trim_matches('"');
                match name.trim() {
                    "q" => quality = value.parse().unwrap_or(0.0),
                    "version" => version = Some(value.to_owned()),
                    _ => {}
                }
            }
            let counted = match sort.to_ascii_lowercase().as_str() {
                "application/openmetrics-text"
                    if matches!(version.as_deref(), None | Some("1.0.0" | "0.0.1")) =>
                {
                    &mut open
                }
                "text/plain" if matches!(version.as_deref(), None | Some("0.0.4")) => &mut plain,
                "text/*" | "*/*" => &mut plain,
                _ => continue,
            };
            *counted = Some(counted.unwrap_or(0.0_f64).max(quality));
        }
        match open {
            Some(open) if open > 0.0 && open >= plain.unwrap_or(0.0) => Format::OpenMetrics,
            _ => Format::Plain,
        }
    }
}

/// Makes the text, for as many as ask.
pub(super) struct Exposition {
    counting: Arc<Counting>,
    store: Arc<StoreMeter>,
    engine: Engine,
    program: ProgramState,
    /// What was answered last. Held while it is made, so that it is made once for all who wait.
    last: Mutex<Option<Answered>>,
}

struct Answered {
    at: Instant,
    open_metrics: Bytes,
    plain: Bytes,
}

impl Answered {
    fn of(moment: Moment) -> Result<Answered, fmt::Error> {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(moment));
        let (mut open_metrics, mut plain) = (String::new(), String::new());
        text::encode(&mut open_metrics, &registry)?;
        prometheus_text::encode(&mut plain, &registry)?;
        Ok(Answered {
            at: Instant::now(),
            open_metrics: open_metrics.into(),
            plain: plain.into(),
        })
    }
}

impl Exposition {
    pub(super) fn new(
        counting: Arc<Counting>,
        store: Arc<StoreMeter>,
        engine: Engine,
        program: ProgramState,
    ) -> Exposition {
        Exposition {
            counting,
            store,
            engine,
            program,
            last: Mutex::default(),
        }
    }

    /// The text; none when the engine has ended, or says nothing.
    pub(super) async fn text(&self, format: Format) -> Option<Bytes> {
        let mut last = self.last.lock().await;
        if last.as_ref().is_none_or(|last| last.at.elapsed() >= FRESH) {
            let moment = timeout(ENGINE_WITHIN, self.moment()).await.ok()??;
            *last = Some(Answered::of(moment).ok()?);
        }
        let last = last.as_ref()?;
        let text = match format {
            Format::OpenMetrics => &last.open_metrics,
            Format::Plain => &last.plain,
        };
        Some(text.clone())
    }

    async fn moment(&self) -> Option<Moment> {
        Some(Moment {
            summary: self.engine.summary().await?,
            kinds: self.engine.kind_counts().await?,
            is_program_wrong: self.program.get().wrong.is_some(),
            process: ProcessFigures::read(),
            counting: self.counting.clone(),
            store: self.store.clone(),
        })
    }
}

/// How things are.
struct Moment {
    summary: Summary,
    kinds: KindCounts,
    is_program_wrong: bool,
    process: ProcessFigures,
    counting: Arc<Counting>,
    store: Arc<StoreMeter>,
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Moment")
    }
}

impl Collector for Moment {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Writer(encoder);
        let version = env!("CARGO_PKG_VERSION");
        to.one(&families::BUILD, [([("version", version)], gauge(true))])?;
        self.encode_machine(&mut to)?;
        self.encode_kinds(&mut to)?;
        self.encode_store(&mut to)?;
        self.encode_process(&mut to)
    }
}

impl Moment {
    /// How the machine stands as a whole.
    fn encode_machine(&self, to: &mut Writer<'_>) -> fmt::Result {
        let summary = &self.summary;
        let is_right = Health::of(summary.counts) == Health::Right && summary.generation.is_some();
        let started = summary.swapped.unwrap_or_default().as_secs_f64();
        to.alone(&families::RIGHT, Some(gauge(is_right)))?;
        to.alone(&families::CONVERGED, summary.converged.map(gauge))?;
        to.alone(&families::PAUSED, Some(gauge(summary.paused.is_some())))?;
        to.alone(&families::NOOP, Some(gauge(summary.noop)))?;
        to.alone(&families::PROGRAM_WRONG, Some(gauge(self.is_program_wrong)))?;
        to.alone(&families::GRAPH_START, Some(ConstGauge::new(started)))?;
        to.one(
            &families::GRAPHS,
            [
                ([("result", "taken")], self.counting.graphs_taken.clone()),
                ([("result", "rejected")], self.counting.graphs_rejected.clone()),
            ],
        )?;
        let standings = Standing::ALL.map(|standing| {
            let count = summary.counts.of(standing);
            ([("standing", standing_name(standing))], whole(count))
        });
        to.one(&families::STANDINGS, standings)
    }

    /// What is known by kind.
    fn encode_kinds(&self, to: &mut Writer<'_>) -> fmt::Result {
        let counting = &self.counting;
        let now = |kind: &str| self.kinds.get(kind).copied().unwrap_or_default();
        let resources = |kind: &'static str| ([("kind", kind)], whole(now(kind).all()));
        to.one(
            &families::RESOURCES,
            counting.kinds().map(|(kind, _)| resources(kind)),
        )?;
        let failing = |kind: &'static str| {
            let StandingCounts { failing, failed, .. } = now(kind);
            [("soft", failing), ("hard", failed)]
                .map(|(failure, count)| ([("kind", kind), ("failure", failure)], whole(count)))
        };
        to.one(
            &families::FAILING,
            counting.kinds().flat_map(|(kind, _)| failing(kind)),
        )?;
        let failures = |(kind, counting): (&'static str, &'_ KindCounting)| {
            [
                ("soft", &counting.soft_failures),
                ("hard", &counting.hard_failures),
            ]
            .map(|(failure, counter)| ([("kind", kind), ("failure", failure)], counter.clone()))
        };
        to.one(&families::FAILURES, counting.kinds().flat_map(failures))?;
        to.one(
            &families::RUNS,
            counting.kinds().flat_map(|(kind, counting)| runs(kind, counting)),
        )?;
        to.by_kind(&families::DURATIONS, counting, |kind| &kind.durations)?;
        to.by_kind(&families::DRIFTS, counting, |kind| &kind.drifts)?;
        to.by_kind(&families::REPAIRS, counting, |kind| &kind.repairs)?;
        to.by_kind(&families::REPAIRS_FAILED, counting, |kind| &kind.repairs_failed)?;
        to.by_kind(&families::CONFLICTS, counting, |kind| &kind.fights)?;
        to.by_kind(&families::SILENCES, counting, |kind| &kind.silences)
    }

    /// How the store answers.
    fn encode_store(&self, to: &mut Writer<'_>) -> fmt::Result {
        to.alone(&families::STORE_UP, self.store.is_up().map(gauge))?;
        let of =
            |(operation, name): (Operation, &'static str)| (name, &self.store.operations[operation as usize]);
        let requests = Operation::ALL.map(of);
        let results = |(operation, requests): (&'static str, &'_ Requests)| {
            let results = [
                ("answered", requests.answered.clone()),
                ("refused", requests.refused.clone()),
                ("away", requests.away.clone()),
            ];
            results.map(|(result, counter)| ([("operation", operation), ("result", result)], counter))
        };
        to.one(&families::STORE_REQUESTS, requests.into_iter().flat_map(results))?;
        let durations =
            requests.map(|(operation, requests)| ([("operation", operation)], requests.durations.clone()));
        to.one(&families::STORE_DURATIONS, durations)
    }

    /// What the process takes.
    fn encode_process(&self, to: &mut Writer<'_>) -> fmt::Result {
        let process = &self.process;
        to.alone(&families::CPU, process.cpu.map(ConstCounter::new))?;
        to.alone(&families::RESIDENT, process.resident.map(ConstGauge::new))?;
        to.alone(&families::VIRTUAL, process.address_space.map(ConstGauge::new))?;
        to.alone(
            &families::OPEN_DESCRIPTORS,
            process.open_descriptors.map(ConstGauge::new),
        )?;
        to.alone(
            &families::MOST_DESCRIPTORS,
            process.most_descriptors.map(ConstGauge::new),
        )?;
        to.alone(&families::THREADS, process.threads.map(ConstGauge::new))?;
        to.alone(&families::STARTED, process.started.map(ConstGauge::new))
    }
}

/// The runs of a kind, for each combination of what they are told apart by.
fn runs(
    kind: &'static str,
    counting: &KindCounting,
) -> impl Iterator<Item = ([(&'static str, &'static str); 4], Counter)> {
    let word = |is: usize| if is == 0 { "false" } else { "true" };
    (0..8).map(move |number| {
        let (apply, eventful, errorful) = (number >> 2, (number >> 1) & 1, number & 1);
        let labels = [
            ("kind", kind),
            ("apply", word(apply)),
            ("eventful", word(eventful)),
            ("errorful", word(errorful)),
        ];
        (labels, counting.runs[apply][eventful][errorful].clone())
    })
}

fn gauge(is: bool) -> ConstGauge<u64> {
    ConstGauge::new(is.into())
}

fn whole(count: usize) -> ConstGauge<u64> {
    ConstGauge::new(count as u64)
}

/// As `setpoint status --json` calls it.
fn standing_name(standing: Standing) -> &'static str {
    match standing {
        Standing::Finishing => "finishing",
        Standing::Failed => "failed",
        Standing::Unresponsive => "unresponsive",
        Standing::Blocked => "blocked",
        Standing::Failing => "failing",
        Standing::WaitingForHost => "waiting_for_host",
        Standing::Conflict => "conflict",
        Standing::WouldChange => "would_change",
        Standing::Right => "right",
        Standing::Running => "running",
        Standing::Waiting => "waiting",
        Standing::Starting => "starting",
    }
}

/// Where families are written, each once.
struct Writer<'a>(DescriptorEncoder<'a>);

impl Writer<'_> {
    /// A family with labels.
    fn one<const N: usize>(
        &mut self,
        family: &Family,
        figures: impl IntoIterator<Item = ([(&'static str, &'static str); N], impl EncodeMetric)>,
    ) -> fmt::Result {
        let mut to = self
            .0
            .encode_descriptor(family.name, family.help, None, family.sort)?;
        for (labels, figure) in figures {
            figure.encode(to.encode_family(&labels)?)?;
        }
        Ok(())
    }

    /// A family without labels. What is not known is left out.
    fn alone(&mut self, family: &Family, figure: Option<impl EncodeMetric>) -> fmt::Result {
        let to = self
            .0
            .encode_descriptor(family.name, family.help, None, family.sort)?;
        figure.map_or(Ok(()), |figure| figure.encode(to))
    }

    /// A family of a figure for each kind.
    fn by_kind<'c, M: EncodeMetric + 'c>(
        &mut self,
        family: &Family,
        counting: &'c Counting,
        figure: impl Fn(&'c KindCounting) -> &'c M,
    ) -> fmt::Result {
        let mut to = self
            .0
            .encode_descriptor(family.name, family.help, None, family.sort)?;
        for (kind, counting) in counting.kinds() {
            figure(counting).encode(to.encode_family(&[("kind", kind)])?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_accepts_both_gets_what_it_prefers_and_who_says_nothing_plain_text() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,\
                          text/plain;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for accept in [
            prometheus,
            "application/openmetrics-text",
            "Application/OpenMetrics-Text; version=\"1.0.0\"; charset=utf-8",
            "text/plain;q=0.5, application/openmetrics-text",
        ] {
            assert_eq!(Format::accepted(accept), Format::OpenMetrics, "{accept}");
        }
        for accept in [
            "",
            "*/*",
            "text/html, */*",
            "application/json",
            "application/openmetrics-text;q=0",
            "application/openmetrics-text;q=x",
            "application/openmetrics-text;version=2.0.0",
            "text/plain, application/openmetrics-text;q=0.5",
            ";;;,=,q=",
        ] {
            assert_eq!(Format::accepted(accept), Format::Plain, "{accept}");
        }
    }
}
