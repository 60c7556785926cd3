//! Names, parameters and sources of the parts that users choose by name: the engine's policies, and
//! the emulated network's queues and middleboxes.
//!
//! Each policy, queue and middlebox defines its own [`Entry`] in its own file. The parent module
//! lists the entries of its files, for example `scheduler::ALL` in `anabranch-proto` and
//! `middlebox::ALL` in `anabranch-net`. Those crates do not depend on each other, so the types that
//! both need are here.

use std::borrow::Cow;

use crate::Duration;

/// A part that users choose by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry<M: 'static> {
    /// The name in scenarios.
    pub name: &'static str,
    /// Effect of the part, in one sentence.
    pub summary: &'static str,
    /// The publication that describes the part, or the implementation that it follows.
    pub source: &'static str,
    /// The parameters that users can set.
    pub parameters: &'static [Parameter],
    /// Constructor.
    pub make: M,
}

/// A parameter of an [`Entry`].
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The name in scenarios.
    pub name: &'static str,
    /// Meaning of the parameter.
    pub meaning: &'static str,
    /// Type and bounds of the value.
    pub kind: Kind,
    /// The value if the user gives none.
    pub default: Value,
    /// Source of the default; "this project" if the publication gives none.
    pub origin: &'static str,
    /// Name and value of another parameter. This parameter has an effect only if that one has this
    /// value.
    pub only_with: Option<(&'static str, &'static str)>,
}

/// Type and bounds of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// An integer within these bounds.
    Count {
        /// Minimum.
        least: u32,
        /// Maximum.
        most: u32,
    },
    /// A boolean.
    Flag,
    /// A number without a unit, within these bounds.
    Number {
        /// Minimum.
        least: f64,
        /// Maximum.
        most: f64,
    },
    /// A duration. Zero is valid only if `zero` is set.
    Time {
        /// Whether zero is valid.
        zero: bool,
    },
    /// One of these names.
    Choice(&'static [&'static str]),
    /// At least one of these names, in any order.
    Choices(&'static [&'static str]),
    /// A number of bytes within these bounds.
    Bytes {
        /// Minimum.
        least: u64,
        /// Maximum.
        most: u64,
    },
    /// A probability.
    Probability,
    /// One of the connection's paths.
    Path,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer.
    Count(u32),
    /// A boolean.
    Flag(bool),
    /// A number without a unit.
    Number(f64),
    /// A duration.
    Time(Duration),
    /// A name.
    Choice(&'static str),
    /// Names, in the order in which the user gave them.
    Choices(Cow<'static, [&'static str]>),
    /// A number of bytes.
    Bytes(u64),
    /// A probability in parts per billion.
    Probability(u32),
    /// One of the connection's paths.
    Path(PathRef),
    /// No value. The parameter is optional.
    Unset,
    /// No default. The user must give a value.
    Required,
}

/// A path, identified by its name in a scenario and by its index in a list of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRef {
    /// The name. An empty name means the path at this index, whatever its name.
    pub name: Cow<'static, str>,
    /// Index in the list of paths.
    pub index: usize,
}

impl PathRef {
    /// The first path, whatever its name.
    pub const FIRST: PathRef = PathRef { name: Cow::Borrowed(""), index: 0 };
}

/// The values of all parameters, in the order of the parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(Vec<(&'static str, Value)>);

impl Values {
    /// The default values of these parameters.
    pub fn defaults(parameters: &[Parameter]) -> Self {
        Values(
            parameters
                .iter()
                .map(|parameter| (parameter.name, parameter.default.clone()))
                .collect(),
        )
    }

    /// Set the value of parameter `name`.
    ///
    /// # Panics
    /// If there is no such parameter.
    pub fn set(&mut self, name: &str, value: Value) {
        let found = self.0.iter_mut().find(|(parameter, _)| *parameter == name);
        found.expect("a parameter of the entry").1 = value;
    }

    /// The value of parameter `name`.
    ///
    /// # Panics
    /// If there is no such parameter.
    pub fn get(&self, name: &str) -> Value {
        let found = self.0.iter().find(|(parameter, _)| *parameter == name);
        found.expect("a parameter of the entry").1.clone()
    }

    /// The value of an integer parameter.
    ///
    /// # Panics
    /// If there is no such parameter, or its value has another type.
    pub fn count(&self, name: &str) -> u32 {
        match self.get(name) {
            Value::Count(count) => count,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of a boolean parameter.
    ///
    /// # Panics
    /// If there is no such parameter, or its value has another type.
    pub fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Value::Flag(flag) => flag,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of a number parameter.
    ///
    /// # Panics
    /// If there is no such parameter, or its value has another type.
    pub fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Number(number) => number,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of a duration parameter.
    ///
    /// # Panics
    /// If there is no such parameter, or its value has another type.
    pub fn time(&self, name: &str) -> Duration {
        match self.get(name) {
            Value::Time(time) => time,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The chosen name.
    ///
    /// # Panics
    /// If there is no such parameter, or its value has another type.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            Value::Choice(choice) => choice,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The index of the chosen path.
    ///
    /// # Panics
    /// If there is no such parameter, or its value has another type.
    pub fn path(&self, name: &str) -> usize {
        match self.get(name) {
            Value::Path(path) => path.index,
            other => panic!("{name} is {other:?}"),
        }
    }
    /// The chosen names.
    ///
    /// # Panics
    /// If there is no such parameter, or its value has another type.
    pub fn choices(&self, name: &str) -> Vec<&'static str> {
        match self.get(name) {
            Value::Choices(choices) => choices.into_owned(),
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of a parameter that counts bytes.
    ///
    /// # Panics
    /// If there is no such parameter, or its value has another type.
    pub fn bytes(&self, name: &str) -> u64 {
        match self.get(name) {
            Value::Bytes(bytes) => bytes,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of a probability parameter, in parts per billion.
    ///
    /// # Panics
    /// If there is no such parameter, or its value has another type.
    pub fn probability(&self, name: &str) -> u32 {
        match self.get(name) {
            Value::Probability(parts) => parts,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of an optional duration parameter; `None` if it is not set.
    ///
    /// # Panics
    /// If there is no such parameter, or its value has another type.
    pub fn optional_time(&self, name: &str) -> Option<Duration> {
        match self.get(name) {
            Value::Unset => None,
            Value::Time(time) => Some(time),
            other => panic!("{name} is {other:?}"),
        }
    }
}
