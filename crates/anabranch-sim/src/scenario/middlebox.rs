//! Middleboxes of a path: a table with a kind, and the keys of that kind.

use std::borrow::Cow;

use anabranch_net::middlebox::{self, Factory, MiddleboxEntry, Site};
use anabranch_net::units::format_duration;
use anabranch_wire::Duration;
use anabranch_wire::entry::{Kind, Parameter, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

use super::entry_schema;
use super::selected::{Catalog, KIND, Selected, serialize_in_order, take};
use super::value::write;
use crate::written::Problem;

impl Catalog for Factory {
    const NOUN: &'static str = "kind";
    const ALL: &'static [MiddleboxEntry] = middlebox::ALL;
}

/// The parameters that every middlebox has.
const PLACE: [Parameter; 2] = [
    Parameter {
        name: "from",
        meaning: "Time at which the middlebox appears",
        kind: Kind::Time { zero: true },
        default: Value::Time(Duration::ZERO),
        origin: "from the start",
        only_with: None,
    },
    Parameter {
        name: "until",
        meaning: "Time at which the middlebox disappears; by default it stays",
        kind: Kind::Time { zero: true },
        default: Value::Unset,
        origin: "to the end",
        only_with: None,
    },
];

/// Most middleboxes on a path. Each NAT needs an address, which limits their number.
const MAX_MIDDLEBOXES: usize = 8;

/// A middlebox of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Middlebox {
    /// The kind of middlebox, with its parameters.
    pub selected: Selected<Factory>,
    /// Time at which the middlebox appears. Earlier packets bypass it.
    pub from: Duration,
    /// Time at which the middlebox disappears, later than `from`; `None` if it stays.
    pub until: Option<Duration>,
}

impl Middlebox {
    /// The middlebox as the network uses it.
    pub fn build(&self, site: Site) -> Box<dyn middlebox::Middlebox> {
        (self.selected.entry.make)(&self.selected.values, site)
    }

    fn from_table(mut written: Table) -> Result<Self, Problem> {
        let place = take(&PLACE, &mut written);
        let [from, until] = PLACE.map(|parameter| parameter.name);
        let selected = Selected::from_table(written, &[KIND, from, until])?;
        let place = place?;
        let (from, until) = (place.time(from), place.optional_time(until));
        if let Some(until) = until.filter(|until| *until <= from) {
            let (until, from) = (format_duration(until), format_duration(from));
            let problem = format!("{until:?}: must be later than from, {from:?}");
            return Err(Problem::new("until", problem));
        }
        Ok(Middlebox { selected, from, until })
    }
}

/// The middleboxes of a path.
pub(super) fn boxes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Middlebox>, D::Error> {
    let boxes = Vec::deserialize(deserializer)?;
    if boxes.len() > MAX_MIDDLEBOXES {
        let problem = format!("{}: write at most {MAX_MIDDLEBOXES}", boxes.len());
        return Err(Problem::new("", problem).raise());
    }
    Ok(boxes)
}

impl Serialize for Middlebox {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let place = [Value::Time(self.from), self.until.map_or(Value::Unset, Value::Time)];
        let place = PLACE.iter().zip(place);
        let place = place
            .filter_map(|(parameter, value)| Some((parameter.name.to_owned(), write(&value)?)));
        serialize_in_order(&self.selected, place, serializer)
    }
}

impl<'de> Deserialize<'de> for Middlebox {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Middlebox::from_table(Table::deserialize(deserializer)?).map_err(Problem::raise)
    }
}

impl JsonSchema for Middlebox {
    fn schema_name() -> Cow<'static, str> {
        "Middlebox".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let description = "A middlebox between a path's link and the server. The middleboxes of a \
            path stand in the order of the list, with the first next to the link. Packets of paths \
            that go via this path pass them too.";
        let mut schema = entry_schema::table(description, middlebox::ALL, &PLACE, generator);
        schema.insert("required".to_owned(), [KIND].as_slice().into());
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scenario;
    use super::super::tests::read;
    use super::*;

    /// A scenario with these middleboxes.
    fn text(boxes: &str) -> String {
        format!(
            "name = \"a\"\nduration = \"1s\"\n\
             [[path]]\nname = \"p\"\nrate = \"8Mbit/s\"\ndelay = \"1ms\"\nlimit = \"infinite\"\n\
             [[path.middlebox]]\n{boxes}\n\
             [[connection]]\nworkload = {{ kind = \"bulk\" }}\n"
        )
    }

