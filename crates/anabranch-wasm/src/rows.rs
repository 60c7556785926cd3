//! The tables of a run so far, as rows of numbers.

use anabranch_sim::{Column, Table};
use serde_json::json;

use crate::session::Engine;

/// Call `look` with a table so far. `activities` has the intervals that have ended, and
/// `activities_open` those that last.
pub(crate) fn with_table<T>(
    engine: &mut Engine,
    name: &str,
    look: impl FnOnce(&Table) -> T,
) -> Result<T, String> {
    let simulation = engine.simulation_mut();
    let ledger = "every session has a ledger";
    let [subflows, connections] = simulation.samples();
    Ok(match name {
        "subflow_samples" => look(subflows),
        "connection_samples" => look(connections),
        "capacity" => look(&simulation.capacity().expect(ledger)),
        "activities" => look(simulation.activities().expect(ledger).0),
        "activities_open" => look(&simulation.activities().expect(ledger).1),
        _ => {
            let totals = simulation.totals();
            let table = totals.iter().find(|table| table.name == name);
            look(table.ok_or_else(|| format!("there is no table {name:?}"))?)
        }
    })
}

/// The rows from number `from` on, one after the other.
pub(crate) fn rows(engine: &mut Engine, table: &str, from: usize) -> Result<Vec<f64>, String> {
    with_table(engine, table, |table| {
        let mut rows = Vec::new();
        for row in from..table.rows() {
            rows.extend(table.columns.iter().map(|(_, column)| number(column, row)));
        }
        rows
    })
}

/// A value as a number; −1 for the largest value of a type, which stands for none.
fn number(column: &Column, row: usize) -> f64 {
    match column {
        Column::U8(values) => f64::from(values[row]),
        Column::Names(_, values) => f64::from(values[row]),
        Column::U32(values) if values[row] == u32::MAX => -1.0,
        Column::U32(values) => f64::from(values[row]),
        Column::U64(values) if values[row] == u64::MAX => -1.0,
        Column::U64(values) => values[row] as f64,
        Column::Text(_) => f64::NAN,
    }
}

/// The columns of a table, and the names of those that have names.
pub(crate) fn schema(engine: &mut Engine, table: &str) -> Result<String, String> {
    with_table(engine, table, |table| {
        let columns: Vec<_> = table.columns.iter().map(|(name, _)| *name).collect();
        let names = table.columns.iter().filter_map(|(name, column)| match column {
            Column::Names(names, _) => Some(((*name).to_owned(), json!(names))),
            _ => None,
        });
        json!({ "columns": columns, "names": names.collect::<serde_json::Map<_, _>>() }).to_string()
    })
}
