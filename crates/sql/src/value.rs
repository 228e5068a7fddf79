//! The values of a database: those that are bound to a statement, and those that a row contains.

use crate::Error;
use rusqlite::types::{ToSqlOutput, ValueRef};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(String),
    /// A text that is not valid UTF-8. A damaged database can contain such a text.
    BadText(Vec<u8>),
    Blob(Vec<u8>),
}

impl Value {
    pub(crate) fn read(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => Self::Text(text.to_owned()),
                Err(_) => Self::BadText(bytes.to_owned()),
            },
            ValueRef::Blob(bytes) => Self::Blob(bytes.to_owned()),
        }
    }

    /// Returns the type of the value, as a schema names it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Integer(_) => "INTEGER",
            Self::Real(_) => "REAL",
            Self::Text(_) | Self::BadText(_) => "TEXT",
            Self::Blob(_) => "BLOB",
        }
    }

    /// Fails if the value is a text that is not valid UTF-8.
    ///
    /// # Errors
    ///
    /// Returns [`Mismatch::NotUtf8`].
    pub fn check_text(&self) -> Result<(), Mismatch> {
        if matches!(self, Self::BadText(_)) { Err(Mismatch::NotUtf8) } else { Ok(()) }
    }

    fn mismatch(&self, expected: &'static str) -> Mismatch {
        match self {
            Self::BadText(_) => Mismatch::NotUtf8,
            _ => Mismatch::Type { expected, found: self.type_name() },
        }
    }
}

/// Why a value cannot be read as the type that the caller expects.
#[derive(Debug, thiserror::Error)]
pub enum Mismatch {
    #[error("expected {expected}, found {found}")]
    Type { expected: &'static str, found: &'static str },
    #[error("the text is not valid UTF-8")]
    NotUtf8,
    #[error("the number {0} is out of range")]
    OutOfRange(i64),
    #[error("the text is not the expected JSON")]
    Json(#[source] serde_json::Error),
}

/// A type that can be read from a column.
pub trait FromColumn<'r>: Sized {
    /// Converts a value.
    ///
    /// # Errors
    ///
    /// Fails if the value has another type.
    fn from_column(value: &'r Value) -> Result<Self, Mismatch>;
}

impl<'r> FromColumn<'r> for &'r str {
    fn from_column(value: &'r Value) -> Result<Self, Mismatch> {
        match value {
            Value::Text(text) => Ok(text),
            other => Err(other.mismatch("TEXT")),
        }
    }
}

impl<'r> FromColumn<'r> for String {
    fn from_column(value: &'r Value) -> Result<Self, Mismatch> {
        <&str>::from_column(value).map(str::to_owned)
    }
}

impl<'r> FromColumn<'r> for i64 {
    fn from_column(value: &'r Value) -> Result<Self, Mismatch> {
        match value {
            Value::Integer(number) => Ok(*number),
            other => Err(other.mismatch("INTEGER")),
        }
    }
}

impl<'r> FromColumn<'r> for u32 {
    fn from_column(value: &'r Value) -> Result<Self, Mismatch> {
        let number = i64::from_column(value)?;
        Self::try_from(number).map_err(|_| Mismatch::OutOfRange(number))
    }
}

impl<'r> FromColumn<'r> for bool {
    fn from_column(value: &'r Value) -> Result<Self, Mismatch> {
        i64::from_column(value).map(|number| number != 0)
    }
}

impl<'r> FromColumn<'r> for f64 {
    fn from_column(value: &'r Value) -> Result<Self, Mismatch> {
        match value {
            Value::Real(number) => Ok(*number),
            other => Err(other.mismatch("REAL")),
        }
    }
}

impl<'r> FromColumn<'r> for &'r [u8] {
    fn from_column(value: &'r Value) -> Result<Self, Mismatch> {
        match value {
            Value::Blob(bytes) | Value::BadText(bytes) => Ok(bytes),
            Value::Text(text) => Ok(text.as_bytes()),
            other => Err(other.mismatch("BLOB")),
        }
    }
}

impl<'r> FromColumn<'r> for Vec<u8> {
    fn from_column(value: &'r Value) -> Result<Self, Mismatch> {
        <&[u8]>::from_column(value).map(<[u8]>::to_owned)
    }
}

impl<'r, T: FromColumn<'r>> FromColumn<'r> for Option<T> {
    fn from_column(value: &'r Value) -> Result<Self, Mismatch> {
        match value {
            Value::Null => Ok(None),
            value => T::from_column(value).map(Some),
        }
    }
}

/// A value that the database stores as JSON text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<'r, T: Deserialize<'r>> FromColumn<'r> for Json<T> {
    fn from_column(value: &'r Value) -> Result<Self, Mismatch> {
        serde_json::from_str(<&str>::from_column(value)?).map(Json).map_err(Mismatch::Json)
    }
}

/// An argument of a statement.
#[derive(Debug)]
pub enum Argument<'q> {
    Null,
    Integer(i64),
    Real(f64),
    Text(Cow<'q, str>),
    Blob(Cow<'q, [u8]>),
    /// The value could not be written as JSON. The statement fails when it runs.
    Unwritable(serde_json::Error),
}

impl Argument<'_> {
    pub(crate) fn bound(&self) -> ToSqlOutput<'_> {
        ToSqlOutput::Borrowed(match self {
            Self::Null | Self::Unwritable(_) => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        })
    }

    /// Fails if one of the arguments could not be written as JSON.
    pub(crate) fn check(arguments: Vec<Self>) -> Result<Vec<Self>, Error> {
        arguments
            .into_iter()
            .map(|argument| match argument {
                Self::Unwritable(error) => Err(Error::Argument(error)),
                argument => Ok(argument),
            })
            .collect()
    }
}

impl<'q> From<&'q str> for Argument<'q> {
    fn from(text: &'q str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl<'q> From<&'q String> for Argument<'q> {
    fn from(text: &'q String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Argument<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<i64> for Argument<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u32> for Argument<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<i32> for Argument<'_> {
    fn from(number: i32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<bool> for Argument<'_> {
    fn from(yes: bool) -> Self {
        Self::Integer(yes.into())
    }
}

impl From<f64> for Argument<'_> {
    fn from(number: f64) -> Self {
        Self::Real(number)
    }
}

impl<'q> From<&'q [u8]> for Argument<'q> {
    fn from(bytes: &'q [u8]) -> Self {
        Self::Blob(Cow::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Argument<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(Cow::Owned(bytes))
    }
}

impl<T: Serialize> From<Json<T>> for Argument<'_> {
    fn from(Json(value): Json<T>) -> Self {
        match serde_json::to_string(&value) {
            Ok(text) => Self::Text(Cow::Owned(text)),
            Err(error) => Self::Unwritable(error),
        }
    }
}

impl<'q, T: Into<Argument<'q>>> From<Option<T>> for Argument<'q> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl<'q, T> From<&'q Option<T>> for Argument<'q>
where
    &'q T: Into<Argument<'q>>,
{
    fn from(value: &'q Option<T>) -> Self {
        value.as_ref().map_or(Self::Null, Into::into)
    }
}
