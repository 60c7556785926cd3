//! Form of values in files: quantities as strings with a unit, names, numbers.
//!
//! A field has the type that the code computes with. If a file holds it in another
//! form, `#[serde(with = "WithUnit::<Rate>")]` names that form. Reading, writing, validation and the
//! JSON Schema follow from it.

mod factor;
mod path;
mod problem;

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;

use anabranch_wire::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeOwned, Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::Table;

use crate::units::{
    ByteCount, Probability, QueueLimit, Rate, UnitError, format_duration, parse_duration,
};

pub use toml::Value;

pub use factor::Factor;
pub use problem::{
    Problem, describe, found, missing_field, noun, unknown_field, unknown_key, unknown_name,
};

/// A quantity that a file holds as a string with a unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WithUnit<T>(pub T);

/// Like [`WithUnit`], for quantities that must be above zero.
#[derive(Clone, Copy, Debug)]
pub struct Positive<T>(PhantomData<T>);

/// Like [`WithUnit`], for sizes from `LEAST` to `MOST` bytes.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<const LEAST: u64, const MOST: u64>;

/// Written form of a quantity.
pub trait Quantity: Sized {
    /// Name in the JSON Schema.
    const NAME: &'static str;
    /// Description with an example. It also completes the sentence "found ..., expected ...".
    const DESCRIPTION: &'static str;
    /// Regular expression for editors. The parser is authoritative.
    const PATTERN: &'static str;
    /// Completes the sentence "must be ..." for values that must not be zero.
    const POSITIVE: &'static str = "more than zero";

    /// Parse a quantity.
    ///
    /// # Errors
    /// If the text is not a valid quantity.
    fn read(text: &str) -> Result<Self, UnitError>;
    /// The quantity as [`Quantity::read`] reads it.
    fn write(&self) -> String;

    /// Returns `true` if the quantity is zero.
    fn is_zero(&self) -> bool {
        false
    }
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
    const POSITIVE: &'static str = "longer than zero";

    fn read(text: &str) -> Result<Self, UnitError> {
        parse_duration(text)
    }

    fn write(&self) -> String {
        format_duration(*self)
    }

    fn is_zero(&self) -> bool {
        Duration::is_zero(*self)
    }
}

impl Quantity for ByteCount {
    const NAME: &'static str = "Size";
    const DESCRIPTION: &'static str = "a size such as \"200kB\" or \"200KiB\"";
    const PATTERN: &'static str = r"^[0-9]+(\.[0-9]+)? ?(B|kB|KiB|MB|MiB|GB|GiB)$";
    const POSITIVE: &'static str = "at least one byte";

    fn read(text: &str) -> Result<Self, UnitError> {
        text.parse()
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn is_zero(&self) -> bool {
        self.as_u64() == 0
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

/// A field that holds a quantity or an optional quantity.
pub trait QuantityField: Sized {
    /// The quantity.
    type Quantity: Quantity;

    /// The field with this quantity.
    fn holding(quantity: Self::Quantity) -> Self;
    /// The quantity in the field.
    fn held(&self) -> Option<&Self::Quantity>;
}

impl<T: Quantity> QuantityField for T {
    type Quantity = T;

    fn holding(quantity: T) -> T {
        quantity
    }

    fn held(&self) -> Option<&T> {
        Some(self)
    }
}

impl<T: Quantity> QuantityField for Option<T> {
    type Quantity = T;

    fn holding(quantity: T) -> Option<T> {
        Some(quantity)
    }

    fn held(&self) -> Option<&T> {
        self.as_ref()
    }
}

/// For `#[serde(with = "WithUnit::<T>")]`.
impl<T: QuantityField> WithUnit<T> {
    /// Write the quantity as a string.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        match value.held() {
            Some(quantity) => serializer.serialize_str(&quantity.write()),
            None => serializer.serialize_none(),
        }
    }

    /// Read a string with a unit.
    ///
    /// # Errors
    /// If it is not a string with a valid quantity.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(QuantityVisitor(PhantomData)).map(T::holding)
    }
}

