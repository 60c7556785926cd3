//! A path as the value of a parameter.

use std::borrow::Cow;

/// A path, identified by its name in a scenario and by its index in a list of paths. In a file it is
/// the name. Who reads the file has to find the index.
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

#[cfg(feature = "serde")]
mod written {
    use super::{Cow, PathRef};
    use schemars::{JsonSchema, Schema, SchemaGenerator};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    impl Serialize for PathRef {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.name.serialize(serializer)
        }
    }

    impl<'de> Deserialize<'de> for PathRef {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let name = String::deserialize(deserializer)?;
            Ok(PathRef { name: Cow::Owned(name), index: usize::MAX })
        }
    }

    impl JsonSchema for PathRef {
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
}
