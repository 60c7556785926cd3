//! Distributions in a scenario file. A constant is written as a plain quantity, any other
//! distribution as a table with a kind and parameters.

use core::marker::PhantomData;
use core::num::NonZeroU64;
use std::borrow::Cow;

use anabranch_config::written::{Factor, Problem, Quantity, WithUnit};
use anabranch_net::units::ByteCount;
use anabranch_wire::Duration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{I64Deserializer, MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::distribution::{Amount, Distribution};

/// A quantity that can be drawn and written in a file.
pub(crate) trait Drawable: Amount {
    /// Its type in a file.
    type Form: DrawnForm<Value = Self>;
}

impl Drawable for ByteCount {
    type Form = WithUnit<ByteCount>;
}

impl Drawable for Duration {
    type Form = WithUnit<Duration>;
}

impl Drawable for u64 {
    type Form = NonZeroU64;
}

/// A quantity as it is written in a file.
pub(crate) trait DrawnForm: Copy + Serialize + DeserializeOwned + JsonSchema {
    /// Its type in memory.
    type Value: Amount;
    /// Name of its distributions in the JSON Schema.
    const NAME: &'static str;
    /// Description with an example.
    const DESCRIPTION: &'static str;

    fn value(self) -> Self::Value;
    /// `None` if the value cannot be written in a file.
    fn written(value: Self::Value) -> Option<Self>;
    /// The value as error messages quote it.
    fn quoted(self) -> String;
}

impl DrawnForm for WithUnit<ByteCount> {
    type Value = ByteCount;
    const NAME: &'static str = "SizeDistribution";
    const DESCRIPTION: &'static str = ByteCount::DESCRIPTION;

    fn value(self) -> ByteCount {
        self.0
    }

    fn written(value: ByteCount) -> Option<Self> {
        Some(WithUnit(value))
    }

    fn quoted(self) -> String {
        format!("{:?}", self.0.write())
    }
}

impl DrawnForm for WithUnit<Duration> {
    type Value = Duration;
    const NAME: &'static str = "DurationDistribution";
    const DESCRIPTION: &'static str = Duration::DESCRIPTION;

    fn value(self) -> Duration {
        self.0
    }

    fn written(value: Duration) -> Option<Self> {
        Some(WithUnit(value))
    }

    fn quoted(self) -> String {
        format!("{:?}", self.0.write())
    }
}

impl DrawnForm for NonZeroU64 {
    type Value = u64;
    const NAME: &'static str = "CountDistribution";
    const DESCRIPTION: &'static str = "a whole number above zero";

    fn value(self) -> u64 {
        self.get()
    }

    fn written(value: u64) -> Option<Self> {
        NonZeroU64::new(value)
    }

    fn quoted(self) -> String {
        self.to_string()
    }
}

/// Distribution of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum DistributionKind {
    /// Uniform from `min` to `max`.
    Uniform,
    /// Exponential with this `mean`.
    Exponential,
    /// Pareto with this `mean` and the tail exponent `shape`.
    Pareto,
    /// Lognormal with this `median` and `sigma`, the standard deviation of the natural logarithm.
    Lognormal,
}

/// A random quantity, instead of a constant. Each use draws a new value, which is rounded to a whole
/// number of bytes, nanoseconds or pieces.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, bound = "T: DrawnForm")]
#[schemars(rename = "DistributionOf{T}")]
struct DistributionTable<T: DrawnForm> {
    /// Kind of distribution.
    kind: DistributionKind,
    /// `uniform` only: minimum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "T")]
    min: Option<T>,
    /// `uniform` only: maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "T")]
    max: Option<T>,
    /// `exponential` and `pareto` only: mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "T")]
    mean: Option<T>,
    /// `pareto` only: exponent of the tail, above 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Factor")]
    shape: Option<Factor>,
    /// `lognormal` only: median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "T")]
    median: Option<T>,
    /// `lognormal` only: standard deviation of the natural logarithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Factor")]
    sigma: Option<Factor>,
}

