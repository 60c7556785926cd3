//! What is chosen by name: a name alone, or a table with a kind and parameters.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;

use anabranch_wire::entry::{Entry, Parameter, Value, Values};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

use super::entry_schema;
pub(super) use super::entry_schema::KIND;
use super::error::{Problem, unknown_key, unknown_name};
use super::value::{self, Used};

/// A policy, a queue or a middlebox with its parameters.
#[derive(Debug)]
pub struct Chosen<M: 'static> {
    /// Which.
    pub entry: &'static Entry<M>,
    /// Its parameters.
    pub values: Values,
}

impl<M> Chosen<M> {
    /// With the defaults of its parameters. Those that have none are to be set before it is made.
    pub fn new(entry: &'static Entry<M>) -> Self {
        Chosen { entry, values: Values::defaults(entry.parameters) }
    }
}

impl<M> Clone for Chosen<M> {
    fn clone(&self) -> Self {
        Chosen { entry: self.entry, values: self.values.clone() }
    }
}

impl<M> PartialEq for Chosen<M> {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.values == other.values
    }
}

/// Things of one sort, of which one is chosen.
pub(super) trait Sort {
    /// What makes one.
    type Make: 'static;
    /// What they are called in messages.
    const NOUN: &'static str;
    /// All of them.
    const ALL: &'static [Entry<Self::Make>];
}

/// The entry called `name`.
///
/// # Errors
/// A problem that names the valid ones.
pub(super) fn named<S: Sort>(key: &str, name: &str) -> Result<&'static Entry<S::Make>, Problem> {
    S::ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let valid: Vec<_> = S::ALL.iter().map(|entry| entry.name).collect();
        Problem::new(key, unknown_name(S::NOUN, name, &valid))
    })
}

/// What the file holds: a name, or a table with a kind and parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice<S> {
    written: Table,
    sort: PhantomData<S>,
}

impl<S: Sort> Choice<S> {
    /// The name alone.
    pub(super) fn of(name: &str) -> Self {
        let kind = toml::Value::String(name.to_owned());
        Choice { written: Table::from_iter([(KIND.to_owned(), kind)]), sort: PhantomData }
    }

    /// What the value at `key` describes.
    pub(super) fn resolve(mut self, key: &str, used: Used<'_>) -> Result<Chosen<S::Make>, Problem> {
        let name = take_kind(key, &mut self.written)?;
        let alone = self.written.is_empty();
        let kind_key = format!("{key}.{KIND}");
        let entry = named::<S>(if alone { key } else { &kind_key }, &name)?;
        parameters::<S>(entry, key, self.written, used, &[])
    }

    /// The value that describes `chosen`, with every default spelled out.
    pub(super) fn spelled_out(chosen: &Chosen<S::Make>, used: Used<'_>) -> Self {
        let mut choice = Choice::of(chosen.entry.name);
        choice.written.extend(written_parameters(chosen, used));
        choice
    }
}

/// The keys of a table with a kind and parameters, in their order.
#[derive(Clone, Debug)]
pub(super) struct Keys(Vec<(String, toml::Value)>);

impl Keys {
    /// The keys that describe `chosen`, with every default spelled out; `others` follow the kind.
    pub(super) fn spelled_out<M>(
        chosen: &Chosen<M>,
        others: impl Iterator<Item = (String, toml::Value)>,
    ) -> Self {
        let kind = (KIND.to_owned(), chosen.entry.name.into());
        let parameters = written_parameters(chosen, Used::default());
        Keys([kind].into_iter().chain(others).chain(parameters).collect())
    }

    pub(super) fn into_table(self) -> Table {
        self.0.into_iter().collect()
    }
}

impl Serialize for Keys {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Keys(Table::deserialize(deserializer)?.into_iter().collect()))
    }
}

/// The kind that the table at `key` has, which is taken out.
pub(super) fn take_kind(key: &str, written: &mut Table) -> Result<String, Problem> {
    let problem = match written.remove(KIND) {
        Some(toml::Value::String(name)) => return Ok(name),
        Some(other) => format!("found {}, expected a name", value::describe(&other)),
        None => "missing; this key is required".to_owned(),
    };
    Err(Problem::new(format!("{key}.{KIND}"), problem))
}

/// The values of these parameters, which are taken out of the table at `key`.
pub(super) fn take(
    parameters: &[Parameter],
    key: &str,
    written: &mut Table,
    used: Used<'_>,
) -> Result<Values, Problem> {
    let mut values = Values::defaults(parameters);
    for parameter in parameters {
        if let Some(value) = written.remove(parameter.name) {
            let key = format!("{key}.{}", parameter.name);
            values.set(parameter.name, value::read(&key, parameter, &value, used)?);
        }
    }
    Ok(values)
}

