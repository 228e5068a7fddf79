//! At every call, an agent can see and use a tool only if the settings, the agent's own role and the roles of all
//! agents above it allow the tool. Rules about calls can only take further tools away.

use crate::approvals;
use crate::driver;
use crate::handles::Handles;
use crate::society::with_own_tools;
use crate::testing::model::{Say, ScriptedModel};
use crate::testing::tool::FakeTool;
use crate::testing::{World, brief, code};
use crate::tools::{Asker, Offering, ToolCache, offered, offered_outside};
use futures::FutureExt;
use polity_decide::arguments::{NAMES, group_of};
use polity_decide::found::{FOUND, SEARCH_TOOLS};
use polity_hands::call::Output;
use polity_hands::table::Hands;
use polity_hands::tool::{Confinement, Effect, Needs, Reach};
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
use proptest::strategy::ValueTree;
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

/// The outside tools that belong to MCP servers.
const OF_SERVERS: [&str; 3] = ["git__log", "hub__list", "mail__read"];

/// A call of `fetch_page` that also saves the page in a file. It has a second act, for which it needs the group `files`.
/// All other calls are named after their tool.
const SAVING: &str = "fetch_page saveTo";

/// The host to which `fetch_page` sends its request.
const HOST: &str = "pages.example.org";

/// Returns the names of all tools but the search for tools.
fn tools() -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied().chain(OUTSIDE.iter().map(|(tool, _)| *tool))
}

/// Returns the tool of a call.
fn tool_of(call: &str) -> &str {
    call.split(' ').next().unwrap()
}

fn group_named(name: &str) -> ToolGroup {
    name.parse().unwrap()
}

/// Returns the group of a tool.
fn group(tool: &str) -> ToolGroup {
    let outside = OUTSIDE.iter().find(|(name, _)| *name == tool);
    match outside {
        Some((_, group)) => group_named(group),
        None if tool == SEARCH_TOOLS => ToolGroup::Messages,
        None => group_of(tool).unwrap(),
    }
}

/// Returns the sources of the content that a call brings to its agent.
fn sources_of(call: &str) -> &'static [&'static str] {
    match call {
        "fetch_page" | SAVING => &["web"],
        "hub__list" => &["mcp:hub"],
        "mail__read" => &["mcp:mail"],
        _ => &[],
    }
}

/// What one act of a call does, as far as rules ask about it.
struct Act {
    group: ToolGroup,
    effect: Effect,
    host: Option<&'static str>,
}

/// Returns the acts of a call.
fn acts(call: &str) -> Vec<Act> {
    let tool = tool_of(call);
    let effect = if tool == "bash" { Effect::Changes } else { Effect::Reads };
    let own = Act { group: group(tool), effect, host: (tool == "fetch_page").then_some(HOST) };
    let saves = Act { group: ToolGroup::Files, effect: Effect::Changes, host: None };
    std::iter::once(own).chain((call == SAVING).then_some(saves)).collect()
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

/// Whether requests contain the definitions of MCP tools, or only the search for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Definitions {
    Shown,
    Deferred,
}

