//! Tests the limits that the kernel enforces with control groups. The tests need a control group that the system has
//! delegated to the test program. Without one, they are skipped. `just groups` starts the test program in one.

use polity_sandbox::{How, Level, Together};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

use crate::bench::{Bench, PATIENCE, exists, tell, text};

const MIB: u64 = 1 << 20;

/// A program that takes 80 MiB of memory, which its children would share, and keeps the memory for a minute. `/proc`
/// shows such memory as shared by everybody, so samples do not count it.
const SHARED: &str =
    "python3 -c 'import mmap, time; m = mmap.mmap(-1, 80 << 20); m.write(bytes(80 << 20)); time.sleep(60)'";

/// Returns benches at all levels at which the machine can run commands in control groups.
async fn benches() -> Vec<(Bench, PathBuf)> {
    let mut found = Vec::new();
    for level in [Level::None, Level::Partial, Level::Full] {
        let Some(bench) = Bench::at(level).await else { continue };
        match bench.machine.delegated.clone() {
            Some(delegated) if exists("/usr/bin/python3".as_ref()) => found.push((bench, delegated)),
            Some(_) => tell("control groups are not tested: there is no python3"),
            None => tell("control groups are not tested: the system has delegated none (`just groups`)"),
        }
    }
    found
}

/// Waits until a condition holds.
async fn until(holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "this took too long");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_limits_memory_that_samples_do_not_count() {
    for (mut bench, _) in benches().await {
        bench.plan.limits.memory_bytes = 200 * MIB;
        let ended = bench.run(&format!("{SHARED} & {SHARED} & {SHARED} & {SHARED} & wait")).await;
        assert_eq!(ended.how, How::OutOfMemory, "{:?}: {}", bench.machine.level, text(&ended));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_ends_the_largest_command_if_all_commands_of_a_task_use_too_much_memory() {
    for (mut small, delegated) in benches().await {
        let level = small.machine.level;
        let mut large = Bench::at(level).await.unwrap();
        let name = format!("memory-{}", small.mark);
        let together = Together { name: name.clone(), memory_bytes: 200 * MIB, processes: 1_000 };
        small.plan.together = Some(together.clone());
        large.plan.together = Some(together);
        let cancel = CancellationToken::new();
        let running = small.spawn("touch ready; while ! [ -e go ]; do sleep 0.01; done", &cancel).await;
        until(|| small.path("ws/ready").exists()).await;
        let ended = large.run(&format!("{SHARED} & {SHARED} & {SHARED} & wait")).await;
        assert_eq!(ended.how, How::TogetherOutOfMemory, "{level:?}: {}", text(&ended));
        std::fs::write(small.path("ws/go"), "").unwrap();
        assert_eq!(running.ended().await.unwrap().how, How::Exited(0), "{level:?}");
        until(|| !delegated.join(format!("task-{name}")).exists()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_limits_threads() {
    for (mut bench, _) in benches().await {
        bench.plan.limits.processes = 50;
        let threads = "import threading, time\n\
                       for _ in range(1000): threading.Thread(target=time.sleep, args=(60,)).start()";
        let ended = bench.run(&format!("printf '{threads}' > a.py; python3 a.py")).await;
        assert_eq!(ended.how, How::TooManyProcesses, "{:?}: {}", bench.machine.level, text(&ended));
    }
}

/// A program that starts 100 threads. If it gets them, it makes the file `ready` and waits for the file `go`.
const THREADS: &str = "\
import os, threading, time
try:
    for _ in range(100): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
except RuntimeError:
    os._exit(7)
open('ready', 'w').close()
while not os.path.exists('go'): time.sleep(0.01)
os._exit(0)
";

/// Two commands of a task each stay far within their own limits. But together they would have more threads than the
/// limit of the task allows, so the kernel starts no more.
#[tokio::test(flavor = "multi_thread")]
async fn the_kernel_limits_the_threads_of_all_commands_of_a_task() {
    for (mut first, delegated) in benches().await {
        let level = first.machine.level;
        let mut second = Bench::at(level).await.unwrap();
        let name = format!("threads-{}", first.mark);
        let together = Together { name: name.clone(), memory_bytes: 4 << 30, processes: 40 };
        for bench in [&mut first, &mut second] {
            bench.plan.together = Some(together.clone());
            std::fs::write(bench.path("ws/a.py"), THREADS).unwrap();
        }
        let cancel = CancellationToken::new();
        let running = first.spawn("python3 a.py", &cancel).await;
        until(|| first.path("ws/ready").exists()).await;
        let most = std::fs::read_to_string(delegated.join(format!("task-{name}/pids.max"))).unwrap();
        assert_eq!(most.trim(), "144", "{level:?}: twice the number of processes, and 64");
        let ended = second.run("python3 a.py").await;
        // Since Linux 6.11, the control group of a command does not count threads that the limit of the task refuses.
        // Then only the program notices the refusal, and ends with the code 7.
        let is_refused = matches!(ended.how, How::TooManyProcesses | How::Exited(7));
        assert!(
            is_refused && !second.path("ws/ready").exists(),
            "{level:?}: {:?}: {}",
            ended.how,
            text(&ended)
        );
        std::fs::write(first.path("ws/go"), "").unwrap();
        assert_eq!(running.ended().await.unwrap().how, How::Exited(0), "{level:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_command_leaves_no_control_group() {
    for (mut bench, delegated) in benches().await {
        let name = format!("stopped-{}", bench.mark);
        bench.plan.together =
            Some(Together { name: name.clone(), memory_bytes: 200 * MIB, processes: 1_000 });
        let group = delegated.join(format!("task-{name}"));
        let cancel = CancellationToken::new();
        let running = bench.spawn("touch ready; setsid sleep 9@MARK & wait", &cancel).await;
        until(|| bench.path("ws/ready").exists()).await;
        assert!(group.exists(), "{:?}", bench.machine.level);
        cancel.cancel();
        assert_eq!(running.ended().await.unwrap().how, How::Cancelled);
        assert!(!group.exists(), "{:?}: the control group is still there", bench.machine.level);
    }
}
