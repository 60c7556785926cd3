//! The congestion control of a connection: one for all subflows, or one for each path.

use core::fmt;
use std::borrow::Cow;
use std::collections::BTreeMap;

use anabranch_config::schema::names;
use anabranch_config::written::{Problem, unknown_name};
use anabranch_config::{Description, Selection, named};
use anabranch_proto::congestion::{CongestionControlConfig, SlowStartExit};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::path_names::Used;

/// The congestion control of a connection's subflows.
#[derive(Clone, Debug, PartialEq)]
pub enum CongestionControl {
    /// The same congestion control on all subflows.
    Same(CongestionControlConfig),
    /// An uncoupled congestion control for each of the connection's paths, by name.
    PerPath(BTreeMap<String, CongestionControlConfig>),
}

impl CongestionControl {
    /// The congestion control called `name` on all subflows.
    ///
    /// # Panics
    /// If there is no congestion control of this name.
    pub fn named(name: &str) -> Self {
        CongestionControl::Same(named(name).expect("the name of a congestion control"))
    }

    /// The congestion controls of all subflows.
    fn each(&self) -> Vec<&CongestionControlConfig> {
        match self {
            CongestionControl::Same(same) => vec![same],
            CongestionControl::PerPath(by_path) => by_path.values().collect(),
        }
    }

    /// Returns `true` if HyStart++ ends slow start by default. All paths must have the same
    /// congestion control.
    pub(super) fn has_hystart(&self) -> bool {
        let each = self.each();
        let same = each.windows(2).all(|pair| pair[0] == pair[1]);
        same && each.iter().all(|each| each.part().slow_start_exit() == SlowStartExit::HyStart)
    }

    /// The name of a congestion control with its own rule to end slow start, if there is one.
    pub(super) fn without_hystart(&self) -> Option<&'static str> {
        let mut each = self.each().into_iter();
        let own = each.find(|each| each.part().slow_start_exit() == SlowStartExit::Own);
        own.map(Selection::name)
    }

    /// Check that exactly the paths of the connection have a congestion control.
    pub(super) fn check(&self, used: Used<'_>) -> Result<(), Problem> {
        let CongestionControl::PerPath(by_path) = self else { return Ok(()) };
        if let Some(path) = used.names().find(|path| !by_path.contains_key(*path)) {
            let problem = format!(
                "missing; write one for each path of the connection, such as {path} = \"cubic\""
            );
            return Err(Problem::new(path, problem));
        }
        match by_path.keys().find(|path| !used.names().any(|used| used == *path)) {
            Some(other) => {
                let valid: Vec<_> = used.names().collect();
                Err(Problem::new("", unknown_name("path of the connection", other, &valid)))
            }
            None => Ok(()),
        }
    }
}

fn uncoupled() -> impl Iterator<Item = CongestionControlConfig> {
    let all = CongestionControlConfig::ALL.iter().flat_map(|each| named(each.name));
    all.filter(|each: &CongestionControlConfig| !each.part().is_coupled())
}

fn per_path(by_path: BTreeMap<String, String>) -> Result<CongestionControl, Problem> {
    let each = by_path.into_iter().map(|(path, name)| {
        let found = uncoupled().find(|each| each.name() == name).ok_or_else(|| {
            let valid: Vec<_> = uncoupled().map(|each| each.name()).collect();
            Problem::new(&*path, unknown_name("uncoupled congestion control", &name, &valid))
        });
        Ok((path.clone(), found?))
    });
    each.collect::<Result<_, _>>().map(CongestionControl::PerPath)
}

impl Serialize for CongestionControl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            CongestionControl::Same(same) => same.name().serialize(serializer),
            CongestionControl::PerPath(by_path) => {
                serializer.collect_map(by_path.iter().map(|(path, each)| (path, each.name())))
            }
        }
    }
}

impl<'de> Deserialize<'de> for CongestionControl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = CongestionControl;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name such as \"lia\", or a table with one for each path")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        named(name).map(CongestionControl::Same).map_err(Problem::raise)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let by_path = BTreeMap::deserialize(MapAccessDeserializer::new(map))?;
        per_path(by_path).map_err(Problem::raise)
    }
}

impl JsonSchema for CongestionControl {
    fn schema_name() -> Cow<'static, str> {
        "CongestionControlValue".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let uncoupled: Vec<Description> = uncoupled().map(|each| *each.description()).collect();
        json_schema!({
            "anyOf": [
                names(CongestionControlConfig::ALL),
                {
                    "type": "object",
                    "description": "An uncoupled congestion control for each path of the connection.",
                    "additionalProperties": names(&uncoupled),
                },
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::policy_tests::default_of;
    use crate::scenario::tests::read;
    use crate::scenario::{Policy, Scenario};

    fn with(value: &str) -> Result<Scenario, String> {
        let path = |name: &str| {
            format!(
                "[[path]]\nname = \"{name}\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\nlimit = \"9packets\"\n"
            )
        };
        let text = format!(
            "name = \"each\"\nduration = \"1s\"\n{}{}[[connection]]\nworkload = {{ kind = \"bulk\" }}\n\
             congestion_control = {value}\n",
            path("wlan"),
            path("lte")
        );
        Scenario::from_toml(&text, "each.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn each_path_can_have_its_own_uncoupled_one() {
        let scenario = with("{ lte = \"new_reno\", wlan = \"cubic\" }").unwrap();
        let each = [("wlan", "cubic"), ("lte", "new_reno")];
        let each = each.map(|(path, name)| (path.to_owned(), default_of(name)));
        let expected = Policy::BuiltIn(CongestionControl::PerPath(each.into()));
        assert_eq!(*scenario.connections[0].congestion_control, expected);
        assert!(!*scenario.connections[0].hystart);
        assert_eq!(read(&scenario.to_toml()), scenario);
        assert!(*with("{ lte = \"cubic\", wlan = \"cubic\" }").unwrap().connections[0].hystart);
    }

    #[test]
    fn what_is_wrong_with_it_is_explained() {
        let problems = [
            (
                "{ wlan = \"cubic\" }",
                ".lte: missing; write one for each path of the connection, such as lte = \"cubic\"",
            ),
            (
                "{ wlan = \"cubic\", lte = \"cubic\", dsl = \"cubic\" }",
                ": unknown path of the connection \"dsl\" (valid: wlan, lte)",
            ),
            (
                "{ wlan = \"cubic\", lte = \"lia\" }",
                ".lte: unknown uncoupled congestion control \"lia\" (valid: new_reno, cubic, cubic_linux, bbr, bbr3)",
            ),
        ];
        for (value, problem) in problems {
            let expected = format!("each.toml: connection[0].congestion_control{problem}");
            assert_eq!(with(value).unwrap_err(), expected);
        }
    }
}
