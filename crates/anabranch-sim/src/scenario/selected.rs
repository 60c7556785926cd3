//! Entries that a scenario chooses: a name alone, or a table with a kind and parameters.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;

use anabranch_wire::entry::{Entry, Kind, Parameter, Value, Values};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

use super::entry_schema;
pub(super) use super::entry_schema::KIND;
use super::path_names::Used;
use super::value;
use crate::written::{Problem, found, unknown_key, unknown_name};

/// A policy, a platform, a queue or a middlebox with its parameters.
#[derive(Debug)]
pub struct Selected<M: 'static> {
    /// The selected entry.
    pub entry: &'static Entry<M>,
    /// The values of its parameters.
    pub values: Values,
}

/// A sort of entries that are made in the same way, such as schedulers. A scenario chooses one.
pub trait Catalog: Sized + 'static {
    /// Noun for an entry in messages.
    const NOUN: &'static str;
    /// All entries of the sort.
    const ALL: &'static [Entry<Self>];
}

impl<M> Selected<M> {
    /// The entry with its parameters' defaults. The caller must set parameters without a default.
    pub fn new(entry: &'static Entry<M>) -> Self {
        Selected { entry, values: Values::defaults(entry.parameters) }
    }

    /// Find the connection's paths that the parameters name. `key` is the entry's key in messages.
    pub(super) fn find_paths(&mut self, key: &str, used: Used<'_>) -> Result<(), Problem> {
        for parameter in self.entry.parameters.iter().filter(|each| each.kind == Kind::Path) {
            let Value::Path(path) = self.values.get(parameter.name) else { continue };
            let found = used.find(&path);
            let found =
                found.map_err(|text| Problem::new(format!("{key}.{}", parameter.name), text))?;
            self.values.set(parameter.name, Value::Path(found));
        }
        Ok(())
    }
}

impl<M: Catalog> Selected<M> {
    /// The entry called `name`.
    ///
    /// # Errors
    /// A problem with the value itself, which lists the valid names.
    pub(super) fn named(name: &str) -> Result<&'static Entry<M>, Problem> {
        M::ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let valid: Vec<_> = M::ALL.iter().map(|entry| entry.name).collect();
            Problem::new("", unknown_name(M::NOUN, name, &valid))
        })
    }

    /// The entry that a table with a kind describes. The caller has removed the keys `also`, which
    /// are valid too.
    pub(super) fn from_table(mut written: Table, also: &[&str]) -> Result<Self, Problem> {
        let name = take_kind(&mut written)?;
        let entry = Self::named(&name).map_err(|problem| problem.below(KIND))?;
        Self::with_parameters(entry, written, also)
    }

    /// `entry` with the parameters in `written`.
    pub(super) fn with_parameters(
        entry: &'static Entry<M>,
        mut written: Table,
        also: &[&str],
    ) -> Result<Self, Problem> {
        let given: Vec<String> = written.keys().cloned().collect();
        let values = take(entry.parameters, &mut written)?;
        if let Some(name) = written.keys().next() {
            return Err(Problem::new(name, foreign(entry, name, also)));
        }
        let selected = Selected { entry, values };
        for parameter in entry.parameters {
            if selected.values.get(parameter.name) == Value::Required {
                return Err(Problem::new(parameter.name, value::missing(parameter.kind)));
            }
            let is_given = given.iter().any(|name| name == parameter.name);
            if let Some((other, needed)) =
                parameter.only_with.filter(|_| is_given && !applies(parameter, &selected))
            {
                let problem = format!(
                    "belongs to kind = {:?} and {other} = {needed:?}; remove it",
                    entry.name
                );
                return Err(Problem::new(parameter.name, problem));
            }
        }
        Ok(selected)
    }
}

impl<M> Clone for Selected<M> {
    fn clone(&self) -> Self {
        Selected { entry: self.entry, values: self.values.clone() }
    }
}

impl<M> PartialEq for Selected<M> {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.values == other.values
    }
}

impl<M: Catalog> Default for Selected<M> {
    /// The first entry of its sort.
    fn default() -> Self {
        Selected::new(&M::ALL[0])
    }
}

impl<M: Catalog> Serialize for Selected<M> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        let mut table: Table = written_parameters(self).collect();
        if table.is_empty() {
            return serializer.serialize_str(self.entry.name);
        }
        table.insert(KIND.to_owned(), self.entry.name.into());
        table.serialize(serializer)
    }
}

