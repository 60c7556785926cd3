//! A path as the value of a parameter.

use std::borrow::Cow;

/// A path, identified by its name in a scenario and by its index in a list of paths. A file contains
/// the name. The caller that reads the file must find the index.
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
