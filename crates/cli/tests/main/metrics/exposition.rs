//! A strict reader of what Prometheus is given: it refuses whatever the formats do not allow.

use std::collections::{BTreeMap, BTreeSet};

/// A form of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    OpenMetrics,
    Plain,
}

/// A figure in all its combinations of labels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Family {
    pub(super) sort: String,
    pub(super) help: String,
    /// By what stands before the value, labels sorted: `name{a="b"}`.
    pub(super) samples: BTreeMap<String, f64>,
    /// Names of labels, but for `le`.
    pub(super) labels: BTreeSet<String>,
}

/// What was exposed, by the names under which counters and gauges are asked for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exposed(pub(super) BTreeMap<String, Family>);

impl Exposed {
    /// The value of a series, which must be there.
    pub(super) fn value(&self, series: &str) -> f64 {
        let all = self.0.values();
        let found = all.filter_map(|family| family.samples.get(series)).next();
        *found.unwrap_or_else(|| panic!("there is no series {series}"))
    }

    /// The values of one label of a family.
    pub(super) fn values_of(&self, family: &str, label: &str) -> BTreeSet<String> {
        let samples = self.0[family].samples.keys();
        let all = samples.flat_map(|series| series_parts(series).1);
        all.filter(|(name, _)| name == label)
            .map(|(_, value)| value)
            .collect()
    }

    /// The sum of a family.
    pub(super) fn sum(&self, family: &str) -> f64 {
        self.0[family].samples.values().sum()
    }
}

/// Reads a text.
pub(super) fn read(text: &str, form: Form) -> Exposed {
    let body = match form {
        Form::OpenMetrics => text.strip_suffix("# EOF\n").expect("the text ends with its end"),
        Form::Plain => text,
    };
    assert!(body.ends_with('\n'), "the last line ends");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let (mut helped, mut current): (Option<(String, String)>, Option<String>) = (None, None);
    for line in body.split_terminator('\n') {
        assert!(!line.is_empty() && line.trim() == line, "`{line}`");
        if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(helped.is_none(), "one help a family: {line}");
            let (name, help) = rest.split_once(' ').expect("a help has a text");
            helped = Some((name.to_owned(), help.to_owned()));
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, sort) = rest.split_once(' ').expect("a type has a sort");
            let (helped, help) = helped.take().expect("the help comes first");
            assert_eq!(helped, name, "help and type are of one family");
            assert!(
                is_name(name) && ["counter", "gauge", "histogram"].contains(&sort),
                "{line}"
            );
            let asked = match (form, sort) {
                (Form::OpenMetrics, "counter") => {
                    assert!(!name.ends_with("_total"), "{line}");
                    format!("{name}_total")
                }
                (Form::Plain, "counter") => {
                    assert!(name.ends_with("_total"), "{line}");
                    name.to_owned()
                }
                _ => name.to_owned(),
            };
            let family = Family {
                sort: sort.to_owned(),
                help,
                samples: BTreeMap::new(),
                labels: BTreeSet::new(),
            };
            assert!(
                families.insert(asked.clone(), family).is_none(),
                "{asked} comes twice"
            );
            current = Some(asked);
        } else {
            assert!(!line.starts_with('#') && helped.is_none(), "{line}");
            let name = current.as_ref().expect("a sample is of a family");
            let family = families.get_mut(name).expect("it was just put there");
            take_sample(name, family, line);
        }
    }
    for (name, family) in &families {
        if family.sort == "histogram" {
            check_histogram(name, family);
        }
    }
    // OpenMetrics forbids that one family is named as a sample of another.
    let all: BTreeSet<&str> = families
        .keys()
        .map(|name| name.trim_end_matches("_total"))
        .collect();
    assert_eq!(all.len(), families.len(), "no two families share a name");
    Exposed(families)
}

