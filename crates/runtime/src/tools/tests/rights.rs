//! At every call, an agent can see and use a tool only if the settings, the agent's own role and the roles of all
//! agents above it allow the tool. Rules about calls can only take further tools away.

use crate::approvals;
use crate::driver;
use crate::handles::Handles;
use crate::testing::model::{Say, ScriptedModel};
use crate::testing::tool::FakeTool;
use crate::testing::{World, brief, code};
use crate::tools::{Asker, Offering, ToolCache, offered, offered_outside};
use futures::FutureExt;
use polity_decide::arguments::{NAMES, group_of};
use polity_hands::call::Output;
use polity_hands::table::Hands;
use polity_hands::tool::{Confinement, Effect, Reach};
use polity_llm::{Message, Request, Tool};
use polity_society::approval::Answer;
use polity_society::id::AgentId;
use polity_society::notice::Notice;
use polity_society::tool_group::{Grant, ToolGroup};
use polity_store::approvals::Approval;
use polity_store::{agents, apply};
use polity_view::{ApprovalFilter, ApprovalState};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::test_runner::TestRunner;
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// The outside tools of the random societies, each with its group.
const OUTSIDE: [(&str, &str); 6] = [
    ("str_replace_editor", "files"),
    ("fetch_page", "web"),
    ("git__log", "mcp:git"),
    ("hub__list", "mcp:hub"),
    ("mail__read", "mcp:mail"),
    ("bash", "command"),
];

/// Returns the names of all tools, in the order in which each agent calls them.
fn tools() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied().chain(OUTSIDE.iter().map(|(tool, _)| *tool))
}

fn group_named(name: &str) -> ToolGroup {
    name.parse().unwrap()
}

/// Returns the group of a tool.
fn group(tool: &str) -> ToolGroup {
    let outside = OUTSIDE.iter().find(|(name, _)| *name == tool);
    outside.map_or_else(|| group_of(tool).unwrap(), |(_, group)| group_named(group))
}

/// Returns all groups that a role may name: those with tools, and the group that MCP servers share.
fn groups() -> Vec<ToolGroup> {
    let of_servers = ["mcp:git", "mcp:hub", "mcp:mail", SHARED].map(group_named);
    ToolGroup::deniable().chain(of_servers).collect()
}

/// A group that always contains the MCP server `git`, and in some cases also the server `hub`.
const SHARED: &str = "mcp:code";

/// Whether the MCP server `hub` is in the group [`SHARED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hub {
    Shares,
    Alone,
}

/// What a rule of `tools.policy` is about.
#[derive(Clone, Debug)]
enum About {
    Everything,
    Tool(&'static str),
    Group(ToolGroup),
}

/// A rule of `tools.policy`.
#[derive(Clone, Debug)]
struct Rule {
    /// `None` for a rule about all roles.
    role: Option<&'static str>,
    about: About,
    decide: &'static str,
}

impl Rule {
    fn fits(&self, role: &str, tool: &str, names: &[ToolGroup]) -> bool {
        self.role.is_none_or(|wanted| wanted == role)
            && match &self.about {
                About::Everything => true,
                About::Tool(wanted) => *wanted == tool,
                About::Group(wanted) => names.contains(wanted),
            }
    }

