//! Names, parameters and sources of the policies, so that users choose them by name.
//!
//! Each policy's file holds its own [`Entry`]; the lists are `scheduler::ALL`, `remedy::ALL`,
//! `congestion::ALL` and `path_manager::ALL`.

use anabranch_wire::Duration;

/// A policy that can be chosen by name.
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

/// Something that can be set of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// One of the connection's paths.
    Path,
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// A path, as an index into the connection's.
    Path(usize),
}

/// The values of all parameters of a policy, in the order of the parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(Vec<(&'static str, Value)>);

impl Values {
    /// The defaults of these parameters.
    pub fn defaults(parameters: &[Parameter]) -> Self {
        Values(parameters.iter().map(|parameter| (parameter.name, parameter.default)).collect())
    }

    /// Set the parameter `name`, which is one of them.
    pub fn set(&mut self, name: &str, value: Value) {
        let found = self.0.iter_mut().find(|(parameter, _)| *parameter == name);
        found.expect("a parameter of the policy").1 = value;
    }

    /// The value of the parameter `name`.
    ///
    /// # Panics
    /// If the policy has no such parameter.
    pub fn get(&self, name: &str) -> Value {
        let found = self.0.iter().find(|(parameter, _)| *parameter == name);
        found.expect("a parameter of the policy").1
    }

    /// The value of a whole number.
    pub(crate) fn count(&self, name: &str) -> u32 {
        match self.get(name) {
            Value::Count(count) => count,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of a yes or no.
    pub(crate) fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Value::Flag(flag) => flag,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of a number.
    pub(crate) fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Value::Number(number) => number,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The value of a duration.
    pub(crate) fn time(&self, name: &str) -> Duration {
        match self.get(name) {
            Value::Time(time) => time,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The name chosen.
    pub(crate) fn choice(&self, name: &str) -> &'static str {
        match self.get(name) {
            Value::Choice(choice) => choice,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The index of a path.
    pub(crate) fn path(&self, name: &str) -> usize {
        match self.get(name) {
            Value::Path(path) => path,
            other => panic!("{name} is {other:?}"),
        }
    }
}
