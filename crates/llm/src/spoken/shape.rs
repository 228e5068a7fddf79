//! Recognizes JSON values that are calls, in all shapes that models write.

use super::lenient;
use super::stop::{Stop, When};
use super::tools::{Context, has_parameter};
use super::{Offered, SpokenCall};
use serde_json::{Map, Value};

/// Fields that may contain the name of the tool.
pub(super) const NAMES: [&str; 7] =
    ["name", "tool_name", "tool", "function", "function_name", "recipient_name", "action"];

/// Fields that may contain the arguments.
pub(super) const ARGUMENTS: [&str; 9] = [
    "arguments",
    "parameters",
    "args",
    "params",
    "input",
    "tool_input",
    "action_input",
    "tool_args",
    "tool_parameters",
];

/// Fields that may contain a call or a list of calls.
pub(super) const WRAPPERS: [&str; 5] = ["tool_calls", "tool_uses", "tool_call", "function_call", "function"];

/// Fields that an object with a call may have besides the name and the arguments.
pub(super) const BESIDE: [&str; 8] =
    ["type", "id", "call_id", "tool_call_id", "index", "thought", "thoughts", "reasoning"];

/// Fields that a whole message may have besides the list of calls.
const OF_MESSAGE: [&str; 2] = ["role", "content"];

/// Reads a JSON value as calls. The value must be an object or a list of objects.
pub(super) fn calls(value: Value, context: Context<'_>) -> Result<Vec<SpokenCall>, Stop> {
    match value {
        Value::Object(fields) => {
            let bare = bare_arguments(&fields, context);
            of_object(fields, context).map_err(|stop| match (stop, bare) {
                (Stop::Text, Some(bare)) => bare,
                (stop, _) => stop,
            })
        }
        other => of_list(other, context),
    }
}

fn of_list(value: Value, context: Context<'_>) -> Result<Vec<SpokenCall>, Stop> {
    let Value::Array(items) = value else { return Err(Stop::Text) };
    if items.is_empty() {
        return Err(Stop::Text);
    }
    let mut calls = Vec::with_capacity(items.len().min(64));
    for item in items {
        let Value::Object(fields) = item else { return Err(Stop::Text) };
        calls.extend(of_object(fields, context)?);
    }
    Ok(calls)
}

fn of_object(mut fields: Map<String, Value>, context: Context<'_>) -> Result<Vec<SpokenCall>, Stop> {
    if let Some(wrapper) = wrapper(&fields) {
        return match fields.shift_remove(wrapper) {
            Some(Value::Object(inner)) => of_object(inner, context),
            Some(list) => of_list(list, context),
            None => Err(Stop::Text),
        };
    }
    if let Some(uses) = parallel_uses(&mut fields) {
        return of_list(uses, context);
    }
    let call = match name_field(&fields, context) {
        Some((field, name)) => named(fields, field, name, context)?,
        None => named_by_key(fields, context)?,
    };
    Ok(vec![call])
}

/// Returns the field that contains the calls. Returns `None` if there is no such field, or if another field of the
/// object belongs neither to a call nor to a message.
fn wrapper(fields: &Map<String, Value>) -> Option<&'static str> {
    let holds = |key: &&&str| matches!(fields.get(**key), Some(Value::Array(_) | Value::Object(_)));
    let wrapper = *WRAPPERS.iter().find(holds)?;
    let may_stand = |key: &str| key == wrapper || BESIDE.contains(&key) || OF_MESSAGE.contains(&key);
    let is_alone = fields.keys().all(|key| may_stand(key));
    is_alone.then_some(wrapper)
}

/// Returns the calls inside a call of the tool `multi_tool_use.parallel`. GPT models know this tool from their
/// training. Its arguments are calls of other tools.
fn parallel_uses(fields: &mut Map<String, Value>) -> Option<Value> {
    let is_parallel =
        |key: &&str| fields.get(*key).and_then(Value::as_str) == Some("multi_tool_use.parallel");
    NAMES.iter().find(|key| is_parallel(key))?;
    let holder = ARGUMENTS.iter().find(|key| fields.contains_key(**key))?;
    fields.get_mut(*holder)?.as_object_mut()?.shift_remove("tool_uses")
}

/// Returns the key of the field that contains the tool's name, and the name to call. Several fields may contain a name,
/// because a field such as `action` may also be a parameter of the call. Then the field that names an offered tool
/// counts.
fn name_field(fields: &Map<String, Value>, context: Context<'_>) -> Option<(&'static str, String)> {
    let written = |key: &'static str| Some((key, fields.get(key)?.as_str()?));
    let offered = NAMES
        .iter()
        .filter_map(|key| written(key))
        .find_map(|(key, name)| context.tools.find(name).map(|tool| (key, tool.name.to_owned())));
    // A name that was not offered counts only if the object has the shape of a call.
    let is_call = fields.len() == 1 || ARGUMENTS.iter().any(|key| fields.contains_key(*key));
    let any = || {
        let (key, name) = NAMES.iter().find_map(|key| written(key))?;
        Some((key, context.accept(name)?)).filter(|_| is_call)
    };
    offered.or_else(any)
}

