//! Keys whose default depends on other keys.

use core::ops::{Deref, DerefMut};
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

/// A value whose default depends on other keys. For example, the default congestion control depends
/// on the protocol. A parsed scenario always has the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Inferred<T>(Option<T>);

impl<T> Inferred<T> {
    /// Returns `true` if the value has been neither given nor inferred yet.
    pub(super) fn is_missing(&self) -> bool {
        self.0.is_none()
    }

    /// Use this default if no value was given.
    pub(super) fn infer(&mut self, default: impl FnOnce() -> T) {
        self.0.get_or_insert_with(default);
    }
}

impl<T> Deref for Inferred<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("a parsed scenario has the value")
    }
}

impl<T> DerefMut for Inferred<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("a parsed scenario has the value")
    }
}

impl<T> From<T> for Inferred<T> {
    fn from(value: T) -> Self {
        Inferred(Some(value))
    }
}

impl<T> Default for Inferred<T> {
    fn default() -> Self {
        Inferred(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Inferred<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Inferred::from)
    }
}

impl<T: JsonSchema> JsonSchema for Inferred<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
