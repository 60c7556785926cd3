//! Columns that grow by the rows of one run after the other.

use std::collections::HashMap;

use anabranch_table::{Column, Table};

/// A column of the results.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Wire fields, directions.
    U8(Vec<u8>),
    /// Indices; the largest number of a column that may be "none" means "none".
    U32(Vec<u32>),
    /// Counts, bytes, nanoseconds; the largest number of a column that may be "none" means "none".
    U64(Vec<u64>),
    /// Counts that are metrics.
    I64(Vec<i64>),
    /// Milliseconds.
    F32(Vec<f32>),
    /// Metrics; NaN means "none".
    F64(Vec<f64>),
    /// True or false.
    Bool(Vec<bool>),
    /// Indices of words; [`NO_WORD`] means "none".
    Words(Vec<u32>),
}

/// The index that stands for no word.
pub const NO_WORD: u32 = u32::MAX;

/// A table with the rows of several runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// Name of the table.
    pub name: &'static str,
    /// Number of rows of each run.
    pub heights: Vec<u32>,
    /// Names and contents of the columns.
    pub columns: Vec<(String, Values)>,
}

impl Rows {
    /// A table without rows, with the columns of `table` and `more` columns.
    pub(crate) fn new(name: &'static str, table: &Table, more: &[(&str, Values)]) -> Self {
        let columns = table.columns.iter().map(|(name, column)| (*name, like(column)));
        let more = more.iter().map(|(name, values)| (*name, values.clone()));
        let columns = columns.chain(more).map(|(name, values)| (name.to_owned(), values)).collect();
        Rows { name, heights: Vec::new(), columns }
    }

    /// Number of rows.
    pub(crate) fn height(&self) -> usize {
        self.columns.first().map_or(0, |(_, values)| values.len())
    }

    /// The contents of the last columns.
    pub(crate) fn last<const N: usize>(&mut self) -> [&mut Values; N] {
        let at = self.columns.len() - N;
        let mut columns = self.columns[at..].iter_mut().map(|(_, values)| values);
        std::array::from_fn(|_| columns.next().expect("as many columns"))
    }

    /// Append the rows of a table, which has the first columns.
    pub(crate) fn append(&mut self, table: &Table) {
        for ((_, values), (_, column)) in self.columns.iter_mut().zip(&table.columns) {
            match (values, column) {
                (Values::U8(to), Column::U8(from)) => to.extend(from),
                (Values::U32(to), Column::U32(from)) => to.extend(from),
                (Values::U64(to), Column::U64(from)) => to.extend(from),
                _ => unreachable!("the column was made for this table"),
            }
        }
    }
}

/// An empty column for the values of a table's column.
fn like(column: &Column) -> Values {
    match column {
        Column::U8(_) => Values::U8(Vec::new()),
        Column::U32(_) => Values::U32(Vec::new()),
        Column::U64(_) => Values::U64(Vec::new()),
        Column::Text(_) | Column::Names(..) => unreachable!("no table of the results copies text"),
    }
}

impl Values {
    /// Number of rows.
    fn len(&self) -> usize {
        match self {
            Values::U8(values) => values.len(),
            Values::U32(values) | Values::Words(values) => values.len(),
            Values::U64(values) => values.len(),
            Values::I64(values) => values.len(),
            Values::F32(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::Bool(values) => values.len(),
        }
    }
}

macro_rules! pushes {
    ($($push:ident($type:ty) => $variant:ident),*) => {
        impl Values {
            $(pub(crate) fn $push(&mut self, value: $type) {
                let Values::$variant(values) = self else { unreachable!("another type") };
                values.push(value);
            })*
        }
    };
}
pushes!(
    u64(u64) => U64, i64(i64) => I64, f32(f32) => F32, f64(f64) => F64, bool(bool) => Bool,
    word(u32) => Words
);

/// Texts that occur in tables, each once.
#[derive(Debug, Default)]
pub(crate) struct Words {
    numbers: HashMap<String, u32>,
    all: Vec<String>,
}

impl Words {
    /// The index of a text.
    pub(crate) fn index(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.all.push(text.to_owned());
        number
    }

    pub(crate) fn finish(self) -> Vec<String> {
        self.all
    }
}
