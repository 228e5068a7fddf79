//! Tests what an ordinary command can do, and how a command ends.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use polity_sandbox::{Access, Error, Excerpt, How, Level, Limits, Running, probe, spawn};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, CANARY, PATIENCE, entrance, exists, processes_with, text};

const LEVELS: [Level; 3] = [Level::None, Level::Partial, Level::Full];

const SANDBOXES: [Level; 2] = [Level::Partial, Level::Full];

#[tokio::test(flavor = "multi_thread")]
async fn the_machine_is_described() {
    let machine = probe(&entrance()).await;
    println!("this machine: {:?}, Landlock {}, kernel {:?}", machine.level, machine.landlock, machine.kernel);
    for finding in &machine.findings {
        println!("- {} {}", finding.text, finding.advice.clone().unwrap_or_default());
    }
    assert!(!machine.findings.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_works_in_its_workspace() {
    for level in LEVELS {
        let Some(bench) = Bench::at(level).await else { continue };
        let ended = bench
            .run("cat hello.txt; echo wrong >&2; echo new > new.txt; pwd; echo $HOME; touch $HOME/x $TMPDIR/y; exit 3")
            .await;
        assert_eq!(ended.how, How::Exited(3), "{level:?}: {}", text(&ended));
        let said = text(&ended);
        assert!(said.starts_with("hello\nwrong\n"), "{level:?}: {said}");
        assert!(said.contains(&bench.path("ws").display().to_string()), "{level:?}: {said}");
        assert_eq!(std::fs::read_to_string(bench.path("ws/new.txt")).unwrap(), "new\n");
        assert!(exists(&bench.path("data/home/x")) && exists(&bench.path("data/tmp/y")), "{level:?}: {said}");
        assert_eq!(ended.output.first, said.as_bytes());
        assert_eq!(ended.restored, Vec::<PathBuf>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_of_polity_can_be_read() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        let program = match level {
            Level::Full => PathBuf::from("/run/polity/enter"),
            Level::Partial | Level::None => entrance().program,
        };
        // The first four bytes of a Linux program are a control character and these letters.
        let ended = bench.run(&format!("head -c 4 '{}' | tail -c 3", program.display())).await;
        assert_eq!(text(&ended), "ELF", "{level:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_can_be_built_and_run() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        if !exists("/usr/bin/cc".as_ref()) {
            println!("skipped: no C compiler");
            continue;
        }
        let ended = bench
            .run(
                "printf 'int puts(const char*); int main(){puts(\"built\");return 0;}' > a.c && cc a.c -o a && ./a \
                 && printf '#!/bin/sh\\necho script\\n' > s.sh && chmod +x s.sh && ./s.sh \
                 && mkdir d && mv a d/b && ln -s b d/c && ./d/c && rm -r d",
            )
            .await;
        assert_eq!(text(&ended), "built\nscript\nbuilt\n", "{level:?}");
        assert_eq!(ended.how, How::Exited(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn git_works_but_its_settings_stay() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        if !exists("/usr/bin/git".as_ref()) && !exists("/usr/local/bin/git".as_ref()) {
            println!("skipped: no git");
            continue;
        }
        std::fs::remove_dir_all(bench.path("ws/.git")).unwrap();
        std::process::Command::new("git")
            .args(["init", "-q"])
            .current_dir(bench.path("ws"))
            .status()
            .unwrap();
        let before = std::fs::read(bench.path("ws/.git/config")).unwrap();
        let ended = bench
            .run(
                "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m one && git checkout -q -b two \
                 && git add hello.txt && git -c user.name=a -c user.email=a@b commit -q -m two && git log --format=%s; \
                 printf '[core]\n\thooksPath = /tmp/x\n' >> .git/config; echo config $?",
            )
            .await;
        let said = text(&ended);
        assert!(said.starts_with("two\none\n"), "{level:?}: {said}");
        assert_eq!(std::fs::read(bench.path("ws/.git/config")).unwrap(), before, "{level:?}: {said}");
        if level == Level::Full {
            assert!(!said.contains("config 0"), "{said}");
        } else {
            assert_eq!(ended.restored, [PathBuf::from(".git/config")]);
        }
    }
}

/// A command cannot change the hooks of a repository below the workspace. What it makes there is removed and reported.
#[tokio::test(flavor = "multi_thread")]
async fn guarded_paths_below_the_workspace_stay_and_are_told() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        let ended = bench
            .run(
                "(echo evil > sub/.git/hooks/pre-commit) && echo WROTE; mkdir sub/.git/objects; echo evil > .envrc; \
                 echo evil > packages/a/.envrc; echo '{}' > packages/a/package.json",
            )
            .await;
        let said = text(&ended);
        let mut expect = vec![".envrc", "packages/a/.envrc"];
        match level {
            Level::Full => assert!(!said.contains("WROTE"), "{said}"),
            Level::Partial | Level::None => expect.insert(0, "sub/.git/hooks"),
        }
        assert_eq!(ended.restored, expect.into_iter().map(PathBuf::from).collect::<Vec<_>>(), "{level:?}");
        assert!(
            exists(&bench.path("ws/sub/.git/objects")) && exists(&bench.path("ws/packages/a/package.json"))
        );
        bench.check_canaries("below the workspace");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_workspace_stays_as_it_is() {
    for level in SANDBOXES {
        let Some(mut bench) = Bench::at(level).await else { continue };
        bench.plan.access = Access::ReadOnly;
        let ended =
            bench.run("cat hello.txt; echo x > hello.txt; touch new; rm hello.txt; mkdir d; exit 0").await;
        assert!(text(&ended).starts_with("hello\n"), "{level:?}: {}", text(&ended));
        assert_eq!(std::fs::read_to_string(bench.path("ws/hello.txt")).unwrap(), "hello\n");
        assert!(!exists(&bench.path("ws/new")) && !exists(&bench.path("ws/d")));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn further_directories_can_be_read() {
    for level in SANDBOXES {
        let Some(mut bench) = Bench::at(level).await else { continue };
        std::fs::create_dir(bench.path("library")).unwrap();
        std::fs::write(bench.path("library/book"), "a book").unwrap();
        bench.plan.readable = vec![bench.path("library"), bench.path("missing")];
        let book = bench.path("library/book").display().to_string();
        let ended = bench.run(&format!("cat {book}; echo x > {book}; rm {book}")).await;
        assert!(text(&ended).starts_with("a book"), "{level:?}: {}", text(&ended));
        assert_eq!(std::fs::read_to_string(bench.path("library/book")).unwrap(), "a book");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_repository_of_a_workspace_can_be_read_in_a_hidden_directory() {
    for level in SANDBOXES {
        let Some(mut bench) = Bench::at(level).await else { continue };
        std::fs::create_dir(bench.path("data/git")).unwrap();
        std::fs::write(bench.path("data/git/config"), "settings").unwrap();
        bench.plan.repository = vec![bench.path("data/git")];
        let file = bench.path("data/git/config").display().to_string();
        let ended = bench.run(&format!("cat {file} @DATA/token; echo x > {file}; rm {file}")).await;
        assert!(text(&ended).starts_with("settings"), "{level:?}: {}", text(&ended));
        assert!(!text(&ended).contains(CANARY), "{level:?}: {}", text(&ended));
        assert_eq!(std::fs::read_to_string(bench.path("data/git/config")).unwrap(), "settings");
        bench.check_canaries("repository");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_directory_stays_hidden_in_a_granted_one() {
    for level in SANDBOXES {
        let Some(mut bench) = Bench::at(level).await else { continue };
        // The workspace is the home of the person and contains hidden paths.
        bench.plan.workspace = bench.path("person");
        bench.plan.hidden.extend([bench.path("person/.ssh"), bench.path("person/notes")]);
        let result = bench
            .try_run("ls -A .ssh; cat .ssh/id_ed25519 notes; echo x > notes; touch made; rm -rf .ssh notes")
            .await;
        match level {
            Level::Full => {
                let ended = result.unwrap();
                assert!(!text(&ended).contains(CANARY), "{}", text(&ended));
                assert!(exists(&bench.path("person/made")));
            }
            Level::Partial | Level::None => assert!(matches!(result, Err(Error::Refused(_))), "{result:?}"),
        }
        bench.check_canaries("hidden");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_time_is_limited() {
    for level in LEVELS {
        let Some(mut bench) = Bench::at(level).await else { continue };
        bench.plan.limits.timeout_ms = 300;
        let ended = bench.run("echo begun; sleep 1000 & sleep 1000").await;
        assert_eq!(ended.how, How::TimedOut, "{level:?}");
        // On a busy machine, the time may be over before the shell has written `begun`.
        assert!("begun\n".starts_with(&text(&ended)), "{}", text(&ended));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_can_be_cancelled() {
    for level in LEVELS {
        let Some(bench) = Bench::at(level).await else { continue };
        let cancel = CancellationToken::new();
        let running = bench.spawn("echo begun; sleep 1000", &cancel).await;
        wait_until_it_prints(&running).await;
        cancel.cancel();
        let ended = tokio::time::timeout(PATIENCE, running.ended()).await.unwrap().unwrap();
        assert_eq!(ended.how, How::Cancelled, "{level:?}");
    }
}

/// A command that starts processes in every way that could let them outlive the shell.
const OUTLIVING: &str = "
    sleep @MARK & disown
    nohup sleep @MARK >/dev/null 2>&1 &
    setsid sleep @MARK >/dev/null 2>&1 </dev/null &
    (setsid sh -c '(trap \"\" TERM HUP INT; sleep @MARK) & exec sleep @MARK' >/dev/null 2>&1 &)
    perl -e 'fork and exit; setpgrp; fork and exit; exec \"sleep\", \"@MARK\"' >/dev/null 2>&1
    ( ( sleep @MARK >/dev/null 2>&1 & ) & )
";

#[tokio::test(flavor = "multi_thread")]
async fn no_process_outlives_its_command() {
    for level in LEVELS {
        let Some(mut bench) = Bench::at(level).await else { continue };
        let mark = format!("{}{}", std::process::id(), level as u8);
        let command = OUTLIVING.replace("@MARK", &mark);
        let ended = bench.run(&format!("{command} echo over")).await;
        assert_eq!((ended.how, text(&ended).as_str()), (How::Exited(0), "over\n"), "{level:?}");
        assert_eq!(processes_with(&format!("sleep {mark}")), Vec::<String>::new(), "{level:?}");

        bench.plan.limits.timeout_ms = 500;
        let ended = bench.run(&format!("{command} sleep {mark}")).await;
        assert_eq!(ended.how, How::TimedOut, "{level:?}");
        assert_eq!(processes_with(&format!("sleep {mark}")), Vec::<String>::new(), "{level:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_command_ends() {
    for level in LEVELS {
        let Some(bench) = Bench::at(level).await else { continue };
        let mark = format!("{}7{}", std::process::id(), level as u8);
        let running =
            bench.spawn(&format!("sleep {mark} & echo begun; sleep {mark}"), &CancellationToken::new()).await;
        wait_until_it_prints(&running).await;
        drop(running);
        wait_until_gone(&mark).await;
    }
}

/// The test starts its own program as a daemon, kills the daemon with SIGKILL, and checks that no process of the
/// command is left.
#[tokio::test(flavor = "multi_thread")]
async fn no_process_outlives_the_daemon() {
    const VARIABLE: &str = "POLITY_SANDBOX_TEST_DAEMON";
    if let Ok(level) = std::env::var(VARIABLE) {
        let (level, mark) = level.split_once(' ').unwrap();
        let level = LEVELS.into_iter().find(|known| format!("{known:?}") == level).unwrap();
        let bench = Bench::at(level).await.unwrap();
        let plan = polity_sandbox::Plan {
            command: format!("setsid sleep {mark} & nohup sleep {mark} & sleep {mark}"),
            ..bench.plan.clone()
        };
        let running =
            spawn(plan, &bench.machine, &entrance(), &CancellationToken::new(), |_| {}).await.unwrap();
        running.ended().await.unwrap();
        return;
    }
    for level in LEVELS {
        let Some(_) = Bench::at(level).await else { continue };
        let mark = format!("{}8{}", std::process::id(), level as u8);
        let mut daemon = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "basics::no_process_outlives_the_daemon", "--nocapture"])
            .env(VARIABLE, format!("{level:?} {mark}"))
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while processes_with(&format!("sleep {mark}")).len() < 3 {
            assert!(begun.elapsed() < PATIENCE, "the command did not begin");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        daemon.kill().await.unwrap();
        wait_until_gone(&mark).await;
    }
}

async fn wait_until_it_prints(running: &Running) {
    let begun = Instant::now();
    while running.output().total_bytes == 0 {
        assert!(begun.elapsed() < PATIENCE, "the command prints nothing");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn wait_until_gone(mark: &str) {
    let begun = Instant::now();
    while !processes_with(&format!("sleep {mark}")).is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", processes_with(&format!("sleep {mark}")));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn much_output_is_kept_in_part() {
    for level in SANDBOXES {
        let Some(mut bench) = Bench::at(level).await else { continue };
        bench.plan.excerpt = Excerpt { first: 10, last: 10 };
        let ended = bench.run("seq 1 100000").await;
        assert_eq!(ended.how, How::Exited(0));
        assert_eq!(ended.output.first, b"1\n2\n3\n4\n5\n");
        assert_eq!(ended.output.last, b"99\n100000\n");
        assert_eq!(ended.output.total_bytes, 588_895);
        assert_eq!(std::fs::metadata(&ended.output.file).unwrap().len(), 588_895);

        bench.plan.limits = Limits { output_bytes: 1000, ..bench.plan.limits.clone() };
        let ended = bench.run("yes").await;
        assert_eq!(ended.how, How::TooMuchOutput, "{level:?}");
        assert_eq!(std::fs::metadata(&ended.output.file).unwrap().len(), 1000);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_run_is_refused_with_advice() {
    let Some(bench) = Bench::at(Level::Partial).await else { return };
    let long = bench.try_run(&"x".repeat(200_000)).await;
    assert!(matches!(long, Err(Error::CommandTooLong(200_000))), "{long:?}");
    assert!(matches!(bench.try_run("a\0b").await, Err(Error::ZeroByte)));
    let mut wide = Bench::at(Level::Partial).await.unwrap();
    wide.plan.readable = vec![PathBuf::from("/")];
    assert!(matches!(wide.try_run("true").await, Err(Error::Refused(_))));
    let mut data = Bench::at(Level::Partial).await.unwrap();
    data.plan.readable = vec![data.path("data/workspaces/other")];
    assert!(matches!(data.try_run("true").await, Err(Error::Refused(_))));
    let mut missing = Bench::at(Level::Partial).await.unwrap();
    missing.plan.workspace = missing.path("nowhere");
    assert!(matches!(missing.try_run("true").await, Err(Error::Path { .. })));
}

/// If bubblewrap cannot build the sandbox, the error says why and nothing has run.
#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_cannot_be_built_runs_nothing() {
    let Some(mut bench) = Bench::at(Level::Full).await else { return };
    bench.machine.bubblewrap = Some(PathBuf::from("/bin/false"));
    let result = bench.try_run("touch ran").await;
    assert!(matches!(result, Err(Error::Sandbox { .. })), "{result:?}");
    bench.machine.bubblewrap = Some(PathBuf::from("/nowhere/bwrap"));
    let result = bench.try_run("touch ran").await;
    assert!(matches!(result, Err(Error::Sandbox { .. })), "{result:?}");
    assert!(!exists(&bench.path("ws/ran")));
}
