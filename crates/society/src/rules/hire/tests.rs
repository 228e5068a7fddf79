use super::*;
use crate::brief::Collaborator;
use crate::content::Capabilities;
use crate::id::{RoleId, ServiceId};
use crate::time::Timestamp;
use serde_json::json;

fn party(id: &str, role_name: &str) -> Party {
    Party {
        id: AgentId::new(id),
        task: Some(TaskId::new("t-1")),
        role_name: role_name.to_owned(),
        interface_spec: None,
        objective: None,
        standing: Standing::Active,
        depth: 1,
        capabilities: Capabilities::default(),
    }
}

fn known(id: &str, role_name: &str) -> KnownParty {
    KnownParty {
        party: party(id, role_name),
        source: Source::Child,
        introduced_by: None,
        since: Timestamp::default(),
    }
}

fn brief(collaborators: &[&str]) -> TaskBrief {
    let brief = json!({"objective": "o", "constraints": [], "inputs": "i", "outputs": "p", "completion_criteria": "c"});
    let mut brief = TaskBrief::parse(Some(&brief)).unwrap();
    let collaborator =
        |id: &&str| Collaborator { agent_id: (*id).to_owned(), description: "helps".to_owned() };
    brief.collaborators = collaborators.iter().map(collaborator).collect();
    brief
}

fn wish(collaborators: &[&str]) -> HireWish {
    HireWish { role: "reader".to_owned(), brief: brief(collaborators), name: Name::parse("Anna").ok() }
}

/// The facts for a parent at depth 1 that has two children, in a task with five agents.
fn facts() -> HireFacts {
    HireFacts {
        task: TaskId::new("t-1"),
        parent: party("lead-1", "lead"),
        contacts: vec![
            known("root", "root"),
            known("writer-1", "writer"),
            known("singer-1", "singer"),
            known("singer-2", "singer"),
            known("lead-1", "lead"),
        ],
        role: Some(Role {
            id: RoleId::new("role-1"),
            task: TaskId::new("t-1"),
            creator: AgentId::new("lead-1"),
            name: Name::parse("reader").unwrap(),
            prompt: "read".to_owned(),
            interface_spec: None,
            service: ServiceId::new("words"),
            required_capabilities: Vec::new(),
            tool_groups: Vec::new(),
        }),
        children: 2,
        agents: 5,
        openable: BTreeSet::from([ArtifactId::new("abc")]),
    }
}

fn limits() -> Limits {
    Limits { max_depth: 2, max_children: 3, max_agents_per_task: 6, ..Limits::default() }
}

#[test]
fn a_role_that_is_not_there_is_refused() {
    let facts = HireFacts { role: None, ..facts() };
    let refusal = Refusal::NotChildRole { role: "reader".to_owned() };
    assert_eq!(check_hire(&wish(&[]), &facts, &limits()), Err(refusal.clone()));
    assert_eq!(hire(wish(&[]), &facts, AgentId::new("anna-1"), &limits()), Err(refusal));
}

#[test]
fn each_limit_is_reached_one_after_it_is_met() {
    assert_eq!(check_hire(&wish(&[]), &facts(), &limits()), Ok(()));
    let check = |limits: Limits, limit: &'static str, value: u64| {
        let refusal = Refusal::LimitReached { limit, value };
        assert_eq!(check_hire(&wish(&[]), &facts(), &limits), Err(refusal.clone()));
        assert_eq!(hire(wish(&[]), &facts(), AgentId::new("anna-1"), &limits), Err(refusal));
    };
    check(Limits { max_depth: 1, ..limits() }, "maxDepth", 1);
    check(Limits { max_children: 2, ..limits() }, "maxChildren", 2);
    check(Limits { max_agents_per_task: 5, ..limits() }, "maxAgentsPerTask", 5);
}