/// `entry` with the parameters in `written`, the table at `key`, which may also have had the keys
/// `also`.
pub(super) fn parameters<S: Sort>(
    entry: &'static Entry<S::Make>,
    key: &str,
    mut written: Table,
    used: Used<'_>,
    also: &[&str],
) -> Result<Chosen<S::Make>, Problem> {
    let given: Vec<String> = written.keys().cloned().collect();
    let values = take(entry.parameters, key, &mut written, used)?;
    if let Some(name) = written.keys().next() {
        return Err(Problem::new(format!("{key}.{name}"), foreign::<S>(entry, name, also)));
    }
    let chosen = Chosen { entry, values };
    for parameter in entry.parameters {
        let key = format!("{key}.{}", parameter.name);
        if chosen.values.get(parameter.name) == Value::Required {
            return Err(Problem::new(key, value::missing(parameter.kind)));
        }
        let is_given = given.iter().any(|name| name == parameter.name);
        if let Some((other, needed)) =
            parameter.only_with.filter(|_| is_given && !applies(parameter, &chosen))
        {
            let problem = format!(
                "belongs to kind = {:?} and {other} = {needed:?}; leave it out",
                entry.name
            );
            return Err(Problem::new(key, problem));
        }
    }
    Ok(chosen)
}

/// Has the parameter a meaning with the values of the others?
fn applies<M>(parameter: &Parameter, chosen: &Chosen<M>) -> bool {
    parameter
        .only_with
        .is_none_or(|(other, needed)| chosen.values.get(other) == Value::Choice(needed))
}

/// What is wrong with a key that `entry` does not have.
fn foreign<S: Sort>(entry: &Entry<S::Make>, name: &str, also: &[&str]) -> String {
    let owns = |other: &&Entry<S::Make>| other.parameters.iter().any(|p| p.name == name);
    let owners: Vec<_> = S::ALL.iter().filter(owns).collect();
    if owners.is_empty() {
        let keys = |parameters: &[Parameter]| parameters.iter().map(|p| p.name).collect::<Vec<_>>();
        let own = [also, &keys(entry.parameters)].concat();
        let others = S::ALL.iter().flat_map(|other| keys(other.parameters));
        return unknown_key(name, &own, &others.collect::<Vec<_>>());
    }
    let kinds: Vec<_> = owners.iter().map(|owner| format!("kind = {:?}", owner.name)).collect();
    let that = if kinds.len() == 1 { "that kind" } else { "one of these kinds" };
    format!("belongs to {}; leave it out, or write {that}", kinds.join(" and "))
}

/// The parameters as they are written, in their order, those without meaning left out.
pub(super) fn written_parameters<'a, M>(
    chosen: &'a Chosen<M>,
    used: Used<'a>,
) -> impl Iterator<Item = (String, toml::Value)> + 'a {
    let parameters = chosen.entry.parameters.iter().filter(|p| applies(p, chosen));
    parameters.filter_map(move |parameter| {
        let value = value::write(&chosen.values.get(parameter.name), used)?;
        Some((parameter.name.to_owned(), value))
    })
}

impl<S: Sort> Default for Choice<S> {
    /// The first of its sort.
    fn default() -> Self {
        Choice::of(S::ALL[0].name)
    }
}

impl<S> Serialize for Choice<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        match self.written.get(KIND).filter(|_| self.written.len() == 1) {
            Some(name) => name.serialize(serializer),
            None => self.written.serialize(serializer),
        }
    }
}

impl<'de, S: Sort> Deserialize<'de> for Choice<S> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChoiceVisitor(PhantomData))
    }
}

struct ChoiceVisitor<S>(PhantomData<S>);

impl<'de, S: Sort> Visitor<'de> for ChoiceVisitor<S> {
    type Value = Choice<S>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a name such as {:?}, or a table with a kind", S::ALL[0].name)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Choice<S>, E> {
        Ok(Choice::of(name))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Choice<S>, A::Error> {
        let written = Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Choice { written, sort: PhantomData })
    }
}

impl<S: Sort> JsonSchema for Choice<S> {
    fn schema_name() -> Cow<'static, str> {
        let words = S::NOUN.split(' ');
        let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
        words.map(capital).collect::<String>().into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let names = entry_schema::names(S::ALL);
        let mut properties = entry_schema::properties(S::ALL, generator);
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