impl<'de, M: Catalog> Deserialize<'de> for Selected<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SelectedVisitor(PhantomData))
    }
}

struct SelectedVisitor<M>(PhantomData<M>);

impl<'de, M: Catalog> Visitor<'de> for SelectedVisitor<M> {
    type Value = Selected<M>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a name such as {:?}, or a table with a kind", M::ALL[0].name)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Selected<M>, E> {
        let entry = Selected::named(name).map_err(Problem::raise)?;
        Selected::with_parameters(entry, Table::new(), &[]).map_err(Problem::raise)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Selected<M>, A::Error> {
        let written = Table::deserialize(MapAccessDeserializer::new(map))?;
        Selected::from_table(written, &[]).map_err(Problem::raise)
    }
}

impl<M: Catalog> JsonSchema for Selected<M> {
    fn schema_name() -> Cow<'static, str> {
        let words = M::NOUN.split(' ');
        let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
        words.map(capital).collect::<String>().into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let names = entry_schema::names(M::ALL);
        let mut properties = entry_schema::properties(M::ALL, generator);
        properties.insert(KIND.to_owned(), names.clone());
        json_schema!({
            "anyOf": [
                names,
                {
                    "type": "object",
                    "properties": properties,
                    "required": [KIND],
                    "additionalProperties": false,
                },
            ]
        })
    }
}

/// Write a table with a kind and parameters, with its keys in order. `others` follow the kind.
pub(super) fn serialize_in_order<M, T: Serializer>(
    selected: &Selected<M>,
    others: impl Iterator<Item = (String, toml::Value)>,
    serializer: T,
) -> Result<T::Ok, T::Error> {
    let kind = (KIND.to_owned(), selected.entry.name.into());
    serializer.collect_map([kind].into_iter().chain(others).chain(written_parameters(selected)))
}

/// Remove the kind from a table.
fn take_kind(written: &mut Table) -> Result<String, Problem> {
    let problem = match written.remove(KIND) {
        Some(toml::Value::String(name)) => return Ok(name),
        Some(other) => format!("found {}, expected a name", found(&other)),
        None => "missing; this key is required".to_owned(),
    };
    Err(Problem::new(KIND, problem))
}

/// Remove the values of these parameters from a table.
pub(super) fn take(parameters: &[Parameter], written: &mut Table) -> Result<Values, Problem> {
    let mut values = Values::defaults(parameters);
    for parameter in parameters {
        if let Some(value) = written.remove(parameter.name) {
            let value = value::read(parameter, &value);
            values.set(parameter.name, value.map_err(|problem| problem.below(parameter.name))?);
        }
    }
    Ok(values)
}

/// Whether the parameter applies with the values of the other parameters.
fn applies<M>(parameter: &Parameter, selected: &Selected<M>) -> bool {
    parameter
        .only_with
        .is_none_or(|(other, needed)| selected.values.get(other) == Value::Choice(needed))
}

/// The problem with a key that `entry` does not have.
fn foreign<M: Catalog>(entry: &Entry<M>, name: &str, also: &[&str]) -> String {
    let owns = |other: &&Entry<M>| other.parameters.iter().any(|p| p.name == name);
    let owners: Vec<_> = M::ALL.iter().filter(owns).collect();
    if owners.is_empty() {
        let keys = |parameters: &[Parameter]| parameters.iter().map(|p| p.name).collect::<Vec<_>>();
        let own = [also, &keys(entry.parameters)].concat();
        let others = M::ALL.iter().flat_map(|other| keys(other.parameters));
        return unknown_key(name, &own, &others.collect::<Vec<_>>());
    }
    let kinds: Vec<_> = owners.iter().map(|owner| format!("kind = {:?}", owner.name)).collect();
    let that = if kinds.len() == 1 { "that kind" } else { "one of these kinds" };
    format!("belongs to {}; remove it, or write {that}", kinds.join(" and "))
}

/// The parameters as written, in order, without those that do not apply.
pub(super) fn written_parameters<M>(
    selected: &Selected<M>,
) -> impl Iterator<Item = (String, toml::Value)> + '_ {
    let parameters = selected.entry.parameters.iter().filter(|p| applies(p, selected));
    parameters.filter_map(move |parameter| {
        let value = value::write(&selected.values.get(parameter.name))?;
        Some((parameter.name.to_owned(), value))
    })
}
