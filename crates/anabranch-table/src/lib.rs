//! Tables of named columns.
//!
//! A row is a struct that [`row!`] defines. Its fields are the columns, by name, so a value cannot
//! end up in another column, and a new column is a field and its value.
//!
//! ```
//! use anabranch_table::{Builder, Column, row};
//!
//! row! {
//!     struct Sample {
//!         time_ns: u64,
//!         subflow: Option<u32>,
//!     }
//! }
//!
//! let mut samples = Builder::<Sample>::new("samples");
//! samples.push(Sample { time_ns: 5, subflow: None });
//! let table = samples.finish();
//! assert_eq!(table.column("time_ns"), Some(&Column::U64(vec![5])));
//! assert_eq!(table.column("subflow"), Some(&Column::U32(vec![u32::MAX])));
//! ```

use core::marker::PhantomData;

/// A column of one type. The largest value of an optional number means "none".
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Flags, wire fields of one byte.
    U8(Vec<u8>),
    /// Indices, wire fields.
    U32(Vec<u32>),
    /// Counts, bytes, nanoseconds, data sequence numbers.
    U64(Vec<u64>),
    /// Text; the empty string means "none".
    Text(Vec<String>),
    /// Few different names: all that can occur, and the index of each row's.
    Names(&'static [&'static str], Vec<u8>),
}

impl Column {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Column::U8(values) | Column::Names(_, values) => values.len(),
            Column::U32(values) => values.len(),
            Column::U64(values) => values.len(),
            Column::Text(values) => values.len(),
        }
    }

    /// Returns `true` if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The name in each row.
    ///
    /// # Panics
    /// If the column has no names.
    pub fn names(&self) -> Vec<&'static str> {
        let Column::Names(names, values) = self else { panic!("a column without names") };
        values.iter().map(|index| names[usize::from(*index)]).collect()
    }

    /// The values as 64-bit numbers, regardless of the column's type; for names, their indices.
    ///
    /// # Panics
    /// If the column is text.
    pub fn numbers(&self) -> Vec<u64> {
        match self {
            Column::U8(values) | Column::Names(_, values) => {
                values.iter().copied().map(u64::from).collect()
            }
            Column::U32(values) => values.iter().copied().map(u64::from).collect(),
            Column::U64(values) => values.clone(),
            Column::Text(_) => panic!("a column of text has no numbers"),
        }
    }
}

/// Columns of equal length, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name of the table.
    pub name: &'static str,
    /// Names and contents of the columns.
    pub columns: Vec<(&'static str, Column)>,
}

impl Table {
    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(each, _)| *each == name).map(|(_, column)| column)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }
}

/// A row of a table. [`row!`] implements it.
pub trait Row {
    /// The columns, without values.
    fn columns() -> Vec<(&'static str, Column)>;
    /// Append the values to the columns, which are those of [`Row::columns`].
    fn append(self, columns: &mut [(&'static str, Column)]);
}

/// A value of a row.
pub trait Cell {
    /// An empty column for such values.
    fn column() -> Column;
    /// Append the value to a column of this type.
    ///
    /// # Panics
    /// If the column has another type.
    fn append(self, column: &mut Column);
}

/// An enumeration whose values have names in tables.
pub trait Named: Copy {
    /// All names, in the order of [`Named::index`].
    const NAMES: &'static [&'static str];
    /// The place of the value's name.
    fn index(self) -> u8;
}

/// A value that a table shows by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<T>(pub T);

/// Defines a struct whose fields are the columns of a table.
#[macro_export]
macro_rules! row {
    ($(#[$meta:meta])* $vis:vis struct $name:ident {
        $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)?
    }) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[$doc])* $vis $field: $type),*
        }

        impl $crate::Row for $name {
            fn columns() -> ::std::vec::Vec<(&'static str, $crate::Column)> {
                ::std::vec![$((stringify!($field), <$type as $crate::Cell>::column())),*]
            }

            fn append(self, columns: &mut [(&'static str, $crate::Column)]) {
                let mut columns = columns.iter_mut();
                $($crate::Cell::append(self.$field, &mut columns.next().expect("a column").1);)*
            }
        }
    };
}

