//! What the prompts show is what works: every example call in them is made here.

use crate::store::{agents, artifacts, contacts, messages, roles};
use crate::testing::{World, brief, code, snapshot};
use crate::tools::arguments::NAMES;
use crate::tools::offered;
use polity_artifacts::{NewArtifact, prepare};
use polity_registry::{Prompts, Snapshot};
use polity_society::agent::Agent;
use polity_society::brief::TaskBrief;
use polity_society::contact::{Contact, Source};
use polity_society::id::{AgentId, ArtifactId, MessageId, RoleId, ServiceId};
use polity_society::message::{Body, Expects, Finality, Message, MessageType, Payload, Sender};
use polity_society::name::Name;
use polity_society::role::Role;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const LANGUAGES: [&str; 2] = ["zh", "en"];
const REQUEST: i64 = 42;

struct Example {
    /// Who may make it: root, or an agent of its.
    caller: &'static str,
    tool: String,
    arguments: Value,
}

async fn in_language(language: &str) -> Arc<Snapshot> {
    snapshot(&json!({"language": language})).await
}

fn examples(prompts: &Prompts) -> Vec<Example> {
    let read = |caller, text: &str| -> Vec<Example> {
        let lines = text.lines().filter_map(|line| {
            let call = line.strip_prefix("示例: ").or_else(|| line.strip_prefix("Example: "))?;
            let (tool, arguments) = call.strip_suffix(')')?.split_once('(')?;
            let arguments = serde_json::from_str(arguments).unwrap_or_else(|error| panic!("{line}: {error}"));
            Some(Example { caller, tool: tool.to_owned(), arguments })
        });
        lines.collect()
    };
    let mut examples = read("root", &prompts.root);
    examples.extend(read("lead-2222", &prompts.tool_rules));
    examples
}

/// The world that the examples speak of, seen by the one who makes them.
async fn world(snapshot: &Arc<Snapshot>, role_name: &str) -> World {
    let mut world = World::new().await;
    world.snapshot = Arc::clone(snapshot);
    let new = NewArtifact { bytes: "x".repeat(6000).into(), ..NewArtifact::default() };
    let artifact = prepare(&world.blobs, new, ArtifactId::new("k3v9x2ma"), 1).await.unwrap();
    let (task, name) = (world.task.clone(), Name::parse(role_name).unwrap());
    let lead = world.of("lead-2222");
    let root = world.of("root");
    let insert = world.write(move |tx| {
        Box::pin(async move {
            for (role, creator) in [("role-1111", "root"), ("role-5x2a", "lead-2222")] {
                let role = Role {
                    id: RoleId::new(role),
                    task: task.clone(),
                    creator: AgentId::new(creator),
                    name: name.clone(),
                    prompt: "…".to_owned(),
                    interface_spec: None,
                    service: ServiceId::new("eyes"),
                    required_capabilities: Vec::new(),
                    tool_groups: Vec::new(),
                };
                roles::insert(tx, &role).await?;
            }
            let people = [
                ("lead-2222", "root", "role-1111"),
                ("reader-7k2f", "lead-2222", "role-5x2a"),
                ("writer-3m9q", "lead-2222", "role-5x2a"),
            ];
            for (id, parent, role) in people {
                let agent = Agent {
                    id: AgentId::new(id),
                    task: task.clone(),
                    parent: AgentId::new(parent),
                    role: RoleId::new(role),
                    name: None,
                    brief: TaskBrief::parse(Some(&brief())).unwrap(),
                    depth: 1,
                };
                agents::insert(tx, &agent).await?;
                for (owner, agent, source) in [(parent, id, Source::Child), (id, parent, Source::Parent)] {
                    let contact = Contact {
                        owner: AgentId::new(owner),
                        agent: AgentId::new(agent),
                        source,
                        introduced_by: None,
                    };
                    contacts::insert(tx, &contact).await?;
                }
            }
            crate::tools::store(tx, &lead, artifact).await?;
            artifacts::grant(&mut tx.connection, &root.agent, &ArtifactId::new("k3v9x2ma")).await?;
            let request = json!({"message_type": "introduction_request", "reason": "x", "required_capability": "vision"});
            let message = Message {
                id: MessageId::from_sequence(REQUEST),
                task,
                from: Sender::Party(AgentId::new("writer-3m9q")),
                from_role: "x".to_owned(),
                to: lead.agent.clone(),
                body: Body::Payload(Payload::parse(&request).unwrap().0),
                in_reply_to: Vec::new(),
        about: None,
        on_behalf_of: None,
                expects: Expects::Answer,
                finality: Finality::Final,
                introduction: None,
                introduced: None,
                due_at: None,
            };
            messages::insert(tx, &message).await
        })
    });
    insert.await;
    world.begin_turn("lead-2222").await;
    world
}

