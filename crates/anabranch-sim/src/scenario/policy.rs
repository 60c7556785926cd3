//! Policies in scenarios: a built-in policy, or the name of the user's own.

use core::fmt;
use core::marker::PhantomData;
use std::borrow::Cow;
use std::path::{Path as FilePath, absolute};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{
    BoolDeserializer, F64Deserializer, I64Deserializer, MapAccessDeserializer, StrDeserializer,
};
use serde::de::{Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A built-in policy, or the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Policy<T> {
    /// A built-in policy.
    BuiltIn(T),
    /// The user's own policy, written `"custom:NAME"`, or `"FILE.py:CLASS"` for a class in Python. A
    /// scenario can only name it. The policy itself is passed to the run; see
    /// [`crate::CustomPolicies`].
    Custom(String),
}

/// Prefix of the names of the user's own policies in a file.
const PREFIX: &str = "custom:";
/// The prefix before that one had its name.
const OLD_PREFIX: &str = "own:";

/// Returns `true` if a text names a Python file, and perhaps a class in it. No built-in policy
/// does.
fn names_python_file(text: &str) -> bool {
    text.contains(".py:") || text.ends_with(".py")
}

impl<T> Policy<T> {
    /// The name, if this is the user's own policy.
    pub fn custom(&self) -> Option<&str> {
        match self {
            Policy::BuiltIn(_) => None,
            Policy::Custom(name) => Some(name),
        }
    }

    /// Give the Python file that the policy names its whole name. It is relative to `folder`.
    pub(super) fn find_file(&mut self, folder: &FilePath) {
        let Policy::Custom(name) = self else { return };
        let Some((file, class)) = name.rsplit_once(':').filter(|(file, _)| file.ends_with(".py"))
        else {
            return;
        };
        let whole = folder.join(file);
        if let Ok(whole) = whole.canonicalize().or_else(|_| absolute(&whole)) {
            *name = format!("{}:{class}", whole.display());
        }
    }

    /// The policy, if it is built-in.
    pub(super) fn built_in_mut(&mut self) -> Option<&mut T> {
        match self {
            Policy::BuiltIn(policy) => Some(policy),
            Policy::Custom(_) => None,
        }
    }
}

impl<T> From<T> for Policy<T> {
    fn from(policy: T) -> Self {
        Policy::BuiltIn(policy)
    }
}

impl<T: Default> Default for Policy<T> {
    fn default() -> Self {
        Policy::BuiltIn(T::default())
    }
}

impl<T: Serialize> Serialize for Policy<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Policy::BuiltIn(policy) => policy.serialize(serializer),
            Policy::Custom(name) => serializer.collect_str(&format_args!("{PREFIX}{name}")),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Policy<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PolicyVisitor(PhantomData))
    }
}

