//! The queue discipline of a path: a table with a kind, and the keys of that kind.

use std::borrow::Cow;

use anabranch_net::Discipline;
use anabranch_net::queue::{self, Factory, Invalid, QueueEntry};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

use super::entry_schema;
use super::selected::{Catalog, KIND, Selected, serialize_in_order};
use crate::written::Problem;

/// A queue discipline and its parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Queue {
    /// The discipline, with consistent parameters.
    pub selected: Selected<Factory>,
}

impl Catalog for Factory {
    const NOUN: &'static str = "kind";
    const ALL: &'static [QueueEntry] = queue::ALL;
}

impl Queue {
    /// The discipline.
    ///
    /// # Panics
    /// If the parameters are inconsistent. Those of a parsed scenario are consistent.
    pub fn discipline(&self) -> Discipline {
        (self.selected.entry.make)(&self.selected.values).expect("consistent parameters")
    }

    fn from_table(mut written: Table) -> Result<Self, Problem> {
        written.entry(KIND).or_insert(queue::ALL[0].name.into());
        let selected = Selected::<Factory>::from_table(written, &[KIND])?;
        match (selected.entry.make)(&selected.values) {
            Ok(_) => Ok(Queue { selected }),
            Err(Invalid { parameter, problem }) => Err(Problem::new(parameter, problem)),
        }
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_in_order(&self.selected, core::iter::empty(), serializer)
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Queue::from_table(Table::deserialize(deserializer)?).map_err(Problem::raise)
    }
}

impl JsonSchema for Queue {
    fn schema_name() -> Cow<'static, str> {
        "Queue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        entry_schema::table("Queue discipline of a path.", queue::ALL, &[], generator)
    }
}
