//! The trace of a path: a file in Mahimahi's format, or in the scenario itself.

use core::num::NonZeroU64;
use std::borrow::Cow;
use std::fs;
use std::path::Path as FilePath;
use std::sync::Arc;

use anabranch_net::units::Rate;
use anabranch_net::{Capacity, Moment, Trace};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use anabranch_config::written::Problem;

/// The trace of a link: the name of a trace file, or the trace itself. A parsed scenario contains
/// the trace, so it can be run again without other files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceSource {
    /// A file, relative to the scenario's folder.
    File(String),
    /// The trace.
    Content(Arc<Trace>),
}

/// A packet-delivery trace in the scenario itself, instead of a file name. Normalised scenarios use
/// this form.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename = "Trace")]
struct TraceTable {
    /// Times of the delivery opportunities in milliseconds, separated by spaces. `7*3` means three
    /// opportunities at 7 ms. The trace repeats; its last time is the period.
    milliseconds: String,
}

/// The capacity from `rate` or `trace`, if either is given.
pub(super) fn capacity(rate: Option<Rate>, trace: Option<&TraceSource>) -> Option<Capacity> {
    match trace {
        Some(TraceSource::Content(trace)) => Some(Capacity::Trace(trace.clone())),
        _ => rate.map(Capacity::Rate),
    }
}

/// Read the trace if it is a file in `folder`, and check that there is no `rate` as well.
pub(super) fn complete(
    rate: Option<Rate>,
    trace: &mut Option<TraceSource>,
    folder: &FilePath,
) -> Result<(), Problem> {
    let Some(source) = trace else { return Ok(()) };
    if rate.is_some() {
        let problem = "conflicts with rate; remove one of the two";
        return Err(Problem::new("trace", problem));
    }
    if let TraceSource::File(name) = source {
        let read = read(&folder.join(name)).map_err(|text| Problem::new("trace", text))?;
        *source = TraceSource::Content(Arc::new(read));
    }
    Ok(())
}

fn read(file: &FilePath) -> Result<Trace, String> {
    let text = fs::read_to_string(file).map_err(|error| {
        let reason = error.to_string();
        let reason = reason.split(" (os error").next().unwrap_or_default().to_lowercase();
        let file = file.display().to_string();
        format!("{file:?}: {reason}; name a Mahimahi trace, relative to the scenario's folder")
    })?;
    Trace::parse(&text).map_err(|error| format!("{}: {error}", file.display()))
}

fn parse(milliseconds: &str) -> Result<Trace, String> {
    let moments = milliseconds.split_ascii_whitespace().map(|word| {
        moment(word).ok_or_else(|| format!("{word:?}: write times such as \"0 3 7*2\""))
    });
    Trace::new(moments.collect::<Result<_, _>>()?).map_err(|error| error.to_string())
}

/// `7*3` or `7`.
fn moment(word: &str) -> Option<Moment> {
    let (millis, opportunities) = word.split_once('*').unwrap_or((word, "1"));
    let opportunities = opportunities.parse::<NonZeroU64>().ok()?;
    Some(Moment { millis: millis.parse().ok()?, opportunities })
}

fn content(trace: &Trace) -> String {
    let words = trace.moments().iter().map(|moment| match moment.opportunities.get() {
        1 => moment.millis.to_string(),
        several => format!("{}*{several}", moment.millis),
    });
    words.collect::<Vec<_>>().join(" ")
}