/// For `#[serde(with = "Positive::<T>")]`.
impl<T: QuantityField> Positive<T> {
    /// As [`WithUnit::serialize`].
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        WithUnit::<T>::serialize(value, serializer)
    }

    /// Read a string with a unit.
    ///
    /// # Errors
    /// If it is not a string with a valid quantity, or the quantity is zero.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        let value = WithUnit::<T>::deserialize(deserializer)?;
        match value.held() {
            Some(zero) if zero.is_zero() => {
                let (zero, positive) = (zero.write(), T::Quantity::POSITIVE);
                Err(D::Error::custom(format!("{zero:?}: must be {positive}")))
            }
            _ => Ok(value),
        }
    }
}

/// For `#[serde(with = "Bytes::<LEAST, MOST>")]`.
impl<const LEAST: u64, const MOST: u64> Bytes<LEAST, MOST> {
    /// As [`WithUnit::serialize`].
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: Serializer>(size: &ByteCount, serializer: S) -> Result<S::Ok, S::Error> {
        WithUnit::serialize(size, serializer)
    }

    /// Read a string with a unit.
    ///
    /// # Errors
    /// If it is not a string with a valid quantity, or the size is out of bounds.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ByteCount, D::Error> {
        let size = WithUnit::<ByteCount>::deserialize(deserializer)?;
        let problem = match size.as_u64() {
            0 if LEAST == 1 => ByteCount::POSITIVE.to_owned(),
            few if few < LEAST => format!("at least {LEAST}B"),
            many if many > MOST => format!("at most {MOST}B"),
            _ => return Ok(size),
        };
        Err(D::Error::custom(format!("\"{size}\": must be {problem}")))
    }
}

impl<T: Quantity> Serialize for WithUnit<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.write())
    }
}

impl<'de, T: Quantity> Deserialize<'de> for WithUnit<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor(PhantomData)).map(WithUnit)
    }
}

struct QuantityVisitor<T>(PhantomData<T>);

impl<T: Quantity> Visitor<'_> for QuantityVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::DESCRIPTION)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::read(text).map_err(E::custom)
    }

    // A number without quotes gets the same error as one in quotes: it has no unit.
    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

impl<T: QuantityField> JsonSchema for WithUnit<T> {
    fn schema_name() -> Cow<'static, str> {
        T::Quantity::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let (description, pattern) = (T::Quantity::DESCRIPTION, T::Quantity::PATTERN);
        json_schema!({ "type": "string", "description": description, "pattern": pattern })
    }
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for Bytes<LEAST, MOST> {
    fn schema_name() -> Cow<'static, str> {
        WithUnit::<ByteCount>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WithUnit::<ByteCount>::json_schema(generator)
    }
}

impl<T: QuantityField> JsonSchema for Positive<T> {
    fn schema_name() -> Cow<'static, str> {
        WithUnit::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        WithUnit::<T>::json_schema(generator)
    }
}

/// Read the fields of a struct.
///
/// # Errors
/// If a field is missing, unknown or has an invalid value.
pub fn read<T: DeserializeOwned>(table: Table) -> Result<T, Problem> {
    serde_path_to_error::deserialize(Value::Table(table)).map_err(
        |error: serde_path_to_error::Error<toml::de::Error>| {
            describe(error.path(), error.inner().message())
        },
    )
}

/// Read a name. It must not be blank or have control characters.
///
/// # Errors
/// If it does.
pub fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    if name.trim().is_empty() {
        return Err(D::Error::custom(format!("{name:?}: a name needs at least one letter")));
    }
    if name.chars().any(char::is_control) {
        return Err(D::Error::custom(format!("{name:?}: a name has no control characters")));
    }
    Ok(name)
}

/// The default of many boolean keys.
pub fn yes() -> bool {
    true
}

/// Returns `true` if a key has the default value [`yes`].
pub fn is_yes(value: &bool) -> bool {
    *value
}

/// Returns `true` if a key has its default value.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
