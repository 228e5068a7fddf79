use super::*;
use crate::output::table::without_styles;
use crate::remote::examples::{HOSTILE, NOW, agents, config, task_id};
use polity_society::id::{AgentId, ApprovalId, MessageId, RoleId, ServiceId, TaskId};
use polity_view::{
    AgentState, Awaited, CardView, Cause, Circuit, Deed, Doing, LastView, Remedy, ResumeScope, Stuck,
    StuckView, Trouble,
};
use unicode_width::UnicodeWidthStr;

fn now_view() -> NowView {
    let last = LastView {
        at: 70_000,
        did: Deed::Called,
        text: HOSTILE.to_owned(),
        from: None,
        tools: vec!["send_message".to_owned()],
    };
    let card = |agent| CardView {
        agent,
        objective: Some("看看这张图片，然后用一句话说出上面写了什么".to_owned()),
        active_in: task_id(),
        active_at: 70_000,
        last: Some(last.clone()),
    };
    let working: Vec<CardView> = agents()
        .into_iter()
        .filter(|agent| matches!(agent.state, AgentState::Thinking | AgentState::Waiting))
        .map(card)
        .collect();
    let (lead, reader) = (|| AgentId::new("agent-sae2"), || AgentId::new("agent-7cwh"));
    let thing = |stuck, remedies| StuckView {
        key: String::new(),
        since: 15_000,
        task: Some(task_id()),
        title: Some("看看这张图片".to_owned()),
        stuck,
        remedies,
    };
    let message = MessageId::from_sequence(7);
    let stop = Remedy::StopAgent { agent: reader() };
    let another = Remedy::Service {
        role: RoleId::new("r-1"),
        name: "阅读者".to_owned(),
        services: vec![ServiceId::new("cloud"), ServiceId::new("slow")],
        resume: Some(reader()),
    };
    let again = Remedy::RunAgain {
        task: task_id(),
        turn: 12,
        services: vec![ServiceId::new("cloud"), ServiceId::new("slow")],
    };
    let check = |service: &str| Remedy::CheckService { service: ServiceId::new(service) };
    let try_again = Remedy::TryAgain { service: ServiceId::new("cloud") };
    let stuck = vec![
        thing(
            Stuck::Question { agent: lead(), message: message.clone(), text: "May or June?".to_owned() },
            vec![Remedy::Write { to: lead(), task: task_id() }],
        ),
        thing(
            Stuck::Approval {
                agent: lead(),
                approval: ApprovalId::from_number(4),
                tool: "run_command".to_owned(),
                expires_at: NOW,
            },
            vec![Remedy::Decide { approval: ApprovalId::from_number(4) }],
        ),
        thing(
            Stuck::Request {
                message,
                from: AgentId::user(),
                to: AgentId::root(),
                text: HOSTILE.to_owned(),
                cause: Cause::Paused,
            },
            vec![
                Remedy::Resume { agent: AgentId::root(), scope: ResumeScope::Subtree },
                Remedy::StopTask { task: task_id() },
            ],
        ),
        thing(
            Stuck::Parked { agent: reader(), reason: "the key is wrong".to_owned(), asked_by: vec![lead()] },
            vec![Remedy::Resume { agent: reader(), scope: ResumeScope::Agent }, another, stop],
        ),
        thing(
            Stuck::Paused { agent: reader() },
            vec![Remedy::Resume { agent: reader(), scope: ResumeScope::Subtree }],
        ),
        StuckView {
            task: None,
            title: None,
            ..thing(
                Stuck::Paused { agent: AgentId::root() },
                vec![Remedy::Resume { agent: AgentId::root(), scope: ResumeScope::Subtree }],
            )
        },
        StuckView {
            task: None,
            title: None,
            ..thing(
                Stuck::Service {
                    service: ServiceId::new("local"),
                    trouble: Trouble::Silent,
                    circuit: Circuit::Closed,
                    until: Some(NOW + 50_000),
                    reason: None,
                    agents: vec![AgentId::root()],
                },
                vec![again, check("local"), Remedy::StopTask { task: task_id() }],
            )
        },
        StuckView {
            task: None,
            title: None,
            ..thing(
                Stuck::Service {
                    service: ServiceId::new("cloud"),
                    trouble: Trouble::Failing,
                    circuit: Circuit::Open,
                    until: Some(NOW + 30_000),
                    reason: Some("server unreachable".to_owned()),
                    agents: Vec::new(),
                },
                vec![try_again, check("cloud")],
            )
        },
        thing(
            Stuck::Answered {
                requests: vec![Awaited {
                    agent: reader(),
                    request: MessageId::from_sequence(9),
                    task: task_id(),
                    since: 15_000,
                }],
            },
            vec![Remedy::Write { to: AgentId::root(), task: task_id() }],
        ),
    ];
    NowView {
        at: NOW,
        as_of: 9,
        running: true,
        working_total: 4,
        at_work_total: 3,
        working,
        stuck_total: 9,
        stuck,
    }
}

