//! Schemas of what tools take and give, as clients of all ages read them.

use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Map, Value};

/// A JSON schema of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Schema(pub(crate) Map<String, Value>);

impl Schema {
    /// That of what a tool takes, of the type that reads it: what may be left out is not required.
    pub(crate) fn taken<T: JsonSchema>() -> Self {
        Self::of::<T>(Contract::Deserialize)
    }

    /// That of what a tool gives, of the type that writes it.
    pub(crate) fn given<T: JsonSchema>() -> Self {
        Self::of::<T>(Contract::Serialize)
    }

    /// It names no dialect, because some clients know older ones only and refuse what they do not know;
    /// and no formats of numbers, for the same reason.
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
