//! Quantities in a scenario file: strings with a unit.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;

use anabranch_net::units::{
    Octets, Probability, QueueLimit, Rate, UnitError, format_duration, parse_duration,
};
use anabranch_wire::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A quantity that a file holds as a string with its unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written<T>(pub(super) T);

/// How a quantity is written.
pub(super) trait Quantity: Sized {
    /// Name in the JSON Schema.
    const NAME: &'static str;
    /// What it is, with an example; also ends the sentence "found ..., expected ...".
    const DESCRIPTION: &'static str;
    /// Regular expression for editors. The parser decides.
    const PATTERN: &'static str;

    fn read(text: &str) -> Result<Self, UnitError>;
    fn write(&self) -> String;
}

impl Quantity for Rate {
    const NAME: &'static str = "Rate";
    const DESCRIPTION: &'static str = "a rate such as \"8Mbit/s\"";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)? ?[kMGT]?bit/s$";

    fn read(text: &str) -> Result<Self, UnitError> {
        text.parse()
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Quantity for Duration {
    const NAME: &'static str = "Duration";
    const DESCRIPTION: &'static str = "a duration such as \"20ms\"";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)? ?(ns|us|ms|s)$";

    fn read(text: &str) -> Result<Self, UnitError> {
        parse_duration(text)
    }

    fn write(&self) -> String {
        format_duration(*self)
    }
}

impl Quantity for Octets {
    const NAME: &'static str = "Size";
    const DESCRIPTION: &'static str = "a size such as \"200kB\" or \"200KiB\"";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)? ?(B|kB|KiB|MB|MiB|GB|GiB)$";

    fn read(text: &str) -> Result<Self, UnitError> {
        text.parse()
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Quantity for QueueLimit {
    const NAME: &'static str = "QueueLimit";
    const DESCRIPTION: &'static str =
        "a queue limit such as \"54packets\", \"100kB\", \"80ms\" or \"infinite\"";
    const PATTERN: &'static str =
        r"^(infinite|[0-9]+(\.[0-9]+)? ?(packets|B|kB|KiB|MB|MiB|GB|GiB|ns|us|ms|s))$";

    fn read(text: &str) -> Result<Self, UnitError> {
        text.parse()
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl Quantity for Probability {
    const NAME: &'static str = "Probability";
    const DESCRIPTION: &'static str = "a probability such as \"1%\"";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)? ?%$";

    fn read(text: &str) -> Result<Self, UnitError> {
        text.parse()
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

impl<T: Quantity> Serialize for Written<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.write())
    }
}

impl<'de, T: Quantity> Deserialize<'de> for Written<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor(PhantomData))
    }
}

struct QuantityVisitor<T>(PhantomData<T>);

impl<T: Quantity> Visitor<'_> for QuantityVisitor<T> {
    type Value = Written<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::DESCRIPTION)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Written<T>, E> {
        T::read(text).map(Written).map_err(E::custom)
    }

    // A bare number gets the same answer as one in quotes: that it has no unit.
    fn visit_i64<E: Error>(self, number: i64) -> Result<Written<T>, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Written<T>, E> {
        self.visit_str(&number.to_string())
    }
}

impl<T: Quantity> JsonSchema for Written<T> {
    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "description": T::DESCRIPTION, "pattern": T::PATTERN })
    }
}
