//! A workload in a scenario: a table with a kind and the keys of that kind.

use std::borrow::Cow;

use anabranch_config::written::Problem;
use anabranch_config::{from_table, schema};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
use toml::Table;

use super::{Application, Draws, Workload};

/// The keys of a workload, and its application.
pub(crate) trait BuildWorkload {
    /// Validate what the types of the keys cannot express.
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// Returns `true` if the end that receives the workload's data also writes.
    fn answers(&self) -> bool {
        false
    }

    /// Number of blocks or rounds, if it is limited.
    fn count(&self) -> Option<u64> {
        None
    }

    /// The end of a connection that sends the workload's data, or the opposite end.
    fn application(&self, sends: bool, draws: &Draws<'_>) -> Application;
}

impl Workload {
    /// One end of a connection: the end that sends the workload's data, or the opposite end.
    pub(crate) fn application(&self, sends: bool, draws: &Draws<'_>) -> Application {
        self.part().application(sends, draws)
    }

    /// Returns `true` if the end that receives the workload's data also writes.
    pub(crate) fn answers(&self) -> bool {
        self.part().answers()
    }

    /// Number of blocks or rounds, if it is limited.
    pub(crate) fn count(&self) -> Option<u64> {
        self.part().count()
    }

    fn from_table(table: Table) -> Result<Self, Problem> {
        let workload: Workload = from_table(table, &[])?;
        workload.part().check()?;
        Ok(workload)
    }
}

impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Workload::from_table(Table::deserialize(deserializer)?).map_err(Problem::raise)
    }
}

impl JsonSchema for Workload {
    fn schema_name() -> Cow<'static, str> {
        "Workload".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        schema::any_table::<Workload>("Data that a connection carries.", generator)
    }
}
