//! Reads the `capabilities` of a service.

use crate::fields::Fields;
use crate::problem::Severity;
use crate::services::Declaration;
use crate::similar::{self, Side};
use polity_society::content::{Capabilities, Capability};
use serde_json::Value;

/// Reads the capabilities. If they cannot be used, reports the reason. One bad entry invalidates all capabilities of
/// the service. Otherwise the service would get half of a declaration, which its author did not intend.
pub(super) fn read(fields: &mut Fields<'_>, whose: &str) -> Option<(Capabilities, Declaration)> {
    let done = format!("{whose} is assumed to support only text");
    let mut object = fields.open("capabilities", &done)?;
    let input = read_side(&mut object, Side::Input, &done);
    let output = read_side(&mut object, Side::Output, &done);
    object.finish("it has no effect");
    let (Ok(input), Ok(output)) = (input, output) else {
        return None;
    };
    if input.is_none() && output.is_none() {
        fields.report(Severity::Error, "capabilities", "has neither input nor output", &done);
        return None;
    }
    let text = || vec![Capability::TEXT];
    let declared = if output.is_some() { Declaration::Declared } else { Declaration::InputOnly };
    let capabilities =
        Capabilities { input: input.unwrap_or_else(text), output: output.unwrap_or_else(text) };
    Some((capabilities, declared))
}

/// The error if the list `input` or `output` cannot be used. The problems of the list have been reported already.
struct BadSide;

fn read_side(object: &mut Fields<'_>, side: Side, done: &str) -> Result<Option<Vec<Capability>>, BadSide> {
    let field = side.as_str();
    let Some(value) = object.take(field) else {
        return Ok(None);
    };
    let Value::Array(items) = value else {
        object.report(Severity::Error, field, "must be a list of capabilities", done);
        return Err(BadSide);
    };
    let count = items.len();
    let mut capabilities = Vec::with_capacity(count);
    for (index, item) in items.into_iter().enumerate() {
        let Some(capability) = item.as_str().and_then(Capability::new) else {
            object.report_item(Severity::Error, (field, index), "must be a non-empty string", done);
            continue;
        };
        if !capability.is_standard() {
            tracing::debug!(%capability, side = field, "custom capability");
        }
        if let Some((meant, where_it_belongs)) = similar::capability(&capability, side) {
            let place = if where_it_belongs == side {
                String::new()
            } else {
                format!(" in {:?}", where_it_belongs.as_str())
            };
            let what = format!("is not a known capability (did you mean {meant:?}{place}?)");
            object.report_item(Severity::Warning, (field, index), what, "it is kept as it is");
        }
        capabilities.push(capability);
    }
    if capabilities.len() == count { Ok(Some(capabilities)) } else { Err(BadSide) }
}
