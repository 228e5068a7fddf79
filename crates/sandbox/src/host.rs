//! Lists the system directories and toolchains that a command may see, and finds out which of them exist on this
//! host.

use std::path::{Path, PathBuf};

use crate::hidden::Hidden;

/// Directories of the operating system. If one of them is a symbolic link, as `/bin` often is, the sandbox contains
/// the same link.
const SYSTEM: [&str; 10] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix", "/gnu"];

/// Files and directories outside [`SYSTEM`] that programs need while they run. For example, some of these files tell a
/// program the names of hosts, the trusted certificates, the time zone and the directories of libraries. None of them
/// may contain a secret. So the list contains neither `/etc/ssl/private` nor `/etc/shadow`, and no file in which people
/// write passwords for package servers (`/etc/npmrc`, `/etc/pip.conf`, `/etc/gitconfig`).
const SETTINGS: [&str; 46] = [
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/bindresvport.blacklist",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/ghostscript",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/java",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld-musl-aarch64.path",
    "/etc/ld-musl-x86_64.path",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/networks",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/pki/ca-trust/extracted",
    "/etc/pki/java",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/openssl.cnf",
    "/etc/protocols",
    "/etc/python3",
    "/etc/redhat-release",
    "/etc/resolv.conf",
    "/etc/rpc",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/texmf",
    "/etc/timezone",
    "/var/lib/texmf",
];

/// A command may see the directories in `/etc` whose names begin with these texts. The rest of such a name is a
/// version, as in `java-17-openjdk`.
const VERSIONED: [&str; 4] = ["java-", "python3.", "ImageMagick-", "R"];

/// Toolchains in the home of the person. None of these directories normally contains secrets. If a toolchain also
/// stores a token, as Cargo does in `credentials.toml`, the list contains only its directories without a token.
const TOOLCHAINS: [&str; 20] = [
    ".cargo/bin",
    ".cargo/registry",
    ".cargo/git",
    ".rustup",
    ".pyenv",
    ".rbenv",
    ".nvm",
    ".volta",
    ".bun/bin",
    ".deno/bin",
    ".sdkman/candidates",
    ".juliaup",
    ".ghcup/bin",
    ".ghcup/ghc",
    ".opam",
    ".asdf/installs",
    ".local/share/mise/installs",
    ".local/share/uv/python",
    ".nix-profile",
    "go/bin",
];

/// Environment variables that name the directory of a toolchain, each with the subdirectories that a command may
/// read. The subdirectory `""` is the whole toolchain.
const MOVED: [(&str, &[&str]); 5] = [
    ("CARGO_HOME", &["bin", "registry", "git"]),
    ("RUSTUP_HOME", &[""]),
    ("PYENV_ROOT", &[""]),
    ("NVM_DIR", &[""]),
    ("VOLTA_HOME", &[""]),
];

/// The existing paths on the host that every command may read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Host {
    /// Symbolic links in the root directory, each with its target.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    /// System directories, and files of [`SETTINGS`].
    pub(crate) system: Vec<PathBuf>,
    /// Toolchains in the home of the person.
    pub(crate) toolchains: Vec<PathBuf>,
}

impl Host {
    /// Finds out which of the paths listed above exist on this host.
    pub(crate) fn look(variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let mut host = Self::default();
        for path in SYSTEM.map(Path::new) {
            match std::fs::read_link(path) {
                Ok(target) => host.links.push((path.to_owned(), target)),
                Err(_) if path.is_dir() => host.system.push(path.to_owned()),
                Err(_) => {}
            }
        }
        host.system.extend(SETTINGS.map(PathBuf::from).into_iter().filter(|path| path.exists()));
        if let Ok(entries) = std::fs::read_dir("/etc") {
            let mut versioned: Vec<PathBuf> = entries
                .flatten()
                .filter(|entry| {
                    let name = entry.file_name();
                    let name = name.to_string_lossy();
                    VERSIONED.iter().any(|start| {
                        name.strip_prefix(start).is_some_and(|rest| {
                            rest.is_empty() || rest.starts_with(|first: char| first.is_ascii_digit())
                        })
                    })
                })
                .map(|entry| entry.path())
                .filter(|path| path.is_dir())
                .collect();
            versioned.sort();
            host.system.extend(versioned);
        }
        if let Some(home) = variable("HOME").filter(|home| home.is_absolute()) {
            host.toolchains.extend(TOOLCHAINS.iter().map(|part| home.join(part)));
        }
        for (name, parts) in MOVED {
            // A variable is ignored if it names the root directory, a directory directly in the root directory, or a
            // directory that contains the home. Otherwise the command could see everything in such a directory.
            if let Some(root) = variable(name).filter(|root| root.components().count() > 2)
                && variable("HOME").is_none_or(|home| !home.starts_with(&root))
            {
                host.toolchains.extend(parts.iter().map(|part| root.join(part)));
            }
        }
        host.toolchains.retain(|path| path.is_dir());
        // `join("")` above adds a slash at the end of a path. Collecting the components removes it.
        host.toolchains = host.toolchains.iter().map(|path| path.components().collect()).collect();
        host.toolchains.sort();
        host.toolchains.dedup();
        host
    }

    /// Returns the host without these hidden paths. A directory that contains a hidden path is replaced by its other
    /// entries.
    ///
    /// Only the sandbox level `partial` needs this: Landlock gives access to a whole directory, and cannot exclude a
    /// part of it.
    pub(crate) fn without(self, hidden: &[Hidden]) -> Self {
        let system = avoid(self.system, hidden, &|directory| {
            let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
            entries.flatten().map(|entry| entry.path()).collect()
        });
        Self { system, ..self }
    }
}

/// Replaces each path that contains a hidden path by its entries, and leaves out hidden paths.
fn avoid(paths: Vec<PathBuf>, hidden: &[Hidden], entries: &impl Fn(&Path) -> Vec<PathBuf>) -> Vec<PathBuf> {
    let mut open = paths;
    let mut result = Vec::new();
    while let Some(path) = open.pop() {
        if hidden.iter().any(|hidden| path.starts_with(&hidden.path)) {
            continue;
        }
        if hidden.iter().any(|hidden| hidden.path.starts_with(&path)) {
            open.extend(entries(&path));
        } else {
            result.push(path);
        }
    }
    result.sort();
    result
}

#[cfg(test)]
mod tests;
