//! The paths of a connection.

use core::ops::Deref;
use std::borrow::Cow;

use anabranch_config::written::{Problem, unknown_name};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::path::Path;
use super::path_names::Used;

/// The paths that a connection may use, as indices into [`Scenario::paths`](super::Scenario::paths).
/// They are distinct. There is at least one, and exactly one for plain TCP. Files contain their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Empty if the file leaves the paths to the default.
    names: Vec<String>,
    indices: Vec<usize>,
}

impl Deref for Paths {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.indices
    }
}

impl Paths {
    /// The paths at these indices of `paths`.
    pub fn new(indices: Vec<usize>, paths: &[Path]) -> Self {
        let names = indices.iter().map(|index| paths[*index].name.clone()).collect();
        Paths { names, indices }
    }

    /// Find the paths by their names in `paths`. The default is all paths except those that other
    /// paths go via, or with `only_one` the first of these.
    pub(super) fn find(&mut self, paths: &[Path], only_one: bool) -> Result<(), Problem> {
        if self.names.is_empty() {
            let mut shared = vec![false; paths.len()];
            let hops = paths.iter().flat_map(|path| path.via.hops());
            hops.for_each(|hop| shared[hop.path] = true);
            let usable = if only_one { 1 } else { paths.len() };
            let indices = (0..paths.len()).filter(|index| !shared[*index]).take(usable).collect();
            *self = Paths::new(indices, paths);
            return Ok(());
        }
        if only_one && self.names.len() > 1 {
            let names = &self.names;
            let problem =
                format!("{names:?}: tcp uses one path; name one, or write protocol = \"mptcp\"");
            return Err(Problem::new("", problem));
        }
        for (n, name) in self.names.iter().enumerate() {
            let index = position(paths, name);
            let index = index.map_err(|text| Problem::new(format!("[{n}]"), text))?;
            if self.indices.contains(&index) {
                let problem = format!("{name:?} is listed twice; list each path once");
                return Err(Problem::new(format!("[{n}]"), problem));
            }
            self.indices.push(index);
        }
        Ok(())
    }

    /// The paths with their names, in the connection's order.
    pub fn by_name(&self) -> impl Iterator<Item = (&str, usize)> {
        self.names.iter().map(String::as_str).zip(self.indices.iter().copied())
    }

    pub(super) fn used(&self) -> Used<'_> {
        Used(&self.names)
    }
}

/// The index of the path called `name` in `paths`.
pub(super) fn position(paths: &[Path], name: &str) -> Result<usize, String> {
    paths.iter().position(|path| path.name == name).ok_or_else(|| {
        let valid: Vec<_> = paths.iter().map(|path| path.name.as_str()).collect();
        unknown_name("path", name, &valid)
    })
}

impl Serialize for Paths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.names.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Paths {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::deserialize(deserializer)?;
        if names.is_empty() {
            let problem = "[]: name at least one path";
            return Err(Problem::new("", problem).raise());
        }
        Ok(Paths { names, indices: Vec::new() })
    }
}

impl JsonSchema for Paths {
    fn schema_name() -> Cow<'static, str> {
        "Paths".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<String>::json_schema(generator)
    }
}
