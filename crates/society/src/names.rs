//! Tests that the values of each enum, such as [`Kind`], have the same names in JSON as in the database and in texts.

use crate::contact::Source;
use crate::content::{Capability, Direction, Kind, KnownCapability};
use crate::message::{Expects, Finality, MessageState, MessageType};
use crate::text::Language;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fmt::Debug;
use std::str::FromStr;
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

#[track_caller]
fn check_parsing<T>(others: &[&str])
where
    T: VariantArray + Copy + PartialEq + Debug + Into<&'static str> + FromStr,
{
    let parsed = |name: &str| name.parse::<T>().ok();
    for &member in T::VARIANTS {
        let name: &str = member.into();
        assert_eq!(parsed(name), Some(member));
        assert_eq!(parsed(&name.to_uppercase()), None);
        assert_eq!(parsed(&format!(" {name}")), None);
    }
    for other in others {
        assert_eq!(parsed(other), None, "{other}");
    }
}

#[test]
fn json_has_the_same_names() {
    check::<Kind>();
    check::<Direction>();
    check::<Source>();
    check::<MessageType>();
    check::<MessageState>();
    check::<Finality>();
    check::<Expects>();
    check::<Language>();
}

#[test]
fn a_name_gives_its_member_and_other_texts_give_none() {
    check_parsing::<Kind>(&["", "picture"]);
    check_parsing::<Source>(&["", "firstmessage", "firstMessage"]);
    check_parsing::<MessageType>(&["", "notice", "taskAssignment"]);
    check_parsing::<MessageState>(&["", "in turn", "inturn"]);
    check_parsing::<Finality>(&["", "last"]);
    check_parsing::<Expects>(&["", "something"]);
    check_parsing::<KnownCapability>(&["", "toolCalling", "smell"]);
}

#[test]
fn a_known_capability_is_the_one_that_its_name_declares() {
    let named = KnownCapability::VARIANTS.iter().map(|known| Capability::new(known.into()).unwrap());
    let constants = [
        Capability::TEXT,
        Capability::VISION,
        Capability::AUDIO,
        Capability::VIDEO,
        Capability::FILE,
        Capability::STRUCTURED_OUTPUT,
        Capability::TOOL_CALLING,
    ];
    assert_eq!(named.collect::<Vec<_>>(), constants);
    let names = ["text", "vision", "audio", "video", "file", "structured_output", "tool_calling"];
    assert_eq!(constants.each_ref().map(Capability::as_str), names);
}
