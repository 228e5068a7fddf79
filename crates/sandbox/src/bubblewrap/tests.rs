use std::path::Path;

use super::arguments;
use crate::hidden::Kind;
use crate::machine::OwnProc;
use crate::plan::Network;
use crate::view::Mount;

fn words(network: &Network, proc: OwnProc) -> String {
    let mounts = [
        Mount::Link { at: "/bin".into(), to: "usr/bin".into() },
        Mount::Read { from: "/usr".into(), at: "/usr".into() },
        Mount::Cover { at: "/usr/data".into(), kind: Kind::Directory },
        Mount::Cover { at: "/usr/token".into(), kind: Kind::File },
        Mount::Write { from: "/usr/data/ws".into(), at: "/usr/data/ws".into() },
    ];
    let list = arguments(&mounts, proc, network, Path::new("/usr/data/ws"));
    list.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_arguments_are_complete_and_in_order() {
    assert_eq!(
        words(&Network::None, OwnProc::Mounted),
        "--unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try --unshare-net \
         --uid 1000 --gid 1000 --hostname sandbox --cap-drop ALL --die-with-parent --new-session \
         --proc /proc --remount-ro /proc --dev /dev --size 268435456 --tmpfs /dev/shm --remount-ro /dev \
         --symlink usr/bin /bin --ro-bind /usr /usr --tmpfs /usr/data --ro-bind /dev/null /usr/token \
         --bind /usr/data/ws /usr/data/ws --remount-ro /usr/data --remount-ro / --chdir /usr/data/ws --"
    );
}

#[test]
fn only_the_network_of_the_host_is_shared() {
    assert!(
        words(&Network::Domains(vec!["example.org".to_owned()]), OwnProc::Mounted).contains("--unshare-net")
    );
    let full = words(&Network::Full, OwnProc::Mounted);
    assert!(!full.contains("--unshare-net"));
    for other in ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--cap-drop ALL", "--die-with-parent"] {
        assert!(full.contains(other), "{other}");
    }
}

#[test]
fn a_foreign_proc_is_never_shown() {
    let absent = words(&Network::None, OwnProc::Absent);
    assert!(absent.contains("--dir /proc") && !absent.contains("--proc"));
}