impl Serialize for TraceSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            TraceSource::File(name) => serializer.serialize_str(name),
            TraceSource::Content(trace) => {
                TraceTable { milliseconds: content(trace) }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for TraceSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = TraceSource;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the name of a file such as \"lte.trace\", or a table with milliseconds")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<TraceSource, E> {
        Ok(TraceSource::File(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TraceSource, A::Error> {
        let TraceTable { milliseconds } = TraceTable::deserialize(MapAccessDeserializer::new(map))?;
        let trace = parse(&milliseconds);
        let trace = trace.map_err(|text| Problem::new("milliseconds", text).raise())?;
        Ok(TraceSource::Content(Arc::new(trace)))
    }
}

impl JsonSchema for TraceSource {
    fn schema_name() -> Cow<'static, str> {
        "TraceValue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<TraceTable>();
        json_schema!({ "anyOf": [{ "type": "string" }, table] })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::read as scenario_of;
    use super::super::{Scenario, ScenarioError};
    use super::*;

    const TRACED: &str = r#"
name = "traced"
duration = "1s"
[[path]]
name = "lte"
trace = "up and down.trace"
delay = "10ms"
limit = "100ms"
[path.reverse]
rate = "1Mbit/s"
[[connection]]
workload = { kind = "bulk" }
"#;

    /// A folder for each test. Each test has its own thread.
    fn folder() -> std::path::PathBuf {
        let thread = std::thread::current().id();
        std::env::temp_dir().join(format!("anabranch-trace-{}-{thread:?}", std::process::id()))
    }

    /// [`TRACED`] with a change, next to a trace file with this content.
    fn with_trace_file(file: &str, from: &str, to: &str) -> Result<Scenario, ScenarioError> {
        assert!(TRACED.contains(from), "{from}");
        let folder = folder();
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("up and down.trace"), file).unwrap();
        let scenario = Scenario::from_toml_in(&TRACED.replacen(from, to, 1), "lte.toml", &folder);
        fs::remove_dir_all(&folder).unwrap();
        scenario
    }

    fn error(file: &str, from: &str, to: &str) -> String {
        let error = with_trace_file(file, from, to).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1);
        error.replace(&folder().display().to_string(), "FOLDER")
    }

    #[test]
    fn a_trace_file_enters_the_normalised_form_whole() {
        let scenario = with_trace_file("0\n3\n3\n9\n", "", "").unwrap();
        let trace = Trace::parse("0\n3\n3\n9\n").unwrap();
        assert_eq!(scenario.paths[0].forward_link().capacity, Capacity::Trace(Arc::new(trace)));
        assert_eq!(
            scenario.paths[0].reverse_link().capacity,
            Capacity::Rate(Rate::from_bits_per_second(1_000_000))
        );
        let written = scenario.to_toml();
        assert!(written.contains("[path.trace]\nmilliseconds = \"0 3*2 9\"\n"), "{written}");
        assert_eq!(scenario_of(&written), scenario);
    }

    #[test]
    fn the_reverse_direction_follows_the_same_trace_unless_it_says_otherwise() {
        let scenario = with_trace_file("1\n", "[path.reverse]\nrate = \"1Mbit/s\"\n", "").unwrap();
        assert_eq!(
            scenario.paths[0].reverse_link().capacity,
            scenario.paths[0].forward_link().capacity
        );
        let inline = "trace = { milliseconds = \"5\" }";
        let scenario = with_trace_file("1\n", "rate = \"1Mbit/s\"", inline).unwrap();
        let trace = Trace::parse("5\n").unwrap();
        assert_eq!(scenario.paths[0].reverse_link().capacity, Capacity::Trace(Arc::new(trace)));
    }

    #[test]
    fn what_is_wrong_with_a_trace_is_said_with_file_line_and_value() {
        assert_eq!(
            error("1\nx\n", "", ""),
            "lte.toml: path[0].trace: FOLDER/up and down.trace: line 2: \"x\" is not a whole number of milliseconds"
        );
        assert_eq!(
            error("1\n", "up and down", "missing"),
            "lte.toml: path[0].trace: \"FOLDER/missing.trace\": no such file or directory; name a Mahimahi trace, relative to the scenario's folder"
        );
        assert_eq!(
            error("1\n", "\"up and down.trace\"", "{ milliseconds = \"1 2x\" }"),
            "lte.toml: path[0].trace.milliseconds: \"2x\": write times such as \"0 3 7*2\""
        );
        assert_eq!(
            error("1\n", "\"up and down.trace\"", "{ milliseconds = \"4 2\" }"),
            "lte.toml: path[0].trace.milliseconds: 2 follows 4; the times of a trace increase"
        );
        assert_eq!(
            error("1\n", "\"up and down.trace\"", "3"),
            "lte.toml: path[0].trace: found integer `3`, expected the name of a file such as \"lte.trace\", or a table with milliseconds"
        );
    }

    #[test]
    fn a_link_has_a_rate_or_a_trace() {
        assert_eq!(
            error("1\n", "trace =", "rate = \"1Mbit/s\"\ntrace ="),
            "lte.toml: path[0].trace: conflicts with rate; remove one of the two"
        );
        assert_eq!(
            error("1\n", "rate = \"1Mbit/s\"", "rate = \"1Mbit/s\"\ntrace = \"a\""),
            "lte.toml: path[0].reverse.trace: conflicts with rate; remove one of the two"
        );
        assert_eq!(
            error("1\n", "trace = \"up and down.trace\"\n", ""),
            "lte.toml: path[0].rate: missing; write a rate such as \"8Mbit/s\", or a trace"
        );
        let change = |applies_to: &str| {
            format!("[[path.change]]\nat = \"1s\"\nrate = \"1Mbit/s\"\n{applies_to}[[connection]]")
        };
        assert_eq!(
            error("1\n", "[[connection]]", &change("")),
            "lte.toml: path[0].change[0].rate: the forward direction follows a trace; remove the rate, or write applies_to = \"reverse\""
        );
        assert!(
            with_trace_file("1\n", "[[connection]]", &change("applies_to = \"reverse\"\n")).is_ok()
        );
    }
}