    fn boxes(boxes: &str) -> Vec<Middlebox> {
        let scenario = read(&text(boxes));
        assert_eq!(read(&scenario.to_toml()), scenario);
        scenario.paths[0].middleboxes.clone()
    }

    fn error(boxes: &str) -> String {
        let error = Scenario::from_toml(&text(boxes), "a.toml").unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1);
        error.strip_prefix("a.toml: path[0].middlebox").expect(&error).to_owned()
    }

    /// A middlebox that is always present, with these values, and defaults for the others.
    fn always(kind: &str, set: &[(&str, Value)]) -> Middlebox {
        let entry = Selected::named(kind).unwrap();
        let mut selected = Selected::new(entry);
        set.iter().for_each(|(name, value)| selected.values.set(name, value.clone()));
        Middlebox { selected, from: Duration::ZERO, until: None }
    }

    fn choices(names: &'static [&'static str]) -> Value {
        Value::Choices(names.into())
    }

    #[test]
    fn every_kind_needs_nothing_but_what_has_no_default() {
        for entry in middlebox::ALL {
            let written = format!("kind = {:?}", entry.name);
            if entry.name == "rewrite_payload" {
                let change = [("change", Value::Choice("insert"))];
                let found = boxes(&format!("{written}\nchange = \"insert\""));
                assert_eq!(found, [always(entry.name, &change)]);
            } else {
                assert_eq!(boxes(&written), [always(entry.name, &[])]);
            }
        }
    }

    #[test]
    fn all_keys_are_read_and_boxes_keep_their_order() {
        let found = boxes(
            "kind = \"strip_options\"\noptions = [\"mp_join\", \"dss\"]\nsegments = [\"data\"]\n\
             after_packets = 20\napplies_to = \"reverse\"\nfrom = \"1s\"\nuntil = \"2s\"\n\
             [[path.middlebox]]\nkind = \"nat\"\nidle_timeout = \"30s\"\nrebind_at = \"5s\"\n\
             [[path.middlebox]]\nkind = \"rewrite_payload\"\nchange = \"remove\"\nbytes = 7\n\
             at = \"20kB\"\napplies_to = \"forward\"\n\
             [[path.middlebox]]\nkind = \"split_segments\"\nsize = \"100B\"\noptions_on = \"first\"\n\
             [[path.middlebox]]\nkind = \"shrink_window\"\nfor = \"1s\"\nrefuse = true\n\
             [[path.middlebox]]\nkind = \"bare_segments\"\nprobability = \"2%\"",
        );
        let expected = [
            Middlebox {
                from: Duration::from_secs(1),
                until: Some(Duration::from_secs(2)),
                ..always(
                    "strip_options",
                    &[
                        ("options", choices(&["mp_join", "dss"])),
                        ("segments", choices(&["data"])),
                        ("after_packets", Value::Count(20)),
                        ("applies_to", Value::Choice("reverse")),
                    ],
                )
            },
            always(
                "nat",
                &[
                    ("idle_timeout", Value::Time(Duration::from_secs(30))),
                    ("rebind_at", Value::Time(Duration::from_secs(5))),
                ],
            ),
            always(
                "rewrite_payload",
                &[
                    ("change", Value::Choice("remove")),
                    ("bytes", Value::Count(7)),
                    ("at", Value::Bytes(20_000)),
                    ("applies_to", Value::Choice("forward")),
                ],
            ),
            always(
                "split_segments",
                &[("size", Value::Bytes(100)), ("options_on", Value::Choice("first"))],
            ),
            always(
                "shrink_window",
                &[("for", Value::Time(Duration::from_secs(1))), ("refuse", Value::Flag(true))],
            ),
            always("bare_segments", &[("probability", Value::Probability(20_000_000))]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_normalised_form_has_the_keys_in_their_order() {
        let written = "kind = \"rewrite_payload\"\nchange = \"insert\"\nuntil = \"2s\"";
        let normalised = read(&text(written)).to_toml();
        let expected = "[[path.middlebox]]\nkind = \"rewrite_payload\"\nfrom = \"0s\"\nuntil = \"2s\"\n\
             applies_to = \"both\"\nchange = \"insert\"\nbytes = 4\nat = \"0B\"\n\n";
        assert!(normalised.contains(expected), "{normalised}");
    }

    #[test]
    fn the_schema_tells_whose_a_key_is() {
        let schema: serde_json::Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
        let properties = &schema["$defs"]["Middlebox"]["properties"];
        let kinds = properties["kind"]["oneOf"].as_array().unwrap();
        assert_eq!(kinds.len(), middlebox::ALL.len());
        assert_eq!(
            properties["size"]["description"],
            "`split_segments` only: maximum payload of each piece; by default `\"536B\"`. \
             `coalesce` only: maximum payload of a merged segment; by default `\"2920B\"`."
        );
        assert_eq!(properties["size"]["$ref"], "#/$defs/Size");
        assert_eq!(properties["syns"]["enum"], serde_json::json!(["mptcp", "mp_join", "all"]));
    }

    #[test]
    fn boxes_that_make_no_sense() {
        let names: Vec<_> = middlebox::ALL.iter().map(|entry| entry.name).collect();
        let unknown = "unknown kind \"strip_option\"; did you mean \"strip_options\"?";
        assert_eq!(
            error("kind = \"strip_option\""),
            format!("[0].kind: {unknown} (valid: {})", names.join(", "))
        );
        assert_eq!(
            error("kind = \"strip_options\"\noptions = [\"dss\", \"mp_jion\"]"),
            "[0].options[1]: unknown option \"mp_jion\"; did you mean \"mp_join\"? (valid: mptcp, \
             unknown, mp_capable, mp_join, dss, add_addr, remove_addr, mp_prio, mp_fail, \
             mp_fastclose, mp_tcprst)"
        );
        assert_eq!(
            error("kind = \"strip_options\"\nsegments = []"),
            "[0].segments: []: name at least one, or remove this key"
        );
        assert_eq!(
            error("kind = \"rewrite_payload\""),
            "[0].change: missing; write replace, insert or remove"
        );
        assert_eq!(
            error("kind = \"rewrite_payload\"\nchange = \"insert\"\nbytes = 1001"),
            "[0].bytes: 1001: must be between 1 and 1000"
        );
        assert_eq!(
            error("kind = \"nat\"\nsize = \"1kB\""),
            "[0].size: belongs to kind = \"split_segments\" and kind = \"coalesce\"; remove it, or write \
             one of these kinds"
        );
        assert_eq!(
            error("kind = \"coalesce\"\nsize = \"66kB\""),
            "[0].size: \"66kB\": must be at most 65535B"
        );
        assert_eq!(
            error("kind = \"proactive_ack\"\nwindow = \"0B\""),
            "[0].window: \"0B\": must be at least one byte"
        );
        assert_eq!(
            error("kind = \"shrink_window\"\nfor = \"0s\""),
            "[0].for: \"0s\": must be longer than zero"
        );
        assert_eq!(
            error("kind = \"nat\"\nfrom = \"2s\"\nuntil = \"2s\""),
            "[0].until: \"2s\": must be later than from, \"2s\""
        );
        assert_eq!(
            error("kind = \"nat\"\nidle = \"2s\""),
            "[0].idle: unknown key; did you mean \"idle_timeout\"?"
        );
        assert_eq!(
            error("kind = \"nat\"\noptoins = []"),
            "[0].optoins: unknown key; did you mean \"options\"?"
        );
        assert_eq!(
            error("kind = \"nat\"\nquick = true"),
            "[0].quick: unknown key (valid: kind, from, until, idle_timeout, rebind_at)"
        );
        assert_eq!(
            error("kind = \"nat\"\nidle_timeout = 30"),
            "[0].idle_timeout: \"30\" has no unit; write a duration such as \"20ms\""
        );
        assert_eq!(
            error("kind = \"bare_segments\"\nprobability = \"2\""),
            "[0].probability: \"2\" has no unit; write a probability such as \"1%\""
        );
        assert_eq!(
            error("kind = \"bare_segments\"\napplies_to = \"forwards\""),
            "[0].applies_to: unknown direction \"forwards\"; did you mean \"forward\"? (valid: \
             forward, reverse, both)"
        );
        assert_eq!(
            error("kind = \"strip_options\"\noptions = \"dss\""),
            "[0].options: found string \"dss\", expected an array"
        );
        assert_eq!(error("from = \"2s\""), "[0].kind: missing; this key is required");
        let nine = ["kind = \"nat\""; 9].join("\n[[path.middlebox]]\n");
        assert_eq!(error(&nine), ": 9: write at most 8");
    }
}