    fn json(&self) -> Value {
        let mut rule = Map::from_iter([("decide".to_owned(), json!(self.decide))]);
        rule.extend(self.role.map(|role| ("role".to_owned(), json!(role))));
        match &self.about {
            About::Everything => None,
            About::Tool(tool) => rule.insert("tool".to_owned(), json!(tool)),
            About::Group(group) => rule.insert("group".to_owned(), json!(group)),
        };
        Value::Object(rule)
    }
}

/// One change of the rights of agents.
#[derive(Clone, Debug)]
enum Change {
    /// An agent creates a role with these groups. Then the same agent, or an agent above it, hires an agent into this
    /// role. `maker` picks the agent that creates the role, and `steps` says how far above it the agent is that hires.
    Hire { maker: usize, steps: usize, groups: Vec<ToolGroup> },
    /// The role of an agent gets these groups instead of its old groups.
    Role { agent: usize, groups: Vec<ToolGroup> },
    /// `app.json` gives root these grants instead of the old grants.
    Root(Vec<Grant>),
    /// `app.json` gets these rules about calls instead of the old rules.
    Rules(Vec<Rule>),
    /// `app.json` moves an MCP server into the shared group, or out of it.
    Hub(Hub),
}

fn some_groups(most: usize) -> impl Strategy<Value = Vec<ToolGroup>> {
    subsequence(groups(), 0..=most)
}

fn grants() -> impl Strategy<Value = Vec<Grant>> {
    let all: Vec<Grant> = groups().into_iter().map(Grant::Group).chain([Grant::EveryServer]).collect();
    subsequence(all.clone(), 0..=all.len())
}

fn rule() -> impl Strategy<Value = Rule> {
    let about = prop_oneof![
        1 => Just(About::Everything),
        3 => select(tools().collect::<Vec<_>>()).prop_map(About::Tool),
        3 => select(groups()).prop_map(About::Group),
    ];
    let role = prop::option::of(select(vec!["r0", "r1", "r2"]));
    (role, about, select(vec!["allow", "ask", "deny"])).prop_map(|(role, about, decide)| Rule {
        role,
        about,
        decide,
    })
}

fn hire(most: usize) -> impl Strategy<Value = Change> {
    let made = (any::<usize>(), 0..3_usize, some_groups(most));
    made.prop_map(|(maker, steps, groups)| Change::Hire { maker, steps, groups })
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let all = groups().len();
    let change = prop_oneof![
        2 => hire(3),
        2 => hire(all),
        2 => (any::<usize>(), some_groups(all)).prop_map(|(agent, groups)| Change::Role { agent, groups }),
        1 => grants().prop_map(Change::Root),
        2 => prop::collection::vec(rule(), 0..4).prop_map(Change::Rules),
        1 => select(vec![Hub::Shares, Hub::Alone]).prop_map(Change::Hub),
    ];
    prop::collection::vec(change, 1..8)
}

/// What should happen to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The agent has no right to the tool.
    NoRight,
    /// A rule denies the call.
    Denied,
    /// The person is asked, and decides.
    Asked,
    Runs,
}

/// An agent and its role.
struct Member {
    /// `None` for root.
    hired: Option<Hired>,
    role: String,
    groups: Vec<ToolGroup>,
}

/// Where an agent comes from. It has only rights that both of these agents have.
struct Hired {
    parent: String,
    /// The agent that created the role.
    creator: String,
}

/// The rights that agents should have, computed without the society.
struct Reference {
    root: Vec<Grant>,
    rules: Vec<Rule>,
    hub: Hub,
    agents: BTreeMap<String, Member>,
}

impl Reference {
    fn new() -> Self {
        let root = Member { hired: None, role: "root".to_owned(), groups: Vec::new() };
        Self {
            root: groups().into_iter().map(Grant::Group).collect(),
            rules: Vec::new(),
            hub: Hub::Shares,
            agents: BTreeMap::from([("root".to_owned(), root)]),
        }
    }

    /// Returns the `app.json` from which the society should compute the same rights.
    fn app(&self) -> Value {
        let shared = json!(["code"]);
        let mut servers = json!({
            "git": {"command": "git-server", "groups": shared},
            "hub": {"command": "hub-server"},
            "mail": {"command": "mail-server"},
        });
        if self.hub == Hub::Shares {
            servers["hub"]["groups"] = shared;
        }
        let root: Vec<String> = self.root.iter().map(Grant::to_string).collect();
        let rules: Vec<Value> = self.rules.iter().map(Rule::json).collect();
        let limits = json!({"maxTokensPerTask": null});
        json!({"limits": limits, "mcpServers": servers, "tools": {"root": root, "policy": rules}})
    }

    /// Returns all names by which a role can ask for a group of tools: the group's own name and, if its server belongs to
    /// the shared group, also the name of the shared group.
    fn names(&self, group: &ToolGroup) -> Vec<ToolGroup> {
        let shares =
            *group == group_named("mcp:git") || *group == group_named("mcp:hub") && self.hub == Hub::Shares;
        std::iter::once(group.clone()).chain(shares.then(|| group_named(SHARED))).collect()
    }

    fn may(&self, agent: &str, group: &ToolGroup) -> bool {
        if *group == ToolGroup::Messages {
            return true;
        }
        let names = self.names(group);
        let member = &self.agents[agent];
        let here = member.groups.is_empty() || names.iter().any(|name| member.groups.contains(name));
        here && match &member.hired {
            Some(Hired { parent, creator }) => self.may(parent, group) && self.may(creator, group),
            None => {
                let is_of_server = matches!(group, ToolGroup::Server(_));
                is_of_server && self.root.contains(&Grant::EveryServer)
                    || names.iter().any(|name| self.root.contains(&Grant::Group(name.clone())))
            }
        }
    }

