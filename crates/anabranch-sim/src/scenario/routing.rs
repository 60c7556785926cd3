//! Routing between the hosts: the server's addresses, and packets that leave by another path.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use anabranch_config::written::{Problem, unknown_name};

/// Routing of a path, where the server has several addresses, or a host has no source routing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Routing {
    /// Numbers of the server's addresses that the path leads to, from 1 to 8. A connection opens to
    /// the first of its first path, and the server announces its other addresses. A host opens no
    /// subflow to an address that the path does not lead to.
    #[serde(default, skip_serializing_if = "ServerAddresses::is_default")]
    pub server_addresses: ServerAddresses,
    /// Name of the path over which the client sends packets from its address on this path, like a
    /// host without source routing, whose packets all leave by the default route. They cross the links
    /// and middleboxes of that path. By default they leave by this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub client_egress: Option<Egress>,
    /// Name of the path over which the server sends packets to the client's address on this path. By
    /// default they leave by this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub server_egress: Option<Egress>,
}

/// Different numbers of the server's addresses, at least one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ServerAddresses(Vec<u8>);

/// The path by which packets of another path leave a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Egress {
    name: String,
    /// Index of the path, once the scenario is complete.
    pub path: usize,
}

/// Largest number of a server's address: as many as a host announces.
const MOST_ADDRESSES: u8 = 8;

impl Routing {
    /// Returns `true` if no key differs from its default.
    pub(super) fn is_default(&self) -> bool {
        *self == Routing::default()
    }

    /// Find the paths of the names.
    pub(super) fn complete(&mut self, names: &[String]) -> Result<(), Problem> {
        let Routing { client_egress, server_egress, .. } = self;
        for (key, egress) in [("client_egress", client_egress), ("server_egress", server_egress)] {
            let Some(egress) = egress else { continue };
            let found = names.iter().position(|name| *name == egress.name);
            egress.path = found.ok_or_else(|| {
                let valid: Vec<_> = names.iter().map(String::as_str).collect();
                Problem::new(key, unknown_name("path", &egress.name, &valid))
            })?;
        }
        Ok(())
    }
}

impl ServerAddresses {
    /// The numbers, in the order of the file.
    pub fn numbers(&self) -> &[u8] {
        &self.0
    }

    /// Number of the address to which connections open.
    pub fn first(&self) -> u8 {
        self.0[0]
    }

    fn is_default(&self) -> bool {
        *self == ServerAddresses::default()
    }
}

impl Default for ServerAddresses {
    fn default() -> Self {
        ServerAddresses(vec![1])
    }
}

impl<'de> Deserialize<'de> for ServerAddresses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let numbers = Vec::<u8>::deserialize(deserializer)?;
        let is_valid = |(index, number): (usize, &u8)| {
            (1..=MOST_ADDRESSES).contains(number) && !numbers[..index].contains(number)
        };
        if numbers.is_empty() || !numbers.iter().enumerate().all(is_valid) {
            let problem =
                format!("{numbers:?}: write different numbers from 1 to {MOST_ADDRESSES}");
            return Err(Problem::new("", problem).raise());
        }
        Ok(ServerAddresses(numbers))
    }
}

impl JsonSchema for ServerAddresses {
    fn schema_name() -> Cow<'static, str> {
        "ServerAddresses".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "items": { "type": "integer", "minimum": 1, "maximum": MOST_ADDRESSES },
            "minItems": 1,
            "uniqueItems": true,
        })
    }
}

impl Serialize for Egress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.name.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Egress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Egress { name: String::deserialize(deserializer)?, path: usize::MAX })
    }
}
