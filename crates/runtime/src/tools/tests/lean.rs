//! Checks that the fixed part of a request is small, because the user pays for this part with every model call. The
//! tests write the tools as compact JSON, and count the tokens with a real tokenizer, for both languages.

use crate::society::with_own_tools;
use crate::testing::tool::{FakeTool, shipped_hands, shipped_names};
use crate::testing::{World, snapshot};
use crate::tools::{Asker, Offering, ToolCache, offered, offered_outside};
use polity_decide::guidance::Guidance;
use polity_decide::render::{SystemFacts, Taker, system_message};
use polity_hands::call::Output;
use polity_hands::table::Hands;
use polity_llm::Tool;
use polity_registry::{Service, Snapshot};
use polity_routing::FileTypes;
use polity_society::agent::{Party, Standing};
use polity_society::contact::{KnownParty, Source};
use polity_society::content::Capabilities;
use polity_society::id::AgentId;
use polity_society::rules::{Link, Rights};
use polity_society::text::Language;
use polity_society::time::Timestamp;
use polity_society::tool_group::{Grant, ServerName, ToolGroup};
use polity_society::workspace::Access;
use serde_json::{Value, json};
use std::sync::Arc;
use tiktoken_rs::{CoreBPE, o200k_base};

fn in_language(language: Language) -> Arc<Snapshot> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(snapshot(&json!({"language": language})))
}

fn contact(id: &str) -> KnownParty {
    KnownParty {
        party: Party {
            id: AgentId::new(id),
            task: None,
            role_name: String::new(),
            interface_spec: None,
            objective: None,
            standing: Standing::Active,
            depth: 1,
            capabilities: Capabilities::default(),
        },
        source: Source::Preset,
        introduced_by: None,
        since: Timestamp::default(),
    }
}

/// The fixed part of a request of a task without a directory of the person.
fn fixed(
    snapshot: &Snapshot,
    role: Option<(&str, &[ToolGroup])>,
    guidance: Guidance,
    hands: &Hands,
) -> (String, String) {
    fixed_in(None, snapshot, role, guidance, hands)
}

/// The fixed part of a request: the system message and the tools. `workspace` is the access to the directory of the
/// person.
fn fixed_in(
    workspace: Option<Access>,
    snapshot: &Snapshot,
    role: Option<(&str, &[ToolGroup])>,
    guidance: Guidance,
    hands: &Hands,
) -> (String, String) {
    let groups = role.map(|(_, groups)| groups).unwrap_or_default();
    let link = Link { agent: AgentId::new("a"), role: String::new(), groups: groups.to_vec() };
    let rights = Rights::of(&Grant::everything(), &[link]);
    let may_hire = rights.denial(&ToolGroup::Organization).is_none();
    let asker = if role.is_some() { "root" } else { "user" };
    let contacts = [contact(asker)];
    let taker = |service: &Arc<Service>| Taker {
        id: service.id.clone(),
        capabilities: service.capabilities.clone(),
        file_types: FileTypes::new(&service.file_types),
    };
    let services: Vec<Taker> = snapshot.catalogue.services().iter().take(1).map(taker).collect();
    let root = AgentId::root();
    let system = system_message(&SystemFacts {
        prompts: &snapshot.prompts,
        agent: &root,
        parent: None,
        role_name: role.map_or("", |(name, _)| name),
        role_prompt: role.map(|(name, _)| name),
        brief: None,
        service: snapshot.catalogue.default_service(),
        contacts: &contacts,
        services: if may_hire { &services } else { &[] },
        workspace,
        guidance,
    });
    let asker = Asker { rights: &rights, role: "", snapshot, hands };
    let outside = offered_outside(asker, &Offering::default(), &ToolCache::default());
    let tools = guidance.choose(offered(asker, &ToolCache::default()).into_iter().chain(outside).collect());
    let tools: Vec<Value> = tools.into_iter().map(in_request).collect();
    (system, serde_json::to_string(&tools).unwrap())
}

/// Returns the JSON of a tool as a request contains it.
fn in_request(tool: Tool) -> Value {
    let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
    json!({"type": "function", "function": function})
}

fn tokens(tokenizer: &CoreBPE, fixed: &(String, String)) -> usize {
    tokenizer.encode_ordinary(&fixed.0).len() + tokenizer.encode_ordinary(&fixed.1).len()
}

