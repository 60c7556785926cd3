//! Middleboxes of a path: a table with a kind, and the keys of that kind.

use std::borrow::Cow;

use anabranch_config::written::{Problem, WithUnit};
use anabranch_config::{KIND, from_table, schema, serialize_in_order};
use anabranch_net::middlebox::{self, MiddleboxConfig, Site};
use anabranch_net::units::format_duration;
use anabranch_wire::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

/// Most middleboxes on a path. Each NAT needs an address, which limits their number.
const MAX_MIDDLEBOXES: usize = 8;

/// A middlebox of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Middlebox {
    /// The kind of middlebox, with its parameters.
    pub config: MiddleboxConfig,
    /// Time at which the middlebox is present.
    pub presence: Presence,
}

/// Time at which a middlebox is present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Presence {
    /// Time at which the middlebox appears; by default `"0s"`.
    #[serde(with = "WithUnit::<Duration>")]
    pub from: Duration,
    /// Time at which the middlebox disappears, later than `from`. By default it stays.
    #[serde(with = "WithUnit::<Option<Duration>>", skip_serializing_if = "Option::is_none")]
    pub until: Option<Duration>,
}

/// The keys of [`Presence`], in order.
const PRESENCE: [&str; 2] = ["from", "until"];

impl Middlebox {
    /// The middlebox as the network uses it.
    pub fn build(&self, site: Site) -> Box<dyn middlebox::Middlebox> {
        self.config.part().build(site)
    }

    fn from_table(mut written: Table) -> Result<Self, Problem> {
        let times = PRESENCE.iter().filter_map(|key| written.remove_entry(*key)).collect();
        let presence = anabranch_config::written::read(times);
        let config = from_table(written, &[KIND, "from", "until"])?;
        let presence: Presence = presence?;
        let from = presence.from;
        if let Some(until) = presence.until.filter(|until| *until <= from) {
            let (until, from) = (format_duration(until), format_duration(from));
            let problem = format!("{until:?}: must be later than from, {from:?}");
            return Err(Problem::new("until", problem));
        }
        Ok(Middlebox { config, presence })
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
        let times = Table::try_from(self.presence).map_err(serde::ser::Error::custom)?;
        let times = PRESENCE.iter().filter_map(|key| Some((*key, times.get(*key)?.clone())));
        serialize_in_order(&self.config, times, serializer)
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
        let mut schema = schema::table::<MiddleboxConfig, Presence>(description, generator);
        schema.insert("required".to_owned(), [KIND].as_slice().into());
        schema
    }
}

#[cfg(test)]
mod tests {
    use anabranch_config::{Part, Selection};
    use anabranch_net::middlebox::{
        BareSegmentsConfig, Directions, NatConfig, OptionCopies, OptionName, PayloadChange,
        RewritePayloadConfig, SegmentClass, ShrinkWindowConfig, SplitSegmentsConfig,
        StripOptionsConfig,
    };
    use anabranch_net::units::{ByteCount, Probability};

    use super::super::Scenario;
    use super::super::policy_tests::default_of;
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

    /// A middlebox that is always present.
    fn always(config: impl Into<MiddleboxConfig>) -> Middlebox {
        Middlebox { config: config.into(), presence: Presence::default() }
    }

    fn inserting() -> RewritePayloadConfig {
        RewritePayloadConfig {
            directions: Directions::Both,
            change: PayloadChange::Insert,
            bytes: 4,
            at: ByteCount::new(0),
        }
    }

    #[test]
    fn every_kind_needs_nothing_but_what_has_no_default() {
        for part in MiddleboxConfig::ALL {
            let written = format!("kind = {:?}", part.name);
            if part.name == RewritePayloadConfig::NAME {
                let found = boxes(&format!("{written}\nchange = \"insert\""));
                assert_eq!(found, [always(inserting())]);
            } else {
                assert_eq!(boxes(&written), [always(default_of::<MiddleboxConfig>(part.name))]);
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
        let seconds = Duration::from_secs;
        let strip = StripOptionsConfig {
            options: vec![OptionName::MpJoin, OptionName::Dss],
            segments: vec![SegmentClass::Data],
            after_packets: 20,
            directions: Directions::Reverse,
        };
        let expected = [
            Middlebox {
                presence: Presence { from: seconds(1), until: Some(seconds(2)) },
                ..always(strip)
            },
            always(NatConfig { idle_timeout: seconds(30), rebind_at: Some(seconds(5)) }),
            always(RewritePayloadConfig {
                directions: Directions::Forward,
                change: PayloadChange::Remove,
                bytes: 7,
                at: ByteCount::new(20_000),
            }),
            always(SplitSegmentsConfig {
                size: ByteCount::new(100),
                options_on: OptionCopies::First,
            }),
            always(ShrinkWindowConfig { lasts: seconds(1), refuse: true, ..Default::default() }),
            always(BareSegmentsConfig {
                probability: Probability::from_parts_per_billion(20_000_000),
                ..Default::default()
            }),
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
        assert_eq!(kinds.len(), MiddleboxConfig::ALL.len());
        assert_eq!(
            properties["size"]["description"],
            "`split_segments` only: maximum payload of each piece; by default `\"536B\"`. \
             `coalesce` only: maximum payload of a merged segment; by default `\"2920B\"`."
        );
        assert_eq!(properties["size"]["$ref"], "#/$defs/Size");
        let syns = properties["syns"]["oneOf"].as_array().unwrap();
        let names: Vec<_> = syns.iter().map(|each| each["const"].as_str().unwrap()).collect();
        assert_eq!(names, ["mptcp", "mp_join", "all"]);
    }

    #[test]
    fn boxes_that_make_no_sense() {
        let names: Vec<_> = MiddleboxConfig::ALL.iter().map(|entry| entry.name).collect();
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
            "[0].size: belongs to kind = \"split_segments\" or \"coalesce\"; remove it, or write \
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
