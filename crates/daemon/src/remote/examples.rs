//! Example answers of a daemon, for the tests of the formatting functions. Texts that come from models contain control
//! characters, which the functions must make harmless.

use polity_llm::{FailureKind, Usage};
use polity_society::agent::Standing;
use polity_society::approval::Answer;
use polity_society::brief::TaskBrief;
use polity_society::contact::Source;
use polity_society::content::{Capabilities, Capability, Kind};
use polity_society::id::{AgentId, ApprovalId, ArtifactId, CommandId, MessageId, RoleId, ServiceId, TaskId};
use polity_society::limits::Limits;
use polity_society::message::{Expects, Finality, MessageState};
use polity_society::mime::MimeType;
use polity_society::text::Language;
use polity_society::tool_group::{ServerName, ToolGroup};
use polity_view::{
    AgentDetail, AgentState, AgentUsage, AgentView, ApprovalState, ApprovalView, ArtifactView, Awaited,
    Circuit, CommandView, ConfigProblem, ConfigView, ContactView, ConversationView, Doing, EntryView,
    HoldView, MessageView, PriceView, RefusedMedia, RequestPreview, RightView, ServiceState, ServiceUsage,
    ServiceView, Severity, TaskState, TaskUsage, TaskView, UsageSum, UsageView,
};
use polity_view::{Entry, Event, NextAttempt, Outcome, Routing, Shown, Silence};
use serde_json::{Map, Value, json};

/// A text with control characters, which a terminal must not obey.
pub(super) const HOSTILE: &str = "red \u{1b}[31m\u{7} and\nmore";

