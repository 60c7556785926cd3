//! Presets: the settings with which a connection behaves like a published stack.

use std::borrow::Cow;

use anabranch_config::Description;
use anabranch_config::schema::names;
use anabranch_config::written::{Problem, found, unknown_name};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

/// A stack: a platform, with the policies that its hosts use by default.
#[derive(Clone, Copy, Debug)]
pub struct Stack(&'static Preset);

/// The settings of a stack.
#[derive(Debug)]
struct Preset {
    description: Description,
    /// Keys of all its connections, in TOML.
    always: &'static str,
    /// Keys of its connections with Multipath TCP only.
    multipath: &'static str,
}

const ALL: &[Preset] = &[
    Preset {
        description: Description {
            name: "linux-6.12",
            summary: "Linux of today, as calibrated: buffers by memory, its scheduler, CUBIC, no remedy.",
            source: "Linux 6.12",
        },
        always: "host = { kind = \"linux\", buffers = \"socket\" }\ncongestion_control = \"cubic_linux\"",
        multipath: LINUX,
    },
    Preset {
        description: Description {
            name: "linux-6.18",
            summary: "Linux 6.18, whose tuned receive buffers grow less at low rates.",
            source: "Linux 6.18",
        },
        always: "host = { kind = \"linux\", buffers = \"socket\", version = \"v6.18\", tcp_rmem_max = \"32MiB\" }\n\
                 congestion_control = \"cubic_linux\"",
        multipath: LINUX,
    },
    Preset {
        description: Description {
            name: "rfc-8684",
            summary: "The RFCs where they are specific: LIA, lowest round-trip time, no remedy.",
            source: "RFC 8684, 6356, 9293",
        },
        always: "host = \"rfc\"",
        multipath: "congestion_control = \"lia\"\nscheduler = \"min_rtt\"\npath_manager = \"full_mesh\"\n\
                    remedies = {}",
    },
    Preset {
        description: Description {
            name: "mptcp.org-0.88",
            summary: "The original kernel in version 0.88, with an earlier form of M2.",
            source: "Multipath TCP 0.88",
        },
        always: "host = \"mptcp.org-0.89\"\ncongestion_control = \"cubic_linux\"",
        multipath: "congestion_control = \"lia_linux\"\n\
                    scheduler = { kind = \"mptcp_org\", uses_recovering = true }\n\
                    path_manager = \"full_mesh\"\ndss_checksum = true\nlate_fallback = false\n\
                    remedies = { opportunistic_retransmission = {}, penalisation = { form = \"kernel_0_88\" } }",
    },
    Preset {
        description: Description {
            name: "mptcp.org-0.89",
            summary: "The original kernel, which the papers of 2012 to 2015 ran: LIA, M1 and M2.",
            source: "Linux 3.14.33 with Multipath TCP 0.89.5",
        },
        always: "host = \"mptcp.org-0.89\"\ncongestion_control = \"cubic_linux\"",
        multipath: "congestion_control = \"lia_linux\"\nscheduler = \"mptcp_org\"\npath_manager = \"full_mesh\"\n\
                    dss_checksum = true\nlate_fallback = false\n\
                    remedies = { opportunistic_retransmission = {}, penalisation = {} }",
    },
    Preset {
        description: Description {
            name: "mptcp.org-0.92",
            summary: "The original kernel in version 0.92, with round-trip times in microseconds.",
            source: "Linux 4.4 with Multipath TCP of about version 0.91",
        },
        always: "host = { kind = \"mptcp.org-0.89\", coarse_rtt = false }\n\
                 congestion_control = \"cubic_linux\"",
        multipath: LATER,
    },
    Preset {
        description: Description {
            name: "mptcp.org-0.95",
            summary: "The original kernel in version 0.95, whose subflows have no window of their own.",
            source: "Multipath TCP 0.95 and 0.96",
        },
        always: "host = { kind = \"mptcp.org-0.89\", coarse_rtt = false, own_window = \"ignored\" }\n\
                 congestion_control = \"cubic_linux\"",
        multipath: LATER,
    },
];

/// Policies of Linux, which does not notice that options are lost.
const LINUX: &str = "scheduler = \"linux\"\npath_manager = \"full_mesh\"\nremedies = {}\n\
                     late_fallback = false";

/// Policies of the original kernel from about version 0.91 on.
const LATER: &str = "congestion_control = \"lia_linux\"\n\
                     scheduler = { kind = \"mptcp_org\", waits_for_full = true }\n\
                     path_manager = \"full_mesh\"\ndss_checksum = true\nlate_fallback = false\n\
                     remedies = { opportunistic_retransmission = {}, penalisation = {} }";

/// The key that selects a stack, of a scenario or of a connection.
pub(super) const KEY: &str = "stack";

impl Stack {
    /// The name in scenarios.
    pub fn name(self) -> &'static str {
        self.0.description.name
    }

    fn named(name: &str) -> Result<Self, String> {
        let found = ALL.iter().find(|preset| preset.description.name == name);
        found.map(Stack).ok_or_else(|| {
            let valid: Vec<_> = ALL.iter().map(|preset| preset.description.name).collect();
            unknown_name(KEY, name, &valid)
        })
    }

    /// The keys of a connection with this stack.
    pub(super) fn keys(self, is_tcp: bool) -> Table {
        let only_multipath = if is_tcp { "" } else { self.0.multipath };
        let all = [self.0.always, only_multipath].map(|keys| keys.parse::<Table>());
        all.into_iter().flat_map(|keys| keys.expect("a preset is TOML")).collect()
    }

    /// Set the keys of the stack that the connection does not have.
    fn complete(self, connection: &mut Table) {
        let is_tcp = connection.get("protocol").and_then(Value::as_str) == Some("tcp");
        for (key, value) in self.keys(is_tcp) {
            connection.entry(key).or_insert(value);
        }
    }
}

