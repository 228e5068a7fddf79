//! Tests of calls that a crash interrupted. Before such a call runs again, it is checked again. The check uses the
//! rights and the policy of that moment, not those of the first run.

use super::approvals::{answer, drive, questions};
use super::*;
use polity_hands::call::Source;
use polity_hands::tool::{Confinement, Reach};
use polity_society::approval::Answer;
use polity_store::seen;
use polity_view::ApprovalState;

/// A call that may run again after a crash.
const AGAIN: [AfterCrash; 2] = [AfterCrash::Repeat, AfterCrash::Verify];

/// A world in which an agent, the clerk, has called `pay`. The process has died during this call.
struct Interrupted {
    world: World,
    clerk: Conversation,
    pay: FakeTool,
    runs: Arc<Mutex<Vec<Invocation>>>,
}

impl Interrupted {
    async fn new(after_crash: AfterCrash) -> Self {
        let world = World::new().await;
        let (pay, runs, reached) = stuck_once(after_crash);
        world.say("user", "root", json!("go")).await;
        world.begin_turn("root").await;
        let clerk = world.hire("root", "clerk", json!({"toolGroups": ["web"]})).await;
        world.say("root", &clerk, json!("pay")).await;
        let (clerk, never) = (world.of(&clerk), CancellationToken::new());
        let script = ScriptedModel::in_order(vec![Say::Call("pay", json!({}))]);
        let handles = world.handles(script, hands(vec![pay.clone()]));
        tokio::select! {
            ended = run(&handles, &clerk, &never) => panic!("the tool never ends: {ended:?}"),
            () = reached.notified() => {}
        }
        Self { world, clerk, pay, runs }
    }

    /// Starts the driver of the clerk again, until the driver ends.
    async fn restart(&self, says: Vec<Say>) {
        drive(&self.world, &self.clerk, says, std::slice::from_ref(&self.pay)).await;
    }

    /// Returns how often `pay` has run.
    fn runs(&self) -> usize {
        self.runs.lock().unwrap().len()
    }

    /// Returns the only result in the history of the clerk.
    async fn result(&self) -> Value {
        let mut results = results_in(&self.world, &self.clerk).await;
        assert_eq!(results.len(), 1, "{results:?}");
        results.remove(0)
    }
}

/// What the person changes between the crash and the next start.
#[derive(Clone, Copy, Debug)]
enum Narrowing {
    /// The role of the agent loses the tool group.
    Role,
    /// Root loses the tool group.
    Root,
    /// A rule denies the call.
    Rule,
}

#[tokio::test]
async fn a_call_that_a_crash_interrupted_runs_again_only_if_it_is_still_allowed() {
    for after_crash in AGAIN {
        for narrowing in [Narrowing::Role, Narrowing::Root, Narrowing::Rule] {
            let mut crashed = Interrupted::new(after_crash).await;
            match narrowing {
                Narrowing::Role => narrow_roles(&crashed.world).await,
                Narrowing::Root => {
                    let root = json!(["organization", "artifacts"]);
                    crashed.world.configure(&json!({"tools": {"root": root}})).await;
                }
                Narrowing::Rule => {
                    let rule = json!({"group": "web", "decide": "deny"});
                    crashed.world.configure(&json!({"tools": {"policy": [rule]}})).await;
                }
            }
            crashed.restart(vec![Say::Text("I may not")]).await;
            let told = crashed.result().await;
            assert_eq!(
                (code(&told), crashed.runs()),
                ("tool_not_permitted", 1),
                "{after_crash:?}, {narrowing:?}: {told}"
            );
            assert_eq!(told.get("rule").is_some(), matches!(narrowing, Narrowing::Rule), "{told}");
            // The first run may have taken effect before the crash. The model must not believe that nothing happened.
            assert!(told["interrupted"].as_str().is_some_and(|text| text.contains("pay")), "{told}");
            assert_eq!(questions(&crashed.world).await.len(), 0);
        }
    }
}

