//! At every call, an agent can see and use only the tools that the settings allow, and that its own role and the roles
//! of all agents above it allow.

use crate::testing::tool::shipped_hands;
use crate::testing::{World, brief, code};
use crate::tools::{Asker, Offering, ToolCache, offered, offered_outside};
use polity_decide::arguments::{NAMES, group_of};
use polity_hands::table::Hands;
use polity_llm::Tool;
use polity_society::id::AgentId;
use polity_society::rules::Rights;
use polity_society::tool_group::{Grant, ToolGroup};
use polity_store::agents;
use proptest::prelude::*;
use proptest::sample::subsequence;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// One change of the rights of agents.
#[derive(Clone, Debug)]
enum Change {
    /// An agent creates a role with these groups, and hires an agent into this role. The number picks the agent that
    /// hires.
    Hire { parent: usize, groups: Vec<ToolGroup> },
    /// The role of an agent gets these groups instead of its old groups.
    Role { agent: usize, groups: Vec<ToolGroup> },
    /// Root gets these groups instead of its old groups.
    Settings(Vec<ToolGroup>),
}

fn groups() -> impl Strategy<Value = Vec<ToolGroup>> {
    let all: Vec<ToolGroup> = ToolGroup::deniable().collect();
    subsequence(all.clone(), 0..=all.len())
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        3 => (any::<usize>(), groups()).prop_map(|(parent, groups)| Change::Hire { parent, groups }),
        2 => (any::<usize>(), groups()).prop_map(|(agent, groups)| Change::Role { agent, groups }),
        1 => groups().prop_map(Change::Settings),
    ];
    proptest::collection::vec(change, 1..9)
}

/// The rights that agents should have, computed without the society. `root` contains root's groups.
/// `agents` contains each agent's parent and the groups of its role.
struct Reference {
    root: Vec<ToolGroup>,
    agents: BTreeMap<String, (Option<String>, Vec<ToolGroup>)>,
}

impl Reference {
    fn may(&self, agent: &str, group: &ToolGroup) -> bool {
        if *group == ToolGroup::Messages {
            return true;
        }
        let (parent, groups) = &self.agents[agent];
        let here = groups.is_empty() || groups.contains(group);
        here && parent.as_ref().map_or_else(|| self.root.contains(group), |parent| self.may(parent, group))
    }

    fn named(&self, number: usize) -> String {
        let names: Vec<&String> = self.agents.keys().collect();
        names[number % names.len()].clone()
    }
}

/// Whether a call was refused for lack of a right.
fn denied(result: &Value) -> bool {
    code(result) == "tool_not_permitted"
}

async fn set_root(world: &mut World, groups: &[ToolGroup]) {
    let mut settings = (*world.snapshot.settings).clone();
    settings.tools.root = groups.iter().cloned().map(Grant::Group).collect();
    let mut snapshot = (*world.snapshot).clone();
    snapshot.settings = settings.into();
    world.snapshot = snapshot.into();
}

