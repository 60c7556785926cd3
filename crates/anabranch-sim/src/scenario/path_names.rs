//! Names of paths. Files name a path, and the code uses its index.

use std::borrow::Cow;

use anabranch_config::PathRef;
use anabranch_config::written::unknown_name;

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