/// The JSON Schema of the key of a scenario, which reading a scenario moves to its connections.
pub(super) fn of_all() -> serde_json::Value {
    let mut schema = serde_json::Value::from(schemars::schema_for!(Stack));
    schema["description"] = "Stack of all connections that select none.".into();
    schema
}

/// Set the keys of the stacks that the connections of a scenario select. The stack of the scenario is
/// that of all connections which select none.
///
/// # Errors
/// If a stack is unknown.
pub(super) fn complete(scenario: &mut Table) -> Result<(), Problem> {
    let of_all = scenario.remove(KEY);
    if let Some(stack) = &of_all {
        read(stack).map_err(|text| Problem::new(KEY, text))?;
    }
    let Some(Value::Array(connections)) = scenario.get_mut("connection") else { return Ok(()) };
    for (index, connection) in connections.iter_mut().enumerate() {
        let Value::Table(connection) = connection else { continue };
        if let Some(stack) = &of_all {
            connection.entry(KEY).or_insert_with(|| stack.clone());
        }
        if let Some(stack) = connection.get(KEY) {
            let stack = read(stack);
            let key = format!("connection[{index}].{KEY}");
            stack.map_err(|text| Problem::new(key, text))?.complete(connection);
        }
    }
    Ok(())
}

fn read(value: &Value) -> Result<Stack, String> {
    match value.as_str() {
        Some(name) => Stack::named(name),
        None => Err(format!("found {}, expected a name such as \"linux-6.12\"", found(value))),
    }
}

impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Serialize for Stack {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Stack {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stack::named(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Stack {
    fn schema_name() -> Cow<'static, str> {
        "Stack".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let all: Vec<Description> = ALL.iter().map(|preset| preset.description).collect();
        Schema::try_from(names(&all)).expect("an object is a schema")
    }
}

#[cfg(test)]
mod tests {
    use anabranch_config::Selection;
    use anabranch_proto::platform::OwnWindow;
    use anabranch_proto::scheduler::SchedulerConfig;

    use super::super::tests::{SMALLEST, read};
    use super::super::{Connection, Policy, Scenario};
    use super::ALL;

    fn connections(of_all: &str, of_one: &str) -> Result<Vec<Connection>, String> {
        let first = format!("[[connection]]\n{of_one}");
        let text = format!("{of_all}\n{}", SMALLEST.replacen("[[connection]]", &first, 1));
        let text = format!(
            "{text}\n[[connection]]\nprotocol = \"tcp\"\nworkload = {{ kind = \"bulk\" }}\n"
        );
        let scenario = Scenario::from_toml(&text, "a.toml").map_err(|error| error.to_string())?;
        assert_eq!(read(&scenario.to_toml()), scenario, "{}", scenario.to_toml());
        Ok(scenario.connections)
    }

    fn scheduler(connection: &Connection) -> &str {
        match &connection.scheduler {
            Policy::BuiltIn(scheduler) => scheduler.name(),
            Policy::Custom(name) => name,
        }
    }

    #[test]
    fn a_stack_sets_what_a_connection_does_not() {
        let linux = "stack = \"linux-6.12\"";
        let [main, tcp] = &connections(linux, "").unwrap()[..] else { panic!("two connections") };
        assert_eq!((scheduler(main), scheduler(tcp)), ("linux", "min_rtt"));
        assert!(main.to_owned().host == tcp.host && !main.late_fallback);
        assert_eq!(main.stack.map(|stack| stack.name()), Some("linux-6.12"));
        let [main, tcp] = &connections("", linux).unwrap()[..] else { panic!("two connections") };
        assert_eq!((scheduler(main), tcp.stack), ("linux", None));
        let own = "stack = \"rfc-8684\"\nscheduler = \"ecf\"";
        let [main, tcp] = &connections(linux, own).unwrap()[..] else { panic!("two connections") };
        assert_eq!((scheduler(main), main.host.name(), tcp.host.name()), ("ecf", "rfc", "linux"));
        let departures = |each: &Connection| each.departures();
        assert_eq!((departures(main), departures(tcp)), (vec!["scheduler"], vec![]));
    }

    #[test]
    fn versions_of_the_original_kernel_differ_in_their_parameters() {
        let of = |version: &str| {
            let [main, _] =
                &connections(&format!("stack = \"mptcp.org-{version}\""), "").unwrap()[..]
            else {
                panic!("two connections")
            };
            main.to_owned()
        };
        let [b, a, c, e] = ["0.88", "0.89", "0.92", "0.95"].map(of);
        let platforms = [&b, &a, &c, &e].map(|each| each.host.part().build());
        let ticks = platforms.map(|platform| platform.timeouts.tick.is_some());
        assert_eq!(ticks, [true, true, false, false]);
        let ignored = platforms.map(|platform| platform.own_window == OwnWindow::Ignored);
        assert_eq!(ignored, [false, false, false, true]);
        let rules = [&b, &a, &c, &e].map(|each| match &each.scheduler {
            Policy::BuiltIn(SchedulerConfig::MptcpOrg(rules)) => {
                (rules.uses_recovering, rules.waits_for_full)
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(rules, [(true, false), (false, false), (false, true), (false, true)]);
        assert!(b.remedies != a.remedies && a.remedies == c.remedies && c.remedies == e.remedies);
    }

    #[test]
    fn a_normalised_scenario_keeps_what_overrides_its_stack() {
        for stack in ALL {
            let name = stack.description.name;
            let keys = format!("[[connection]]\nstack = \"{name}\"\nremedies = {{}}");
            let text = SMALLEST.replacen("[[connection]]", &keys, 1);
            let scenario = Scenario::from_toml(&text, "a.toml").expect("a scenario");
            assert_eq!(read(&scenario.to_toml()), scenario, "{name}");
        }
    }

    #[test]
    fn an_unknown_stack_is_named() {
        let problem = "unknown stack \"linux\"; did you mean \"linux-6.12\"? (valid: linux-6.12, linux-6.18, rfc-8684, \
                       mptcp.org-0.88, mptcp.org-0.89, mptcp.org-0.92, mptcp.org-0.95)";
        let error = connections("stack = \"linux\"", "").unwrap_err();
        assert_eq!(error, format!("a.toml: stack: {problem}"));
        let error = connections("", "stack = \"linux\"").unwrap_err();
        assert_eq!(error, format!("a.toml: connection[0].stack: {problem}"));
        let error = connections("stack = 6", "").unwrap_err();
        assert_eq!(
            error,
            "a.toml: stack: found integer `6`, expected a name such as \"linux-6.12\""
        );
    }
}