fn status(process: Process, now: NowView) -> String {
    let url = (process == Process::Daemon).then(|| "http://127.0.0.1:7717/".to_owned());
    let status =
        Status { url, process, data_dir: "/home/me/.local/share/polity".to_owned(), config: config(), now };
    let setting = Setting { data: Some("my data".to_owned()), process };
    without_styles(&wrapped(&lines(&status, &[], &setting), None))
}

#[test]
fn a_status_in_words() {
    insta::assert_snapshot!(status(Process::Daemon, now_view()));
}

#[test]
fn each_task_of_root_has_a_line() {
    let other = InTask {
        task: TaskId::new("t-7"),
        title: format!("a long question {HOSTILE}"),
        doing: Doing::Ready { task: TaskId::new("t-7"), since: NOW },
    };
    let status = Status {
        url: None,
        process: Process::Nothing,
        data_dir: "data".to_owned(),
        config: config(),
        now: now_view(),
    };
    let setting = Setting { data: None, process: Process::Nothing };
    let words = without_styles(&wrapped(&lines(&status, &[other], &setting), None));
    let card = words.split("\n  root\n").nth(1).and_then(|after| after.split("\n  agent-sae2").next());
    let card = card.unwrap_or_default();
    let line = "    and in t-7 “a long question red <U+001B>[31m<U+0007> and more”: ready";
    assert!(card.lines().any(|shown| shown == line), "{line:?} is not in: {words}");
}

#[test]
fn agents_that_wait_are_not_at_work() {
    let check = |working_total, at_work_total, running, expect: &str| {
        let now = NowView { working_total, at_work_total, running, ..now_view() };
        assert_eq!(at_work(&now), expect);
    };
    check(0, 0, true, "nobody is at work");
    check(0, 0, false, "nobody is at work");
    check(1, 1, true, "1 agent is at work");
    check(8, 1, true, "1 agent is at work, 7 agents wait for an answer");
    check(3, 2, true, "2 agents are at work, 1 agent waits for an answer");
    check(1, 0, true, "nobody is at work, 1 agent waits for an answer");
    check(3, 2, false, "2 agents have work, 1 agent waits for an answer");
}

#[test]
fn nothing_runs() {
    let nothing = NowView {
        at: NOW,
        as_of: 0,
        running: false,
        working: Vec::new(),
        working_total: 0,
        at_work_total: 0,
        stuck: Vec::new(),
        stuck_total: 0,
    };
    insta::assert_snapshot!(status(Process::Nothing, nothing));
}

#[test]
fn a_paused_agent_needs_its_own_command() {
    let mut now =
        NowView { running: false, working: Vec::new(), working_total: 0, at_work_total: 0, ..now_view() };
    now.stuck.retain(|thing| matches!(thing.stuck, Stuck::Paused { .. }));
    now.stuck_total = 2;
    let words = status(Process::Nothing, now.clone());
    assert!(!words.contains("goes on with the work"), "{words}");
    assert!(words.contains("polity resume root --data 'my data'"), "{words}");
    // `--limit` has left out one thing.
    now.stuck_total = 3;
    let words = status(Process::Nothing, now);
    assert!(words.contains("goes on with the work"), "{words}");
}

#[test]
fn work_without_a_daemon_goes_on_by_commands_that_need_none() {
    let words = status(Process::Nothing, NowView { running: false, ..now_view() });
    let check = |line: &str| {
        assert!(words.lines().any(|shown| shown.trim() == line), "{line:?} is not in: {words}");
    };
    check("`polity run --resume` or `polity serve` goes on with the work");
    let resume = "    → first start a daemon: polity serve\n    → polity resume root --data 'my data'\n";
    assert!(words.contains(resume), "{words}");
    check("→ check local and its entry in llmservices.json: polity doctor --data 'my data'");
    let with = status(Process::Daemon, now_view());
    assert!(!with.contains("polity serve"), "{with}");
}

#[test]
fn a_status_fits_any_terminal() {
    let status = Status {
        url: Some("http://127.0.0.1:7717/".to_owned()),
        process: Process::Daemon,
        data_dir: "/home/me/.local/share/polity".to_owned(),
        config: config(),
        now: now_view(),
    };
    for width in [40, 80, 200] {
        let setting = Setting { data: None, process: Process::Daemon };
        let shown = wrapped(&lines(&status, &[], &setting), Some(width));
        for line in without_styles(&shown).lines() {
            assert!(line.width() <= width, "{line:?} at {width}");
        }
    }
}
