//! Names of paths. Files name a path, and the code uses its index.

use std::borrow::Cow;

use anabranch_wire::entry::PathRef;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::written::unknown_name;

/// The names of the paths that a connection uses, in the connection's order.
#[derive(Clone, Copy)]
pub(super) struct Used<'a>(pub(super) &'a [String]);

impl<'a> Used<'a> {
    pub(super) fn names(self) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(String::as_str)
    }

    /// The path with the name of `path`, or the path at its index if it has no name.
    pub(super) fn find(self, path: &PathRef) -> Result<PathRef, String> {
        let index = match &*path.name {
            "" => path.index,
            name => self.names().position(|each| each == name).ok_or_else(|| {
                let valid: Vec<_> = self.names().collect();
                unknown_name("path of the connection", name, &valid)
            })?,
        };
        Ok(PathRef { index, name: Cow::Owned(self.0[index].clone()) })
    }
}

/// Serialisation of a path by its name, for `#[serde(with = "PathName")]`.
pub(super) struct PathName;

impl PathName {
    pub(super) fn serialize<S: Serializer>(
        path: &PathRef,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        path.name.serialize(serializer)
    }

    /// Read the name. The caller has to find the path's index.
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PathRef, D::Error> {
        let name = String::deserialize(deserializer)?;
        Ok(PathRef { name: Cow::Owned(name), index: usize::MAX })
    }
}

impl JsonSchema for PathName {
    fn schema_name() -> Cow<'static, str> {
        "PathName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}