    fn verdict(&self, agent: &str, tool: &str) -> Verdict {
        let group = group(tool);
        if !self.may(agent, &group) {
            return Verdict::NoRight;
        }
        let names = self.names(&group);
        let mut fitting = self.rules.iter().filter(|rule| rule.fits(&self.agents[agent].role, tool, &names));
        match fitting.next().map(|rule| rule.decide) {
            _ if group == ToolGroup::Messages => Verdict::Runs,
            Some("deny") => Verdict::Denied,
            Some("ask") => Verdict::Asked,
            _ => Verdict::Runs,
        }
    }

    /// Returns the agent that is this many steps above an agent. After root, the count begins again at the agent.
    fn above(&self, agent: &str, steps: usize) -> String {
        let parent = |id: &&str| self.agents[*id].hired.as_ref().map(|hired| hired.parent.as_str());
        let line: Vec<&str> = std::iter::successors(Some(agent), parent).collect();
        line[steps % line.len()].to_owned()
    }

    fn named(&self, number: usize) -> String {
        let names: Vec<&String> = self.agents.keys().collect();
        names[number % names.len()].clone()
    }
}

/// What an agent was offered, and what its calls returned, in one turn.
#[derive(Default)]
struct Observed {
    /// `None` until the model was asked.
    offered: Option<BTreeSet<String>>,
    results: Vec<Value>,
}

/// Returns a model that calls every tool once, and then ends its turn without a text.
fn model(observed: &Arc<Mutex<Observed>>) -> Arc<ScriptedModel> {
    let observed = Arc::clone(observed);
    ScriptedModel::function(move |request| {
        let mut observed = observed.lock().unwrap();
        let say = if observed.offered.is_none() {
            observed.offered = Some(request.tools.iter().map(|tool| tool.name.clone()).collect());
            Say::Calls(tools().map(|tool| (tool, arguments(tool))).collect())
        } else {
            observed.results = last_results(request);
            Say::Text("")
        };
        Box::pin(std::future::ready(say))
    })
}

/// Returns arguments with which a call of the tool changes no right. For `put_artifact`, the arguments must be valid.
/// Otherwise the call would be refused because of its arguments, before anybody looks at the rights.
fn arguments(tool: &str) -> Value {
    if tool == "put_artifact" { json!({"type": "note", "content": "x"}) } else { json!({}) }
}

/// Returns the results of the last calls that a request contains.
fn last_results(request: &Request) -> Vec<Value> {
    let newest = request.messages.iter().rev();
    let since_the_calls = newest.take_while(|message| !matches!(message, Message::Assistant { .. }));
    let results = since_the_calls.filter_map(|message| match message {
        Message::Tool { content, .. } => Some(serde_json::from_str(content).unwrap()),
        _ => None,
    });
    let mut results: Vec<Value> = results.collect();
    results.reverse();
    results
}

/// Returns the outside tools. Each run of a tool adds the name of the tool to `runs`.
fn outside_tools(runs: &Arc<Mutex<Vec<&'static str>>>) -> Hands {
    OUTSIDE.iter().fold(Hands::none(), |hands, (name, _)| {
        let (name, runs) = (*name, Arc::clone(runs));
        let tool = FakeTool::new(name, move |_| {
            runs.lock().unwrap().push(name);
            async { Ok(Output::json(json!({"ran": true}))) }.boxed()
        });
        let group = group(name);
        let reach = match &group {
            ToolGroup::Files => Reach::ReadsWorkspace,
            ToolGroup::Web => Reach::Web { host: None, effect: Effect::Reads },
            ToolGroup::Server(server) => Reach::Server { server: server.clone(), effect: Effect::Reads },
            _ => Reach::Command { command: "ls".to_owned(), confinement: Confinement::Full },
        };
        hands.with(Arc::new(FakeTool { group, reach, ..tool }))
    })
}

