//! The JSON Schema of entries that can be selected by name, and of their parameters.

use anabranch_net::units::{ByteCount, Probability};
use anabranch_wire::Duration;
use anabranch_wire::entry::{Entry, Kind, Parameter, Value};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value as Json, json};

use super::value::write;
use crate::written::WithUnit;

/// The key that names the entry.
pub(super) const KIND: &str = "kind";

/// The names of all entries.
pub(super) fn names<M>(all: &[Entry<M>]) -> Json {
    let name = |entry: &Entry<M>| json!({ "const": entry.name, "description": entry.summary });
    json!({ "oneOf": all.iter().map(name).collect::<Vec<_>>() })
}

/// The parameters of all entries by name. Several entries may share a parameter's name.
pub(super) fn properties<M>(
    all: &[Entry<M>],
    generator: &mut SchemaGenerator,
) -> Map<String, Json> {
    let mut properties = Map::new();
    for parameter in all.iter().flat_map(|entry| entry.parameters) {
        if properties.contains_key(parameter.name) {
            continue;
        }
        let owners = all.iter().flat_map(|entry| {
            let same = entry.parameters.iter().find(|other| other.name == parameter.name);
            same.map(|same| (entry.name, same))
        });
        let schema = shared(&owners.collect::<Vec<_>>(), generator);
        properties.insert(parameter.name.to_owned(), schema.into());
    }
    properties
}

/// A parameter of one entry.
pub(super) fn property(
    owner: &'static str,
    parameter: &Parameter,
    generator: &mut SchemaGenerator,
) -> Schema {
    shared(&[(owner, parameter)], generator)
}

/// A table with a kind, the parameters of that kind, and the parameters that all kinds have.
pub(super) fn table<M>(
    description: &str,
    all: &[Entry<M>],
    in_common: &[Parameter],
    generator: &mut SchemaGenerator,
) -> Schema {
    let mut properties = properties(all, generator);
    properties.insert(KIND.to_owned(), names(all));
    for parameter in in_common {
        properties.insert(parameter.name.to_owned(), common(parameter, generator).into());
    }
    json_schema!({
        "description": description,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// A parameter that all entries have.
fn common(parameter: &Parameter, generator: &mut SchemaGenerator) -> Schema {
    let mut schema = values(parameter.kind, generator);
    schema.insert("description".to_owned(), described(parameter).into());
    schema
}

/// A parameter of these entries, whose meanings may differ.
fn shared(owners: &[(&str, &Parameter)], generator: &mut SchemaGenerator) -> Schema {
    let mut forms: Vec<Schema> = Vec::new();
    let mut texts: Vec<(String, Vec<&str>)> = Vec::new();
    for (owner, parameter) in owners {
        let form = values(parameter.kind, generator);
        if !forms.contains(&form) {
            forms.push(form);
        }
        let text = described(parameter);
        match texts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, owners)) => owners.push(owner),
            None => texts.push((text, vec![owner])),
        }
    }
    let mut schema = match <[Schema; 1]>::try_from(forms) {
        Ok([only]) => only,
        Err(forms) => json_schema!({ "anyOf": forms }),
    };
    let texts = texts.into_iter().map(|(text, owners)| {
        let owners: Vec<_> = owners.iter().map(|owner| format!("`{owner}`")).collect();
        format!("{} only: {text}", owners.join(", "))
    });
    let text = texts.collect::<Vec<_>>().join(" ");
    schema.insert("description".to_owned(), text.into());
    schema
}

/// The parameter's meaning and default.
fn described(parameter: &Parameter) -> String {
    let meaning = parameter.meaning;
    match &parameter.default {
        // The names of paths are unknown here.
        Value::Path(_) => format!("{meaning}."),
        default => match write(default) {
            Some(default) => format!("{meaning}; by default `{default}`."),
            None => format!("{meaning}."),
        },
    }
}

fn values(kind: Kind, generator: &mut SchemaGenerator) -> Schema {
    match kind {
        Kind::Count { least, most } => {
            json_schema!({ "type": "integer", "minimum": least, "maximum": most })
        }
        Kind::Flag => json_schema!({ "type": "boolean" }),
        Kind::Number { least, most } => {
            json_schema!({ "type": "number", "minimum": least, "maximum": most })
        }
        Kind::Time { .. } => generator.subschema_for::<WithUnit<Duration>>(),
        Kind::Bytes { .. } => generator.subschema_for::<WithUnit<ByteCount>>(),
        Kind::Probability => generator.subschema_for::<WithUnit<Probability>>(),
        Kind::Choice(names) => json_schema!({ "type": "string", "enum": names }),
        Kind::Choices(names) => json_schema!({
            "type": "array", "items": { "type": "string", "enum": names }, "minItems": 1,
        }),
        Kind::Path => json_schema!({ "type": "string" }),
    }
}