/// A distribution as it is written in a file: a quantity or a table.
#[derive(Clone, Copy, Debug)]
enum DistributionValue<T: DrawnForm> {
    Constant(T),
    Table(DistributionTable<T>),
}

impl<T: DrawnForm> DistributionValue<T> {
    /// The distribution that the file describes. Constants, means, medians and the minimum of a
    /// range must be above zero. With `zero`, constants and minima may be zero.
    fn resolve(self, zero: bool) -> Result<Distribution<T::Value>, Problem> {
        let table = match self {
            DistributionValue::Constant(value) => {
                return Ok(Distribution::Constant(require_some("", value, zero)?));
            }
            DistributionValue::Table(table) => table,
        };
        table.refuse_foreign_keys()?;
        let amount = |name: &str, value: Option<T>, zero: bool| {
            require_some(name, value.ok_or_else(|| missing(name))?, zero)
        };
        let factor = |name: &str, value: Option<Factor>| value.ok_or_else(|| missing(name));
        Ok(match table.kind {
            DistributionKind::Uniform => {
                let min = amount("min", table.min, zero)?;
                let max = amount("max", table.max, zero)?;
                table.require_range()?;
                Distribution::Uniform { min, max }
            }
            DistributionKind::Exponential => {
                Distribution::Exponential { mean: amount("mean", table.mean, false)? }
            }
            DistributionKind::Pareto => {
                let mean = amount("mean", table.mean, false)?;
                let shape = factor("shape", table.shape)?;
                if shape <= Factor::from_thousandths(1_000) {
                    let problem = format!("{shape}: must be more than 1, or there is no mean");
                    return Err(Problem::new("shape", problem));
                }
                Distribution::Pareto { mean, shape }
            }
            DistributionKind::Lognormal => Distribution::Lognormal {
                median: amount("median", table.median, false)?,
                sigma: factor("sigma", table.sigma)?,
            },
        })
    }
}

fn missing(name: &str) -> Problem {
    Problem::new(name, "missing; this key is required")
}

fn require_some<T: DrawnForm>(key: &str, value: T, zero: bool) -> Result<T::Value, Problem> {
    if !zero && value.value().amount() == 0 {
        let problem = format!("{}: must be more than zero", value.quoted());
        return Err(Problem::new(key, problem));
    }
    Ok(value.value())
}

impl<T: DrawnForm> DistributionTable<T> {
    fn new(kind: DistributionKind) -> Self {
        DistributionTable {
            kind,
            min: None,
            max: None,
            mean: None,
            shape: None,
            median: None,
            sigma: None,
        }
    }

    fn refuse_foreign_keys(&self) -> Result<(), Problem> {
        use DistributionKind::{Exponential, Lognormal, Pareto, Uniform};
        let checks: [(&str, bool, &[DistributionKind], &str); 6] = [
            ("min", self.min.is_some(), &[Uniform], "\"uniform\""),
            ("max", self.max.is_some(), &[Uniform], "\"uniform\""),
            ("mean", self.mean.is_some(), &[Exponential, Pareto], "\"exponential\" or \"pareto\""),
            ("shape", self.shape.is_some(), &[Pareto], "\"pareto\""),
            ("median", self.median.is_some(), &[Lognormal], "\"lognormal\""),
            ("sigma", self.sigma.is_some(), &[Lognormal], "\"lognormal\""),
        ];
        let foreign = checks
            .into_iter()
            .find(|(_, written, owners, _)| *written && !owners.contains(&self.kind));
        match foreign {
            Some((name, _, _, owner)) => {
                let problem = format!("belongs to kind = {owner}; leave it out");
                Err(Problem::new(name, problem))
            }
            None => Ok(()),
        }
    }