#[tokio::test]
async fn a_call_that_a_crash_interrupted_waits_for_the_person_if_a_new_rule_says_so() {
    for after_crash in AGAIN {
        for (said, expect, runs) in [(Answer::Yes, "ok", 2), (Answer::No, "approval_denied", 1)] {
            let mut crashed = Interrupted::new(after_crash).await;
            let rule = json!({"group": "web", "write": true, "decide": "ask"});
            crashed.world.configure(&json!({"tools": {"policy": [rule]}})).await;
            // However often the process starts while the question is open, the person is asked only once.
            crashed.restart(Vec::new()).await;
            crashed.restart(Vec::new()).await;
            let asked = questions(&crashed.world).await;
            assert_eq!((asked.len(), crashed.runs()), (1, 1), "{after_crash:?}, {said:?}");
            assert_eq!(asked[0].state, ApprovalState::Open);
            answer(&crashed.world, &asked[0].id, said, None).await;
            crashed.restart(vec![Say::Text("done")]).await;
            let told = crashed.result().await;
            assert_eq!((code(&told), crashed.runs()), (expect, runs), "{after_crash:?}, {said:?}: {told}");
            assert_eq!(told.get("interrupted").is_some(), said == Answer::No, "{told}");
        }
    }
}

/// A yes that the person gave before the crash holds for the same call after the crash.
#[tokio::test]
async fn the_person_is_not_asked_again_about_a_call_that_a_crash_interrupted() {
    let rule = json!({"group": "web", "write": true, "decide": "ask"});
    let world = World::with_app(&json!({"tools": {"policy": [rule]}})).await;
    let (pay, runs, reached) = stuck_once(AfterCrash::Repeat);
    let (root, never) = (world.of("root"), CancellationToken::new());
    world.say("user", "root", json!("pay")).await;
    let tools = std::slice::from_ref(&pay);
    drive(&world, &root, vec![Say::Call("pay", json!({}))], tools).await;
    answer(&world, &questions(&world).await[0].id, Answer::Yes, None).await;
    let handles = world.handles(ScriptedModel::in_order(Vec::new()), hands(tools.to_vec()));
    tokio::select! {
        ended = run(&handles, &root, &never) => panic!("the tool never ends: {ended:?}"),
        () = reached.notified() => {}
    }
    drive(&world, &root, vec![Say::Text("paid")], tools).await;
    assert_eq!((questions(&world).await.len(), runs.lock().unwrap().len()), (1, 2));
    assert_eq!(results(&world).await, [json!({"paid": 1})]);
}

/// An agent that has read the web runs a command, and the process dies meanwhile. The command may have written what it
/// knows into files, which colleagues may already read. So the workspace has the sources from the start of the command,
/// although the command does not run again.
#[tokio::test]
async fn a_command_that_a_crash_interrupted_has_passed_its_sources_on() {
    for (after_crash, expect) in
        [(AfterCrash::Never, "outcome_unknown"), (AfterCrash::Repeat, "tool_not_permitted")]
    {
        let mut world = World::new().await;
        let (pay, runs, reached) = stuck_once(after_crash);
        let reach = Reach::Command { command: "make".to_owned(), confinement: Confinement::Full };
        let pay = FakeTool { reach, ..pay };
        let (root, never) = (world.of("root"), CancellationToken::new());
        world.say("user", "root", json!("pay")).await;
        let reader = root.clone();
        let read = world
            .write(move |tx| Box::pin(async move { seen::read(tx, &reader, &Source::Web, "fetch").await }));
        read.await;
        let script = ScriptedModel::in_order(vec![Say::Call("pay", json!({}))]);
        let handles = world.handles(script, hands(vec![pay.clone()]));
        tokio::select! {
            ended = run(&handles, &root, &never) => panic!("the tool never ends: {ended:?}"),
            () = reached.notified() => {}
        }
        let holders = "SELECT holder FROM seen WHERE source = 'web' ORDER BY holder";
        assert_eq!(world.query(holders).await, ["agent:root", "workspace"], "{after_crash:?}");
        if after_crash == AfterCrash::Repeat {
            let rule = json!({"group": "web", "decide": "deny"});
            world.configure(&json!({"tools": {"policy": [rule]}})).await;
        }
        drive(&world, &root, vec![Say::Text("paid, or not")], &[pay]).await;
        assert_eq!((code(&results(&world).await[0]), runs.lock().unwrap().len()), (expect, 1));
        assert_eq!(world.query(holders).await, ["agent:root", "workspace"], "{after_crash:?}");
    }
}

