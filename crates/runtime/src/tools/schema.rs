//! Builds the tools as models see them. The schemas come from the Rust types of the arguments, and the descriptions
//! come from the prompt files.

use super::artifact::{CONTENT, PUT_ARTIFACT};
use super::cache::{ByAddress, CacheKey, SocietyTools, ToolCache, ToolList, Workspace};
use super::copying::COPYING;
use polity_decide::arguments;
use polity_decide::found::SEARCH_TOOLS;
use polity_hands::arguments::plain;
use polity_hands::deferred::{Definition, is_deferred};
use polity_hands::table::Hands;
use polity_hands::tool::{Needs, Tool as OutsideTool, Words};
use polity_llm::Tool;
use polity_registry::{Snapshot, ToolText};
use polity_society::policy::{Effect, Reach, denies_all};
use polity_society::rules::{Rights, Verdict};
use polity_society::tool_group::ToolGroup;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

/// The schema of each tool, without descriptions.
static SCHEMAS: LazyLock<Vec<(&'static str, Value)>> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let schemas = arguments::schemas(&mut generator);
    schemas.into_iter().map(|(name, schema)| (name, with_properties(plain(schema.to_value())))).collect()
});

/// Adds empty `properties` to an object without fields, because some servers refuse a schema without `properties`.
fn with_properties(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// The agent to which a request offers tools.
#[derive(Clone, Copy)]
pub(crate) struct Asker<'a> {
    pub(crate) rights: &'a Rights,
    /// The name of the agent's role.
    pub(crate) role: &'a str,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) hands: &'a Hands,
}

impl Asker<'_> {
    /// Returns whether the agent may call a tool. Returns false if the agent lacks the right to the group of the tool,
    /// or if the policy denies every call of the tool. Such a tool is not offered. Returns true if the policy denies
    /// only some calls.
    pub(super) fn may_call(&self, tool: &dyn OutsideTool) -> bool {
        self.may_act(tool.name(), &tool.group(), tool.always())
    }

    /// Returns whether the agent may call a tool with an argument that needs a further group.
    fn may_call_with(&self, tool: &str, needs: &Needs) -> bool {
        self.may_act(tool, &needs.group, Some(needs.reach.effect()))
    }

    /// Returns whether the rights, and the policy for at least some calls, allow an act of a tool. `always` is the
    /// effect that the act has in every call of the tool; `None` if the effect depends on the arguments.
    fn may_act(&self, tool: &str, group: &ToolGroup, always: Option<Effect>) -> bool {
        let settings = &self.snapshot.settings;
        let groups = settings.server_groups().of(group);
        self.rights.decide(group) == Verdict::Allow
            && !denies_all(tool, &groups, self.role, always, &settings.tools.policy)
    }
}

/// Returns the society tools that an agent may call.
pub(crate) fn offered(asker: Asker<'_>, cache: &ToolCache) -> Vec<Tool> {
    let Asker { rights, snapshot, hands, .. } = asker;
    let always = Some(Reach::Society.effect());
    let may_call =
        |name: &str| arguments::group_of(name).is_some_and(|group| asker.may_act(name, &group, always));
    let names: Vec<_> = SCHEMAS.iter().map(|(name, _)| *name).filter(|name| may_call(name)).collect();
    let may_copy =
        |name: &str, needs: &Needs| hands.workspaces().is_some() && asker.may_call_with(name, needs);
    let copying =
        COPYING.iter().filter(|(name, needs)| may_copy(name, needs)).map(|(name, _)| *name).collect();
    // Only an agent that works in a workspace needs to know that the workspace exists.
    let works_on_files =
        [ToolGroup::Files, ToolGroup::Command].iter().any(|group| rights.decide(group) == Verdict::Allow);
    let workspace = if works_on_files { Workspace::Shown } else { Workspace::Hidden };
    let may_give = rights.among(snapshot.settings.groups());
    let tools = ToolList::Society(SocietyTools { names, copying, workspace, may_give });
    cache.get(CacheKey { revision: snapshot.revision, tools }, |tools| build(tools, snapshot))
}

/// Builds tools in the form in which requests contain them.
fn build(tools: &ToolList, snapshot: &Snapshot) -> Vec<Tool> {
    match tools {
        ToolList::Society(tools) => {
            let chosen = SCHEMAS.iter().filter(|(name, _)| tools.names.contains(name));
            chosen.map(|(name, schema)| society_tool(name, schema.clone(), tools, snapshot)).collect()
        }
        ToolList::Outside(tools) => {
            tools.iter().map(|(tool, hidden)| outside_tool(&*tool.0, hidden, snapshot)).collect()
        }
    }
}

fn society_tool(name: &str, mut schema: Value, tools: &SocietyTools, snapshot: &Snapshot) -> Tool {
    list_groups(&mut schema, &tools.may_give);
    if tools.workspace == Workspace::Hidden {
        hide(&mut schema, super::WORKSPACE);
    }
    if let Some((_, needs)) = COPYING.iter().find(|(tool, _)| *tool == name)
        && tools.copying.contains(&name)
    {
        add_copying(&mut schema, name, needs.argument);
    }
    in_words(name, schema, snapshot.prompts.tool_texts.get(name))
}

