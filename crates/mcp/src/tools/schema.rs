//! The schemas of the tools' arguments and results, in a form that old clients can read too.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Map, Value};

/// A JSON schema of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schema(pub(crate) Map<String, Value>);

impl Schema {
    /// Returns the schema of a tool's arguments, generated from the type that parses them.
    ///
    /// In this schema, fields with a default are not required.
    pub(crate) fn taken<T: JsonSchema>() -> Self {
        Self::of::<T>(Contract::Deserialize)
    }

    /// Returns the schema of a tool's result, generated from the type that is serialized.
    pub(crate) fn given<T: JsonSchema>() -> Self {
        Self::of::<T>(Contract::Serialize)
    }

    /// Generates a schema without `$schema` and `format`, because some clients know only older versions of JSON
    /// Schema and reject schemas that contain these fields.
    fn of<T: JsonSchema>(contract: Contract) -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.meta_schema = None;
        settings.contract = contract;
        let mut schema = settings.into_generator().into_root_schema_for::<T>();
        RecursiveTransform(|schema: &mut schemars::Schema| drop(schema.remove("format")))
            .transform(&mut schema);
        schema.remove("title");
        Self(schema.as_object().cloned().unwrap_or_default())
    }
}