struct PolicyVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PolicyVisitor<T> {
    type Value = Policy<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a policy")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Policy<T>, E> {
        if let Some(name) = text.strip_prefix(OLD_PREFIX) {
            return Err(E::custom(format!("{text:?}: write \"{PREFIX}{}\"", name.trim())));
        }
        match text.strip_prefix(PREFIX).map(str::trim) {
            Some("") => Err(E::custom(format!("{text:?}: write a name after the colon"))),
            Some(name) => Ok(Policy::Custom(name.to_owned())),
            None if names_python_file(text) => Ok(Policy::Custom(text.to_owned())),
            None => T::deserialize(StrDeserializer::new(text)).map(Policy::BuiltIn),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Policy<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Policy::BuiltIn)
    }

    // Built-in policies reject other types, because they know which types they expect.
    fn visit_bool<E: Error>(self, value: bool) -> Result<Policy<T>, E> {
        let deserializer: BoolDeserializer<E> = value.into_deserializer();
        T::deserialize(deserializer).map(Policy::BuiltIn)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Policy<T>, E> {
        let deserializer: I64Deserializer<E> = value.into_deserializer();
        T::deserialize(deserializer).map(Policy::BuiltIn)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Policy<T>, E> {
        let deserializer: F64Deserializer<E> = value.into_deserializer();
        T::deserialize(deserializer).map(Policy::BuiltIn)
    }
}

impl<T: JsonSchema> JsonSchema for Policy<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("Own{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let built_in = generator.subschema_for::<T>();
        let own = json_schema!({
            "type": "string",
            "description": "The user's own policy: a Python file and a class in it.",
            "pattern": format!("^({PREFIX}.+|.+\\.py:.+)$"),
        });
        json_schema!({ "anyOf": [built_in, own] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::policy_tests::{path_manager, scheduler};
    use crate::scenario::tests::{SMALLEST, read};
    use crate::scenario::{CustomNames, Scenario};

    fn with(keys: &str) -> Result<Scenario, String> {
        let text = SMALLEST.replacen("[[connection]]", &format!("[[connection]]\n{keys}"), 1);
        Scenario::from_toml(&text, "own.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn a_scenario_can_name_a_policy_of_the_users_own() {
        let scenario = with(
            "scheduler = \"custom:mine.Lowest\"\ncongestion_control = \"custom:Reno\"\n\
             path_manager = \"custom: Mesh\"",
        )
        .unwrap();
        let connection = &scenario.connections[0];
        assert_eq!(connection.scheduler.custom(), Some("mine.Lowest"));
        assert_eq!(connection.congestion_control.custom(), Some("Reno"));
        assert_eq!(connection.path_manager, Policy::Custom("Mesh".to_owned()));
        assert_eq!(read(&scenario.to_toml()), scenario);
    }

    #[test]
    fn a_class_in_a_python_file_needs_no_prefix() {
        let keys = "scheduler = \"mine.py:Lowest\"\npath_manager = \"../my.py\"";
        let scenario = with(keys).unwrap();
        let file = absolute("mine.py").unwrap();
        let whole = format!("{}:Lowest", file.display());
        assert_eq!(scenario.connections[0].scheduler.custom(), Some(&*whole));
        assert_eq!(scenario.connections[0].path_manager.custom(), Some("../my.py"));
        assert!(scenario.to_toml().contains(&format!("\"custom:{whole}\"")));
        assert_eq!(read(&scenario.to_toml()), scenario);
    }

    #[test]
    fn what_is_wrong_with_its_name_is_explained() {
        assert_eq!(
            with("scheduler = \"custom:\"").unwrap_err(),
            "own.toml: connection[0].scheduler: \"custom:\": write a name after the colon"
        );
        assert_eq!(
            with("scheduler = \"own:Old\"").unwrap_err(),
            "own.toml: connection[0].scheduler: \"own:Old\": write \"custom:Old\""
        );
        assert_eq!(
            with("congestion_control = \"custom:Reno\"\nhystart = true").unwrap_err(),
            "own.toml: connection[0].hystart: true: Reno has its own rule to end slow start; \
             remove this key"
        );
        let number = with("path_manager = 3").unwrap_err();
        assert!(number.starts_with("own.toml: connection[0].path_manager: found"), "{number}");
    }

    #[test]
    fn names_go_where_own_policies_are_or_else_to_all_of_multipath_tcp() {
        let names = CustomNames { scheduler: Some("New".to_owned()), ..CustomNames::default() };
        let two = |first: &str, second: &str| {
            let workload = "workload = { kind = \"bulk\" }";
            let first = with(first).unwrap();
            let second = format!("{}\n[[connection]]\n{second}\n{workload}", first.to_toml());
            let scenario = read(&second).with_custom(&names);
            let own = scenario.connections.iter().map(|c| c.scheduler.custom().map(str::to_owned));
            own.collect::<Vec<_>>()
        };
        let new = Some("New".to_owned());
        assert_eq!(two("scheduler = \"custom:Old\"", ""), [new.clone(), None]);
        assert_eq!(two("", "protocol = \"tcp\""), [new, None]);
    }

    #[test]
    fn a_congestion_control_of_the_users_own_does_without_hystart() {
        let names = CustomNames {
            congestion_control: Some("Reno".to_owned()),
            path_manager: Some("Mesh".to_owned()),
            ..CustomNames::default()
        };
        let scenario = with("congestion_control = \"cubic\"").unwrap().with_custom(&names);
        assert!(!*scenario.connections[0].hystart);
        assert_eq!(scenario.connections[0].scheduler, scheduler("min_rtt").into());
        assert_ne!(scenario.connections[0].path_manager, path_manager("full_mesh").into());
        assert_eq!(read(&scenario.to_toml()), scenario);
    }
}