fn outside_tool(tool: &dyn OutsideTool, hidden: &[&str], snapshot: &Snapshot) -> Tool {
    let mut schema = with_properties(tool.parameters());
    for argument in hidden {
        hide(&mut schema, argument);
    }
    match tool.words() {
        Words::FromPrompts => in_words(tool.name(), schema, snapshot.prompts.tool_texts.get(tool.name())),
        Words::Own(description) => Tool::new(tool.name(), description, schema),
    }
}

/// Removes an argument from the schema of a tool, because the agent may not use the argument.
fn hide(schema: &mut Value, argument: &str) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.shift_remove(argument);
    }
}

/// Adds the argument that names a file to the schema of a tool. In `put_artifact`, the content then becomes optional,
/// because a file can replace the content.
fn add_copying(schema: &mut Value, tool: &str, argument: &str) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.insert(argument.to_owned(), json!({"type": "string"}));
    }
    if tool == PUT_ARTIFACT
        && let Some(Value::Array(required)) = schema.get_mut("required")
    {
        required.retain(|name| name != CONTENT);
    }
}

/// The context window that polity assumes if a service declares no window, in tokens.
const ASSUMED_WINDOW: u64 = 128_000;

/// The facts that decide which definitions of MCP tools a request contains.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offering<'a> {
    /// The context window of the service, in tokens.
    pub(crate) window: Option<u64>,
    /// The tools that the agent has found or called.
    pub(crate) found: BTreeSet<&'a str>,
}

/// Returns the outside tools that a request contains. The agent may call all of them. If the definitions of all MCP
/// tools would take too much of the window, the request contains only the MCP tools that the agent has found or called.
/// The agent then also gets a tool that finds MCP tools.
pub(crate) fn offered_outside(asker: Asker<'_>, offering: &Offering<'_>, cache: &ToolCache) -> Vec<Tool> {
    let snapshot = asker.snapshot;
    let mut tools = asker.hands.tools();
    tools.retain(|tool| asker.may_call(tool.as_ref()));
    let (of_servers, others): (Vec<_>, Vec<_>) =
        tools.into_iter().partition(|tool| is_of_server(tool.as_ref()));
    let mut of_servers = in_requests(of_servers, asker, cache);
    let mut others = in_requests(others, asker, cache);
    let budget = snapshot.settings.tools.defer_above.of(offering.window.unwrap_or(ASSUMED_WINDOW));
    let costs: Vec<Definition<'_>> = of_servers.iter().map(cost).collect();
    if is_deferred(&costs, budget) {
        of_servers.retain(|tool| offering.found.contains(tool.name.as_str()));
    } else {
        others.retain(|tool| tool.name != SEARCH_TOOLS);
    }
    others.extend(of_servers);
    others
}

/// Returns whether a tool belongs to an MCP server.
pub(super) fn is_of_server(tool: &dyn OutsideTool) -> bool {
    matches!(tool.group(), ToolGroup::Server(_))
}

/// Returns the definition of a tool, with the number of tokens that the definition takes in a request.
fn cost(tool: &Tool) -> Definition<'_> {
    Definition { name: &tool.name, description: &tool.description, tokens: tool.tokens() }
}

/// Returns these outside tools in the form in which requests contain them.
fn in_requests(tools: Vec<Arc<dyn OutsideTool>>, asker: Asker<'_>, cache: &ToolCache) -> Vec<Tool> {
    let snapshot = asker.snapshot;
    let with_hidden = |tool: Arc<dyn OutsideTool>| {
        let lacks = |needs: &&Needs| !asker.may_call_with(tool.name(), needs);
        let hidden = tool.needs().iter().filter(lacks).map(|needs| needs.argument).collect();
        (ByAddress(tool), hidden)
    };
    let tools = ToolList::Outside(tools.into_iter().map(with_hidden).collect());
    cache.get(CacheKey { revision: snapshot.revision, tools }, |tools| build(tools, snapshot))
}

/// Completes the schema of a tool that creates roles: lists the tool groups that the caller may give to a role. Leaves
/// other schemas unchanged.
fn list_groups(schema: &mut Value, may_give: &[ToolGroup]) {
    for path in ["/properties/toolGroups/items", "/properties/role/properties/toolGroups/items"] {
        if let Some(items) = schema.pointer_mut(path) {
            items["enum"] = may_give.iter().map(ToolGroup::name).collect();
        }
    }
}

fn in_words(name: &str, mut parameters: Value, text: Option<&ToolText>) -> Tool {
    if let Some(text) = text {
        for (path, description) in text.parameters.iter().filter(|(_, words)| !words.is_empty()) {
            let names: Vec<&str> = path.split('.').collect();
            describe(&mut parameters, &names, description);
        }
    }
    let description = text.map(|text| text.description.clone()).unwrap_or_default();
    Tool::new(name, description, parameters)
}

/// Adds a description to the field with this path. If a field is an array, the path continues in the schema of its
/// items.
fn describe(schema: &mut Value, path: &[&str], description: &str) {
    let Some((name, rest)) = path.split_first() else {
        if let Some(object) = schema.as_object_mut() {
            object.insert("description".to_owned(), Value::String(description.to_owned()));
        }
        return;
    };
    if let Some(items) = schema.get_mut("items") {
        return describe(items, path, description);
    }
    if let Some(property) = schema.get_mut("properties").and_then(|properties| properties.get_mut(*name)) {
        describe(property, rest, description);
    }
}