#[test]
fn only_contacts_are_brought_along() {
    let check = |collaborators: &[&str], expect: Result<(), &str>| {
        let checked = check_hire(&wish(collaborators), &facts(), &limits());
        assert_eq!(
            checked.as_ref().map_err(Refusal::code),
            expect.as_ref().map(|()| &()).map_err(|code| *code)
        );
    };
    check(&["writer-1", "writer", " root "], Ok(()));
    check(&["writer-1", "painter"], Err("unknown_contact"));
    check(&["writer", "singer"], Err("ambiguous_name"));
    let Err(Refusal::UnknownContact { meant, contacts }) = check_hire(&wish(&["write"]), &facts(), &limits())
    else {
        panic!("`write` was not refused as unknown");
    };
    assert_eq!((meant.as_str(), contacts[0].role.as_str(), contacts.len()), ("write", "writer", 5));
}

#[test]
fn whoever_is_hired_knows_its_parent_and_its_collaborators() {
    let id = AgentId::new("anna-1");
    // The collaborator `lead` is the parent, which becomes a contact anyway.
    let changes = hire(wish(&["writer", "lead"]), &facts(), id.clone(), &limits()).unwrap();
    let [Change::AgentCreated(agent), rest @ ..] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!(
        (&agent.id, agent.parent.as_str(), agent.role.as_str(), agent.depth),
        (&id, "lead-1", "role-1", 2)
    );
    assert_eq!((agent.task.as_str(), agent.name.as_ref().map(Name::as_str)), ("t-1", Some("Anna")));
    let named: Vec<&str> =
        agent.brief.collaborators.iter().map(|collaborator| collaborator.agent_id.as_str()).collect();
    assert_eq!(named, ["writer-1", "lead-1"], "the brief keeps ids");
    let contact = |owner: &str, agent: &str, source: Source, by: Option<&str>| {
        Change::ContactAdded(Contact {
            owner: AgentId::new(owner),
            agent: AgentId::new(agent),
            source,
            introduced_by: by.map(AgentId::new),
        })
    };
    let expect = [
        contact("anna-1", "lead-1", Source::Parent, None),
        contact("lead-1", "anna-1", Source::Child, None),
        contact("anna-1", "writer-1", Source::Preset, Some("lead-1")),
        Change::AccessGranted { agent: id, artifact: ArtifactId::new("abc") },
    ];
    assert_eq!(rest, expect);
}

fn below(id: &str, parent: &str, role_name: &str, standing: Standing) -> Descendant {
    Descendant {
        id: AgentId::new(id),
        parent: Some(AgentId::new(parent)),
        role_name: role_name.to_owned(),
        standing,
    }
}

fn tree() -> Vec<Descendant> {
    use Standing::{Active, Ended};
    vec![
        below("lead-1", "root", "lead", Active),
        below("lead-2", "root", "lead", Active),
        below("reader-1", "lead-1", "reader", Active),
        below("reader-2", "lead-1", "reader", Ended),
        below("writer-1", "reader-1", "writer", Active),
        below("singer-1", "lead-2", "singer", Ended),
        below("writer-2", "reader-2", "reader-1", Active),
    ]
}

#[test]
fn an_agent_ends_with_all_below_it() {
    let check = |meant: &str, expect: &[&str]| {
        let (id, changes) = end_subtree(&AgentId::root(), meant, "enough", &tree()).unwrap();
        let end = |agent: &&str| Change::AgentEnded {
            agent: AgentId::new(*agent),
            by: AgentId::root(),
            reason: "enough".to_owned(),
        };
        assert_eq!(changes, expect.iter().map(end).collect::<Vec<_>>(), "{meant}");
        assert_eq!(id.as_str(), expect[0]);
    };
    // Agents that have ended already are not ended again, but the agents below them are ended.
    check("lead-1", &["lead-1", "reader-1", "writer-1", "writer-2"]);
    check(" lead-2 ", &["lead-2"]);
    // `reader-1` is an id and also the name of a role. The id takes precedence.
    check("reader-1", &["reader-1", "writer-1"]);
    check("writer-1", &["writer-1"]);
    // One of the two readers has ended, so the role name matches only the other reader.
    check("reader", &["reader-1", "writer-1"]);
    check("writer", &["writer-1"]);
}

