//! Policies chosen by name: a name alone, or a table with a kind and parameters.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;

use anabranch_net::units::{format_duration, parse_duration};
use anabranch_proto::policy::{Entry, Kind, Parameter, Value, Values};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

use super::Path;
use super::error::{Problem, unknown_key, unknown_name};

/// A policy with its parameters.
#[derive(Debug)]
pub struct Chosen<M: 'static> {
    /// Which.
    pub entry: &'static Entry<M>,
    /// Its parameters.
    pub values: Values,
}

impl<M> Chosen<M> {
    /// A policy with the defaults of its parameters.
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

/// The policies of one sort.
pub(super) trait Sort {
    /// What makes one.
    type Make: 'static;
    /// What they are called in messages.
    const NOUN: &'static str;
    /// All of them.
    const ALL: &'static [Entry<Self::Make>];
}

/// The policy called `name`.
///
/// # Errors
/// A problem that names the valid ones.
pub(super) fn named<S: Sort>(key: &str, name: &str) -> Result<&'static Entry<S::Make>, Problem> {
    S::ALL.iter().find(|entry| entry.name == name).ok_or_else(|| {
        let valid: Vec<_> = S::ALL.iter().map(|entry| entry.name).collect();
        Problem::new(key, unknown_name(S::NOUN, name, &valid))
    })
}

/// The paths that a connection uses, by name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Used<'a> {
    pub(super) paths: &'a [Path],
    pub(super) indices: &'a [usize],
}

impl<'a> Used<'a> {
    /// The names of the connection's paths, in its order.
    pub(super) fn names(self) -> impl Iterator<Item = &'a str> {
        self.indices.iter().map(move |index| self.paths[*index].name.as_str())
    }

    /// Where the connection has the path called `name`.
    fn position(self, name: &str) -> Result<usize, String> {
        let valid: Vec<_> = self.names().collect();
        let found = valid.iter().position(|path| *path == name);
        found.ok_or_else(|| unknown_name("path of the connection", name, &valid))
    }
}

/// What the file holds: a name, or a table with a kind and parameters.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice<S> {
    written: Table,
    sort: PhantomData<S>,
}

const KIND: &str = "kind";

impl<S: Sort> Choice<S> {
    /// The name alone.
    pub(super) fn of(name: &str) -> Self {
        let kind = toml::Value::String(name.to_owned());
        Choice { written: Table::from_iter([(KIND.to_owned(), kind)]), sort: PhantomData }
    }

    /// The policy that the value at `key` describes.
    pub(super) fn resolve(mut self, key: &str, used: Used<'_>) -> Result<Chosen<S::Make>, Problem> {
        let kind_key = format!("{key}.{KIND}");
        let name = match self.written.remove(KIND) {
            Some(toml::Value::String(name)) => name,
            Some(other) => {
                let problem = format!("found {}, expected a name", describe(&other));
                return Err(Problem::new(kind_key, problem));
            }
            None => return Err(Problem::new(kind_key, "missing; this key is required")),
        };
        let alone = self.written.is_empty();
        let entry = named::<S>(if alone { key } else { &kind_key }, &name)?;
        parameters::<S>(entry, key, self.written, used)
    }

    /// The value that describes `chosen`, with every default spelled out.
    pub(super) fn spelled_out(chosen: &Chosen<S::Make>, used: Used<'_>) -> Self {
        let mut choice = Choice::of(chosen.entry.name);
        choice.written.extend(written_parameters(chosen, used));
        choice
    }
}

