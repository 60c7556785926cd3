//! Files that a page offers: tables as CSV, and captures.

use anabranch_sim::{Capture, Column, Options, Simulation, Table};

use crate::rows::with_table;
use crate::session::{Engine, to_line};

/// A table so far as CSV, with the names of the columns in the first line.
pub(crate) fn csv(engine: &mut Engine, table: &str) -> Result<String, String> {
    with_table(engine, table, write)
}

fn write(table: &Table) -> String {
    let mut text = line(table.columns.iter().map(|(name, _)| (*name).to_owned()));
    for row in 0..table.rows() {
        text += &line(table.columns.iter().map(|(_, column)| cell(column, row)));
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join(",") + "\n"
}

/// A value; empty for the largest value of a type, which stands for none.
fn cell(column: &Column, row: usize) -> String {
    match column {
        Column::U8(values) => values[row].to_string(),
        Column::Names(names, values) => names[usize::from(values[row])].to_owned(),
        Column::U32(values) if values[row] == u32::MAX => String::new(),
        Column::U32(values) => values[row].to_string(),
        Column::U64(values) if values[row] == u64::MAX => String::new(),
        Column::U64(values) => values[row].to_string(),
        Column::Text(values) => format!("\"{}\"", values[row].replace('"', "\"\"")),
    }
}

/// A capture of the run until now, made by running it again.
pub(crate) fn pcapng(engine: &Engine, limit: u64) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut capture = Capture::new(&mut bytes);
    capture.limit = Some(limit);
    let options = Options::default().capture(capture);
    let again = Simulation::new(engine.scenario(), engine.seed(), options);
    let mut again = again.map_err(to_line)?;
    again.step_until(engine.simulation().now()).map_err(to_line)?;
    drop(again);
    Ok(bytes)
}
