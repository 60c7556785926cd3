//! Selections in files: a name alone, or a table with a kind and the parameters of that kind.

use core::fmt;
use core::marker::PhantomData;

use schemars::{Schema, SchemaGenerator};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use toml::{Table, Value};

use crate::written::{Problem, found, noun, unknown_key, unknown_name};
use crate::{Description, Parameter, Selection};

/// The key that selects the part.
pub const KIND: &str = "kind";

/// A part that files can select.
#[derive(Debug)]
pub struct PartReader<S> {
    /// Name, summary and source.
    pub description: Description,
    /// Reads the parameters.
    pub read: fn(Table) -> Result<S, Problem>,
    /// The JSON Schema of the parameters.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// The parameters.
    pub parameters: fn() -> &'static [Parameter],
}

/// A [`Selection`] that files contain. [`parts!`](crate::parts!) implements it.
pub trait WrittenSelection: Selection {
    /// All parts, in the order of [`Selection::ALL`].
    const READERS: &'static [PartReader<Self>];

    /// The parameters that have an effect, in their order, as a file contains them.
    fn parameters(&self) -> Vec<(&'static str, Value)>;
}

/// The part called `name`.
fn reader<S: WrittenSelection>(name: &str) -> Result<&'static PartReader<S>, Problem> {
    S::READERS.iter().find(|reader| reader.description.name == name).ok_or_else(|| {
        let valid: Vec<_> = S::ALL.iter().map(|part| part.name).collect();
        Problem::new("", unknown_name(S::NOUN, name, &valid))
    })
}

/// The part called `name` with its default parameters.
///
/// # Errors
/// If there is no such part, or it has a parameter without a default.
pub fn named<S: WrittenSelection>(name: &str) -> Result<S, Problem> {
    with_parameters(name, Table::new(), &[])
}

/// The part that a table with a kind describes. The caller has removed the keys `also`, which are
/// valid too.
///
/// # Errors
/// If the kind, or a parameter, is missing, unknown or has an invalid value.
pub fn from_table<S: WrittenSelection>(mut written: Table, also: &[&str]) -> Result<S, Problem> {
    let name = take_kind::<S>(&mut written)?;
    reader::<S>(&name).map_err(|problem| problem.below(KIND))?;
    with_parameters(&name, written, also)
}

/// Remove the kind from a table.
fn take_kind<S: WrittenSelection>(written: &mut Table) -> Result<String, Problem> {
    let problem = match written.remove(KIND) {
        Some(Value::String(name)) => return Ok(name),
        Some(other) => format!("found {}, expected a name", found(&other)),
        None => {
            // A key that no part has may be the kind, misspelt.
            let all: Vec<_> = S::READERS.iter().flat_map(keys).collect();
            if let Some(key) = written.keys().find(|key| !all.contains(&key.as_str())) {
                return Err(Problem::new(key, unknown_key(key, &[KIND], &all)));
            }
            "missing; this key is required".to_owned()
        }
    };
    Err(Problem::new(KIND, problem))
}

/// The names of the parameters of a part.
fn keys<S>(reader: &PartReader<S>) -> Vec<&'static str> {
    (reader.parameters)().iter().map(|parameter| parameter.name).collect()
}

/// The part called `name` with the parameters in `written`. `also` are other keys of the table, which
/// the caller has removed.
///
/// # Errors
/// If the name is unknown, or a parameter is missing, unknown or has an invalid value.
pub fn with_parameters<S: WrittenSelection>(
    name: &str,
    written: Table,
    also: &[&str],
) -> Result<S, Problem> {
    let reader = reader::<S>(name)?;
    let parameters = (reader.parameters)();
    for parameter in parameters {
        if let Some(value) = written.get(parameter.name) {
            check(parameter, value).map_err(|text| Problem::new(parameter.name, text))?;
        }
    }
    let is_known = |key: &String| parameters.iter().any(|each| each.name == *key);
    if let Some(key) = written.keys().find(|key| !is_known(key)) {
        return Err(Problem::new(key, foreign(reader, key, also)));
    }
    for parameter in parameters {
        let is_given = written.contains_key(parameter.name);
        if parameter.is_required && !is_given {
            return Err(Problem::new(parameter.name, missing(name, parameter)));
        }
        if is_given
            && let Some((other, value)) = &parameter.only_with
            && !applies(parameter, parameters, &written)
        {
            let problem = format!("belongs to kind = {name:?} and {other} = {value:?}; remove it");
            return Err(Problem::new(parameter.name, problem));
        }
    }
    (reader.read)(written)
}

/// Returns `true` if the parameter has an effect with the values of the other parameters.
fn applies(parameter: &Parameter, all: &[Parameter], written: &Table) -> bool {
    let Some((other, needed)) = &parameter.only_with else { return true };
    let default = || all.iter().find(|each| each.name == other)?.default.clone();
    match written.get(other) {
        Some(value) => value.as_str() == Some(needed),
        None => default() == Some(format!("{needed:?}")),
    }
}

