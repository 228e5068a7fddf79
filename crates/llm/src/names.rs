//! Tests that each variant of an enum has one name, which is the same in JSON, in the database, in requests and in
//! advice.

use crate::chat::UsageSource;
use crate::endpoint::{MaxTokensField, SystemRole, ToolCallIds, ToolResultMedia};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Debug;
use strum::VariantArray;

#[track_caller]
fn check<T>()
where
    T: VariantArray + Copy + PartialEq + Debug + Into<&'static str> + Serialize + DeserializeOwned,
{
    for &member in T::VARIANTS {
        let name: &str = member.into();
        assert_eq!(serde_json::to_value(member).unwrap(), json!(name));
        assert_eq!(serde_json::from_value::<T>(json!(name)).unwrap(), member);
    }
}

#[test]
fn json_has_the_same_names() {
    check::<UsageSource>();
    check::<ToolResultMedia>();
    check::<SystemRole>();
    check::<ToolCallIds>();
    check::<MaxTokensField>();
}