fn named(
    mut fields: Map<String, Value>,
    name_field: &str,
    name: String,
    context: Context<'_>,
) -> Result<SpokenCall, Stop> {
    let tool = context.tools.find(&name);
    fields.shift_remove(name_field);
    let holder = ARGUMENTS.into_iter().find(|key| fields.contains_key(*key));
    if let Some(tool) = tool.filter(|tool| is_flat(&fields, holder, tool)) {
        fields.retain(|key, _| has_parameter(tool, key) || !BESIDE.contains(&key.as_str()));
        return Ok(SpokenCall { name, arguments: fields });
    }
    if !context.is_tagged && !has_shape_of_call(&fields, holder, tool) {
        return Err(Stop::Text);
    }
    let written = holder.and_then(|key| fields.shift_remove(key)).unwrap_or(Value::Null);
    let arguments = match (arguments(written), tool.map(|tool| tool.parameters)) {
        (Ok(arguments), _) => arguments,
        // LangChain writes the only parameter of a tool as a plain string.
        (Err(Some(text)), Some([only])) => Map::from_iter([((*only).to_owned(), Value::String(text))]),
        (Err(_), _) => return Err(no_object(&name)),
    };
    Ok(SpokenCall { name, arguments })
}

/// Returns whether an object that names a tool is a call. An answer may also list tools by name, even with their
/// schemas. Then the object is no call, but only describes a tool or reports on it.
fn has_shape_of_call(fields: &Map<String, Value>, holder: Option<&str>, tool: Option<&Offered<'_>>) -> bool {
    let is_parameter = |name: &str| tool.is_some_and(|tool| has_parameter(tool, name));
    let mut others = fields.keys().filter(|key| Some(key.as_str()) != holder);
    let are_beside = others.all(|key| BESIDE.contains(&key.as_str()));
    let is_input = match holder.and_then(|holder| fields.get(holder)) {
        Some(Value::Object(inner)) => !inner.contains_key("properties") || is_parameter("properties"),
        Some(Value::String(_) | Value::Null) => true,
        Some(Value::Array(_) | Value::Bool(_) | Value::Number(_)) => false,
        None => fields.is_empty() && tool.is_some_and(|tool| tool.parameters.is_empty()),
    };
    are_beside && is_input
}

/// Whether the arguments are fields next to the name: `{"tool": "send_message", "to": "root"}`.
fn is_flat(fields: &Map<String, Value>, holder: Option<&str>, tool: &Offered<'_>) -> bool {
    let mut others = fields.keys().filter(|key| has_parameter(tool, key) || !BESIDE.contains(&key.as_str()));
    let are_parameters = others.clone().all(|key| has_parameter(tool, key));
    match holder {
        None => are_parameters && others.next().is_some(),
        // `holder` is a field such as `input`. Usually it contains all arguments, but it may also be a parameter of the
        // tool with the same name.
        Some(holder) => {
            let is_object = matches!(fields.get(holder), Some(Value::Object(_)));
            are_parameters && (others.any(|key| key != holder) || !is_object)
        }
    }
}

/// Reads a call whose only key is the tool's name: `{"send_message": {"to": "root"}}`.
fn named_by_key(fields: Map<String, Value>, context: Context<'_>) -> Result<SpokenCall, Stop> {
    let mut fields = fields.into_iter();
    let (Some((key, Value::Object(arguments))), None) = (fields.next(), fields.next()) else {
        return Err(Stop::Text);
    };
    let tool = context.tools.find(&key).ok_or(Stop::Text)?;
    let fits = arguments.is_empty() || arguments.keys().any(|key| has_parameter(tool, key));
    // A text such as `{"search": {"hits": 3}}` is no call, although its field has the name of a tool.
    if !fits && !context.is_tagged {
        return Err(Stop::Text);
    }
    Ok(SpokenCall { name: tool.name.to_owned(), arguments })
}

/// Reads arguments. They may be an object, a text that contains an object, or missing. If they are another text, the
/// error contains this text.
pub(super) fn arguments(written: Value) -> Result<Map<String, Value>, Option<String>> {
    match written {
        Value::Object(arguments) => Ok(arguments),
        Value::Null => Ok(Map::new()),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::String(text) => match lenient::whole(&text) {
            Some(Value::Object(arguments)) => Ok(arguments),
            _ => Err(Some(text)),
        },
        Value::Array(_) | Value::Bool(_) | Value::Number(_) => Err(None),
    }
}

/// Reports that the arguments of a call are not an object.
pub(super) fn no_object(name: &str) -> Stop {
    let problem = "The arguments of the call must be one JSON object.";
    Stop::broken(Some(name), problem, When::NothingElseFollows)
}

/// Recognizes an object that contains the arguments of exactly one tool, but not the name of this tool.
fn bare_arguments(fields: &Map<String, Value>, context: Context<'_>) -> Option<Stop> {
    let tool = context.tools.only_one_with(fields)?;
    if fields.len() < 2 && !context.is_tagged {
        return None;
    }
    let name = tool.name;
    let problem =
        format!("The text is only arguments, probably of `{name}`: call the tool `{name}` with them.");
    Some(Stop::broken(Some(name), problem, When::NothingElseFollows))
}

/// Reports a call that names no tool. A mark such as `<tool_call>` shows that the model meant a call.
pub(super) fn without_name() -> Stop {
    let problem =
        r#"The call names no tool: it must be {"name": "…", "arguments": {…}}, or better a real tool call."#;
    Stop::broken(None, problem, When::EndsLikeCall)
}
