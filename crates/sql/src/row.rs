//! A row that a statement has returned.

use crate::Error;
use crate::value::{FromColumn, Value};
use std::sync::Arc;

/// A row. It owns its values.
#[derive(Clone, Debug)]
pub struct Row {
    pub(crate) names: Arc<[Box<str>]>,
    pub(crate) values: Box<[Value]>,
}

/// Identifies a column of a row by the name of the column, or by its place (counted from zero).
pub trait Place: Copy + std::fmt::Display {
    /// Returns the place of the column, if the row has it.
    fn find(self, row: &Row) -> Option<usize>;
}

impl Place for usize {
    fn find(self, row: &Row) -> Option<usize> {
        (self < row.values.len()).then_some(self)
    }
}

impl Place for &str {
    fn find(self, row: &Row) -> Option<usize> {
        row.names.iter().position(|name| **name == *self)
    }
}

impl Row {
    /// Reads a column.
    ///
    /// # Errors
    ///
    /// Fails if the row has no such column, or if its value has another type.
    pub fn try_get<'r, T: FromColumn<'r>, P: Place>(&'r self, place: P) -> Result<T, Error> {
        let value = place.find(self).and_then(|at| self.values.get(at));
        let value = value.ok_or_else(|| Error::NoColumn(place.to_string()))?;
        T::from_column(value).map_err(|mismatch| Error::Column { column: place.to_string(), mismatch })
    }

    /// Reads a column. The caller must know the columns of the row and their types.
    ///
    /// # Panics
    ///
    /// Panics if the row has no such column, or if its value has another type.
    #[track_caller]
    #[expect(
        clippy::panic,
        reason = "the caller reads a column of its own statement; damaged rows are read with `try_get`, and the writer \
                  undoes a job that panics"
    )]
    pub fn get<'r, T: FromColumn<'r>, P: Place>(&'r self, place: P) -> T {
        match self.try_get(place) {
            Ok(value) => value,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the names of the columns with their values.
    pub fn columns(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.names.iter().map(|name| &**name).zip(&self.values)
    }
}
