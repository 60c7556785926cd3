//! Scenarios as written, before defaults are filled in, and changes of single keys.
//!
//! A key is dotted: `"warm_up"`, `"path[1].rate"`, `"path.wifi.rate"`,
//! `"connection.download.workload.block_size"`. Tables in arrays have an index or a name.

use std::path::{Path as FilePath, PathBuf};

use anabranch_config::written::unknown_name;
use toml::{Table, Value};

use super::error::ARRAYS;
use super::{Scenario, ScenarioError};

/// A scenario as written: its keys and values, before defaults are filled in.
#[derive(Clone, Debug)]
pub struct Document {
    table: Table,
    file: String,
    folder: PathBuf,
}

/// An error of [`Document::with_settings`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChangeError {
    /// There is no such key, or its new value is wrong.
    #[error("{key}: {problem}")]
    Key {
        /// The key, with names instead of indices.
        key: String,
        /// The problem, and what would be right.
        problem: String,
    },
    /// The scenario is wrong elsewhere.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

impl Document {
    /// The document in the TOML `text`. `file` is its name in error messages. Names of files in it
    /// are relative to `folder`.
    ///
    /// # Errors
    /// If `text` is not TOML.
    pub fn parse(text: &str, file: &str, folder: &FilePath) -> Result<Self, ScenarioError> {
        let table = text.parse().map_err(|error| ScenarioError::syntax(file, text, &error))?;
        Ok(Document::new(table, file, folder))
    }

    /// The document with the keys and values of `table`.
    pub fn new(mut table: Table, file: &str, folder: &FilePath) -> Self {
        name_tables(&mut table);
        Document { table, file: file.to_owned(), folder: folder.to_owned() }
    }

    /// Read and check the scenario.
    ///
    /// # Errors
    /// If a key is missing, unknown, or has an invalid value.
    pub fn read(&self) -> Result<Scenario, ScenarioError> {
        Scenario::read(self.table.clone(), &self.file, &self.folder)
    }

    /// The document with these keys set, and its scenario.
    ///
    /// # Errors
    /// If a key names no table of the scenario, or if the scenario is wrong.
    pub fn with_settings(
        &self,
        settings: &[(String, Value)],
    ) -> Result<(Self, Scenario), ChangeError> {
        let mut changed = self.clone();
        for (key, value) in settings {
            let put = changed.put(key, value.clone());
            put.map_err(|problem| ChangeError::Key { key: key.clone(), problem })?;
        }
        match changed.read() {
            Ok(scenario) => Ok((changed, scenario)),
            Err(error) => Err(changed.blame(error, settings)),
        }
    }

    /// The document with another `[[path.change]]` at the path with this number, and its scenario.
    ///
    /// # Errors
    /// If there is no such path, or if the change is wrong.
    pub fn with_path_change(
        &self,
        path: usize,
        change: Table,
    ) -> Result<(Self, Scenario), ScenarioError> {
        let mut changed = self.clone();
        let paths = changed.table.get_mut("path").and_then(Value::as_array_mut);
        let table = paths.and_then(|paths| paths.get_mut(path)).and_then(Value::as_table_mut);
        if let Some(table) = table {
            let changes = table.entry("change").or_insert_with(|| Value::Array(Vec::new()));
            changes.as_array_mut().into_iter().for_each(|all| all.push(change.clone().into()));
        }
        let scenario = changed.read()?;
        Ok((changed, scenario))
    }

    /// The document in TOML, without the comments and the order of the text that it was read from.
    pub fn to_toml(&self) -> String {
        self.table.to_string()
    }

    /// The error as one of the setting that it concerns, if there is one.
    fn blame(&self, error: ScenarioError, settings: &[(String, Value)]) -> ChangeError {
        let (wrong, problem) = (self.by_name(error.place()), error.problem());
        for (key, _) in settings {
            let key = self.by_name(key);
            if let Some(inner) = below(&wrong, &key) {
                let problem = match inner {
                    "" => problem.to_owned(),
                    inner => format!("{inner}: {problem}"),
                };
                return ChangeError::Key { key, problem };
            }
            if below(&key, &wrong).is_some() {
                return ChangeError::Key { key, problem: format!("{wrong}: {problem}") };
            }
        }
        error.into()
    }

