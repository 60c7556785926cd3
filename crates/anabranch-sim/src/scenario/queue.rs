//! The queue discipline of a path: a table with a kind, and the keys of that kind.

use std::borrow::Cow;

use anabranch_net::Discipline;
use anabranch_net::queue::{self, Invalid, Make, QueueEntry};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use super::chosen::{Chosen, KIND, Keys, Sort, named, parameters, take_kind};
use super::entry_schema;
use super::error::Problem;
use super::value::Used;

/// A queue discipline and its parameters.
pub type Queue = Chosen<Make>;

/// The queue disciplines.
struct Queues;

impl Sort for Queues {
    type Make = Make;
    const NOUN: &'static str = "kind";
    const ALL: &'static [QueueEntry] = queue::ALL;
}

/// What the file holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct QueueTable(Keys);

impl QueueTable {
    /// The discipline that the table at `key` describes.
    pub(super) fn resolve(self, key: &str) -> Result<Queue, Problem> {
        let mut written = self.0.into_table();
        written.entry(KIND).or_insert(queue::ALL[0].name.into());
        let kind = take_kind(key, &mut written)?;
        let entry = named::<Queues>(&format!("{key}.{KIND}"), &kind)?;
        let chosen = parameters::<Queues>(entry, key, written, Used::default(), &[KIND])?;
        match (entry.make)(&chosen.values) {
            Ok(_) => Ok(chosen),
            Err(Invalid { parameter, problem }) => {
                Err(Problem::new(format!("{key}.{parameter}"), problem))
            }
        }
    }

    /// The table that describes a discipline, with every default spelled out.
    pub(super) fn new(queue: &Queue) -> Self {
        QueueTable(Keys::spelled_out(queue, core::iter::empty()))
    }
}

impl Queue {
    /// The discipline.
    ///
    /// # Panics
    /// If the values do not go together. Those of a scenario that was read do.
    pub fn discipline(&self) -> Discipline {
        (self.entry.make)(&self.values).expect("values that go together")
    }
}

impl Default for Queue {
    /// Drop-tail.
    fn default() -> Self {
        Chosen::new(&queue::ALL[0])
    }
}

impl Default for QueueTable {
    fn default() -> Self {
        QueueTable::new(&Queue::default())
    }
}

impl JsonSchema for QueueTable {
    fn schema_name() -> Cow<'static, str> {
        "Queue".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        entry_schema::table("The discipline of a path's queues.", queue::ALL, &[], generator)
    }
}