    fn require_range(&self) -> Result<(), Problem> {
        match (self.min, self.max) {
            (Some(min), Some(max)) if max.value().amount() < min.value().amount() => {
                let (min, max) = (min.quoted(), max.quoted());
                let problem = format!("{max}: must not be less than min, {min}");
                Err(Problem::new("max", problem))
            }
            _ => Ok(()),
        }
    }
}

impl<T: DrawnForm> From<Distribution<T::Value>> for DistributionValue<T> {
    fn from(distribution: Distribution<T::Value>) -> Self {
        let table = |kind| DistributionTable::new(kind);
        DistributionValue::Table(match distribution {
            Distribution::Constant(value) => {
                let written = T::written(value).expect("a scenario's constants can be written");
                return DistributionValue::Constant(written);
            }
            Distribution::Uniform { min, max } => DistributionTable {
                min: T::written(min),
                max: T::written(max),
                ..table(DistributionKind::Uniform)
            },
            Distribution::Exponential { mean } => {
                DistributionTable { mean: T::written(mean), ..table(DistributionKind::Exponential) }
            }
            Distribution::Pareto { mean, shape } => DistributionTable {
                mean: T::written(mean),
                shape: Some(shape),
                ..table(DistributionKind::Pareto)
            },
            Distribution::Lognormal { median, sigma } => DistributionTable {
                median: T::written(median),
                sigma: Some(sigma),
                ..table(DistributionKind::Lognormal)
            },
        })
    }
}

impl<T: DrawnForm> Serialize for DistributionValue<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            DistributionValue::Constant(value) => value.serialize(serializer),
            DistributionValue::Table(table) => table.serialize(serializer),
        }
    }
}

impl<'de, T: DrawnForm> Deserialize<'de> for DistributionValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor(PhantomData))
    }
}

struct ValueVisitor<T>(PhantomData<T>);

impl<'de, T: DrawnForm> Visitor<'de> for ValueVisitor<T> {
    type Value = DistributionValue<T>;

    fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}, or a table with a kind of distribution", T::DESCRIPTION)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<DistributionValue<T>, E> {
        T::deserialize(StrDeserializer::new(text)).map(DistributionValue::Constant)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<DistributionValue<T>, E> {
        T::deserialize(I64Deserializer::new(number)).map(DistributionValue::Constant)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DistributionValue<T>, A::Error> {
        DistributionTable::deserialize(MapAccessDeserializer::new(map))
            .map(DistributionValue::Table)
    }
}

/// Values must be above zero. `OrZero` is for quantities that may be zero.
impl<'de, T: Drawable> Deserialize<'de> for Distribution<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = DistributionValue::<T::Form>::deserialize(deserializer)?;
        value.resolve(false).map_err(Problem::raise)
    }
}

impl<T: Drawable> Serialize for Distribution<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        DistributionValue::<T::Form>::from(*self).serialize(serializer)
    }
}

impl<T: Drawable> JsonSchema for Distribution<T> {
    fn schema_name() -> Cow<'static, str> {
        T::Form::NAME.into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let constant = generator.subschema_for::<T::Form>();
        let table = generator.subschema_for::<DistributionTable<T::Form>>();
        json_schema!({ "anyOf": [constant, table] })
    }
}

/// For `#[serde(with = "OrZero::<T>")]`: a distribution of a quantity that may be zero.
pub(super) struct OrZero<T>(PhantomData<T>);

impl<T: Drawable> OrZero<T> {
    pub(super) fn serialize<S: Serializer>(
        distribution: &Distribution<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        distribution.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Distribution<T>, D::Error> {
        let value = DistributionValue::<T::Form>::deserialize(deserializer)?;
        value.resolve(true).map_err(Problem::raise)
    }
}

impl<T: Drawable> JsonSchema for OrZero<T> {
    fn schema_name() -> Cow<'static, str> {
        Distribution::<T>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Distribution::<T>::json_schema(generator)
    }
}
