//! The JSON Schema of selections.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value as Json, json};

use crate::parameter::{Parameter, form};
use crate::{Description, KIND, Selection, WrittenSelection};

/// The name of the schema of a kind of parts.
pub fn name_of<S: Selection>() -> Cow<'static, str> {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    S::NOUN.split(' ').map(capital).collect::<String>().into()
}

/// The names of parts.
pub fn names<'a>(all: impl IntoIterator<Item = &'a Description>) -> Json {
    let name = |part: &Description| json!({ "const": part.name, "description": part.summary });
    json!({ "oneOf": all.into_iter().map(name).collect::<Vec<_>>() })
}

/// A name, or a table with a kind and parameters.
pub fn name_or_table<S: WrittenSelection>(generator: &mut SchemaGenerator) -> Schema {
    let mut properties = properties::<S>(generator);
    properties.insert(KIND.to_owned(), names(S::ALL));
    json_schema!({
        "anyOf": [
            names(S::ALL),
            {
                "type": "object",
                "properties": properties,
                "required": [KIND],
                "additionalProperties": false,
            },
        ]
    })
}

/// A table with a kind, the parameters of that kind, and those of `C`, which all kinds have.
pub fn table<S: WrittenSelection, C: JsonSchema>(
    description: &str,
    generator: &mut SchemaGenerator,
) -> Schema {
    let mut properties = properties::<S>(generator);
    properties.insert(KIND.to_owned(), names(S::ALL));
    let in_common = C::json_schema(generator);
    for (name, property) in
        in_common.get("properties").and_then(Json::as_object).into_iter().flatten()
    {
        let mut schema = form(property);
        schema.insert("description".to_owned(), property["description"].clone());
        properties.insert(name.clone(), schema.into());
    }
    json_schema!({
        "description": description,
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    })
}

/// Any of the tables of all kinds, each with its own parameters.
pub fn any_table<S: WrittenSelection>(
    description: &str,
    generator: &mut SchemaGenerator,
) -> Schema {
    let kind_of = format!("Kind of {}.", S::NOUN);
    let mut table = |reader: &crate::PartReader<S>| {
        let mut schema = Json::from((reader.schema)(generator));
        if schema["properties"].is_null() {
            schema["properties"] = json!({});
        }
        schema["properties"][KIND] =
            json!({ "const": reader.description.name, "description": kind_of });
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let required: Vec<Json> = [KIND.into()].into_iter().chain(required).collect();
        schema["required"] = required.into();
        schema
    };
    let each: Vec<Json> = S::READERS.iter().map(&mut table).collect();
    json_schema!({ "description": description, "oneOf": each })
}

/// The parameters of one part, by name.
pub fn parameters_of<S: WrittenSelection>(
    index: usize,
    generator: &mut SchemaGenerator,
) -> Vec<(&'static str, Json)> {
    let all = (S::READERS[index].parameters)().iter();
    all.map(|each| (each.name, shared::<S>(each.name, &[index], generator))).collect()
}

/// The parameters of all parts by name. Several parts may share a parameter's name.
fn properties<S: WrittenSelection>(generator: &mut SchemaGenerator) -> Map<String, Json> {
    let parameter = |index: usize, name| parameter(&S::READERS[index], name);
    let mut properties = Map::new();
    for each in S::READERS.iter().flat_map(|reader| (reader.parameters)()) {
        if !properties.contains_key(each.name) {
            let owners = (0..S::READERS.len()).filter(|n| parameter(*n, each.name).is_some());
            let owners: Vec<_> = owners.collect();
            let schema = shared::<S>(each.name, &owners, generator);
            properties.insert(each.name.to_owned(), schema);
        }
    }
    properties
}

fn parameter<S>(reader: &crate::PartReader<S>, name: &str) -> Option<&'static Parameter> {
    (reader.parameters)().iter().find(|each| each.name == name)
}

/// A parameter of these parts, whose meanings may differ.
fn shared<S: WrittenSelection>(
    name: &str,
    owners: &[usize],
    generator: &mut SchemaGenerator,
) -> Json {
    let mut forms: Vec<Json> = Vec::new();
    let mut texts: Vec<(String, Vec<String>)> = Vec::new();
    for reader in owners.iter().map(|index| &S::READERS[*index]) {
        // With this generator, so that it has the definitions.
        let schema = Json::from((reader.schema)(generator));
        let form = Json::Object(form(&schema["properties"][name]));
        if !forms.contains(&form) {
            forms.push(form);
        }
        let text = parameter(reader, name).map(Parameter::to_string).unwrap_or_default();
        let owner = format!("`{}`", reader.description.name);
        match texts.iter_mut().find(|(known, _)| *known == text) {
            Some((_, owners)) => owners.push(owner),
            None => texts.push((text, vec![owner])),
        }
    }
    let mut schema = match <[Json; 1]>::try_from(forms) {
        Ok([only]) => only,
        Err(forms) => json!({ "anyOf": forms }),
    };
    let texts =
        texts.into_iter().map(|(text, owners)| format!("{} only: {text}", owners.join(", ")));
    schema["description"] = texts.collect::<Vec<_>>().join(" ").into();
    schema
}
