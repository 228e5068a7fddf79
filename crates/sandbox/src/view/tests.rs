use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::{Hidden, Kind, Mount, Names, Places, Refused, check, mounts, readable};
use crate::host::Host;
use crate::machine::Level;
use crate::plan::Access;
use crate::walls::landlock::{Right, rules};

fn places() -> Places {
    Places {
        workspace: "/data/ws/1".into(),
        access: Access::ReadWrite,
        home: "/data/home/1".into(),
        temporary: "/data/tmp/1".into(),
        readable: vec!["/srv/books".into()],
        repository: vec!["/data/git/1".into()],
        hidden: vec![Hidden { path: "/data".into(), kind: Kind::Directory }],
        pinned: vec!["/data/ws/1/.git/config".into(), "/data/ws/1/.git/hooks".into()],
        program: "/usr/bin/polity".into(),
        names: Some(Names { passwd: "/data/out/1.passwd".into(), group: "/data/out/1.group".into() }),
        proxy: None,
    }
}

fn host() -> Host {
    Host {
        links: vec![("/bin".into(), "usr/bin".into())],
        system: vec!["/usr".into(), "/opt".into(), "/etc/ssl/certs".into()],
        toolchains: vec!["/home/p/.cargo/bin".into(), "/home/p/.rustup".into()],
    }
}

/// Finds where a path inside the sandbox leads. Returns the mount that leads there, and the path on the host.
fn seen<'a>(list: &'a [Mount], path: &Path) -> Option<(&'a Mount, PathBuf)> {
    let mount = list.iter().rev().find(|mount| path.starts_with(mount.at()))?;
    let rest = path.strip_prefix(mount.at()).unwrap();
    match mount {
        // `join` with an empty path would add a slash at the end.
        Mount::Read { from, .. } | Mount::Write { from, .. } if rest == Path::new("") => {
            Some((mount, from.clone()))
        }
        Mount::Read { from, .. } | Mount::Write { from, .. } => Some((mount, from.join(rest))),
        Mount::Link { .. } | Mount::Cover { .. } => None,
    }
}

#[test]
fn only_what_is_granted_exists() {
    let list = mounts(&places(), &host());
    let at = |path: &str| seen(&list, Path::new(path)).map(|(_, host)| host.to_string_lossy().into_owned());
    assert_eq!(at("/data/ws/1/a").as_deref(), Some("/data/ws/1/a"));
    assert_eq!(at("/data/git/1/config").as_deref(), Some("/data/git/1/config"));
    assert_eq!(at("/tmp/a").as_deref(), Some("/data/tmp/1/a"));
    assert_eq!(at("/usr/bin/cc").as_deref(), Some("/usr/bin/cc"));
    assert_eq!(at("/etc/passwd").as_deref(), Some("/data/out/1.passwd"));
    assert_eq!(at("/home/p/.cargo/bin/cargo").as_deref(), Some("/home/p/.cargo/bin/cargo"));
    for nothing in [
        "/data/token",
        "/data/ws/2",
        "/home/p/.ssh",
        "/home/p/.cargo/credentials.toml",
        "/etc/shadow",
        "/root",
    ] {
        assert_eq!(at(nothing), None, "{nothing}");
    }
}

/// A guarded path cannot be changed, and no directory between the workspace and this path can be renamed.
#[test]
fn guarded_paths_are_mount_points_all_the_way() {
    let list = mounts(&places(), &host());
    let is_mount = |path: &str| list.iter().filter(|mount| mount.at() == Path::new(path)).collect::<Vec<_>>();
    assert!(matches!(is_mount("/data/ws/1/.git")[..], [Mount::Write { .. }]));
    assert!(matches!(is_mount("/data/ws/1/.git/config")[..], [Mount::Read { .. }]));
    assert!(matches!(is_mount("/data/ws/1/.git/hooks")[..], [Mount::Read { .. }]));
    let reading = Places { access: Access::ReadOnly, ..places() };
    let list = mounts(&reading, &host());
    assert!(!list.iter().any(|mount| matches!(mount, Mount::Write { at, .. } if at.starts_with("/data/ws"))));
}

/// A guarded directory cannot be changed anywhere, also if paths inside it are guarded themselves.
#[test]
fn nothing_inside_a_guarded_directory_can_be_changed() {
    let pinned = [".git", ".git/config", ".git/worktrees/w/commondir", "a/.git/hooks"];
    let pinned = pinned.map(|path| Path::new("/data/ws/1").join(path)).to_vec();
    let list = mounts(&Places { pinned, ..places() }, &host());
    let inside = |mount: &&Mount| mount.at().starts_with("/data/ws/1/.git");
    let inside: Vec<&Mount> = list.iter().filter(inside).collect();
    assert!(
        matches!(inside[..], [Mount::Read { at, .. }] if at == Path::new("/data/ws/1/.git")),
        "{inside:?}"
    );
    let (mount, _) = seen(&list, Path::new("/data/ws/1/a/.git/hooks/x")).unwrap();
    assert!(matches!(mount, Mount::Read { .. }), "{mount:?}");
}

