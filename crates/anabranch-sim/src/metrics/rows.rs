//! Access to the columns of a run's tables.

use anabranch_table::{Column, Table};

/// The table with this name.
pub(super) fn find<'t>(tables: &'t [Table], name: &str) -> &'t Table {
    tables.iter().find(|table| table.name == name).expect("every run has this table")
}

pub(super) fn column<'t>(table: &'t Table, name: &str) -> &'t Column {
    table.column(name).expect("the recorder writes this column")
}

/// The value of a row.
pub(super) fn number_of(table: &Table, name: &str, row: usize) -> u64 {
    number(column(table, name), row)
}

/// The values of some rows of a column.
pub(super) fn numbers_of(table: &Table, name: &str, rows: &[usize]) -> Vec<u64> {
    let column = column(table, name);
    rows.iter().map(|row| number(column, *row)).collect()
}

fn number(column: &Column, row: usize) -> u64 {
    match column {
        Column::U8(values) | Column::Names(_, values) => values[row].into(),
        Column::U32(values) => values[row].into(),
        Column::U64(values) => values[row],
        Column::Text(_) => unreachable!("no metric reads text"),
    }
}

/// The rows of a table by its column `connection`.
pub(super) struct Rows(Vec<Vec<usize>>);

impl Rows {
    /// The rows of the first flows.
    pub(super) fn by_connection(table: &Table, flows: usize) -> Self {
        let Column::U32(connections) = column(table, "connection") else {
            unreachable!("connections have numbers")
        };
        let mut rows = vec![Vec::new(); flows];
        for (row, flow) in connections.iter().enumerate() {
            if let Some(rows) = rows.get_mut(*flow as usize) {
                rows.push(row);
            }
        }
        Rows(rows)
    }

    /// The rows of this flow.
    pub(super) fn of(&self, flow: usize) -> &[usize] {
        &self.0[flow]
    }
}
