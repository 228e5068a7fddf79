//! Reads the tools of a server, and selects those that agents can use.

use crate::bounds::Bounds;
use crate::names;
use crate::text::cut;
use polity_hands::tool::{AfterCrash, Effect};
use polity_society::tool_group::ServerName;
use rmcp::model::{PaginatedRequestParams, Tool, ToolAnnotations};
use rmcp::service::{Peer, RoleClient, ServiceError};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Maximum number of pages of a list of tools.
const MOST_PAGES: usize = 100;

/// The definition of a tool, for agents.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    /// The name of the tool, as the server lists it.
    pub(crate) own_name: String,
    /// The name by which models call the tool: `<server>__<tool>`.
    pub(crate) name: String,
    pub(crate) description: String,
    /// The JSON Schema of the arguments.
    pub(crate) parameters: Value,
    pub(crate) effect: Effect,
    pub(crate) after_crash: AfterCrash,
}

/// The tools of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Listed {
    pub(crate) definitions: Vec<Definition>,
    /// Number of tools that the server lists, but that agents cannot use.
    pub(crate) left_out: usize,
}

/// Reads the whole list of tools, page by page.
pub(crate) async fn read(
    peer: &Peer<RoleClient>,
    server: &ServerName,
    bounds: &Bounds,
) -> Result<Listed, ServiceError> {
    let mut listed = Listed::default();
    let mut seen = BTreeSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MOST_PAGES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = peer.list_tools(Some(page)).await?;
        listed.accept(page.tools, server, bounds);
        cursor = page.next_cursor.filter(|next| seen.insert(next.clone()));
        if cursor.is_none() || listed.definitions.len() >= bounds.tools {
            break;
        }
    }
    Ok(listed)
}

impl Listed {
    /// Adds tools. Leaves out a tool whose name was listed before or whose schema is too large, and all tools above
    /// the maximum number.
    pub(crate) fn accept(&mut self, tools: Vec<Tool>, server: &ServerName, bounds: &Bounds) {
        let mut names: BTreeSet<String> = self.definitions.iter().map(|tool| tool.name.clone()).collect();
        for tool in tools {
            let definition = (self.definitions.len() < bounds.tools)
                .then(|| define(tool, server, bounds))
                .flatten()
                .filter(|definition| names.insert(definition.name.clone()));
            match definition {
                Some(definition) => self.definitions.push(definition),
                None => self.left_out += 1,
            }
        }
    }
}

fn define(tool: Tool, server: &ServerName, bounds: &Bounds) -> Option<Definition> {
    let mut parameters = Value::Object((*tool.input_schema).clone());
    // Model APIs accept only a schema of the type `object`, so this type replaces the type from the server.
    parameters["type"] = json!("object");
    if parameters.to_string().len() > bounds.schema_bytes {
        return None;
    }
    let annotations = tool.annotations.unwrap_or_default();
    let own_name = tool.name.into_owned();
    let description =
        tool.description.map(|text| text.into_owned()).or(tool.title).or(annotations.title.clone());
    let description = description.filter(|text| !text.trim().is_empty()).unwrap_or_else(|| own_name.clone());
    let (effect, after_crash) = effects(&annotations);
    Some(Definition {
        name: names::name(server, &own_name),
        own_name,
        description: cut(&description, bounds.description_chars),
        parameters,
        effect,
        after_crash,
    })
}

/// Returns the effects of a tool according to the server's hints. Without hints, polity assumes that the tool changes
/// something.
fn effects(hints: &ToolAnnotations) -> (Effect, AfterCrash) {
    match (hints.read_only_hint, hints.idempotent_hint) {
        (Some(true), _) => (Effect::Reads, AfterCrash::Repeat),
        (_, Some(true)) => (Effect::Changes, AfterCrash::Repeat),
        (_, _) => (Effect::Changes, AfterCrash::Never),
    }
}

#[cfg(test)]
mod tests;