async fn set_role(world: &World, agent: &str, groups: &[ToolGroup]) {
    let (agent, groups) = (agent.to_owned(), json!(groups).to_string());
    world
        .write(move |tx| {
            Box::pin(async move {
                let set =
                    "UPDATE roles SET tool_groups = ?2 WHERE id = (SELECT role FROM agents WHERE id = ?1)";
                polity_sql::query(set).bind(agent).bind(groups).execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await;
}

async fn play(changes: Vec<Change>) {
    let mut world = World::new().await;
    let mut reference = Reference {
        root: ToolGroup::deniable().collect(),
        agents: BTreeMap::from([("root".to_owned(), (None, Vec::new()))]),
    };
    // All agents share the cache, as they do in a society.
    let (hands, cache) = (shipped_hands(), ToolCache::default());
    for (number, change) in changes.into_iter().enumerate() {
        match change {
            Change::Settings(groups) => {
                set_root(&mut world, &groups).await;
                reference.root = groups;
            }
            Change::Role { agent, groups } => {
                let agent = reference.named(agent);
                if agent != "root" {
                    set_role(&world, &agent, &groups).await;
                    reference.agents.get_mut(&agent).unwrap().1 = groups;
                }
            }
            Change::Hire { parent, groups } => {
                let parent = reference.named(parent);
                let wish = json!({"name": format!("r{number}"), "rolePrompt": "…", "toolGroups": groups});
                let role = world.call(&parent, "create_role", wish).await;
                let may_hire = reference.may(&parent, &ToolGroup::Organization);
                let may_give = groups.iter().all(|group| reference.may(&parent, group));
                assert_eq!(denied(&role), !(may_hire && may_give), "{role}");
                if denied(&role) {
                    continue;
                }
                let arguments = json!({"roleId": role["id"], "taskBrief": brief()});
                let hired = world.call(&parent, "spawn_agent", arguments).await;
                if let Some(id) = hired["id"].as_str() {
                    reference.agents.insert(id.to_owned(), (Some(parent), groups));
                }
            }
        }
        check(&world, &reference, &hands, &cache).await;
    }
    check_calls(&world, &reference).await;
}

/// Returns all tools that a request offers.
fn all_offered(asker: Asker<'_>, cache: &ToolCache) -> Vec<Tool> {
    let mut tools = offered(asker, cache);
    tools.extend(offered_outside(asker, &Offering::default(), cache));
    tools
}

/// For each agent, compares the tools that a request offers with the expected tools in `reference`, and with the tools
/// that are built without a cache.
async fn check(world: &World, reference: &Reference, hands: &Hands, cache: &ToolCache) {
    for agent in reference.agents.keys() {
        let mut reader = world.store.reader().await.unwrap();
        let chain = agents::chain(&mut reader, &AgentId::new(agent.as_str())).await.unwrap();
        drop(reader);
        let rights = Rights::of(&world.snapshot.settings.tools.root, &chain);
        let asker = Asker { rights: &rights, role: "", snapshot: &world.snapshot, hands };
        let seen = all_offered(asker, cache);
        assert_eq!(seen, all_offered(asker, &ToolCache::default()), "the tools of {agent}");
        for tool in NAMES {
            let may = reference.may(agent, &group_of(tool).unwrap());
            assert_eq!(seen.iter().any(|seen| seen.name == *tool), may, "{agent} sees {tool}");
        }
    }
}

/// Calls one tool of each group without arguments, and compares the refusals with the expected refusals in
/// `reference`.
async fn check_calls(world: &World, reference: &Reference) {
    for (tool, group) in [
        ("create_role", ToolGroup::Organization),
        ("put_artifact", ToolGroup::Artifacts),
        ("compress_context", ToolGroup::Context),
    ] {
        for agent in reference.agents.keys() {
            let result = world.call(agent, tool, json!({})).await;
            assert_eq!(denied(&result), !reference.may(agent, &group), "{agent} calls {tool}: {result}");
        }
    }
}

#[test]
fn nothing_is_offered_or_run_that_the_chain_does_not_allow() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = ProptestConfig { source_file: Some(file!()), ..ProptestConfig::with_cases(100) };
    let runner = RefCell::new(TestRunner::new(config));
    let played = runner.borrow_mut().run(&changes(), |changes| {
        runtime.block_on(play(changes));
        Ok(())
    });
    played.unwrap();
}

#[tokio::test]
async fn a_denied_call_says_what_is_missing_and_changes_nothing() {
    let world = World::new().await;
    let reader = world.hire("root", "reader", json!({"toolGroups": ["artifacts"]})).await;
    let before = world.dump().await;
    let denied = world.call(&reader, "create_role", json!({"name": "x", "rolePrompt": "…"})).await;
    assert_eq!(denied["error"], "tool_not_permitted", "{denied}");
    assert_eq!((&denied["groups"], &denied["allowed"]), (&json!(["organization"]), &json!(["artifacts"])));
    let lead = world.hire("root", "lead", json!({"toolGroups": ["organization"]})).await;
    let after_hiring = world.dump().await;
    let wish = json!({"name": "y", "rolePrompt": "…", "toolGroups": ["artifacts", "context"]});
    let denied = world.call(&lead, "create_role", wish).await;
    assert_eq!(denied["groups"], json!(["artifacts", "context"]), "{denied}");
    assert_eq!(world.dump().await, after_hiring);
    assert_ne!(before, after_hiring);
    // Without the field `toolGroups`, a role has the rights of its creator, so its agents have at most these rights.
    let child = world.hire(&lead, "z", json!({})).await;
    let stored = world.call(&child, "put_artifact", json!({"type": "note", "content": "x"})).await;
    assert_eq!(stored["error"], "tool_not_permitted", "{stored}");
}
