//! Numbers without a unit, stored in thousandths, so equal scenarios compare equal.

use core::fmt;
use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number without a unit, at least 0, in steps of 0.001. In a file it is a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor(u32);

const PER_UNIT: f64 = 1000.0;
/// Largest valid factor.
const LARGEST: f64 = 1_000_000.0;

impl Factor {
    /// `thousandths` / 1000.
    pub const fn from_thousandths(thousandths: u32) -> Self {
        Factor(thousandths)
    }

    /// The number.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / PER_UNIT
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_f64())
    }
}

impl Serialize for Factor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Factor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FactorVisitor)
    }
}

struct FactorVisitor;

impl Visitor<'_> for FactorVisitor {
    type Value = Factor;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number such as 1.5")
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Factor, E> {
        if !(0.0..=LARGEST).contains(&number) {
            return Err(E::custom(format!("{number:?}: must be between 0 and {LARGEST:?}")));
        }
        let thousandths = (number * PER_UNIT).round();
        if (thousandths / PER_UNIT - number).abs() > 1e-9 {
            return Err(E::custom(format!("{number:?}: has more than three decimals")));
        }
        Ok(Factor(thousandths as u32))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Factor, E> {
        self.visit_f64(number as f64)
    }
}

impl JsonSchema for Factor {
    fn schema_name() -> Cow<'static, str> {
        "Factor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "number",
            "description": "a number without a unit, in steps of 0.001",
            "minimum": 0,
            "maximum": LARGEST,
        })
    }
}