macro_rules! numbers {
    ($($type:ty => $column:ident),*) => {$(
        impl Cell for $type {
            fn column() -> Column {
                Column::$column(Vec::new())
            }

            fn append(self, column: &mut Column) {
                let Column::$column(values) = column else { panic!("a column of another type") };
                values.push(self.into());
            }
        }

        impl Cell for Option<$type> {
            fn column() -> Column {
                <$type>::column()
            }

            fn append(self, column: &mut Column) {
                let Column::$column(values) = column else { panic!("a column of another type") };
                values.push(self.map_or(none(), Into::into));
            }
        }
    )*};
}
numbers!(u8 => U8, u32 => U32, u64 => U64, bool => U8);

/// The largest value of a type, which stands for none.
fn none<T: Largest>() -> T {
    T::LARGEST
}

trait Largest {
    const LARGEST: Self;
}
impl Largest for u8 {
    const LARGEST: u8 = u8::MAX;
}
impl Largest for u32 {
    const LARGEST: u32 = u32::MAX;
}
impl Largest for u64 {
    const LARGEST: u64 = u64::MAX;
}

impl Cell for String {
    fn column() -> Column {
        Column::Text(Vec::new())
    }

    fn append(self, column: &mut Column) {
        let Column::Text(values) = column else { panic!("a column of another type") };
        values.push(self);
    }
}

impl<T: Named> Cell for Name<T> {
    fn column() -> Column {
        Column::Names(T::NAMES, Vec::new())
    }

    fn append(self, column: &mut Column) {
        let Column::Names(_, values) = column else { panic!("a column of another type") };
        values.push(self.0.index());
    }
}

/// Builds a table row by row.
pub struct Builder<R> {
    table: Table,
    rows: PhantomData<fn(R)>,
}

impl<R: Row> Builder<R> {
    /// A table without rows.
    pub fn new(name: &'static str) -> Self {
        Builder { table: Table { name, columns: R::columns() }, rows: PhantomData }
    }

    /// Append a row.
    pub fn push(&mut self, row: R) {
        row.append(&mut self.table.columns);
    }

    /// The rows so far.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The complete table.
    pub fn finish(self) -> Table {
        self.table
    }
}

impl<R> core::fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Builder").field(&self.table).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    enum Fruit {
        Apple,
        Pear,
    }

    impl Named for Fruit {
        const NAMES: &'static [&'static str] = &["apple", "pear"];

        fn index(self) -> u8 {
            self as u8
        }
    }

    row! {
        struct Basket {
            fruit: Name<Fruit>,
            is_ripe: bool,
            weight: Option<u64>,
            note: String,
        }
    }

    #[test]
    fn each_field_is_a_column() {
        let mut builder = Builder::<Basket>::new("baskets");
        for (fruit, weight) in [(Fruit::Pear, Some(3)), (Fruit::Apple, None)] {
            let note = "fresh".to_owned();
            builder.push(Basket { fruit: Name(fruit), is_ripe: true, weight, note });
        }
        let table = builder.finish();
        let names: Vec<_> = table.columns.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["fruit", "is_ripe", "weight", "note"]);
        assert_eq!(table.rows(), 2);
        let fruit = table.column("fruit").expect("a column");
        assert_eq!(*fruit, Column::Names(Fruit::NAMES, vec![1, 0]));
        assert_eq!((fruit.numbers(), fruit.names()), (vec![1, 0], vec!["pear", "apple"]));
        assert_eq!(table.column("is_ripe"), Some(&Column::U8(vec![1, 1])));
        assert_eq!(table.column("weight"), Some(&Column::U64(vec![3, u64::MAX])));
        assert_eq!(table.column("colour"), None);
    }
}
