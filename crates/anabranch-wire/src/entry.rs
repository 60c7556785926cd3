//! Names, parameters and sources of what users choose by name: policies of the engine, and queues
//! and middleboxes of the emulated network.
//!
//! Each policy, queue and middlebox has its own [`Entry`] in its own file. A folder lists the
//! entries of its files, for example `scheduler::ALL` of `anabranch-proto` and `middlebox::ALL` of
//! `anabranch-net`. These crates do not know each other, so the types that both need are here.

use std::borrow::Cow;

use crate::Duration;

/// Something that can be chosen by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry<M: 'static> {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Where it was published, or whose implementation it follows.
    pub source: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
    /// Makes one.
    pub make: M,
}

/// Something that can be set of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in scenarios.
    pub name: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What it can be.
    pub kind: Kind,
    /// What it is if nothing is said.
    pub default: Value,
    /// Where the default comes from; "ours" where the source is silent.
    pub origin: &'static str,
    /// The value of another parameter without which it has no meaning.
    pub only_with: Option<(&'static str, &'static str)>,
}

/// What a parameter can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A whole number within these bounds.
    Count {
        /// Smallest.
        least: u32,
        /// Largest.
        most: u32,
    },
    /// Yes or no.
    Flag,
    /// A number without unit within these bounds.
    Number {
        /// Smallest.
        least: f64,
        /// Largest.
        most: f64,
    },
    /// A duration; zero only if allowed.
    Time {
        /// May it be zero?
        zero: bool,
    },
    /// One of these names.
    Choice(&'static [&'static str]),
    /// Some of these names, at least one, in any order.
    Choices(&'static [&'static str]),
    /// A number of bytes within these bounds.
    Bytes {
        /// Smallest.
        least: u64,
        /// Largest.
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
    /// A whole number.
    Count(u32),
    /// Yes or no.
    Flag(bool),
    /// A number without unit.
    Number(f64),
    /// A duration.
    Time(Duration),
    /// One of the names.
    Choice(&'static str),
    /// Some of the names, in the order in which they were given.
    Choices(Cow<'static, [&'static str]>),
    /// A number of bytes.
    Bytes(u64),
    /// A probability in parts per billion.
    Probability(u32),
    /// One of the connection's paths.
    Path(PathRef),
    /// None, and none is needed.
    Unset,
    /// None, as a default: the user has to give one.
    Required,
}

/// A path, by its name in a scenario and by its place in a list of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRef {
    /// Its name; empty for whichever has this place.
    pub name: Cow<'static, str>,
    /// Its index in the list.
    pub index: usize,
}

impl PathRef {
    /// The first path, whatever its name is.
    pub const FIRST: PathRef = PathRef { name: Cow::Borrowed(""), index: 0 };
}

/// The values of all parameters, in the order of the parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(Vec<(&'static str, Value)>);

impl Values {
    /// The defaults of these parameters.
    pub fn defaults(parameters: &[Parameter]) -> Self {
        Values(
            parameters
                .iter()
                .map(|parameter| (parameter.name, parameter.default.clone()))
                .collect(),
        )
    }

    /// Set the parameter `name`, which is one of them.
    ///
    /// # Panics
    /// If there is no such parameter.
    pub fn set(&mut self, name: &str, value: Value) {
        let found = self.0.iter_mut().find(|(parameter, _)| *parameter == name);
        found.expect("a parameter of the entry").1 = value;
    }

    /// The value of the parameter `name`.
    ///
    /// # Panics
    /// If there is no such parameter.
    pub fn get(&self, name: &str) -> Value {
        let found = self.0.iter().find(|(parameter, _)| *parameter == name);
        found.expect("a parameter of the entry").1.clone()
    }

    /// The value of a whole number.
    ///
    /// # Panics
    /// If there is no such parameter, or it is of another kind.
    pub fn count(&self, name: &str) -> u32 {
        match self.get(name) {
            Value::Count(count) => count,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of a yes or no.
    ///
    /// # Panics
    /// If there is no such parameter, or it is of another kind.
    pub fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Value::Flag(flag) => flag,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of a number.
    ///
    /// # Panics
    /// If there is no such parameter, or it is of another kind.
    pub fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Number(number) => number,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of a duration.
    ///
    /// # Panics
    /// If there is no such parameter, or it is of another kind.
    pub fn time(&self, name: &str) -> Duration {
        match self.get(name) {
            Value::Time(time) => time,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The name chosen.
    ///
    /// # Panics
    /// If there is no such parameter, or it is of another kind.
    pub fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            Value::Choice(choice) => choice,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The index of a path.
    ///
    /// # Panics
    /// If there is no such parameter, or it is of another kind.
    pub fn path(&self, name: &str) -> usize {
        match self.get(name) {
            Value::Path(path) => path.index,
            other => panic!("{name} is {other:?}"),
        }
    }
    /// The names chosen.
    ///
    /// # Panics
    /// If there is no such parameter, or it is of another kind.
    pub fn choices(&self, name: &str) -> Vec<&'static str> {
        match self.get(name) {
            Value::Choices(choices) => choices.into_owned(),
            other => panic!("{name} is {other:?}"),
        }
    }

    /// A number of bytes.
    ///
    /// # Panics
    /// If there is no such parameter, or it is of another kind.
    pub fn bytes(&self, name: &str) -> u64 {
        match self.get(name) {
            Value::Bytes(bytes) => bytes,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// A probability in parts per billion.
    ///
    /// # Panics
    /// If there is no such parameter, or it is of another kind.
    pub fn probability(&self, name: &str) -> u32 {
        match self.get(name) {
            Value::Probability(parts) => parts,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// A duration, if one is set.
    ///
    /// # Panics
    /// If there is no such parameter, or it is of another kind.
    pub fn optional_time(&self, name: &str) -> Option<Duration> {
        match self.get(name) {
            Value::Unset => None,
            Value::Time(time) => Some(time),
            other => panic!("{name} is {other:?}"),
        }
    }
}