/// Whether a call was refused for lack of a right.
fn denied(result: &Value) -> bool {
    code(result) == "tool_not_permitted"
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

/// A society whose rights change, with the reference. Its agents share one cache of tools, as in every society.
struct Society {
    world: World,
    reference: Reference,
    handles: Arc<Handles>,
    observed: Arc<Mutex<Observed>>,
    runs: Arc<Mutex<Vec<&'static str>>>,
    /// How often the person was asked.
    questions: usize,
}

impl Society {
    async fn new() -> Self {
        let reference = Reference::new();
        let world = World::with_app(&reference.app()).await;
        let (observed, runs) = (Arc::default(), Arc::default());
        let handles = world.handles(model(&observed), outside_tools(&runs));
        Self { world, reference, handles, observed, runs, questions: 0 }
    }

    /// Makes one change. `number` is the number of the change.
    async fn make(&mut self, number: usize, change: Change) {
        let reference = &mut self.reference;
        match change {
            Change::Root(grants) => reference.root = grants,
            Change::Rules(rules) => reference.rules = rules,
            Change::Hub(hub) => reference.hub = hub,
            Change::Role { agent, groups } => {
                let agent = reference.named(agent);
                if agent != "root" {
                    set_role(&self.world, &agent, &groups).await;
                    reference.agents.get_mut(&agent).unwrap().groups = groups;
                }
                return;
            }
            Change::Hire { maker, steps, groups } => {
                return self.hire(number, (maker, steps), groups).await;
            }
        }
        self.world.configure(&reference.app()).await;
    }

    async fn hire(&mut self, number: usize, (maker, steps): (usize, usize), groups: Vec<ToolGroup>) {
        let (world, reference) = (&self.world, &mut self.reference);
        let creator = reference.named(maker);
        let parent = reference.above(&creator, steps);
        let name = format!("r{number}");
        let wish = json!({"name": name, "rolePrompt": "…", "toolGroups": groups});
        let role = world.call(&creator, "create_role", wish).await;
        let may_hire = reference.may(&creator, &ToolGroup::Organization);
        let may_give = groups.iter().all(|group| reference.may(&creator, group));
        assert_eq!(denied(&role), !(may_hire && may_give), "{role}");
        if denied(&role) {
            return;
        }
        let arguments = json!({"roleId": role["id"], "taskBrief": brief()});
        let hired = world.call(&parent, "spawn_agent", arguments).await;
        if let Some(id) = hired["id"].as_str() {
            let member = Member { hired: Some(Hired { parent, creator }), role: name, groups };
            reference.agents.insert(id.to_owned(), member);
        }
    }

    /// Lets each agent call every tool once. Checks against the reference which tools are offered, and what each call
    /// returns.
    async fn check(&mut self) {
        let agents: Vec<String> = self.reference.agents.keys().cloned().collect();
        for agent in &agents {
            self.check_cache(agent).await;
            *self.observed.lock().unwrap() = Observed::default();
            self.runs.lock().unwrap().clear();
            let answers = self.turn_of(agent).await;
            let Observed { offered, results } = std::mem::take(&mut *self.observed.lock().unwrap());
            let expected: Vec<(&str, Verdict)> =
                tools().map(|tool| (tool, self.reference.verdict(agent, tool))).collect();
            let is_offered =
                |(_, verdict): &&(&str, Verdict)| matches!(verdict, Verdict::Asked | Verdict::Runs);
            let to_offer: BTreeSet<String> =
                expected.iter().filter(is_offered).map(|(tool, _)| (*tool).to_owned()).collect();
            assert_eq!(offered, Some(to_offer), "{agent} is offered");
            assert_eq!(results.len(), expected.len());
            let happened = expected
                .iter()
                .zip(&results)
                .map(|((tool, _), result)| (*tool, happened(result, answers.get(*tool))));
            assert_eq!(happened.collect::<Vec<_>>(), expected, "{agent} calls: {results:?}");
            let runs = |(tool, verdict): &(&'static str, Verdict)| {
                let runs = match verdict {
                    Verdict::Runs => true,
                    Verdict::Asked => answers.get(*tool) == Some(&Answer::Yes),
                    Verdict::NoRight | Verdict::Denied => false,
                };
                (runs && OUTSIDE.iter().any(|(outside, _)| outside == tool)).then_some(*tool)
            };
            let to_run: Vec<&str> = expected.iter().filter_map(runs).collect();
            assert_eq!(*self.runs.lock().unwrap(), to_run, "{agent} runs");
        }
    }

    /// Runs a turn of an agent. The person answers the questions with yes and no alternately. Returns the answers about
    /// each tool.
    async fn turn_of(&mut self, agent: &str) -> BTreeMap<String, Answer> {
        self.wake(agent).await;
        let (conversation, never) = (self.world.of(agent), CancellationToken::new());
        let mut answers = BTreeMap::new();
        loop {
            driver::run(&self.handles, &conversation, &never).await.unwrap();
            let Some(question) = self.open_question().await else { return answers };
            assert_eq!(question.asker, conversation);
            let answer = if self.questions.is_multiple_of(2) { Answer::Yes } else { Answer::No };
            self.questions += 1;
            let before = answers.insert(question.asked.tool.clone(), answer);
            assert_eq!(before, None, "the person is asked twice about {}", question.asked.tool);
            approvals::answer(&self.world.store, question.id, answer, None).await.unwrap();
        }
    }

    /// Sends an agent a notice that needs no answer.
    async fn wake(&self, agent: &str) {
        let (task, snapshot) = (self.world.task.clone(), Arc::clone(&self.world.snapshot));
        let agent = AgentId::new(agent);
        let tell = self.world.write(move |tx| {
            Box::pin(async move { apply::tell(tx, &snapshot, &task, &agent, Notice::Nudge, None).await })
        });
        tell.await;
    }

    async fn open_question(&self) -> Option<Approval> {
        let mut reader = self.world.store.reader().await.unwrap();
        let open = ApprovalFilter { state: Some(ApprovalState::Open), ..ApprovalFilter::default() };
        let (mut questions, _) = polity_store::approvals::list(&mut reader, &open).await.unwrap();
        assert!(questions.len() <= 1, "{questions:?}");
        questions.pop()
    }

    /// Compares the tools in the cache with those that are built without a cache.
    async fn check_cache(&self, agent: &str) {
        let mut reader = self.world.store.reader().await.unwrap();
        let chain = agents::chain(&mut reader, &AgentId::new(agent)).await.unwrap();
        drop(reader);
        let Handles { hands, tool_cache, .. } = &*self.handles;
        let (rights, role) =
            (self.world.snapshot.settings.rights(&chain), &self.reference.agents[agent].role);
        let asker = Asker { rights: &rights, role, snapshot: &self.world.snapshot, hands };
        let built = all_offered(asker, &ToolCache::default());
        assert_eq!(all_offered(asker, tool_cache), built, "the tools of {agent}");
    }
}

/// Returns what has happened to a call. `answer` is the answer of the person if the person was asked.
fn happened(result: &Value, answer: Option<&Answer>) -> Verdict {
    match (code(result), answer) {
        ("tool_not_permitted", None) if result.get("rule").is_some() => Verdict::Denied,
        ("tool_not_permitted", None) => Verdict::NoRight,
        ("approval_denied", Some(Answer::No)) => Verdict::Asked,
        (code, Some(Answer::Yes)) if !["tool_not_permitted", "approval_denied"].contains(&code) => {
            Verdict::Asked
        }
        (code, None) if code != "approval_denied" => Verdict::Runs,
        _ => panic!("after {answer:?}: {result}"),
    }
}

/// Returns all tools that a request offers.
fn all_offered(asker: Asker<'_>, cache: &ToolCache) -> Vec<Tool> {
    let mut tools = offered(asker, cache);
    tools.extend(offered_outside(asker, &Offering::default(), cache));
    tools
}

async fn play(changes: Vec<Change>) {
    let mut society = Society::new().await;
    for (number, change) in changes.into_iter().enumerate() {
        society.make(number, change).await;
        society.check().await;
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

/// Root hires a lead, and the lead creates a role without groups. Root itself hires into this role. So the parent of the
/// new agent has all rights, and only the creator of its role restricts it: at first, and when its rights shrink.
#[tokio::test]
async fn a_role_gives_no_more_than_its_creator_has_whoever_hires() {
    let named = |groups: &[&str]| groups.iter().map(|name| group_named(name)).collect::<Vec<_>>();
    let hire = |steps, groups: &[&str]| Change::Hire { maker: 0, steps, groups: named(groups) };
    let mut society = Society::new().await;
    // The lead comes before root in the order of names, so the second hire picks it as the creator of the role.
    society.make(0, hire(0, &["organization", "artifacts", "files"])).await;
    society.make(1, hire(1, &[])).await;
    let hired = |role: &str| {
        let found = society.reference.agents.iter().find(|(_, member)| member.role == role);
        found.map(|(id, _)| id.clone()).unwrap()
    };
    let (lead, helper) = (hired("r0"), hired("r1"));
    let Some(Hired { parent, creator }) = &society.reference.agents[&helper].hired else {
        panic!("{helper} is root")
    };
    assert_eq!((parent.as_str(), creator), ("root", &lead));
    assert!(!society.reference.may(&helper, &group_named("web")));
    society.check().await;
    society.make(2, Change::Role { agent: 0, groups: named(&["organization"]) }).await;
    assert!(!society.reference.may(&helper, &group_named("files")));
    society.check().await;
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
    // Without the field `toolGroups`, a role has the rights of its creator and no others.
    let child = world.hire(&lead, "z", json!({})).await;
    let stored = world.call(&child, "put_artifact", json!({"type": "note", "content": "x"})).await;
    assert_eq!(stored["error"], "tool_not_permitted", "{stored}");
}