#[tokio::test]
async fn every_example_in_the_prompts_works() {
    for language in LANGUAGES {
        let snapshot = in_language(language).await;
        let examples = examples(&snapshot.prompts);
        assert!(examples.len() > NAMES.len(), "{language}");
        let find = examples.iter().find(|example| example.tool == "find_role_by_name").unwrap();
        let role_name = find.arguments["name"].as_str().unwrap();
        for Example { caller, tool, arguments } in &examples {
            let world = world(&snapshot, role_name).await;
            let result = world.call(caller, tool, arguments.clone()).await;
            let whole =
                !result.is_null() && result.get("refused").is_none() && result.get("ignored").is_none();
            assert!(code(&result) == "ok" && whole, "{language}: {tool}({arguments}) gave {result}");
            if arguments["payload"]["request_id"].is_string() {
                let answered =
                    world.query("SELECT in_reply_to FROM messages WHERE in_reply_to IS NOT NULL").await;
                assert_eq!(answered, [json!([MessageId::from_sequence(REQUEST)]).to_string()]);
            }
        }
    }
}

#[tokio::test]
async fn every_example_fits_the_schema_that_goes_with_it() {
    for language in LANGUAGES {
        let prompts = &in_language(language).await.prompts;
        let tools = offered(&[], prompts);
        for example in examples(prompts) {
            let tool = tools.iter().find(|tool| tool.name == example.tool).unwrap();
            // A text alone is taken as a payload; the schema shows the form that can say everything.
            if example.arguments["payload"].is_string() {
                continue;
            }
            let validator = jsonschema::validator_for(&tool.parameters).unwrap();
            let problems: Vec<String> =
                validator.iter_errors(&example.arguments).map(|error| error.to_string()).collect();
            assert_eq!(problems, [""; 0], "{language}: {}({})", example.tool, example.arguments);
        }
    }
}

#[tokio::test]
async fn every_tool_and_every_type_of_message_has_an_example() {
    for language in LANGUAGES {
        let examples = examples(&in_language(language).await.prompts);
        let shown: BTreeSet<&str> = examples.iter().map(|example| example.tool.as_str()).collect();
        assert_eq!(shown, NAMES.iter().copied().collect(), "{language}");
        let sent = examples.iter().filter(|example| example.tool == "send_message");
        let types: BTreeSet<&str> = sent
            .map(|example| example.arguments["payload"]["message_type"].as_str().unwrap_or("general"))
            .collect();
        assert_eq!(types, MessageType::ALL.into_iter().map(MessageType::as_str).collect(), "{language}");
    }
}

/// The paths of all parameters in a schema, with whether they are described; alternatives are not looked into.
fn parameters(schema: &Value, path: &str, found: &mut Vec<(String, bool)>) {
    let schema = schema.get("items").unwrap_or(schema);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, property) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let described = property["description"].as_str().is_some_and(|text| !text.trim().is_empty());
        found.push((path.clone(), described));
        // The first message has the fields of any other; they are described there.
        if path != "initialMessage" {
            parameters(property, &path, found);
        }
    }
}

#[tokio::test]
async fn every_tool_and_parameter_is_described_and_nothing_else_is() {
    for language in LANGUAGES {
        let prompts = &in_language(language).await.prompts;
        let described: BTreeSet<&str> = prompts.tool_texts.keys().map(String::as_str).collect();
        assert_eq!(described, NAMES.iter().copied().collect(), "{language}");
        for tool in offered(&[], prompts) {
            assert!(!tool.description.trim().is_empty(), "{language}: {}", tool.name);
            let mut found = Vec::new();
            parameters(&tool.parameters, "", &mut found);
            let bare: Vec<&String> =
                found.iter().filter(|(_, described)| !described).map(|(path, _)| path).collect();
            assert!(bare.is_empty(), "{language}: {} has parameters without words: {bare:?}", tool.name);
            let there: BTreeSet<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
            let said = prompts.tool_texts[&tool.name].parameters.keys();
            let idle: Vec<&String> = said.filter(|path| !there.contains(path.as_str())).collect();
            assert!(idle.is_empty(), "{language}: {} has no parameters {idle:?}", tool.name);
        }
    }
}

#[tokio::test]
async fn texts_that_are_shown_as_they_are_have_no_placeholders() {
    for language in LANGUAGES {
        let prompts = &in_language(language).await.prompts;
        for text in [&prompts.base, &prompts.root, &prompts.tool_rules] {
            let template = polity_society::text::Template::new(text.as_str());
            assert_eq!(template.placeholders(), [""; 0], "{language}");
        }
    }
}