/// The policy `entry` with the parameters in `written`, the table at `key`.
pub(super) fn parameters<S: Sort>(
    entry: &'static Entry<S::Make>,
    key: &str,
    written: Table,
    used: Used<'_>,
) -> Result<Chosen<S::Make>, Problem> {
    let mut chosen = Chosen::new(entry);
    let given: Vec<String> = written.keys().cloned().collect();
    for (name, value) in written {
        let key = format!("{key}.{name}");
        let Some(parameter) = entry.parameters.iter().find(|p| p.name == name) else {
            return Err(Problem::new(key, foreign::<S>(entry, &name)));
        };
        let value = read(parameter.kind, &value, used);
        chosen.values.set(parameter.name, value.map_err(|problem| Problem::new(key, problem))?);
    }
    for parameter in entry.parameters.iter().filter(|p| given.iter().any(|name| name == p.name)) {
        if let Some((other, needed)) = parameter.only_with.filter(|_| !applies(parameter, &chosen))
        {
            let problem = format!(
                "belongs to kind = {:?} and {other} = {needed:?}; leave it out",
                entry.name
            );
            return Err(Problem::new(format!("{key}.{}", parameter.name), problem));
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

/// What is wrong with a key that the policy does not have.
fn foreign<S: Sort>(entry: &Entry<S::Make>, name: &str) -> String {
    let owner = S::ALL.iter().find(|other| other.parameters.iter().any(|p| p.name == name));
    if let Some(owner) = owner {
        return format!("belongs to kind = {:?}; leave it out", owner.name);
    }
    let valid: Vec<_> = entry.parameters.iter().map(|parameter| parameter.name).collect();
    unknown_key(name, &valid)
}

/// A parameter's value as it is written.
pub(super) fn read(kind: Kind, value: &toml::Value, used: Used<'_>) -> Result<Value, String> {
    let mismatch = |expected: &str| Err(format!("found {}, expected {expected}", describe(value)));
    match (kind, value) {
        (Kind::Count { least, most }, toml::Value::Integer(count)) => {
            let within = u32::try_from(*count).ok().filter(|n| (least..=most).contains(n));
            within.map(Value::Count).ok_or_else(|| match most {
                u32::MAX => format!("{count}: must be {least} or more"),
                _ => format!("{count}: must be between {least} and {most}"),
            })
        }
        (Kind::Count { .. }, _) => mismatch("a whole number"),
        (Kind::Flag, toml::Value::Boolean(flag)) => Ok(Value::Flag(*flag)),
        (Kind::Flag, _) => mismatch("true or false"),
        (Kind::Number { least, most }, toml::Value::Integer(_) | toml::Value::Float(_)) => {
            let number = value.as_float().or(value.as_integer().map(|n| n as f64));
            let within = number.filter(|number| (least..=most).contains(number));
            within
                .map(Value::Number)
                .ok_or_else(|| format!("{value}: must be between {least} and {most}"))
        }
        (Kind::Number { .. }, _) => mismatch("a number such as 1.5"),
        (Kind::Time { zero }, toml::Value::String(text)) => {
            let time = parse_duration(text).map_err(|error| error.to_string())?;
            if time.is_zero() && !zero {
                return Err(format!("{text:?}: must be longer than zero"));
            }
            Ok(Value::Time(time))
        }
        (Kind::Time { .. }, toml::Value::Integer(_) | toml::Value::Float(_)) => {
            Err(format!("\"{value}\" has no unit; write a duration such as \"20ms\""))
        }
        (Kind::Time { .. }, _) => mismatch("a duration such as \"20ms\""),
        (Kind::Choice(names), toml::Value::String(text)) => {
            let found = names.iter().find(|name| *name == text);
            found.map(|name| Value::Choice(name)).ok_or_else(|| unknown_name("name", text, names))
        }
        (Kind::Choice(names), _) => mismatch(&format!("one of {}", names.join(", "))),
        (Kind::Path, toml::Value::String(name)) => used.position(name).map(Value::Path),
        (Kind::Path, _) => mismatch("the name of a path"),
    }
}

/// The parameters of a policy as they are written, those without meaning left out.
pub(super) fn written_parameters<M>(chosen: &Chosen<M>, used: Used<'_>) -> Table {
    let parameters = chosen.entry.parameters.iter().filter(|p| applies(p, chosen));
    parameters
        .map(|parameter| {
            let value = match chosen.values.get(parameter.name) {
                Value::Count(count) => toml::Value::Integer(count.into()),
                Value::Flag(flag) => toml::Value::Boolean(flag),
                Value::Number(number) => toml::Value::Float(number),
                Value::Time(time) => toml::Value::String(format_duration(time)),
                Value::Choice(name) => toml::Value::String(name.to_owned()),
                Value::Path(path) => {
                    toml::Value::String(used.names().nth(path).unwrap_or_default().to_owned())
                }
            };
            (parameter.name.to_owned(), value)
        })
        .collect()
}

/// A value in a message, as serde calls it.
fn describe(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => format!("string {text:?}"),
        toml::Value::Integer(_) => format!("integer `{value}`"),
        toml::Value::Float(_) => format!("floating point `{value}`"),
        toml::Value::Boolean(_) => format!("boolean `{value}`"),
        toml::Value::Array(_) => "an array".to_owned(),
        toml::Value::Table(_) => "a table".to_owned(),
        toml::Value::Datetime(_) => format!("date `{value}`"),
    }
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

/// What editors are told of a parameter.
pub(super) fn parameter_schema(parameter: &Parameter, owner: &str) -> Schema {
    let mut schema = match parameter.kind {
        Kind::Count { least, most } => {
            json_schema!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Flag => json_schema!({ "type": "boolean" }),
        Kind::Number { least, most } => {
            json_schema!({ "type": "number", "minimum": least, "maximum": most })
        }
        Kind::Time { .. } | Kind::Path => json_schema!({ "type": "string" }),
        Kind::Choice(names) => json_schema!({ "type": "string", "enum": names }),
    };
    let text = format!("`{owner}` only: {}", parameter.meaning);
    schema.insert("description".to_owned(), text.into());
    schema
}

impl<S: Sort> JsonSchema for Choice<S> {
    fn schema_name() -> Cow<'static, str> {
        let words = S::NOUN.split(' ');
        let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
        words.map(capital).collect::<String>().into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        let name = |entry: &Entry<S::Make>| json_schema!({ "const": entry.name, "description": entry.summary });
        let names: Vec<Schema> = S::ALL.iter().map(name).collect();
        let mut properties = serde_json::Map::new();
        properties.insert(KIND.to_owned(), serde_json::json!({ "oneOf": names }));
        for entry in S::ALL {
            for parameter in entry.parameters {
                let schema = parameter_schema(parameter, entry.name);
                properties.insert(parameter.name.to_owned(), schema.into());
            }
        }
        json_schema!({
            "anyOf": [
                { "oneOf": names },
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