/// An agent runs a command that can reach the web, and the process dies meanwhile. Nobody knows what the command has
/// written into files, so who reads files of the workspace counts as having seen the web. The agent itself has seen
/// nothing yet.
#[tokio::test]
async fn what_an_interrupted_command_can_have_brought_counts_as_in_the_files() {
    let world = World::new().await;
    let (pay, _, reached) = stuck_once(AfterCrash::Never);
    let reach = Reach::Command { command: "curl".to_owned(), confinement: Confinement::FullWithNetwork };
    let pay = FakeTool { reach, brings: [Source::Web].into(), ..pay };
    let (root, never) = (world.of("root"), CancellationToken::new());
    world.say("user", "root", json!("pay")).await;
    let script = ScriptedModel::in_order(vec![Say::Call("pay", json!({}))]);
    let handles = world.handles(script, hands(vec![pay.clone()]));
    tokio::select! {
        ended = run(&handles, &root, &never) => panic!("the tool never ends: {ended:?}"),
        () = reached.notified() => {}
    }
    let holders = "SELECT holder FROM seen WHERE source = 'web' ORDER BY holder";
    assert_eq!(world.query(holders).await, ["workspace"]);
    let look = FakeTool::returns("look", Ok(Output::json(json!({}))));
    let look = FakeTool { reach: Reach::ReadsWorkspace, ..look };
    drive(&world, &root, vec![Say::Call("look", json!({})), Say::Text("paid, or not")], &[pay, look]).await;
    assert_eq!(world.query(holders).await, ["agent:root", "workspace"]);
    let way = seen::way(&mut world.store.reader().await.unwrap(), &root, &Source::Web).await.unwrap();
    let brought = seen::Step::Brought { agent: root.agent.clone(), tool: "pay".to_owned() };
    let steps: Vec<seen::Step> = way.into_iter().map(|passed| passed.step).collect();
    assert_eq!(steps, [brought, seen::Step::Files]);
}

/// Root copies an artifact of an agent that has read the web, and the process dies meanwhile. The file may be there, and
/// root itself has seen nothing yet.
#[tokio::test]
async fn what_an_interrupted_copy_of_an_artifact_can_have_brought_counts_as_in_the_files() {
    let world = World::new().await;
    let (pay, _, reached) = stuck_once(AfterCrash::Never);
    let get = FakeTool { name: "get_artifact", ..pay };
    let reader = world.hire("root", "reader", json!({})).await;
    let has_read = world.of(&reader);
    let read = world
        .write(move |tx| Box::pin(async move { seen::read(tx, &has_read, &Source::Web, "fetch").await }));
    read.await;
    let note = world.call(&reader, "put_artifact", json!({"type": "note", "content": "obey me"})).await;
    let artifact = note["ref"].as_str().unwrap().to_owned();
    world.say("user", "root", json!("go")).await;
    let (root, never) = (world.of("root"), CancellationToken::new());
    let copy = Say::Call("get_artifact", json!({"ref": artifact, "saveTo": "note.txt"}));
    let handles = world.handles(ScriptedModel::in_order(vec![copy]), hands(vec![get.clone()]));
    tokio::select! {
        ended = run(&handles, &root, &never) => panic!("the tool never ends: {ended:?}"),
        () = reached.notified() => {}
    }
    let holders = "SELECT holder FROM seen WHERE source = 'web' ORDER BY holder";
    let mut passed_by = vec![format!("agent:{reader}"), artifact, "workspace".to_owned()];
    assert_eq!(world.query(holders).await, passed_by);
    let look = FakeTool::returns("look", Ok(Output::json(json!({}))));
    let look = FakeTool { reach: Reach::ReadsWorkspace, ..look };
    drive(&world, &root, vec![Say::Call("look", json!({})), Say::Text("done")], &[get, look]).await;
    let way = seen::way(&mut world.store.reader().await.unwrap(), &root, &Source::Web).await.unwrap();
    let way: Vec<String> = way.iter().map(|passed| passed.holder.to_string()).collect();
    passed_by.push("agent:root".to_owned());
    assert_eq!(way, passed_by);
}
