//! A workload in a scenario: a table with a kind and the keys of that kind.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use toml::Table;

use super::{Application, Draws, Workload};
use anabranch_config::written::{
    Problem, describe, found, missing_field, unknown_field, unknown_key, unknown_name,
};

/// A kind of workload. The type holds its keys.
pub(crate) trait Kind {
    /// Validate what serde cannot check.
    fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    /// Whether the end that receives the workload's data also writes.
    fn answers(&self) -> bool {
        false
    }

    /// The end of a connection that sends the workload's data, or the opposite end.
    fn application(&self, sends: bool, draws: &Draws<'_>) -> Application;
}

/// A kind and its name.
pub(super) struct Entry {
    /// The name in scenarios.
    pub(super) name: &'static str,
    /// Reads the keys.
    pub(super) read: fn(Table) -> Result<Workload, Error>,
    /// The JSON Schema of the keys.
    pub(super) schema: fn(&mut SchemaGenerator) -> Schema,
}

type Error = serde_path_to_error::Error<toml::de::Error>;

/// Defines the enum [`Workload`] with these kinds, and their list.
macro_rules! workloads {
    ($($name:literal is $Kind:ident,)+) => {
        /// The data that a connection transfers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
        #[serde(tag = "kind")]
        pub enum Workload {
            $(
                #[doc = concat!("`", $name, "`.")]
                #[serde(rename = $name)]
                $Kind($Kind),
            )+
        }

        impl Workload {
            const ALL: &'static [kind::Entry] = &[$(kind::Entry {
                name: $name,
                read: |table| kind::read(table).map(Workload::$Kind),
                schema: <$Kind as schemars::JsonSchema>::json_schema,
            }),+];

            fn kind(&self) -> &dyn Kind {
                match self { $(Workload::$Kind(kind) => kind),+ }
            }
        }
    };
}
pub(super) use workloads;

/// The key that selects the kind.
const KIND: &str = "kind";

/// Read the keys of a kind.
pub(super) fn read<K: DeserializeOwned>(table: Table) -> Result<K, Error> {
    serde_path_to_error::deserialize(toml::Value::Table(table))
}

impl Workload {
    /// One end of a connection: the end that sends the workload's data, or the opposite end.
    pub(crate) fn application(&self, sends: bool, draws: &Draws<'_>) -> Application {
        self.kind().application(sends, draws)
    }

    /// Whether the end that receives the workload's data also writes.
    pub(crate) fn answers(&self) -> bool {
        self.kind().answers()
    }

    fn from_table(mut table: Table) -> Result<Self, Problem> {
        let name = match table.remove(KIND) {
            Some(toml::Value::String(name)) => name,
            Some(other) => {
                let problem = format!("found {}, expected a name", found(&other));
                return Err(Problem::new(KIND, problem));
            }
            None => return Err(without_kind(&table)),
        };
        let entry = Workload::ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let valid: Vec<_> = Workload::ALL.iter().map(|entry| entry.name).collect();
            Problem::new(KIND, unknown_name(KIND, &name, &valid))
        })?;
        let workload = (entry.read)(table).map_err(|error| entry.problem(&error))?;
        workload.kind().check()?;
        Ok(workload)
    }
}

impl Entry {
    /// The problem that an error in the keys describes.
    fn problem(&self, error: &Error) -> Problem {
        let (path, message) = (error.path(), error.inner().message());
        let place = path.to_string();
        // Other errors are about keys of nested tables. A dot is the workload itself.
        match (unknown_field(message), missing_field(message)) {
            (Some((key, own)), _) if place == key || place == "." => {
                Problem::new(key, self.foreign(key, &own))
            }
            (_, Some(key)) if place == "." => Problem::new(key, self.missing(key)),
            _ => describe(path, message),
        }
    }

    fn foreign(&self, key: &str, own: &[&str]) -> String {
        let name = self.name;
        let owner = Workload::ALL.iter().find(|other| other.keys().iter().any(|own| own == key));
        if let Some(Entry { name: owner, .. }) = owner {
            let a = article(name);
            return format!(
                "{a} {name} workload has no {key}; leave it out or write kind = {owner:?}"
            );
        }
        unknown(key, &[&[KIND], own].concat())
    }

    fn missing(&self, key: &str) -> String {
        let (name, a, its) = (self.name, article(self.name), article(key));
        let example = &self.properties()[key]["examples"][0];
        format!("missing; {a} {name} workload needs {its} {key} such as {example}")
    }

    fn properties(&self) -> Json {
        let mut generator = SchemaGenerator::default();
        (self.schema)(&mut generator).get("properties").cloned().unwrap_or_default()
    }

    fn keys(&self) -> Vec<String> {
        let properties = self.properties();
        properties.as_object().into_iter().flat_map(|keys| keys.keys().cloned()).collect()
    }

    /// The JSON Schema of the kind's table.
    fn table(&self, generator: &mut SchemaGenerator) -> Schema {
        let mut schema = (self.schema)(generator);
        let kind = serde_json::json!({ "const": self.name, "description": "Kind of workload." });
        let object = schema.ensure_object();
        let properties = object.entry("properties").or_insert_with(|| serde_json::json!({}));
        properties[KIND] = kind;
        let required = object.entry("required").or_insert_with(|| serde_json::json!([]));
        if let Some(required) = required.as_array_mut() {
            required.insert(0, KIND.into());
        }
        schema
    }
}

/// The problem with a table without a kind. A key may be misspelt.
fn without_kind(table: &Table) -> Problem {
    let keys: Vec<String> = Workload::ALL.iter().flat_map(Entry::keys).collect();
    match table.keys().find(|key| !keys.contains(key)) {
        Some(key) => Problem::new(key, unknown(key, &[KIND])),
        None => Problem::new(KIND, "missing; this key is required"),
    }
}

/// The problem with a key that no workload has, given the `valid` keys.
fn unknown(key: &str, valid: &[&str]) -> String {
    let others: Vec<String> = Workload::ALL.iter().flat_map(Entry::keys).collect();
    unknown_key(key, valid, &others.iter().map(String::as_str).collect::<Vec<_>>())
}

fn article(word: &str) -> &'static str {
    if word.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" }
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
        let each = Workload::ALL.iter().map(|entry| entry.table(generator));
        json_schema!({ "description": "Data that a connection carries.", "oneOf": each.collect::<Vec<_>>() })
    }
}