/// Check the type and the bounds of a value.
fn check(parameter: &Parameter, value: &Value) -> Result<(), String> {
    let mismatch = || Err(format!("found {}, expected {}", found(value), parameter.expected));
    let names = parameter.choices();
    match (parameter.type_name(), value) {
        ("integer" | "number", Value::Integer(number)) => {
            check_bounds(parameter, value, *number as f64)
        }
        ("number", Value::Float(number)) => check_bounds(parameter, value, *number),
        ("array", Value::Array(elements)) if elements.is_empty() => {
            Err("[]: name at least one, or remove this key".to_owned())
        }
        ("array", Value::Array(_)) | ("boolean", Value::Boolean(_)) => Ok(()),
        ("array", _) => Err(format!("found {}, expected an array", found(value))),
        (_, Value::String(name)) if !names.is_empty() && !names.contains(&name.as_str()) => {
            Err(unknown_name(&noun(parameter.name), name, &names))
        }
        ("string", Value::String(_)) => Ok(()),
        // Quantities and tables have messages of their own.
        ("", _) if names.is_empty() || value.is_str() => Ok(()),
        _ => mismatch(),
    }
}

fn check_bounds(parameter: &Parameter, value: &Value, number: f64) -> Result<(), String> {
    let bound = |key: &str| parameter.form.get(key).and_then(serde_json::Value::as_f64);
    let least = bound("minimum").unwrap_or(f64::NEG_INFINITY);
    match bound("maximum") {
        Some(most) if !(least..=most).contains(&number) => {
            Err(format!("{value}: must be between {least} and {most}"))
        }
        None if number < least => Err(format!("{value}: must be {least} or more")),
        _ => Ok(()),
    }
}

/// The problem if a parameter without a default is missing.
fn missing(part: &str, parameter: &Parameter) -> String {
    if let Some(example) = &parameter.example {
        return format!(
            "missing; kind = {part:?} needs it, such as {} = {example}",
            parameter.name
        );
    }
    match &parameter.choices()[..] {
        [names @ .., last] if !names.is_empty() => {
            format!("missing; write {} or {last}", names.join(", "))
        }
        _ => format!("missing; write {}", parameter.expected),
    }
}

/// The problem with a key that the part does not have.
fn foreign<S: WrittenSelection>(reader: &PartReader<S>, key: &str, also: &[&str]) -> String {
    let owners = S::READERS.iter().filter(|other| keys(other).contains(&key));
    let owners: Vec<_> = owners.map(|owner| format!("{:?}", owner.description.name)).collect();
    match &owners[..] {
        [] => {
            let own = [also, &keys(reader)].concat();
            unknown_key(key, &own, &S::READERS.iter().flat_map(keys).collect::<Vec<_>>())
        }
        [owner] => format!("belongs to kind = {owner}; remove it, or write that kind"),
        [others @ .., last] => {
            let others = others.join(", ");
            format!("belongs to kind = {others} or {last}; remove it, or write one of these kinds")
        }
    }
}

/// The parameters of a selected part that have an effect, in their order, as a file contains them.
///
/// # Panics
/// If a parameter cannot be written as TOML.
pub fn write<S: WrittenSelection>(
    selection: &S,
    part: &impl Serialize,
) -> Vec<(&'static str, Value)> {
    let written = Table::try_from(part).expect("a struct of values that TOML has");
    let all = (reader::<S>(selection.name()).expect("it is selected").parameters)();
    let effective = all.iter().filter(|parameter| applies(parameter, all, &written));
    effective.filter_map(|each| Some((each.name, written.get(each.name)?.clone()))).collect()
}

/// Write the name of a part without parameters, and else a table with a kind.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: WrittenSelection, T: Serializer>(
    selection: &S,
    serializer: T,
) -> Result<T::Ok, T::Error> {
    let mut table: Table =
        selection.parameters().into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if table.is_empty() {
        return serializer.serialize_str(selection.name());
    }
    table.insert(KIND.to_owned(), selection.name().into());
    table.serialize(serializer)
}

/// Write a table with a kind and parameters, with its keys in order. `others` follow the kind.
///
/// # Errors
/// Those of the serializer.
pub fn serialize_in_order<S: WrittenSelection, T: Serializer>(
    selection: &S,
    others: impl IntoIterator<Item = (&'static str, Value)>,
    serializer: T,
) -> Result<T::Ok, T::Error> {
    let kind = (KIND, selection.name().into());
    serializer.collect_map([kind].into_iter().chain(others).chain(selection.parameters()))
}

/// Read a name, or a table with a kind.
///
/// # Errors
/// As for [`from_table`].
pub fn deserialize<'de, S: WrittenSelection, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<S, D::Error> {
    deserializer.deserialize_any(SelectionVisitor(PhantomData))
}

struct SelectionVisitor<S>(PhantomData<S>);

impl<'de, S: WrittenSelection> Visitor<'de> for SelectionVisitor<S> {
    type Value = S;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a name such as {:?}, or a table with a kind", S::ALL[0].name)
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<S, E> {
        named(name).map_err(Problem::raise)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<S, A::Error> {
        let written = Table::deserialize(MapAccessDeserializer::new(map))?;
        from_table(written, &[]).map_err(Problem::raise)
    }
}
