use std::path::{Path, PathBuf};

use super::{Host, avoid};
use crate::hidden::{Hidden, Kind};

#[test]
fn a_directory_with_a_hidden_one_is_replaced_by_its_other_entries() {
    let entries = |directory: &Path| -> Vec<PathBuf> {
        ["a", "b", "polity"].iter().map(|name| directory.join(name)).collect()
    };
    let check = |hidden: &str, expected: &[&str]| {
        let hidden = [Hidden { path: hidden.into(), kind: Kind::Directory }];
        let found = avoid(vec!["/usr".into(), "/opt".into()], &hidden, &entries);
        assert_eq!(found, expected.iter().map(PathBuf::from).collect::<Vec<_>>());
    };
    check("/home/p", &["/opt", "/usr"]);
    check("/opt/polity", &["/opt/a", "/opt/b", "/usr"]);
    check("/opt/polity/a", &["/opt/a", "/opt/b", "/opt/polity/b", "/opt/polity/polity", "/usr"]);
    check("/opt", &["/usr"]);
}

/// The list of system paths contains no path where secrets are usually stored, and toolchains are searched for only
/// in their usual places.
#[test]
fn no_secret_place_is_in_the_lists() {
    let home = tempfile::TempDir::new().unwrap();
    for directory in [".cargo/bin", ".ssh", ".config", ".local/bin", ".pyenv/shims", ".aws"] {
        std::fs::create_dir_all(home.path().join(directory)).unwrap();
    }
    std::fs::write(home.path().join(".cargo/credentials.toml"), "").unwrap();
    let host = Host::look(|name| match name {
        "HOME" => Some(home.path().to_owned()),
        // A variable that names the home or the root directory is ignored.
        "NVM_DIR" => Some(home.path().to_owned()),
        "RUSTUP_HOME" => Some(PathBuf::from("/")),
        _ => None,
    });
    assert_eq!(host.toolchains, [home.path().join(".cargo/bin"), home.path().join(".pyenv")]);
    for secret in [
        "/etc/shadow",
        "/etc/ssl/private",
        "/etc/ssh",
        "/etc/sudoers",
        "/root",
        "/home",
        "/var",
        "/run",
        "/etc",
    ] {
        let opens = |path: &PathBuf| Path::new(secret).starts_with(path);
        assert!(!host.system.iter().any(opens), "{secret}");
    }
}
