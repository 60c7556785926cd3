//! The congestion control of a connection: one for all subflows, or one for each path.

use core::fmt;
use std::borrow::Cow;
use std::collections::BTreeMap;

use anabranch_proto::congestion::{self, Make, Making};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::chosen::{Chosen, Sort, named};
use super::error::{Problem, unknown_name};
use super::policies::CongestionControls;
use super::value::Used;

/// Which congestion control the subflows have.
#[derive(Clone, Debug, PartialEq)]
pub enum CongestionControl {
    /// The same on all.
    Same(Chosen<Making>),
    /// An uncoupled one for each of the connection's paths, in their order.
    PerPath(Vec<Chosen<Making>>),
}

/// What the file holds: a name, or a table of names by path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CongestionControlValue {
    /// A name for all.
    Same(String),
    /// By the names of the paths.
    PerPath(BTreeMap<String, String>),
}

impl CongestionControl {
    /// Those of all subflows.
    fn each(&self) -> &[Chosen<Making>] {
        match self {
            CongestionControl::Same(same) => std::slice::from_ref(same),
            CongestionControl::PerPath(each) => each,
        }
    }

    /// Is it this one on every path?
    pub(super) fn is_everywhere(&self, name: &str) -> bool {
        self.each().iter().all(|each| each.entry.name == name)
    }

    /// The name of one that ends slow start by a rule of its own, if any does.
    pub(super) fn without_hystart(&self) -> Option<&'static str> {
        let plain = |each: &&Chosen<Making>| matches!(each.entry.make.make, Make::Plain(_));
        self.each().iter().find(plain).map(|each| each.entry.name)
    }
}

impl CongestionControlValue {
    /// The congestion control that the value at `key` describes.
    pub(super) fn resolve(self, key: &str, used: Used<'_>) -> Result<CongestionControl, Problem> {
        let mut by_path = match self {
            CongestionControlValue::Same(name) => {
                let entry = named::<CongestionControls>(key, &name)?;
                return Ok(CongestionControl::Same(Chosen::new(entry)));
            }
            CongestionControlValue::PerPath(by_path) => by_path,
        };
        let mut each = Vec::new();
        for path in used.names() {
            let key = format!("{key}.{path}");
            let Some(name) = by_path.remove(path) else {
                let problem = format!(
                    "missing; write one for each path of the connection, such as {path} = \"cubic\""
                );
                return Err(Problem::new(key, problem));
            };
            let valid: Vec<_> = uncoupled().map(|entry| entry.name).collect();
            let found = uncoupled().find(|entry| entry.name == name).ok_or_else(|| {
                Problem::new(key, unknown_name("uncoupled congestion control", &name, &valid))
            });
            each.push(Chosen::new(found?));
        }
        match by_path.keys().next() {
            Some(other) => {
                let valid: Vec<_> = used.names().collect();
                Err(Problem::new(key, unknown_name("path of the connection", other, &valid)))
            }
            None => Ok(CongestionControl::PerPath(each)),
        }
    }

    pub(super) fn spelled_out(congestion_control: &CongestionControl, used: Used<'_>) -> Self {
        match congestion_control {
            CongestionControl::Same(same) => {
                CongestionControlValue::Same(same.entry.name.to_owned())
            }
            CongestionControl::PerPath(each) => {
                let paths = used.names().map(str::to_owned);
                let names = each.iter().map(|each| each.entry.name.to_owned());
                CongestionControlValue::PerPath(paths.zip(names).collect())
            }
        }
    }
}

fn uncoupled() -> impl Iterator<Item = &'static congestion::CongestionControlEntry> {
    CongestionControls::ALL.iter().filter(|entry| !entry.make.coupled)
}

impl Serialize for CongestionControlValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            CongestionControlValue::Same(name) => name.serialize(serializer),
            CongestionControlValue::PerPath(by_path) => by_path.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for CongestionControlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = CongestionControlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name such as \"lia\", or a table of uncoupled ones by path")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(CongestionControlValue::Same(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(CongestionControlValue::PerPath)
    }
}

impl JsonSchema for CongestionControlValue {
    fn schema_name() -> Cow<'static, str> {
        "CongestionControlValue".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let name = |entry: &congestion::CongestionControlEntry| json_schema!({ "const": entry.name, "description": entry.summary });
        let all: Vec<Schema> = CongestionControls::ALL.iter().map(name).collect();
        let uncoupled: Vec<Schema> = uncoupled().map(name).collect();
        json_schema!({
            "anyOf": [
                { "oneOf": all },
                {
                    "type": "object",
                    "description": "an uncoupled one for each path of the connection",
                    "additionalProperties": { "oneOf": uncoupled },
                },
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::policies::tests::default_of;
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
        let each = ["cubic", "new_reno"].map(default_of::<CongestionControls>).to_vec();
        let expected = Policy::BuiltIn(CongestionControl::PerPath(each));
        assert_eq!(scenario.connections[0].congestion_control, expected);
        assert!(!scenario.connections[0].hystart);
        assert_eq!(read(&scenario.to_toml()), scenario);
        assert!(with("{ lte = \"cubic\", wlan = \"cubic\" }").unwrap().connections[0].hystart);
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
                ".lte: unknown uncoupled congestion control \"lia\" (valid: new_reno, cubic, cubic_linux)",
            ),
        ];
        for (value, problem) in problems {
            let expected = format!("each.toml: connection[0].congestion_control{problem}");
            assert_eq!(with(value).unwrap_err(), expected);
        }
    }
}
