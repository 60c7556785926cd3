//! The paths that a path goes via.

use std::borrow::Cow;

use anabranch_net::network::Hop;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use anabranch_config::written::{Problem, unknown_name};

/// The earlier paths that a path goes via, in order towards the server. Files name one path, or a
/// list of paths. A minus before a name means the opposite direction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Via {
    names: Names,
    hops: Vec<Hop>,
}

/// The names as the file has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "must be the name of an earlier path, or a list of names")]
enum Names {
    One(String),
    List(Vec<String>),
}

impl Default for Names {
    fn default() -> Self {
        Names::List(Vec::new())
    }
}

impl Names {
    fn as_slice(&self) -> &[String] {
        match self {
            Names::One(name) => std::slice::from_ref(name),
            Names::List(names) => names,
        }
    }

    /// The key of a name below `via`.
    fn key(&self, index: usize) -> String {
        match self {
            Names::One(_) => String::new(),
            Names::List(_) => format!("[{index}]"),
        }
    }
}

/// An earlier path, which later paths may go via.
pub(super) struct Earlier<'a> {
    pub(super) name: &'a str,
    pub(super) has_middleboxes: bool,
    pub(super) via: &'a Via,
}

impl Via {
    /// These paths of `before`, as a list of names.
    #[cfg(test)]
    pub(super) fn new(names: Vec<String>, before: &[Earlier<'_>]) -> Result<Self, Problem> {
        let mut via = Via { names: Names::List(names), hops: Vec::new() };
        via.find(before).map(|()| via)
    }

    /// The paths in order towards the server.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// Returns `true` if the path leads to the server directly.
    pub fn is_empty(&self) -> bool {
        self.names.as_slice().is_empty()
    }

    /// Find the paths among the earlier paths. This order excludes cycles.
    pub(super) fn find(&mut self, before: &[Earlier<'_>]) -> Result<(), Problem> {
        let mut crossed = Vec::new();
        for (index, name) in self.names.as_slice().iter().enumerate() {
            let hop = find(name, before).and_then(|hop| {
                extend(&mut crossed, name, hop, before)?;
                Ok(hop)
            });
            self.hops.push(hop.map_err(|text| Problem::new(self.names.key(index), text))?);
        }
        Ok(())
    }
}

/// The path that `name` means. A path whose own name begins with a minus comes first.
fn find(name: &str, before: &[Earlier<'_>]) -> Result<Hop, String> {
    if before.is_empty() {
        return Err(format!("{name:?}: list that path before the paths that go via it"));
    }
    let position = |name| before.iter().position(|path| path.name == name);
    if let Some(path) = position(name) {
        return Ok(Hop { path, reversed: false });
    }
    let bare = name.strip_prefix('-').unwrap_or(name);
    let path = position(bare).ok_or_else(|| {
        let valid: Vec<_> = before.iter().map(|path| path.name).collect();
        unknown_name("earlier path", bare, &valid)
    })?;
    match route_of(path, before).into_iter().find(|path| before[*path].has_middleboxes) {
        Some(boxed) => {
            let boxed = before[boxed].name;
            Err(format!("{name:?}: the middleboxes of {boxed:?} face the server; remove the minus"))
        }
        None => Ok(Hop { path, reversed: true }),
    }
}

/// Extend the paths that a route has `crossed` by the route of `hop`.
fn extend(
    crossed: &mut Vec<usize>,
    name: &str,
    hop: Hop,
    before: &[Earlier<'_>],
) -> Result<(), String> {
    let more = route_of(hop.path, before);
    if let Some(twice) = more.iter().find(|path| crossed.contains(path)) {
        let twice = before[*twice].name;
        return Err(format!(
            "{name:?} crosses {twice:?} a second time; a route crosses a path once"
        ));
    }
    crossed.extend(more);
    Ok(())
}

/// A path and all paths that its packets cross.
fn route_of(path: usize, before: &[Earlier<'_>]) -> Vec<usize> {
    let beyond = before[path].via.hops.iter().flat_map(|hop| route_of(hop.path, before));
    std::iter::once(path).chain(beyond).collect()
}

impl Serialize for Via {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.names.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Via {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Names::deserialize(deserializer)?;
        if names.as_slice().is_empty() {
            let problem = "[]: name at least one earlier path, or remove this key";
            return Err(Problem::new("", problem).raise());
        }
        Ok(Via { names, hops: Vec::new() })
    }
}

impl JsonSchema for Via {
    fn schema_name() -> Cow<'static, str> {
        "Via".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error_of, read};
    use super::*;

    /// Two hosts, each with a cable to a switch, and a path from one to the other.
    const CABLES: &str = r#"
name = "cables"
duration = "1s"
[[path]]
name = "left"
rate = "8Mbit/s"
delay = "1ms"
limit = "infinite"
[[path]]
name = "right"
rate = "8Mbit/s"
delay = "1ms"
limit = "infinite"
[[path]]
name = "across"
via = ["left", "-right"]
rate = "1Gbit/s"
delay = "0ms"
limit = "infinite"
[[connection]]
workload = { kind = "bulk" }
"#;

    /// The error about `CABLES` with another `via`.
    fn wrong(via: &str) -> String {
        error_of(&CABLES.replace("[\"left\", \"-right\"]", via))
    }

    fn hop(path: usize, reversed: bool) -> Hop {
        Hop { path, reversed }
    }

    #[test]
    fn a_list_names_paths_in_either_direction() {
        let scenario = read(CABLES);
        assert_eq!(scenario.paths[2].via.hops(), [hop(0, false), hop(1, true)]);
        assert_eq!(*scenario.connections[0].paths, [2], "cables are no paths of their own");
        assert!(scenario.to_toml().contains("via = [\"left\", \"-right\"]\n"));
        let one = read(&CABLES.replace("[\"left\", \"-right\"]", "\"-right\""));
        assert_eq!(one.paths[2].via.hops(), [hop(1, true)]);
        assert!(one.to_toml().contains("via = \"-right\"\n"));
    }

    #[test]
    fn a_name_that_begins_with_a_minus_means_that_path() {
        let scenario = read(&CABLES.replace("name = \"right\"", "name = \"-right\""));
        assert_eq!(scenario.paths[2].via.hops(), [hop(0, false), hop(1, false)]);
        let twice = CABLES.replace("name = \"right\"", "name = \"-right\"");
        let scenario = read(&twice.replace("\"left\", \"-right\"", "\"left\", \"--right\""));
        assert_eq!(scenario.paths[2].via.hops(), [hop(0, false), hop(1, true)]);
    }

    #[test]
    fn names_that_are_no_earlier_path() {
        assert_eq!(
            wrong("[\"left\", \"-rigth\"]"),
            r#"wifi.toml: path[2].via[1]: unknown earlier path "rigth"; did you mean "right"? (valid: left, right)"#
        );
        assert_eq!(
            wrong("[\"left\", \"across\"]"),
            r#"wifi.toml: path[2].via[1]: unknown earlier path "across" (valid: left, right)"#
        );
        assert_eq!(
            wrong("[]"),
            "wifi.toml: path[2].via: []: name at least one earlier path, or remove this key"
        );
        assert_eq!(
            wrong("7"),
            "wifi.toml: path[2].via: must be the name of an earlier path, or a list of names"
        );
    }

    #[test]
    fn circles() {
        assert_eq!(
            wrong("[\"left\", \"-left\"]"),
            r#"wifi.toml: path[2].via[1]: "-left" crosses "left" a second time; a route crosses a path once"#
        );
        let further = "name = \"right\"\nvia = \"left\"";
        let text = CABLES.replace("name = \"right\"", further);
        assert_eq!(
            error_of(&text),
            r#"wifi.toml: path[2].via[1]: "-right" crosses "left" a second time; a route crosses a path once"#
        );
        let text = text.replace("[\"left\", \"-right\"]", "\"-right\"");
        assert_eq!(read(&text).paths[2].via.hops(), [hop(1, true)]);
    }

    #[test]
    fn middleboxes_are_not_crossed_in_reverse() {
        let boxed =
            "limit = \"infinite\"\n[[path.middlebox]]\nkind = \"nat\"\n[[path]]\nname = \"across\"";
        let text = CABLES.replace("limit = \"infinite\"\n[[path]]\nname = \"across\"", boxed);
        assert_eq!(
            error_of(&text),
            r#"wifi.toml: path[2].via[1]: "-right": the middleboxes of "right" face the server; remove the minus"#
        );
        assert_eq!(read(&text.replace("-right", "right")).paths[2].via.hops().len(), 2);
    }
}