    /// The key with the name of its path, connection or cross-traffic in place of the index.
    fn by_name(&self, key: &str) -> String {
        let (first, rest) = key.split_once('.').unwrap_or((key, ""));
        let named = split_index(first).ok().flatten().and_then(|(array, index)| {
            let name = self.tables(array)?.get(index)?.get("name")?.as_str()?;
            Some(format!("{array}.{name}"))
        });
        match (named, rest) {
            (None, _) => key.to_owned(),
            (Some(named), "") => named,
            (Some(named), rest) => format!("{named}.{rest}"),
        }
    }

    fn tables(&self, array: &str) -> Option<&Vec<Value>> {
        self.table.get(array)?.as_array()
    }

    /// Set `key`. Returns the problem if the key names no table of the scenario.
    fn put(&mut self, key: &str, value: Value) -> Result<(), String> {
        let steps: Vec<&str> = key.split('.').collect();
        for array in ARRAYS {
            let tables = self.tables(array).map(Vec::as_slice).unwrap_or_default();
            if steps.len() > 1 && tables.iter().any(|each| name_of(each) == steps[0]) {
                return Err(format!("unknown key; write {array}.{key}"));
            }
        }
        if steps.iter().any(|step| split_index(step).is_err()) {
            return Err("this is not a key; write a key such as path.wifi.rate".to_owned());
        }
        put(&mut self.table, &steps, value)
    }
}

/// Give the names that tables have by default to those without one.
fn name_tables(table: &mut Table) {
    for (array, prefix) in [("connection", "connection"), ("cross_traffic", "cross-traffic")] {
        let Some(Value::Array(tables)) = table.get_mut(array) else { continue };
        for (index, each) in tables.iter_mut().enumerate() {
            if let Value::Table(each) = each {
                each.entry("name").or_insert_with(|| format!("{prefix}-{}", index + 1).into());
            }
        }
    }
}

fn name_of(table: &Value) -> &str {
    table.get("name").and_then(Value::as_str).unwrap_or_default()
}

/// The rest of `key` below `above`: empty if they are the same.
fn below<'k>(key: &'k str, above: &str) -> Option<&'k str> {
    let rest = key.strip_prefix(above)?;
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix(['.', '[']).map(|_| rest.trim_start_matches('.'))
    }
}

/// The array and the index of a step such as `path[1]`; `None` for a step without an index.
fn split_index(step: &str) -> Result<Option<(&str, usize)>, ()> {
    match step.split_once('[') {
        None if step.is_empty() || step.contains(']') => Err(()),
        None => Ok(None),
        Some((array, index)) => {
            let digits = index.strip_suffix(']').ok_or(())?;
            if array.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                return Err(());
            }
            digits.parse().map(|index| Some((array, index))).map_err(|_| ())
        }
    }
}

fn put(table: &mut Table, steps: &[&str], value: Value) -> Result<(), String> {
    let (step, rest) = (steps[0], &steps[1..]);
    let indexed = split_index(step).unwrap_or_default();
    let key = indexed.map_or(step, |(key, _)| key);
    if ARRAYS.contains(&key) {
        let tables = table.entry(key).or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(tables) = tables else {
            return Err(format!("{key} is not an array; write [[{key}]]"));
        };
        return put_in_array(tables, key, indexed.map(|(_, index)| index), rest, value);
    }
    if indexed.is_some() {
        let [first, second, last] = ARRAYS;
        return Err(format!(
            "{key:?} is not an array; the arrays are {first}, {second} and {last}"
        ));
    }
    if rest.is_empty() {
        table.insert(key.to_owned(), value);
        return Ok(());
    }
    let inner = table.entry(key).or_insert_with(|| Table::new().into());
    if !inner.is_table() {
        // scheduler = "ecf" abbreviates { kind = "ecf" }
        *inner = Table::from_iter([("kind".to_owned(), inner.clone())]).into();
    }
    let Value::Table(inner) = inner else { unreachable!("it was made a table") };
    put(inner, rest, value)
}

