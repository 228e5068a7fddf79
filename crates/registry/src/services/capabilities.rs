//! Reads the `capabilities` of a service.

use crate::fields::Fields;
use crate::problem::Severity;
use polity_society::content::{Capabilities, Capability};
use serde_json::Value;

/// Reads the capabilities, or reports why they cannot be taken. One bad entry makes all of them void: half of a
/// declaration says something that nobody meant.
pub(super) fn read(fields: &mut Fields<'_>, whose: &str) -> Option<Capabilities> {
    let done = format!("{whose} counts as text only");
    let mut object = fields.open("capabilities", &done)?;
    let input = read_side(&mut object, "input", &done);
    let output = read_side(&mut object, "output", &done);
    object.finish("it has no effect");
    match (input, output) {
        (Side::Absent, Side::Absent) => {
            fields.report(Severity::Error, "capabilities", "has neither input nor output", &done);
            None
        }
        (Side::Bad, _) | (_, Side::Bad) => None,
        (input, output) => Some(Capabilities { input: input.or_text(), output: output.or_text() }),
    }
}

/// One side of a declaration.
enum Side {
    Given(Vec<Capability>),
    Absent,
    Bad,
}

impl Side {
    fn or_text(self) -> Vec<Capability> {
        match self {
            Self::Given(capabilities) => capabilities,
            Self::Absent | Self::Bad => vec![Capability::TEXT],
        }
    }
}

fn read_side(object: &mut Fields<'_>, side: &str, done: &str) -> Side {
    let Some(value) = object.take(side) else { return Side::Absent };
    let Value::Array(items) = value else {
        object.report(Severity::Error, side, "must be a list of capabilities", done);
        return Side::Bad;
    };
    let count = items.len();
    let mut capabilities = Vec::with_capacity(count);
    for (index, item) in items.into_iter().enumerate() {
        let Some(capability) = item.as_str().and_then(Capability::new) else {
            object.report_item(side, index, "must be a text that is not empty", done);
            continue;
        };
        if !capability.is_standard() {
            tracing::debug!(%capability, side, "custom capability");
        }
        capabilities.push(capability);
    }
    if capabilities.len() == count { Side::Given(capabilities) } else { Side::Bad }
}
