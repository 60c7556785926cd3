//! Parameters of a part, as its type describes them.

use std::fmt;

use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value as Json};

/// A parameter of a [`Part`](crate::Part): a field of its type, described by the field's comment,
/// type and attributes.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name in scenarios.
    pub name: &'static str,
    /// Meaning of the parameter, without a full stop.
    pub meaning: String,
    /// Values that the parameter accepts, in words.
    pub values: String,
    /// The value if the user gives none, as a file contains it; `None` if the parameter is optional
    /// or the user must give a value.
    pub default: Option<String>,
    /// Source of the default; "this project" if the publication gives none.
    pub origin: String,
    /// Name and value of another parameter. This parameter has an effect only if that one has this
    /// value.
    pub only_with: Option<(String, String)>,
    /// The JSON Schema of the values.
    pub(crate) form: Map<String, Json>,
    /// Description of a value, for messages.
    pub(crate) expected: String,
    pub(crate) is_required: bool,
    /// A value, as a file contains it.
    pub(crate) example: Option<String>,
}

impl Parameter {
    /// All parameters of a part, in the order of its fields.
    pub fn all_of<P: JsonSchema + for<'de> Deserialize<'de>>() -> Vec<Parameter> {
        let mut generator = SchemaGenerator::default();
        let schema = Json::from(P::json_schema(&mut generator));
        let definitions = generator.take_definitions(true);
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let read = |name: &&'static str| {
            let is_required = required.iter().any(|each| each == name);
            Parameter::new(name, &schema["properties"][name], &definitions, is_required)
        };
        keys_of::<P>().iter().map(read).collect()
    }

    fn new(
        name: &'static str,
        property: &Json,
        definitions: &Map<String, Json>,
        is_required: bool,
    ) -> Self {
        let text = |key: &str| property[key].as_str().unwrap_or_default();
        let only_with = property["x-only-with"].as_object().and_then(|others| {
            let (other, value) = others.iter().next()?;
            Some((other.clone(), value.as_str()?.to_owned()))
        });
        let form = form(property);
        let definition = text("$ref").rsplit('/').next().and_then(|name| definitions.get(name));
        let described = definition.and_then(|each| each["description"].as_str());
        Parameter {
            name,
            meaning: meaning(property),
            values: described.map_or_else(|| values(&form), str::to_owned),
            default: default(property),
            origin: text("x-origin").to_owned(),
            only_with,
            expected: described.map_or_else(|| expected(&form), str::to_owned),
            form,
            is_required,
            example: property["examples"].get(0).map(Json::to_string),
        }
    }

    /// The names that the parameter accepts; none if it accepts other values.
    pub fn choices(&self) -> Vec<&str> {
        names(&self.form)
    }

    /// The JSON type of the values; empty if that is another schema.
    pub(crate) fn type_name(&self) -> &str {
        self.form.get("type").and_then(Json::as_str).unwrap_or_default()
    }
}

/// The schema of a property without its description, default and examples.
pub(crate) fn form(property: &Json) -> Map<String, Json> {
    let mut form = property.as_object().cloned().unwrap_or_default();
    form.retain(|key, _| {
        !matches!(key.as_str(), "description" | "default" | "examples" | "format")
            && !key.starts_with("x-")
    });
    form
}

/// The description of a property as a part of a sentence.
pub(crate) fn meaning(property: &Json) -> String {
    let text = property["description"].as_str().unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text.strip_suffix('.').unwrap_or(&text);
    let mut letters = text.chars();
    let (first, second) = (letters.next(), letters.clone().next());
    match first {
        // Not an abbreviation.
        Some(first) if !second.is_some_and(char::is_uppercase) => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

/// The default of a property as a file contains it.
pub(crate) fn default(property: &Json) -> Option<String> {
    match property.get("default")? {
        // A path, whose name is unknown here.
        Json::Null => None,
        Json::String(name) if name.is_empty() => None,
        value => toml::Value::try_from(value).ok().map(|value| value.to_string()),
    }
}

fn names(form: &Map<String, Json>) -> Vec<&str> {
    let all = |key: &str| form.get(key).and_then(Json::as_array).into_iter().flatten();
    let constants = all("oneOf").flat_map(|each| each["const"].as_str());
    all("enum").filter_map(Json::as_str).chain(constants).collect()
}

fn expected(form: &Map<String, Json>) -> String {
    let names_of = |key: &str| form.get(key).and_then(Json::as_object).map(names);
    match form.get("type").and_then(Json::as_str) {
        Some("integer") => "a whole number".to_owned(),
        Some("number") => "a number such as 1.5".to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => match names_of("items") {
            Some(names) => format!("some of {}", names.join(", ")),
            None => "an array".to_owned(),
        },
        _ => match names(form)[..] {
            [] => "the name of a path".to_owned(),
            ref names => format!("one of {}", names.join(", ")),
        },
    }
}

fn values(form: &Map<String, Json>) -> String {
    let bound = |key: &str| form.get(key).and_then(Json::as_f64);
    let within = match (bound("minimum"), bound("maximum")) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" from {least}"),
        _ => String::new(),
    };
    match form.get("type").and_then(Json::as_str) {
        Some("integer") => format!("a whole number{within}"),
        Some("number") => format!("a number{within}"),
        Some("boolean" | "array") => expected(form),
        _ => match names(form)[..] {
            [] => "a path of the connection".to_owned(),
            ref names => {
                let quoted: Vec<_> = names.iter().map(|name| format!("{name:?}")).collect();
                quoted.join(" or ")
            }
        },
    }
}

/// The names of the fields of a struct, in their order.
fn keys_of<P: for<'de> Deserialize<'de>>() -> &'static [&'static str] {
    let mut keys: &'static [&'static str] = &[];
    // It fails, as it must: there are no values.
    let _ = P::deserialize(FieldRecorder(&mut keys));
    keys
}

/// A deserializer that records the fields that a struct asks for.
struct FieldRecorder<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for FieldRecorder<'_> {
    type Error = serde::de::value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Self::Error> {
        Err(Error::custom("no struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        Err(Error::custom("only the names of the fields are known"))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.default {
            Some(default) if self.meaning.contains(". ") => {
                write!(f, "{}. By default `{default}`.", self.meaning)
            }
            Some(default) => write!(f, "{}; by default `{default}`.", self.meaning),
            None => write!(f, "{}.", self.meaning),
        }
    }
}