fn put_in_array(
    tables: &mut [Value],
    key: &str,
    index: Option<usize>,
    rest: &[&str],
    value: Value,
) -> Result<(), String> {
    let (index, rest) = match (index, rest) {
        (Some(index), rest) if index < tables.len() => (index, rest),
        (Some(index), _) => {
            let count = tables.len();
            return Err(format!(
                "there is no {key}[{index}]; the scenario has {count}, counted from 0"
            ));
        }
        (None, rest) => {
            let names: Vec<&str> = tables.iter().map(name_of).collect();
            let Some(name) = rest.first() else {
                let example = names.first().copied().unwrap_or("NAME");
                return Err(format!("name a {key} and its key, such as {key}.{example}.name"));
            };
            let Some(index) = names.iter().position(|each| each == name) else {
                return Err(unknown_name(key, name, &names));
            };
            (index, &rest[1..])
        }
    };
    let name = name_of(&tables[index]);
    if rest.is_empty() {
        let place =
            if name.is_empty() { format!("{key}[{index}]") } else { format!("{key}.{name}") };
        return Err(format!("name a key of that {key}, such as {place}.name"));
    }
    match &mut tables[index] {
        Value::Table(table) => put(table, rest, value),
        _ => Err(format!("{key}[{index}] is not a table; write [[{key}]]")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = \"a\"\nduration = \"1s\"\n\
        [[path]]\nname = \"wifi\"\nrate = \"8Mbit/s\"\ndelay = \"1ms\"\nlimit = \"54packets\"\n\
        [[connection]]\nscheduler = \"ecf\"\nworkload = { kind = \"bulk\" }\n";

    fn with(settings: &[(&str, &str)]) -> Result<Scenario, String> {
        let document = Document::parse(TEXT, "a.toml", FilePath::new("")).expect("it is TOML");
        let settings: Vec<_> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect();
        document.with_settings(&settings).map(|(_, all)| all).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_name_tables_by_name_or_index() {
        for key in ["path.wifi.rate", "path[0].rate"] {
            let scenario = with(&[(key, "20Mbit/s")]).unwrap();
            assert_eq!(
                scenario.paths[0].rate.map(|rate| rate.to_string()).as_deref(),
                Some("20Mbit/s")
            );
        }
        let named = with(&[("connection.connection-1.name", "main")]).unwrap();
        assert_eq!(named.connections[0].name, "main");
    }

    #[test]
    fn a_name_becomes_a_table_when_a_parameter_is_set() {
        let problem = with(&[("connection[0].scheduler.beta", "x")]).unwrap_err();
        assert!(problem.starts_with("connection.connection-1.scheduler.beta: "), "{problem}");
    }

    #[test]
    fn problems_name_the_setting_that_they_concern() {
        for (key, value, problem) in [
            ("path.wify.rate", "1Mbit/s", "path.wify.rate: unknown path \"wify\"; did you mean"),
            ("path[3].rate", "1Mbit/s", "path[3].rate: there is no path[3]; the scenario has 1"),
            ("path.wifi", "x", "path.wifi: name a key of that path, such as path.wifi.name"),
            ("path", "x", "path: name a path and its key, such as path.wifi.name"),
            ("wifi.rate", "x", "wifi.rate: unknown key; write path.wifi.rate"),
            ("path..rate", "x", "path..rate: this is not a key"),
            ("duration[0]", "x", "duration[0]: \"duration\" is not an array; the arrays are path"),
            ("path[0].rate", "20", "path.wifi.rate: \"20\" has no unit"),
            ("path.wifi.rat", "20Mbit/s", "path.wifi.rat: unknown key; did you mean \"rate\"?"),
            ("path[0].reverse", "x", "path.wifi.reverse: "),
        ] {
            let found = with(&[(key, value)]).unwrap_err();
            assert!(found.starts_with(problem), "{key} = {value}: {found}");
        }
    }

    #[test]
    fn an_error_elsewhere_is_one_of_the_file() {
        let document =
            Document::parse(&TEXT.replace("1ms", "1"), "a.toml", FilePath::new("")).unwrap();
        let change = ("path[0].rate".to_owned(), Value::from("1Mbit/s"));
        let error = document.with_settings(&[change]).unwrap_err().to_string();
        assert!(error.starts_with("a.toml: path[0].delay: "), "{error}");
    }
}