#[test]
fn a_toolchain_in_a_hidden_directory_is_not_shown() {
    let mut places = places();
    places.hidden.push(Hidden { path: "/home/p/.rustup/secret".into(), kind: Kind::File });
    assert!(!readable(&places, &host()).contains(&"/home/p/.rustup".into()));
    assert!(readable(&places, &host()).contains(&"/home/p/.cargo/bin".into()));
}

#[test]
fn what_is_too_wide_is_refused() {
    for path in ["/", "/proc", "/proc/1", "/sys", "/dev", "/dev/shm", "/run"] {
        let places = Places { readable: vec![path.into()], ..places() };
        assert_eq!(check(&places, Level::Full), Err(Refused::TooWide(path.into())));
    }
    let places = Places { readable: vec!["/data/ws/2".into()], ..places() };
    assert!(matches!(check(&places, Level::Full), Err(Refused::Hidden { .. })));
}

/// Generates paths from only three names, so that one generated path often contains another.
fn path() -> impl Strategy<Value = PathBuf> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c"]), 1..5)
        .prop_map(|names| names.iter().fold(PathBuf::from("/"), |path, name| path.join(name)))
}

/// Returns the directories that the command may see even if they are inside a hidden directory.
fn own(places: &Places) -> Vec<&PathBuf> {
    [&places.workspace, &places.home, &places.temporary].into_iter().chain(&places.repository).collect()
}

fn some_places() -> impl Strategy<Value = (Places, Host)> {
    let paths = || prop::collection::vec(path(), 0..4);
    (path(), path(), path(), paths(), paths(), paths(), paths(), paths()).prop_map(
        |(workspace, home, temporary, readable, repository, hidden, system, toolchains)| {
            let hidden = hidden.into_iter().map(|path| Hidden { path, kind: Kind::Directory }).collect();
            let pinned = Vec::new();
            let places =
                Places { workspace, home, temporary, readable, repository, hidden, pinned, ..places() };
            (places, Host { links: Vec::new(), system, toolchains })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, max_global_rejects: 65_536, ..ProptestConfig::default() })]

    /// At the sandbox level `full`, no path inside the sandbox leads to a hidden path, whatever directories the plan
    /// grants. The only exceptions are the command's own directories.
    #[test]
    fn no_path_leads_to_a_hidden_one((places, host) in some_places(), inside in path()) {
        prop_assume!(check(&places, Level::Full).is_ok());
        let list = mounts(&places, &host);
        if let Some((_, target)) = seen(&list, &inside) {
            let own = own(&places);
            let is_own = |hidden: &Path| own.iter().any(|own| target.starts_with(own) && own.starts_with(hidden));
            for hidden in &places.hidden {
                prop_assert!(
                    !target.starts_with(&hidden.path) || is_own(&hidden.path),
                    "{:?} leads to {:?} in {:?}: {:#?}", inside, target, hidden.path, list
                );
            }
        }
    }

    /// At the sandbox level `partial`, no rule allows a hidden path, unless the path is in one of the command's own
    /// directories.
    #[test]
    fn no_rule_opens_a_hidden_path((places, host) in some_places()) {
        // None of the generated directories exists on disk, so `without` finds no other entries in a directory that
        // contains a hidden path.
        let host = host.without(&places.hidden);
        prop_assume!(check(&places, Level::Partial).is_ok());
        let own = own(&places);
        for rule in rules(&places, &host, Level::Partial) {
            for hidden in &places.hidden {
                let is_own = own.iter().any(|own| rule.path.starts_with(own) && **own != hidden.path);
                prop_assert!(!hidden.path.starts_with(&rule.path), "{:?} opens {:?}", rule, hidden);
                prop_assert!(!rule.path.starts_with(&hidden.path) || is_own, "{:?} opens {:?}", rule, hidden);
            }
        }
    }

    /// The command can write only into the workspace, the home and the temporary directory.
    #[test]
    fn nothing_else_can_be_written((places, host) in some_places()) {
        prop_assume!(check(&places, Level::Full).is_ok());
        let own = [&places.workspace, &places.home, &places.temporary];
        for mount in mounts(&places, &host) {
            if let Mount::Write { from, .. } = mount {
                prop_assert!(own.iter().any(|own| from.starts_with(own)), "{:?}", from);
            }
        }
        for rule in rules(&places, &host, Level::Partial) {
            if rule.right == Right::Write {
                prop_assert!(own.contains(&&rule.path), "{:?}", rule);
            }
        }
    }

    /// Outer mounts come before inner mounts. If inner mounts came first, the outer mounts would cover them.
    #[test]
    fn outer_mounts_come_first((places, host) in some_places()) {
        let list = mounts(&places, &host);
        for (index, outer) in list.iter().enumerate() {
            for inner in &list[..index] {
                prop_assert!(!inner.at().starts_with(outer.at()) || inner.at() == outer.at());
            }
        }
    }
}
