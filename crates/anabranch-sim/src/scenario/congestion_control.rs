//! The congestion control of a connection: one for all subflows, or one for each path.

use core::fmt;
use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Path;
use super::error::{Problem, unknown_name};
use super::names::{CongestionControlName, UncoupledName};

/// Which congestion control the subflows have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// The same on all.
    Same(CongestionControlName),
    /// An uncoupled one for each of the connection's paths, in their order.
    PerPath(Vec<UncoupledName>),
}

/// What the file holds: a name, or a table of names by path.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CongestionControlValue {
    /// A name for all.
    Same(CongestionControlName),
    /// By the names of the paths.
    PerPath(BTreeMap<String, UncoupledName>),
}

impl CongestionControl {
    /// Is it this one on every path?
    pub(super) fn is_everywhere(&self, name: CongestionControlName) -> bool {
        match self {
            CongestionControl::Same(same) => *same == name,
            CongestionControl::PerPath(each) => {
                each.iter().all(|uncoupled| uncoupled.name() == name)
            }
        }
    }
}

impl CongestionControlValue {
    /// The congestion control that the value at `key` describes, of a connection that uses those
    /// of `paths` with the indices `used`.
    pub(super) fn resolve(
        self,
        key: &str,
        paths: &[Path],
        used: &[usize],
    ) -> Result<CongestionControl, Problem> {
        let mut by_path = match self {
            CongestionControlValue::Same(name) => return Ok(CongestionControl::Same(name)),
            CongestionControlValue::PerPath(by_path) => by_path,
        };
        let names: Vec<&str> = used.iter().map(|index| paths[*index].name.as_str()).collect();
        let mut each = Vec::with_capacity(names.len());
        for name in &names {
            let Some(uncoupled) = by_path.remove(*name) else {
                let problem = format!(
                    "missing; write one for each path of the connection, such as {name} = \"cubic\""
                );
                return Err(Problem::new(format!("{key}.{name}"), problem));
            };
            each.push(uncoupled);
        }
        match by_path.keys().next() {
            Some(other) => {
                let problem = unknown_name("path of the connection", other, &names);
                Err(Problem::new(key, problem))
            }
            None => Ok(CongestionControl::PerPath(each)),
        }
    }

    pub(super) fn spelled_out(
        congestion_control: &CongestionControl,
        paths: &[Path],
        used: &[usize],
    ) -> Self {
        match congestion_control {
            CongestionControl::Same(name) => CongestionControlValue::Same(*name),
            CongestionControl::PerPath(each) => {
                let names = used.iter().map(|index| paths[*index].name.clone());
                CongestionControlValue::PerPath(names.zip(each.iter().copied()).collect())
            }
        }
    }
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
        CongestionControlName::deserialize(StrDeserializer::new(name))
            .map(CongestionControlValue::Same)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        BTreeMap::deserialize(MapAccessDeserializer::new(map)).map(CongestionControlValue::PerPath)
    }
}

impl JsonSchema for CongestionControlValue {
    fn schema_name() -> Cow<'static, str> {
        "CongestionControlValue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<CongestionControlName>();
        let uncoupled = generator.subschema_for::<UncoupledName>();
        json_schema!({
            "anyOf": [
                name,
                {
                    "type": "object",
                    "description": "an uncoupled one for each path of the connection",
                    "additionalProperties": uncoupled,
                },
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let each = vec![UncoupledName::Cubic, UncoupledName::NewReno];
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
                ".lte: unknown uncoupled congestion control \"lia\" (valid: new_reno, cubic)",
            ),
        ];
        for (value, problem) in problems {
            let expected = format!("each.toml: connection[0].congestion_control{problem}");
            assert_eq!(with(value).unwrap_err(), expected);
        }
    }
}
