//! A choice with parameters: a name alone, or a table with a kind and parameters.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::Problem;

/// A table with the keys of all kinds of something; those of other kinds are refused.
pub(super) trait KindTable: PartialEq + Serialize + DeserializeOwned + JsonSchema {
    /// What the kinds are called.
    type Kind: Copy + Serialize + DeserializeOwned + JsonSchema;
    /// A name for messages that fits, in quotes.
    const EXAMPLE: &'static str;

    /// The table with this kind and nothing else.
    fn of_kind(kind: Self::Kind) -> Self;
    /// The kind in the table.
    fn kind(&self) -> Self::Kind;
}

/// What the file holds: a name or a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Choice<T>(pub(super) T);

/// A key that only some kinds have: its name, whether it is written, whether it belongs, and whom
/// it belongs to.
pub(super) type OwnedKey = (&'static str, bool, bool, &'static str);

/// Refuse the keys of the table at `key` that belong to other kinds.
pub(super) fn refuse_foreign(
    key: &str,
    keys: impl IntoIterator<Item = OwnedKey>,
) -> Result<(), Problem> {
    match keys.into_iter().find(|(_, written, belongs, _)| *written && !belongs) {
        Some((name, _, _, owner)) => {
            let problem = format!("belongs to {owner}; leave it out");
            Err(Problem::new(format!("{key}.{name}"), problem))
        }
        None => Ok(()),
    }
}

impl<T: KindTable> Serialize for Choice<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = self.0.kind();
        if self.0 == T::of_kind(kind) {
            kind.serialize(serializer)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de, T: KindTable> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChoiceVisitor(PhantomData))
    }
}

struct ChoiceVisitor<T>(PhantomData<T>);

impl<'de, T: KindTable> Visitor<'de> for ChoiceVisitor<T> {
    type Value = Choice<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a name such as {}, or a table with a kind", T::EXAMPLE)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Choice<T>, E> {
        T::Kind::deserialize(StrDeserializer::new(name)).map(|kind| Choice(T::of_kind(kind)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Choice<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Choice)
    }
}

impl<T: KindTable> JsonSchema for Choice<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Value", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let name = generator.subschema_for::<T::Kind>();
        let table = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [name, table] })
    }
}
