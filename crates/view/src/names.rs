//! Tests that the variants of an enum have the same names in JSON as in the database and on screen.

use crate::{AgentState, Event, EventKind, Routing, SearchKind, SentOutcome, TaskState};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Debug;
use std::str::FromStr;
use strum::VariantArray;

#[test]
fn json_has_the_same_names() {
    fn check<T>()
    where
        T: VariantArray
            + Copy
            + PartialEq
            + Debug
            + Into<&'static str>
            + FromStr
            + Serialize
            + DeserializeOwned,
    {
        for &member in T::VARIANTS {
            let name: &str = member.into();
            assert_eq!(serde_json::to_value(member).unwrap(), json!(name));
            assert_eq!(serde_json::from_value::<T>(json!(name)).unwrap(), member);
            assert_eq!(name.parse().ok(), Some(member));
        }
        assert_eq!("".parse::<T>().ok(), None);
    }
    check::<AgentState>();
    check::<TaskState>();
    check::<Routing>();
    check::<SearchKind>();
    check::<SentOutcome>();
}

/// This test reads the names in JSON from the schema. This is exact, because serde and the schema generator use the
/// same attributes.
#[test]
fn every_kind_of_event_has_the_name_that_json_has() {
    let schema = schemars::schema_for!(Event);
    let members = schema.get("oneOf").and_then(|members| members.as_array()).unwrap();
    let named: Vec<&str> =
        members.iter().map(|one| one["properties"]["event"]["const"].as_str().unwrap()).collect();
    let kinds: Vec<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
    assert_eq!(kinds, named);
}