fn take_sample(name: &str, family: &mut Family, line: &str) {
    let (series, value) = line.rsplit_once(' ').expect("a sample has a value");
    let value: f64 = value.parse().unwrap_or_else(|_| panic!("`{line}` has no number"));
    assert!(value.is_finite() && (value >= 0.0), "{line}");
    let (sample, labels) = series_parts(series);
    let ends: &[&str] = match &*family.sort {
        "histogram" => &["_bucket", "_sum", "_count"],
        _ => &[""],
    };
    assert!(
        ends.iter().any(|end| sample == format!("{name}{end}")),
        "{line} is not of {name}"
    );
    let names: BTreeSet<&String> = labels.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), labels.len(), "a label comes twice: {line}");
    assert_eq!(
        names.contains(&"le".to_owned()),
        sample.ends_with("_bucket"),
        "{line}"
    );
    let without_bounds: BTreeSet<String> = names
        .iter()
        .filter(|name| **name != "le")
        .map(|name| (*name).clone())
        .collect();
    if !family.samples.is_empty() {
        assert_eq!(
            without_bounds, family.labels,
            "all series have the same labels: {line}"
        );
    }
    family.labels = without_bounds;
    // The forms write a bound as 2 and as 2.0.
    let same = |name: &str, value: &str| match value.parse::<f64>() {
        Ok(bound) if name == "le" && bound.is_finite() => bound.to_string(),
        _ => value.to_owned(),
    };
    let mut sorted: Vec<String> = labels
        .iter()
        .map(|(name, value)| format!("{name}={:?}", same(name, value)))
        .collect();
    sorted.sort();
    let key = match sorted.is_empty() {
        true => sample,
        false => format!("{sample}{{{}}}", sorted.join(",")),
    };
    assert!(
        family.samples.insert(key, value).is_none(),
        "the series comes twice: {line}"
    );
}

/// The name and the labels of `name{a="b",c="d"}`.
fn series_parts(series: &str) -> (String, Vec<(String, String)>) {
    let Some((name, labels)) = series.split_once('{') else {
        assert!(is_name(series), "{series}");
        return (series.to_owned(), Vec::new());
    };
    assert!(is_name(name), "{series}");
    let mut rest = labels.strip_suffix('}').expect("labels end");
    let mut found = Vec::new();
    loop {
        let (label, after) = rest.split_once("=\"").expect("a label has a value in quotes");
        assert!(is_name(label) && !label.contains(':'), "{series}");
        // Values that need escapes would be names that somebody chose, of which there are none.
        let (value, after) = after.split_once('"').expect("the quotes end");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "_:.+-/".contains(c);
        assert!(value.chars().all(is_plain), "{series}");
        found.push((label.to_owned(), value.to_owned()));
        if after.is_empty() {
            return (name.to_owned(), found);
        }
        rest = after.strip_prefix(',').expect("a comma stands between labels");
    }
}

fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    text.starts_with(is_letter) && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// What tells the series of a family apart.
type Labels = Vec<(String, String)>;

/// Buckets rise with their bounds, and the last one, without a bound, holds all.
fn check_histogram(name: &str, family: &Family) {
    let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for (sample, value) in &family.samples {
        let (sample, mut labels) = series_parts(sample);
        if sample.ends_with("_bucket") {
            let at = labels
                .iter()
                .position(|(label, _)| label == "le")
                .expect("a bucket has a bound");
            let bound = labels.remove(at).1;
            let bound = if bound == "+Inf" {
                f64::INFINITY
            } else {
                bound.parse().expect("a bound is a number")
            };
            series.entry(labels).or_default().push((bound, *value));
        }
    }
    assert!(!series.is_empty(), "{name} has buckets");
    for (labels, mut buckets) in series {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(
            buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1),
            "{name} {labels:?}"
        );
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}={value:?}"))
            .collect();
        let count = family.samples[&format!("{name}_count{{{}}}", labels.join(","))];
        let last = buckets.last().expect("there are some");
        assert_eq!(*last, (f64::INFINITY, count), "{name} {labels:?}");
        assert!(
            family
                .samples
                .contains_key(&format!("{name}_sum{{{}}}", labels.join(",")))
        );
    }
}