fn sum(calls: u64) -> UsageSum {
    UsageSum { calls, prompt_tokens: calls * 1600, completion_tokens: calls * 27, cost: None }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

pub(super) fn task_id() -> TaskId {
    TaskId::new("task-4x2k")
}

pub(super) fn agent(id: &str, parent: Option<&str>) -> AgentView {
    AgentView {
        id: AgentId::new(id),
        name: None,
        role_id: None,
        role: id.to_owned(),
        parent: parent.map(AgentId::new),
        task: None,
        depth: 0,
        state: AgentState::Idle,
        doing: Doing::Idle,
        service: Some(ServiceId::new("local")),
        model: Some("qwen3-vl:8b".to_owned()),
        capabilities: Some(Capabilities::default()),
        waiting: 0,
        waits_for: Vec::new(),
        created_at: 0,
        ended_at: None,
        usage: UsageSum::default(),
    }
}

/// The present time in the tests, in milliseconds since 1970.
pub(super) const NOW: i64 = 75_000;

/// An agent whose server has sent nothing for twelve seconds.
pub(super) fn silent() -> Doing {
    let silence = Silence { since: 63_000, until: 123_000, then: NextAttempt::Retry, fallback: None };
    Doing::Thinking {
        task: task_id(),
        service: ServiceId::new("local"),
        attempt: 1,
        since: 63_000,
        first_byte: None,
        tokens: 0,
        silence: Some(silence),
    }
}

fn at(doing: Doing, agent: AgentView) -> AgentView {
    AgentView { state: doing.state(), doing, ..agent }
}

pub(super) fn agents() -> Vec<AgentView> {
    let request = Awaited {
        agent: AgentId::new("agent-sae2"),
        request: MessageId::new("m000000002"),
        task: task_id(),
        since: 10_000,
    };
    let waiting = Doing::Waiting { requests: vec![request], since: 10_000 };
    let thinking = Doing::Thinking {
        task: task_id(),
        service: ServiceId::new("local"),
        attempt: 1,
        since: 63_000,
        first_byte: Some(64_000),
        tokens: 81,
        silence: None,
    };
    let parked =
        Doing::Parked { task: task_id(), reason: "the database is damaged".to_owned(), since: 74_500 };
    let user = AgentView { service: None, model: None, capabilities: None, ..agent("user", None) };
    let root = AgentView {
        waits_for: vec![AgentId::new("agent-sae2")],
        usage: sum(3),
        ..at(waiting, agent("root", Some("user")))
    };
    let lead = AgentView {
        role: "组长".to_owned(),
        waits_for: vec![AgentId::new("agent-7cwh")],
        waiting: 2,
        task: Some(task_id()),
        usage: sum(12),
        ..at(thinking, agent("agent-sae2", Some("root")))
    };
    let reader = AgentView {
        role: "阅读者".to_owned(),
        name: Some("Ann".to_owned()),
        waiting: 1,
        ..at(parked, agent("agent-7cwh", Some("agent-sae2")))
    };
    let ended = AgentView {
        role: HOSTILE.to_owned(),
        ended_at: Some(1),
        ..at(Doing::Ended { since: 1 }, agent("writer-11aa", Some("agent-sae2")))
    };
    let paused = Doing::Paused { since: 15_000 };
    let other = AgentView { role: "clerk".to_owned(), ..at(paused, agent("clerk-22bb", Some("root"))) };
    vec![user, root, lead, other, reader, ended]
}

pub(super) fn commands() -> Vec<CommandView> {
    let in_background = CommandView {
        task: task_id(),
        agent: AgentId::new("agent-sae2"),
        id: Some(CommandId::new("cmd-0f3a91c2")),
        command: "cargo test".to_owned(),
        since: 10_000,
        output: format!("running 12 tests\n{HOSTILE}"),
        output_bytes: 40,
        memory_bytes: 100 << 20,
        processes: 3,
        disk_bytes: 0,
    };
    let in_foreground = CommandView {
        id: None,
        command: HOSTILE.to_owned(),
        since: NOW,
        output: String::new(),
        output_bytes: 0,
        memory_bytes: 0,
        processes: 1,
        ..in_background.clone()
    };
    vec![in_background, in_foreground]
}

pub(super) fn detail() -> AgentDetail {
    let agents = agents();
    AgentDetail {
        agent: agents[2].clone(),
        role_prompt: Some(format!("Lead the work.\n{HOSTILE}")),
        interface_spec: None,
        required_capabilities: None,
        tool_groups: None,
        rights: vec![
            RightView {
                group: ToolGroup::Organization,
                allowed: true,
                granted_by: Some(AgentId::new("lead-2k7f")),
                granted_in: Some(HOSTILE.to_owned()),
                root_grant: Some("organization".to_owned()),
                denied_by: None,
                denied_in: None,
            },
            RightView {
                group: ToolGroup::Files,
                allowed: true,
                granted_by: None,
                granted_in: Some("tools.root".to_owned()),
                root_grant: Some("files".to_owned()),
                denied_by: None,
                denied_in: None,
            },
            RightView {
                group: ToolGroup::Server(ServerName::new("git").unwrap()),
                allowed: true,
                granted_by: None,
                granted_in: Some("tools.root".to_owned()),
                root_grant: Some("mcp:*".to_owned()),
                denied_by: None,
                denied_in: None,
            },
            RightView {
                group: ToolGroup::Artifacts,
                allowed: false,
                granted_by: None,
                granted_in: None,
                root_grant: None,
                denied_by: Some(AgentId::new("lead-2k7f")),
                denied_in: Some(HOSTILE.to_owned()),
            },
            RightView {
                group: ToolGroup::Context,
                allowed: false,
                granted_by: None,
                granted_in: None,
                root_grant: None,
                denied_by: None,
                denied_in: Some("tools.root".to_owned()),
            },
        ],
        brief: Some(TaskBrief {
            objective: "Read the picture.".to_owned(),
            constraints: vec!["no guessing".to_owned()],
            inputs: json!("artifact:mmpqmm6wc2"),
            outputs: json!({"facts": "list"}),
            completion_criteria: json!("every fact is checked"),
            collaborators: Vec::new(),
            references: Vec::new(),
            priority: None,
            more: serde_json::Map::from_iter([("deadline".to_owned(), json!("noon"))]),
        }),
        contacts: vec![ContactView {
            agent: AgentId::new("agent-7cwh"),
            role: "阅读者".to_owned(),
            source: Source::Introduction,
            introduced_by: Some(AgentId::root()),
            since: 0,
            standing: Standing::Ended,
            capabilities: Capabilities::default(),
            interface_spec: None,
            damage: None,
        }],
        more_contacts: true,
        tasks: vec![task_id()],
        more_tasks: false,
        holds: vec![HoldView { task: task_id(), reason: HOSTILE.to_owned() }],
        children: vec![AgentId::new("agent-7cwh"), AgentId::new("writer-11aa")],
        more_children: true,
    }
}

pub(super) fn tasks() -> Vec<TaskView> {
    let open = TaskView {
        id: task_id(),
        title: "看看这张图片".to_owned(),
        state: TaskState::Open,
        outcome: None,
        stopped_by: None,
        created_at: 0,
        forgotten_at: None,
        agents: 2,
        usage: sum(15),
        waiting_for_user: 0,
        forked_from: None,
    };
    let id = |id: &str| TaskId::new(id);
    vec![
        TaskView {
            id: id("task-aaaa"),
            title: String::new(),
            state: TaskState::Idle,
            outcome: Some(Outcome::Answered),
            forgotten_at: Some(7),
            usage: UsageSum::default(),
            agents: 0,
            ..open.clone()
        },
        TaskView {
            id: id("task-bbbb"),
            title: HOSTILE.to_owned(),
            state: TaskState::Idle,
            outcome: Some(Outcome::Limited),
            stopped_by: Some("maxTokensPerTask".to_owned()),
            ..open.clone()
        },
        TaskView {
            id: id("task-cccc"),
            state: TaskState::Idle,
            outcome: Some(Outcome::AwaitsUser),
            waiting_for_user: 1,
            forked_from: Some(id("task-aaaa")),
            agents: 1,
            ..open.clone()
        },
        open,
    ]
}

pub(super) fn artifact(id: &str, filename: Option<&str>) -> ArtifactView {
    ArtifactView {
        id: ArtifactId::new(id),
        reference: format!("artifact:{id}"),
        kind: Kind::Image,
        mime_type: MimeType::unchecked("image/png"),
        filename: filename.map(str::to_owned),
        label: None,
        size: 930,
        task: Some(task_id()),
        owner: AgentId::user(),
        created_at: 0,
        meta: Map::new(),
        damage: None,
    }
}

pub(super) fn artifacts() -> Vec<ArtifactView> {
    vec![
        artifact("mmpqmm6wc2", Some("picture.png")),
        ArtifactView {
            kind: Kind::Text,
            mime_type: MimeType::unchecked("text/markdown"),
            label: Some("report".to_owned()),
            owner: AgentId::new("agent-sae2"),
            size: 12_345,
            ..artifact("z67sthacvx", None)
        },
        ArtifactView { task: None, ..artifact("abc", Some(HOSTILE)) },
    ]
}

pub(super) fn messages() -> Vec<MessageView> {
    let prompt = MessageView {
        id: MessageId::from_sequence(1),
        task: task_id(),
        from: "user".to_owned(),
        from_role: "user".to_owned(),
        to: AgentId::root(),
        message_type: "general".to_owned(),
        text: "看看这张图片".to_owned(),
        payload: None,
        attachments: vec![artifact("mmpqmm6wc2", Some("picture.png"))],
        in_reply_to: Vec::new(),
        about: None,
        on_behalf_of: None,
        expects: Expects::Answer,
        finality: Finality::Final,
        state: MessageState::Answered,
        answered_by: Some(MessageId::from_sequence(4)),
        due_at: None,
        created_at: 0,
        introduced_agent: None,
        damage: None,
    };
    let interim = MessageView {
        id: MessageId::from_sequence(2),
        from: "root".to_owned(),
        from_role: "root".to_owned(),
        to: AgentId::user(),
        text: "one moment".to_owned(),
        attachments: Vec::new(),
        expects: Expects::Nothing,
        finality: Finality::Interim,
        state: MessageState::Queued,
        answered_by: None,
        created_at: 1_000,
        ..prompt.clone()
    };
    let answer = MessageView {
        id: MessageId::from_sequence(4),
        from: "reader-7k2f".to_owned(),
        from_role: "阅读者".to_owned(),
        text: HOSTILE.to_owned(),
        payload: Some(object(json!({"facts": ["480 × 270"]}))),
        finality: Finality::Final,
        in_reply_to: vec![MessageId::from_sequence(1)],
        state: MessageState::Done,
        created_at: 2_000,
        ..interim.clone()
    };
    let notice = MessageView {
        id: MessageId::from_sequence(5),
        from: "system".to_owned(),
        from_role: String::new(),
        message_type: "notice".to_owned(),
        text: "A model failed.".to_owned(),
        finality: Finality::Final,
        state: MessageState::Bounced,
        created_at: 3_000,
        ..interim.clone()
    };
    vec![prompt, interim, answer, notice]
}

pub(super) fn conversation() -> ConversationView {
    let entry = |seq: i64, record: Value| {
        let sent = (record["record"] == "replied").then_some(17);
        EntryView { seq, turn: 1, at: seq * 1_000, sent, record: object(record) }
    };
    ConversationView {
        agent: AgentId::root(),
        task: task_id(),
        entries: vec![
            entry(1, json!({"record": "heard", "message": messages()[0]})),
            entry(2, json!({"record": "heard", "message": "m000000009"})),
            entry(
                3,
                json!({"record": "replied", "text": HOSTILE, "service": "local", "calls": [
                    {"id": "c1", "name": "send_message", "arguments": "{}"}
                ]}),
            ),
            entry(4, json!({"record": "tool_finished", "call": "c1", "result": {"json": {"ok": true}}})),
            entry(5, json!({"record": "failed", "reason": HOSTILE})),
        ],
        next: None,
    }
}

pub(super) fn preview() -> RequestPreview {
    RequestPreview {
        agent: AgentId::root(),
        task: task_id(),
        service: ServiceId::new("local"),
        model: "qwen3-vl:8b".to_owned(),
        revision: 3,
        estimated_tokens: 1660,
        shown: vec![Shown { artifact: ArtifactId::new("mmpqmm6wc2"), routing: Routing::ImageUrl, why: None }],
        queued: 0,
        request: json!({"model": "qwen3-vl:8b", "messages": [{"role": "user", "content": HOSTILE}]}),
    }
}

pub(super) fn services() -> Vec<ServiceView> {
    let local = ServiceView {
        id: ServiceId::new("local"),
        name: "Local".to_owned(),
        model: "qwen3-vl:8b".to_owned(),
        base_url: "http://127.0.0.1:11434/v1".to_owned(),
        capabilities: Capabilities {
            input: vec![Capability::TEXT, Capability::VISION],
            output: vec![Capability::TEXT],
        },
        calls_tools: false,
        capability_tags: Vec::new(),
        description: None,
        context_window: None,
        rules_tokens: 1_500,
        max_concurrent: Some(1),
        fallback: None,
        price: None,
        is_default: true,
        key_set: false,
        agents: 2,
        state: ServiceState { in_flight: 1, waiting: 2, ..ServiceState::default() },
        usage: sum(15),
        refused_media: None,
    };
    let cloud = ServiceView {
        id: ServiceId::new("cloud"),
        name: "Cloud".to_owned(),
        model: "gpt-5-mini".to_owned(),
        base_url: "https://api.example.com/v1".to_owned(),
        capability_tags: vec!["多模态".to_owned()],
        description: Some(HOSTILE.to_owned()),
        context_window: Some(128_000),
        fallback: Some(ServiceId::new("local")),
        price: Some(PriceView { input: 0.25, output: 2.0 }),
        is_default: false,
        key_set: true,
        agents: 0,
        state: ServiceState {
            circuit: Circuit::Open,
            last_error: Some(HOSTILE.to_owned()),
            ..ServiceState::default()
        },
        usage: UsageSum::default(),
        refused_media: Some(RefusedMedia { all: true, artifacts: vec![ArtifactId::new("abc")] }),
        ..local.clone()
    };
    let paused = ServiceView {
        id: ServiceId::new("slow"),
        is_default: false,
        agents: 1,
        state: ServiceState { paused_for_ms: Some(1_500), ..ServiceState::default() },
        ..local.clone()
    };
    vec![local, cloud, paused]
}

pub(super) fn usage() -> UsageView {
    UsageView {
        total: UsageSum { cost: Some(0.0123), ..sum(15) },
        by_task: vec![TaskUsage { task: task_id(), usage: sum(15) }],
        by_agent: vec![
            AgentUsage { agent: AgentId::new("agent-sae2"), usage: sum(12) },
            AgentUsage { agent: AgentId::root(), usage: sum(3) },
        ],
        by_service: vec![ServiceUsage {
            service: ServiceId::new("local"),
            model: "qwen3-vl:8b".to_owned(),
            usage: sum(15),
        }],
    }
}

pub(super) fn config() -> ConfigView {
    ConfigView {
        revision: 3,
        directory: Some("./config".to_owned()),
        origin: "llmservices.json".to_owned(),
        is_rehearsal: false,
        language: Language::Zh,
        problems: vec![
            ConfigProblem {
                file: "llmservices.json".to_owned(),
                pointer: Some("/services/0/baseURL".to_owned()),
                line: None,
                column: None,
                severity: Severity::Error,
                message: "missing".to_owned(),
                done: "the service \"x\" is left out".to_owned(),
            },
            ConfigProblem {
                file: "app.json".to_owned(),
                pointer: None,
                line: Some(3),
                column: Some(7),
                severity: Severity::Warning,
                message: "unknown field".to_owned(),
                done: "it has no effect".to_owned(),
            },
        ],
        services: vec![ServiceId::new("local"), ServiceId::new("cloud")],
        default_service: ServiceId::new("local"),
        default_service_url: None,
        default_context_window: None,
        limits: Limits::default(),
        prompts: None,
    }
}

pub(super) fn entries() -> Vec<Entry> {
    let (task, root) = (task_id(), AgentId::root());
    let lead = AgentId::new("agent-sae2");
    let message = |from: &str, to: &AgentId, text: &str| Event::MessageAccepted {
        task: task.clone(),
        message: MessageId::from_sequence(1),
        from: from.to_owned(),
        to: to.clone(),
        message_type: "general".to_owned(),
        text: text.to_owned(),
        attachments: Vec::new(),
        in_reply_to: Vec::new(),
        finality: Finality::Final,
    };
    let events = vec![
        Event::TaskStarted { task: task.clone() },
        message("user", &root, "看看这张图片"),
        Event::TurnStarted { task: task.clone(), agent: root.clone(), message: MessageId::from_sequence(1) },
        Event::ModelAnswered {
            task: task.clone(),
            agent: root.clone(),
            service: ServiceId::new("local"),
            model: "qwen3-vl:8b".to_owned(),
            revision: 1,
            usage: Usage { prompt_tokens: 1660, completion_tokens: 27, ..Usage::default() },
            attempts: 1,
            content: Vec::new(),
            sent: None,
        },
        Event::AgentCreated {
            task: task.clone(),
            agent: lead.clone(),
            parent: root.clone(),
            role: RoleId::new("role-1"),
            objective: HOSTILE.to_owned(),
        },
        Event::ModelFailed {
            task: task.clone(),
            agent: lead.clone(),
            service: ServiceId::new("local"),
            attempt: 1,
            kind: FailureKind::Unreachable,
            status: None,
            reason: HOSTILE.to_owned(),
            next: NextAttempt::Retry,
            suspects: Vec::new(),
            sent: None,
        },
        Event::AgentPaused { agent: lead.clone() },
        message("root", &AgentId::user(), HOSTILE),
        Event::TurnEnded { task: task.clone(), agent: root, failure: None },
        Event::TaskIdle { task, outcome: Outcome::Answered },
    ];
    events.into_iter().zip(1..).map(|(event, seq)| Entry { seq, at: seq * 1_000, event }).collect()
}

pub(super) fn approvals() -> Vec<ApprovalView> {
    let question = ApprovalView {
        id: ApprovalId::from_number(3),
        task: task_id(),
        agent: AgentId::new("coder-7cwh"),
        role: "coder".to_owned(),
        tool: "bash".to_owned(),
        arguments: json!({"command": format!("git push {HOSTILE}"), "timeoutMs": 1000}),
        preview: None,
        why: "the agent has seen content from outside".to_owned(),
        way: vec!["web".to_owned(), "reader-1 read it with fetch_page".to_owned()],
        state: ApprovalState::Open,
        answer: None,
        reason: None,
        asked_at: 0,
        expires_at: 86_400_000,
        answered_at: None,
    };
    let change = ApprovalView {
        id: ApprovalId::from_number(4),
        tool: "str_replace_editor".to_owned(),
        arguments: json!({"command": "create", "path": "a.txt", "file_text": "x".repeat(1_000)}),
        preview: Some("--- a.txt\n+++ a.txt\n+xxx".to_owned()),
        way: Vec::new(),
        state: ApprovalState::Denied,
        answer: Some(Answer::No),
        reason: Some("use a branch".to_owned()),
        answered_at: Some(1),
        ..question.clone()
    };
    let always =
        ApprovalView { state: ApprovalState::Allowed, answer: Some(Answer::Always), ..question.clone() };
    vec![question, change, always]
}
