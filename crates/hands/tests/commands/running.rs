//! Tests of the list of running commands.

use crate::bench::{Bench, SANDBOXES, task, until};
use polity_society::id::{AgentId, CommandId};
use std::time::SystemTime;

#[tokio::test(flavor = "multi_thread")]
async fn running_commands_are_listed_with_their_output_and_what_they_use() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        let begin = SystemTime::now();
        assert!(bench.commands.running(|_, _| true).is_empty());
        let behind = "echo behind; until [ -e go ]; do sleep 0.05; done";
        let before = "seq 50; until [ -e go ]; do sleep 0.05; done";
        let id = bench.start(behind).await;
        let watched = async {
            until(async || {
                let running = bench.commands.running(|_, _| true);
                let is_seen = running.iter().all(|one| one.usage.processes > 0 && one.usage.memory_bytes > 0);
                running.len() == 2 && is_seen && running[1].last_lines.ends_with("50")
            })
            .await;
            let running = bench.commands.running(|_, of| *of == task());
            let commands: Vec<&str> = running.iter().map(|one| one.command.as_str()).collect();
            assert_eq!(commands, [behind, before], "{level:?}");
            assert_eq!((&running[0].id, &running[1].id), (&Some(CommandId::new(id)), &None));
            assert_eq!((running[0].last_lines.as_str(), running[0].output_bytes), ("behind", 7));
            let lines: Vec<String> = (39..=50).map(|line| line.to_string()).collect();
            assert_eq!(running[1].last_lines, lines.join("\n"), "the output is cut");
            assert!(running.iter().all(|one| one.agent == AgentId::new("a-1") && one.task == task()));
            assert!(begin <= running[0].since && running[0].since <= running[1].since);
            assert!(bench.commands.running(|agent, _| *agent == AgentId::new("a-2")).is_empty());
            bench.bash("touch go").await
        };
        let (ended, _) = tokio::join!(bench.bash(before), watched);
        assert_eq!(ended["exitCode"], 0, "{level:?}: {ended}");
        until(async || bench.commands.running(|_, _| true).is_empty()).await;
    }
}
