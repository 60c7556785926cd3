//! Units, and parts with parameters that users choose by name.
//!
//! [`units`] has rates, sizes, times, limits and probabilities. A [`Part`] is a policy, a platform, a
//! queue, a middlebox or a workload: a plain struct of its parameters. [`parts!`] unites the parts of
//! a kind into an enum. [`setters!`] writes the setters of other options. The feature `serde` adds
//! the form of parts in files ([`written`]), the description of their parameters ([`Parameter`]) and
//! their JSON Schema ([`schema`]).

#[cfg(feature = "serde")]
mod parameter;
mod part;
mod path_ref;
#[cfg(feature = "serde")]
pub mod schema;
#[cfg(feature = "serde")]
mod selection;
mod setters;
pub mod units;
#[cfg(feature = "serde")]
pub mod written;

#[cfg(feature = "serde")]
pub use parameter::Parameter;
pub use part::{Description, Part, Selection};
pub use path_ref::PathRef;
#[cfg(feature = "serde")]
pub use selection::{
    KIND, PartReader, WrittenSelection, deserialize, from_table, named, serialize,
    serialize_in_order, with_parameters, write,
};

/// Dependencies of the macros.
#[cfg(feature = "serde")]
#[doc(hidden)]
pub mod macros {
    pub use {schemars, serde};
}