/// The file docs/performance.md lists these limits and the counted tokens.
#[tokio::test]
async fn what_is_said_before_any_task_is_small() {
    let tokenizer = o200k_base().unwrap();
    let without_hiring = [ToolGroup::Artifacts, ToolGroup::Context];
    for &language in Language::ALL {
        let world = World::with_app(&json!({"language": language})).await;
        let snapshot = Arc::clone(&world.snapshot);
        let all_hands = || with_own_tools(shipped_hands(), &world.store, &world.registry);
        let measure = |what: &str, fixed: &(String, String), limit: usize| {
            let count = tokens(&tokenizer, fixed);
            println!("{language:?}: {what}: {count}");
            assert!(count <= limit, "{language:?}: {what}: {count} tokens, at most {limit}");
        };
        let check = |what: &str, role, guidance, hands: Hands, limit: usize| {
            measure(what, &fixed(&snapshot, role, guidance, &hands), limit);
        };
        check("root", None, Guidance::Full, Hands::none(), 2_200);
        check("root, small window", None, Guidance::FewTools, Hands::none(), 1_200);
        check(
            "an agent that may not hire",
            Some(("x", &without_hiring[..])),
            Guidance::Full,
            Hands::none(),
            1_100,
        );
        let worker = [ToolGroup::Artifacts, ToolGroup::Context, ToolGroup::Files, ToolGroup::Command];
        let below_1_700 = 1_699;
        check(
            "an agent with files and commands",
            Some(("x", &worker[..])),
            Guidance::Full,
            all_hands(),
            below_1_700,
        );
        // The words for a directory that agents may only read are the longest.
        let (role, access) = (Some(("x", &worker[..])), Some(Access::Read));
        let in_a_directory = fixed_in(access, &snapshot, role, Guidance::Full, &all_hands());
        assert!(in_a_directory.0.contains(Access::Read.fact()), "{}", in_a_directory.0);
        let what = "an agent with files and commands in a directory of the user";
        measure(what, &in_a_directory, below_1_700);
        let reader = [ToolGroup::Artifacts, ToolGroup::Context, ToolGroup::Web];
        check("an agent that reads the web", Some(("x", &reader[..])), Guidance::Full, all_hands(), 1_400);
        check("a small worker with files", Some(("x", &worker[..])), Guidance::FewTools, all_hands(), 1_200);
        let small_reader = Some(("x", &reader[..]));
        check("a small reader of the web", small_reader, Guidance::FewTools, all_hands(), 1_100);
        check("root with files, commands and the web", None, Guidance::Full, all_hands(), 2_800);
        check("root with all tools, small window", None, Guidance::FewTools, all_hands(), 1_700);
        let (rights, hands) = (Rights::of(&Grant::everything(), &[]), with_a_server(all_hands()));
        let asker = Asker { rights: &rights, role: "", snapshot: &snapshot, hands: &hands };
        // In a window of one token there is no room for the tool of the server, so the search is offered in its place.
        let offering = Offering { window: Some(1), ..Offering::default() };
        let mut measured = Vec::new();
        for tool in offered_outside(asker, &offering, &ToolCache::default()) {
            let name = tool.name.clone();
            let count = tokenizer.encode_ordinary(&in_request(tool).to_string()).len();
            println!("{language:?}: {name}: {count}");
            assert!(count <= 150, "{language:?}: {name}: {count} tokens");
            measured.push(name);
        }
        measured.sort();
        let mut all = shipped_names();
        all.sort();
        assert_eq!(measured, all);
    }
}

/// Adds a tool of an MCP server.
fn with_a_server(hands: Hands) -> Hands {
    let group = ToolGroup::Server(ServerName::new("git").unwrap());
    let log = FakeTool::returns("git__log", Ok(Output::json(json!({}))));
    hands.with(Arc::new(FakeTool { group, ..log }))
}

/// A request neither offers nor mentions a tool that the role of the agent must not use.
#[test]
fn whoever_may_not_hire_reads_nothing_of_hiring() {
    for &language in Language::ALL {
        let snapshot = in_language(language);
        let groups = [ToolGroup::Artifacts, ToolGroup::Context];
        let (system, tools) = fixed(&snapshot, Some(("x", &groups)), Guidance::Full, &shipped_hands());
        for word in ["spawn_agent", "create_role", "terminate_agent", "rolePrompt", "requiredCapabilities"] {
            assert!(!system.contains(word) && !tools.contains(word), "{language:?}: {word}");
        }
        let (system, tools) = fixed(&snapshot, Some(("x", &[])), Guidance::Full, &shipped_hands());
        assert!(system.contains(snapshot.prompts.hiring.trim()) && tools.contains("spawn_agent_with_task"));
    }
}