#[test]
fn who_cannot_be_ended_is_said_why() {
    let check = |meant: &str, expect: Refusal| {
        assert_eq!(end_subtree(&AgentId::root(), meant, "", &tree()), Err(expect));
    };
    check("root", Refusal::NotDescendant { agent: "root".to_owned() });
    check("painter", Refusal::NotDescendant { agent: "painter".to_owned() });
    check("singer", Refusal::NotDescendant { agent: "singer".to_owned() });
    check("singer-1", Refusal::AgentTerminated { agent: "singer-1".to_owned() });
    let candidates =
        ["lead-1", "lead-2"].map(|id| ContactLine { id: id.to_owned(), role: "lead".to_owned() });
    check("lead", Refusal::AmbiguousName { meant: "lead".to_owned(), candidates: candidates.to_vec() });
}

/// Introductions: an agent that has ended is introduced to nobody, and a name must fit exactly one contact.
mod introductions {
    use super::*;
    use crate::id::MessageId;
    use crate::message::{Body, Payload};
    use crate::rules::{Acquaintance, Answering, DoorFacts, Draft, LastWord, admit};

    fn introduce(target: &str) -> Result<Vec<Change>, Refusal> {
        let mut ended = known("painter-1", "painter");
        ended.party.standing = Standing::Ended;
        let facts = DoorFacts {
            task: TaskId::new("t-1"),
            sender: party("lead-1", "lead"),
            contacts: vec![
                known("reader-1", "reader"),
                known("writer-1", "writer"),
                known("singer-1", "singer"),
                known("singer-2", "singer"),
                ended,
            ],
            acquaintance: Acquaintance::Known,
            open_requests: Vec::new(),
            works_on: None,
            pending: Vec::new(),
            last_word: LastWord::UnlessWaiting,
            queued: 0,
            exchanges: 0,
            openable: BTreeSet::new(),
        };
        let answer = json!({"message_type": "introduction_response", "target_agent": {"id": target}, "usage_hint": "ask"});
        let draft = Draft {
            to: "reader-1".to_owned(),
            payload: Payload::parse(&answer).unwrap().0,
            answering: Answering::AsWritten,
            due_at: None,
        };
        admit(draft, &facts, MessageId::from_sequence(1), &Limits::default()).map(|admitted| admitted.changes)
    }

    #[test]
    fn who_has_ended_is_introduced_to_nobody() {
        let refusal = Refusal::AgentTerminated { agent: "painter-1".to_owned() };
        assert_eq!(introduce("painter-1"), Err(refusal.clone()));
        assert_eq!(introduce("painter"), Err(refusal));
    }

    #[test]
    fn a_name_that_several_have_introduces_nobody() {
        assert_eq!(introduce("singer").unwrap_err().code(), "ambiguous_name");
        assert_eq!(introduce("stranger").unwrap_err().code(), "unknown_contact");
        assert_eq!(introduce("reader").unwrap_err().code(), "invalid_message");
    }

    #[test]
    fn who_is_introduced_becomes_a_contact() {
        for target in ["writer", "writer-1"] {
            let changes = introduce(target).unwrap();
            let entry = Change::ContactAdded(Contact {
                owner: AgentId::new("reader-1"),
                agent: AgentId::new("writer-1"),
                source: Source::Introduction,
                introduced_by: Some(AgentId::new("lead-1")),
            });
            assert!(changes.contains(&entry), "{changes:?}");
            let told = changes.iter().find_map(|change| match change {
                Change::MessageAccepted(message) => Some(message),
                _ => None,
            });
            let told = told.unwrap();
            assert!(matches!(told.body, Body::Payload(_)));
            assert_eq!(told.introduced.as_ref().unwrap().id.as_str(), "writer-1");
        }
        // An agent that introduces itself adds no contact.
        let itself = introduce("lead-1").unwrap();
        assert!(!itself.iter().any(|change| matches!(change, Change::ContactAdded(_))), "{itself:?}");
    }
}