/// The tools that a rule of `tools.policy` is about.
#[derive(Clone, Debug)]
enum About {
    Everything,
    Tool(&'static str),
    Group(ToolGroup),
}

/// A condition of a rule on what a call does or on what its agent has seen.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    None,
    Write(Effect),
    Host(&'static str),
    /// At least one of these sources was seen.
    Seen(Vec<&'static str>),
}

/// A rule of `tools.policy`.
#[derive(Clone, Debug)]
struct Rule {
    /// `None` for a rule about all roles.
    role: Option<&'static str>,
    about: About,
    condition: Condition,
    decide: &'static str,
}

impl Rule {
    /// Returns whether the rule is about this tool and this role. `names` contains the names of the tool's group.
    fn is_about(&self, role: &str, tool: &str, names: &[ToolGroup]) -> bool {
        self.role.is_none_or(|wanted| wanted == role)
            && match &self.about {
                About::Everything => true,
                About::Tool(wanted) => *wanted == tool,
                About::Group(wanted) => names.contains(wanted),
            }
    }

    /// Returns whether the condition fits an act of an agent that has seen these sources.
    fn fits(&self, act: &Act, seen: &BTreeSet<&'static str>) -> bool {
        match &self.condition {
            Condition::None => true,
            Condition::Write(effect) => *effect == act.effect,
            Condition::Host(wanted) => act.host.is_some_and(|host| match wanted.strip_prefix('*') {
                Some(end) => host.ends_with(end),
                None => host == *wanted,
            }),
            Condition::Seen(sources) => sources.iter().any(|source| seen.contains(source)),
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
        match &self.condition {
            Condition::None => None,
            Condition::Write(effect) => rule.insert("write".to_owned(), json!(*effect == Effect::Changes)),
            Condition::Host(host) => rule.insert("host".to_owned(), json!(host)),
            Condition::Seen(sources) => rule.insert("seen".to_owned(), json!(sources)),
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
    /// `app.json` defers the definitions of MCP tools, or shows them.
    Definitions(Definitions),
}

/// What each agent does after a change, besides calling all tools that do not belong to MCP servers.
#[derive(Clone, Debug)]
struct Turn {
    /// The search for tools.
    query: &'static str,
    /// The tools of MCP servers that the agent calls. A tool that an agent has called is not deferred any more.
    of_servers: Vec<&'static str>,
}

impl Turn {
    /// Returns the calls of the agent, in order. Society tools stand between outside tools, because the policy is asked
    /// at the same time about successive calls that only read. So each call that follows a society tool is judged by
    /// what the agent has seen in all calls before.
    fn calls(&self) -> Vec<&'static str> {
        let mut society = NAMES.iter().copied();
        let mut calls = vec![SEARCH_TOOLS];
        for together in [
            &["str_replace_editor"][..],
            &["fetch_page"],
            &[SAVING],
            &["git__log", "hub__list"],
            &["mail__read"],
            &["bash"],
        ] {
            calls.extend(society.next());
            let is_called = |call: &&str| !OF_SERVERS.contains(call) || self.of_servers.contains(call);
            calls.extend(together.iter().copied().filter(is_called));
        }
        calls.extend(society);
        calls
    }

    /// Returns the arguments of a call. They change no right. For `put_artifact`, the arguments must be valid.
    /// Otherwise the call would be refused because of its arguments, before anybody looks at the rights.
    fn arguments(&self, call: &str) -> Value {
        match call {
            SEARCH_TOOLS => json!({"query": self.query}),
            SAVING => json!({"saveTo": "page.md"}),
            "put_artifact" => json!({"type": "note", "content": "x"}),
            _ => json!({}),
        }
    }

    /// Returns whether the search of the agent fits a tool of an MCP server.
    fn fits(&self, tool: &str) -> bool {
        tool.split("__").any(|word| self.query.split(' ').any(|wanted| wanted == word))
    }
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
    let sources = subsequence(vec!["web", "files", "mcp:hub", "mcp:mail", SHARED], 1..=2);
    let condition = prop_oneof![
        4 => Just(Condition::None),
        3 => select(vec![Effect::Reads, Effect::Changes]).prop_map(Condition::Write),
        3 => sources.prop_map(Condition::Seen),
    ];
    let of_web = select(vec![About::Everything, About::Tool("fetch_page"), About::Group(ToolGroup::Web)]);
    let host = select(vec!["*", "*.example.org", HOST, "other.example.org"]).prop_map(Condition::Host);
    let changing = select(vec![
        About::Everything,
        About::Tool("bash"),
        About::Tool("fetch_page"),
        About::Group(ToolGroup::Files),
        About::Group(ToolGroup::Command),
    ]);
    let writes = Just(Condition::Write(Effect::Changes));
    let fits = prop_oneof![4 => (about, condition), 1 => (of_web, host), 1 => (changing, writes)];
    let role = prop::option::of(select(vec!["r0", "r1", "r2"]));
    (role, fits, select(vec!["allow", "ask", "deny"])).prop_map(|(role, (about, condition), decide)| Rule {
        role,
        about,
        condition,
        decide,
    })
}

fn turn() -> impl Strategy<Value = Turn> {
    let query = select(vec!["git", "hub mail", "git hub mail", "nothing"]);
    (query, subsequence(OF_SERVERS.to_vec(), 0..=OF_SERVERS.len()))
        .prop_map(|(query, of_servers)| Turn { query, of_servers })
}

fn hire(most: usize) -> impl Strategy<Value = Change> {
    let made = (any::<usize>(), 0..3_usize, some_groups(most));
    made.prop_map(|(maker, steps, groups)| Change::Hire { maker, steps, groups })
}

/// Returns changes, each with the turn that every agent has after the change.
fn changes() -> impl Strategy<Value = Vec<(Change, Turn)>> {
    let all = groups().len();
    let change = prop_oneof![
        2 => hire(3),
        2 => hire(all),
        2 => (any::<usize>(), some_groups(all)).prop_map(|(agent, groups)| Change::Role { agent, groups }),
        1 => grants().prop_map(Change::Root),
        4 => prop::collection::vec(rule(), 0..5).prop_map(Change::Rules),
        1 => select(vec![Hub::Shares, Hub::Alone]).prop_map(Change::Hub),
        2 => select(vec![Definitions::Shown, Definitions::Deferred]).prop_map(Change::Definitions),
    ];
    prop::collection::vec((change, turn()), 1..8)
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

/// What should happen to one call of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Expected {
    call: &'static str,
    verdict: Verdict,
    /// The answer of the person if the person is asked.
    answer: Option<Answer>,
}

impl Expected {
    fn runs(self) -> bool {
        self.verdict == Verdict::Runs || self.answer == Some(Answer::Yes)
    }
}

/// Returns the answer of the person to a question. The person answers with yes and no alternately.
fn answer_to(question: usize) -> Answer {
    if question.is_multiple_of(2) { Answer::Yes } else { Answer::No }
}

/// An agent and its role.
struct Member {
    /// `None` for root.
    hired: Option<Hired>,
    role: String,
    groups: Vec<ToolGroup>,
    /// The outside sources of the content that the agent has got.
    seen: BTreeSet<&'static str>,
    /// The tools of MCP servers that the agent has found or called.
    found: BTreeSet<&'static str>,
}

impl Member {
    fn new(hired: Option<Hired>, role: String, groups: Vec<ToolGroup>) -> Self {
        Self { hired, role, groups, seen: BTreeSet::new(), found: BTreeSet::new() }
    }
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
    definitions: Definitions,
    agents: BTreeMap<String, Member>,
    /// The outside sources of the content of the workspace.
    workspace: BTreeSet<&'static str>,
    /// What has happened so far, for the test that looks at the random societies themselves.
    happened: BTreeSet<String>,
}

impl Reference {
    fn new() -> Self {
        let root = Member::new(None, "root".to_owned(), Vec::new());
        Self {
            root: groups().into_iter().map(Grant::Group).collect(),
            rules: Vec::new(),
            hub: Hub::Shares,
            definitions: Definitions::Shown,
            agents: BTreeMap::from([("root".to_owned(), root)]),
            workspace: BTreeSet::new(),
            happened: BTreeSet::new(),
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
        let defer_above = match self.definitions {
            Definitions::Shown => 10,
            Definitions::Deferred => 0,
        };
        let tools = json!({"root": root, "policy": rules, "deferAbove": defer_above});
        json!({"limits": limits, "mcpServers": servers, "tools": tools})
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

    /// Returns all names by which a rule can ask for the sources that an agent has seen.
    fn seen_by(&self, agent: &str) -> BTreeSet<&'static str> {
        let mut seen = self.agents[agent].seen.clone();
        if seen.contains("mcp:hub") && self.hub == Hub::Shares {
            seen.insert(SHARED);
        }
        seen
    }

    /// Returns the first rule that fits an act of a call.
    fn deciding(&self, agent: &str, call: &str, act: &Act) -> Option<&Rule> {
        let (names, seen) = (self.names(&act.group), self.seen_by(agent));
        let role = &self.agents[agent].role;
        self.rules.iter().find(|rule| rule.is_about(role, tool_of(call), &names) && rule.fits(act, &seen))
    }

    fn decided(&self, agent: &str, call: &str, act: &Act) -> Verdict {
        if act.group == ToolGroup::Messages {
            return Verdict::Runs;
        }
        match self.deciding(agent, call, act).map(|rule| rule.decide) {
            Some("deny") => Verdict::Denied,
            Some("ask") => Verdict::Asked,
            Some(_) => Verdict::Runs,
            // A command reaches the network. So the person is asked if the agent has content from outside.
            None if call == "bash" && !self.agents[agent].seen.is_empty() => Verdict::Asked,
            None => Verdict::Runs,
        }
    }

    fn verdict(&self, agent: &str, call: &str) -> Verdict {
        let acts = acts(call);
        if !acts.iter().all(|act| self.may(agent, &act.group)) {
            return Verdict::NoRight;
        }
        let decided: Vec<Verdict> = acts.iter().map(|act| self.decided(agent, call, act)).collect();
        let strictest = [Verdict::Denied, Verdict::Asked].into_iter().find(|one| decided.contains(one));
        strictest.unwrap_or(Verdict::Runs)
    }

    /// Returns whether an agent may make some calls like this call. A rule about hosts or about sources does not deny
    /// all calls. The effect of an act is the same in all calls, so no call or every call fits a rule about an effect.
    fn may_call(&self, agent: &str, call: &str) -> bool {
        let role = &self.agents[agent].role;
        acts(call).iter().all(|act| {
            let names = self.names(&act.group);
            let other_effect = |rule: &&Rule| match rule.condition {
                Condition::Write(effect) => effect != act.effect,
                Condition::None | Condition::Host(_) | Condition::Seen(_) => false,
            };
            let about = self.rules.iter().filter(|rule| rule.is_about(role, tool_of(call), &names));
            let mut denying =
                about.filter(|rule| !other_effect(rule)).take_while(|rule| rule.decide == "deny");
            let denies_all = act.group != ToolGroup::Messages
                && denying.any(|rule| matches!(rule.condition, Condition::None | Condition::Write(_)));
            self.may(agent, &act.group) && !denies_all
        })
    }

    /// Returns the tools that an agent is offered, and the arguments for which a tool needs a further group.
    fn offered(&self, agent: &str) -> BTreeSet<String> {
        let mut offered: BTreeSet<&str> = tools().filter(|tool| self.may_call(agent, tool)).collect();
        if self.definitions == Definitions::Deferred && OF_SERVERS.iter().any(|tool| offered.contains(tool)) {
            let found = &self.agents[agent].found;
            offered.retain(|tool| !OF_SERVERS.contains(tool) || found.contains(tool));
            offered.insert(SEARCH_TOOLS);
        }
        if self.may_call(agent, SAVING) {
            offered.insert(SAVING);
        }
        offered.into_iter().map(str::to_owned).collect()
    }

    /// Returns the tools that the search in a turn finds.
    fn found_in(&self, agent: &str, turn: &Turn) -> BTreeSet<&'static str> {
        let fitting = OF_SERVERS.into_iter().filter(|tool| turn.fits(tool));
        fitting.filter(|tool| self.may_call(agent, tool)).collect()
    }

    /// Carries out the turn of an agent. `questions` says how often the person was asked before.
    fn turn(&mut self, agent: &str, turn: &Turn, mut questions: usize) -> Vec<Expected> {
        let (found, before) = (self.found_in(agent, turn), self.offered(agent));
        let mut expected = Vec::new();
        for call in turn.calls() {
            let verdict = self.verdict(agent, call);
            let answer = (verdict == Verdict::Asked).then(|| answer_to(questions));
            questions += usize::from(answer.is_some());
            self.note(agent, call, verdict);
            let one = Expected { call, verdict, answer };
            if one.runs() {
                self.see(agent, call);
            }
            expected.push(one);
        }
        let member = self.agents.get_mut(agent).unwrap();
        if found.iter().any(|tool| !before.contains(*tool) && !turn.of_servers.contains(tool)) {
            self.happened.insert("a search finds a deferred tool".to_owned());
        }
        member.found.extend(found);
        member.found.extend(&turn.of_servers);
        expected
    }

    /// A call has run. Notes which sources have reached whom.
    fn see(&mut self, agent: &str, call: &str) {
        let member = self.agents.get_mut(agent).unwrap();
        member.seen.extend(sources_of(call));
        if ["str_replace_editor", SAVING, "bash"].contains(&call) {
            member.seen.extend(&self.workspace);
        }
        if [SAVING, "bash"].contains(&call) {
            self.workspace.extend(&member.seen);
        }
    }

    /// Notes which kinds of rights and rules a call has met.
    fn note(&mut self, agent: &str, call: &str, verdict: Verdict) {
        let mut met = Vec::new();
        if call == SAVING {
            met.push(format!("{call}: {verdict:?}"));
            if verdict == Verdict::NoRight && self.may(agent, &ToolGroup::Web) {
                met.push(format!("{call}: {verdict:?} for the file alone"));
            }
        }
        if verdict != Verdict::NoRight {
            let judged = acts(call).into_iter().filter(|act| act.group != ToolGroup::Messages);
            for rule in judged.filter_map(|act| self.deciding(agent, call, &act)) {
                match &rule.condition {
                    Condition::None => {}
                    Condition::Write(effect) => met.push(format!("write {effect:?}: {}", rule.decide)),
                    Condition::Host(_) => met.push(format!("host: {}", rule.decide)),
                    Condition::Seen(_) => met.push(format!("seen: {}", rule.decide)),
                }
            }
            let is_default = acts(call).iter().all(|act| self.deciding(agent, call, act).is_none());
            if call == "bash" && verdict == Verdict::Asked && is_default {
                met.push("seen: by default".to_owned());
            }
        }
        self.happened.extend(met);
    }

    /// Makes a change of the settings or of a role. A hire is not such a change.
    fn change(&mut self, change: Change) {
        match change {
            Change::Root(grants) => self.root = grants,
            Change::Rules(rules) => self.rules = rules,
            Change::Hub(hub) => self.hub = hub,
            Change::Definitions(definitions) => self.definitions = definitions,
            Change::Role { agent, groups } => {
                let agent = self.named(agent);
                if agent != "root" {
                    self.agents.get_mut(&agent).unwrap().groups = groups;
                }
            }
            Change::Hire { .. } => panic!("the caller hires"),
        }
    }

    /// Returns the agent that creates a role, and the agent that hires into it.
    fn hiring(&self, maker: usize, steps: usize) -> Hired {
        let creator = self.named(maker);
        Hired { parent: self.above(&creator, steps), creator }
    }

    /// Returns whether an agent may create a role with these groups.
    fn may_create(&self, creator: &str, groups: &[ToolGroup]) -> bool {
        self.may(creator, &ToolGroup::Organization) && groups.iter().all(|group| self.may(creator, group))
    }

    /// Adds a new agent. It has seen what the agents have seen that wrote its brief and its role prompt.
    fn hire(&mut self, id: String, hired: Hired, role: String, groups: Vec<ToolGroup>) {
        let writers = [&hired.parent, &hired.creator];
        let seen = writers.into_iter().flat_map(|writer| self.agents[writer].seen.clone()).collect();
        self.agents.insert(id, Member { seen, ..Member::new(Some(hired), role, groups) });
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

/// What an agent calls in one turn, what it was offered, and what its calls returned.
#[derive(Default)]
struct Observed {
    calls: Vec<(&'static str, Value)>,
    /// What the agent was offered before and after its calls.
    offered: Vec<BTreeSet<String>>,
    results: Vec<Value>,
}

/// Returns a model that makes its calls in one answer, and then ends its turn without a text.
fn model(observed: &Arc<Mutex<Observed>>) -> Arc<ScriptedModel> {
    let observed = Arc::clone(observed);
    ScriptedModel::function(move |request| {
        let mut observed = observed.lock().unwrap();
        observed.offered.push(offered_in(request));
        let say = if observed.offered.len() == 1 {
            Say::Calls(observed.calls.clone())
        } else {
            observed.results = last_results(request);
            Say::Text("")
        };
        Box::pin(std::future::ready(say))
    })
}

/// Returns the names of the tools in a request, and [`SAVING`] if `fetch_page` has the argument for it.
fn offered_in(request: &Request) -> BTreeSet<String> {
    let saves =
        |tool: &Tool| tool.name == "fetch_page" && tool.parameters["properties"].get("saveTo").is_some();
    let saving = request.tools.iter().any(saves).then(|| SAVING.to_owned());
    request.tools.iter().map(|tool| tool.name.clone()).chain(saving).collect()
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

/// Returns the outside tools. Each run of a tool adds the name of the call to `runs`.
fn outside_tools(runs: &Arc<Mutex<Vec<&'static str>>>) -> Hands {
    OUTSIDE.iter().fold(Hands::none(), |hands, (name, _)| {
        let (name, runs) = (*name, Arc::clone(runs));
        let tool = FakeTool::new(name, move |invocation| {
            let call = if invocation.arguments.contains_key("saveTo") { SAVING } else { name };
            runs.lock().unwrap().push(call);
            let sources = sources_of(call).iter().map(|source| source.parse().unwrap());
            let output = Output::json(json!({"ran": true})).from_sources(sources);
            async move { Ok(output) }.boxed()
        });
        let group = group(name);
        let reach = match &group {
            ToolGroup::Files => Reach::ReadsWorkspace,
            ToolGroup::Web => Reach::Web { host: Some(HOST.to_owned()), effect: Effect::Reads },
            ToolGroup::Server(server) => Reach::Server { server: server.clone(), effect: Effect::Reads },
            _ => Reach::Command { command: "ls".to_owned(), confinement: Confinement::FullWithNetwork },
        };
        let save = Needs { argument: "saveTo", group: ToolGroup::Files, reach: Reach::ChangesWorkspace };
        let needs = if name == "fetch_page" { vec![save] } else { Vec::new() };
        hands.with(Arc::new(FakeTool { group, reach, needs, ..tool }))
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
        let hands = with_own_tools(outside_tools(&runs), &world.store, &world.registry);
        let handles = world.handles(model(&observed), hands);
        Self { world, reference, handles, observed, runs, questions: 0 }
    }

    /// Makes one change. `number` is the number of the change.
    async fn make(&mut self, number: usize, change: Change) {
        match change {
            Change::Hire { maker, steps, groups } => {
                return self.hire(number, (maker, steps), groups).await;
            }
            Change::Role { agent, ref groups } => {
                let agent = self.reference.named(agent);
                if agent != "root" {
                    set_role(&self.world, &agent, groups).await;
                }
                return self.reference.change(change);
            }
            Change::Root(_) | Change::Rules(_) | Change::Hub(_) | Change::Definitions(_) => {}
        }
        self.reference.change(change);
        self.world.configure(&self.reference.app()).await;
    }

    async fn hire(&mut self, number: usize, (maker, steps): (usize, usize), groups: Vec<ToolGroup>) {
        let (world, reference) = (&self.world, &mut self.reference);
        let hired = reference.hiring(maker, steps);
        let name = format!("r{number}");
        let wish = json!({"name": name, "rolePrompt": "…", "toolGroups": groups});
        let role = world.call(&hired.creator, "create_role", wish).await;
        assert_eq!(denied(&role), !reference.may_create(&hired.creator, &groups), "{role}");
        if denied(&role) {
            return;
        }
        let arguments = json!({"roleId": role["id"], "taskBrief": brief()});
        let shown = world.call(&hired.parent, "spawn_agent", arguments).await;
        if let Some(id) = shown["id"].as_str() {
            reference.hire(id.to_owned(), hired, name, groups);
        }
    }

    /// Lets each agent have a turn. Checks against the reference what is offered, and what each call returns.
    async fn check(&mut self, turn: &Turn) {
        let agents: Vec<String> = self.reference.agents.keys().cloned().collect();
        for agent in &agents {
            self.check_cache(agent).await;
            let calls = turn.calls().into_iter().map(|call| (tool_of(call), turn.arguments(call))).collect();
            *self.observed.lock().unwrap() = Observed { calls, ..Observed::default() };
            self.runs.lock().unwrap().clear();
            let (before, found) = (self.reference.offered(agent), self.reference.found_in(agent, turn));
            let expected = self.reference.turn(agent, turn, self.questions);
            let answers = self.turn_of(agent).await;
            let Observed { offered, results, .. } = std::mem::take(&mut *self.observed.lock().unwrap());
            assert_eq!(offered, [before, self.reference.offered(agent)], "{agent} is offered");
            assert_eq!(results.len(), expected.len());
            let listed = results[0][FOUND].as_array().unwrap();
            let listed: BTreeSet<&str> = listed.iter().map(|name| name.as_str().unwrap()).collect();
            assert_eq!(listed, found, "{agent} finds");
            let happened = expected.iter().zip(&results).map(|(one, result)| {
                let answer = answers.get(one.call).copied();
                Expected { verdict: happened(result, answer), answer, ..*one }
            });
            assert_eq!(happened.collect::<Vec<_>>(), expected, "{agent} calls: {results:?}");
            let is_outside = |call: &&str| OUTSIDE.iter().any(|(tool, _)| *tool == tool_of(call));
            let to_run = expected.iter().filter(|one| one.runs()).map(|one| one.call).filter(is_outside);
            assert_eq!(*self.runs.lock().unwrap(), to_run.collect::<Vec<_>>(), "{agent} runs");
        }
    }

    /// Runs a turn of an agent. Returns the answer of the person about each call.
    async fn turn_of(&mut self, agent: &str) -> BTreeMap<String, Answer> {
        self.wake(agent).await;
        let (conversation, never) = (self.world.of(agent), CancellationToken::new());
        let mut answers = BTreeMap::new();
        loop {
            driver::run(&self.handles, &conversation, &never).await.unwrap();
            let Some(question) = self.open_question().await else { return answers };
            assert_eq!(question.asker, conversation);
            let answer = answer_to(self.questions);
            self.questions += 1;
            let saves = question.asked.arguments.get("saveTo").is_some();
            let call = if saves { SAVING.to_owned() } else { question.asked.tool.clone() };
            let before = answers.insert(call.clone(), answer);
            assert_eq!(before, None, "the person is asked twice about {call}");
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
fn happened(result: &Value, answer: Option<Answer>) -> Verdict {
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

async fn play(changes: Vec<(Change, Turn)>) {
    let mut society = Society::new().await;
    for (number, (change, turn)) in changes.into_iter().enumerate() {
        society.make(number, change).await;
        society.check(&turn).await;
    }
}

/// Plays changes in the reference alone. Returns what has happened.
fn rehearse(changes: Vec<(Change, Turn)>) -> BTreeSet<String> {
    let mut reference = Reference::new();
    for (number, (change, turn)) in changes.into_iter().enumerate() {
        match change {
            Change::Hire { maker, steps, groups } => {
                let hired = reference.hiring(maker, steps);
                if reference.may_create(&hired.creator, &groups) {
                    reference.hire(format!("a{number}"), hired, format!("r{number}"), groups);
                }
            }
            change => reference.change(change),
        }
        let agents: Vec<String> = reference.agents.keys().cloned().collect();
        for agent in &agents {
            reference.turn(agent, &turn, 0);
        }
    }
    reference.happened
}

/// The property below says little about what its random societies do not contain. On average, at least one of a hundred
/// societies contains each of these.
#[test]
fn the_random_societies_contain_each_kind_of_rule_and_of_right() {
    const SOCIETIES: usize = 1000;
    let mut runner = TestRunner::deterministic();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..SOCIETIES {
        for what in rehearse(changes().new_tree(&mut runner).unwrap().current()) {
            *counts.entry(what).or_default() += 1;
        }
    }
    let verdicts = ["allow", "ask", "deny"];
    let conditions = ["write Reads", "write Changes", "host", "seen"];
    let rules =
        conditions.iter().flat_map(|condition| verdicts.map(|verdict| format!("{condition}: {verdict}")));
    let savings = [Verdict::NoRight, Verdict::Denied, Verdict::Asked, Verdict::Runs];
    let savings = savings.map(|verdict| format!("{SAVING}: {verdict:?}"));
    let others = [
        format!("{SAVING}: NoRight for the file alone"),
        "seen: by default".to_owned(),
        "a search finds a deferred tool".to_owned(),
    ];
    for what in rules.chain(savings).chain(others) {
        let count = counts.get(&what).copied().unwrap_or_default();
        assert!(count >= SOCIETIES / 100, "{what}: {counts:?}");
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
    let turn = Turn { query: "nothing", of_servers: OF_SERVERS.to_vec() };
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
    society.check(&turn).await;
    society.make(2, Change::Role { agent: 0, groups: named(&["organization"]) }).await;
    assert!(!society.reference.may(&helper, &group_named("files")));
    society.check(&turn).await;
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
    // The same holds for a role that is made together with its first agent. Nobody is hired then.
    let role = json!({"name": "y", "rolePrompt": "…", "toolGroups": ["artifacts", "organization"]});
    let both = json!({"role": role, "taskBrief": brief(), "initialMessage": "begin"});
    let denied = world.call(&lead, "spawn_agent_with_task", both).await;
    assert_eq!(
        (code(&denied), &denied["groups"], &denied["allowed"]),
        ("tool_not_permitted", &json!(["artifacts"]), &json!(["organization"])),
        "{denied}"
    );
    assert_eq!(world.dump().await, after_hiring);
    assert_ne!(before, after_hiring);
    // Without the field `toolGroups`, a role has the rights of its creator and no others.
    let child = world.hire(&lead, "z", json!({})).await;
    let stored = world.call(&child, "put_artifact", json!({"type": "note", "content": "x"})).await;
    assert_eq!(stored["error"], "tool_not_permitted", "{stored}");
}
