//! The queue discipline of a path: a table with a kind, and the keys of that kind.

use std::borrow::Cow;

use anabranch_config::written::Problem;
use anabranch_config::{KIND, Selection, from_table, schema, serialize_in_order};
use anabranch_net::Discipline;
use anabranch_net::queue::Invalid;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

/// A queue discipline with consistent parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue(pub Discipline);

impl Queue {
    fn from_table(mut written: Table) -> Result<Self, Problem> {
        written.entry(KIND).or_insert(Discipline::default().name().into());
        let discipline: Discipline = from_table(written, &[KIND])?;
        match discipline.part().check() {
            Ok(()) => Ok(Queue(discipline)),
            Err(Invalid { parameter, problem }) => Err(Problem::new(parameter, problem)),
        }
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_in_order(&self.0, [], serializer)
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
        schema::table::<Discipline, ()>("Queue discipline of a path.", generator)
    }
}
