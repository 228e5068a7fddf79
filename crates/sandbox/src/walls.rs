//! The walls of a command: Landlock restricts which paths it can open, and seccomp restricts its system calls. The
//! process inside the sandbox installs both for itself before it becomes the shell.

pub(crate) mod landlock;

pub(crate) mod seccomp;

use serde::{Deserialize, Serialize};

use crate::machine::{Level, Machine};
use crate::plan::Network;

/// The first version of the Landlock interface that can refuse truncation. With an older version, a command could empty
/// files outside the workspace, so the sandbox level `partial` needs at least this version.
pub(crate) const LANDLOCK_LEAST: u32 = 3;

/// The first version of the Landlock interface that can refuse signals and connections to processes outside the
/// sandbox.
pub(crate) const LANDLOCK_SCOPES: u32 = 6;

/// Which sockets a command may open. A pair of Unix sockets that are connected to each other is always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sockets {
    /// No sockets.
    None,
    /// Internet sockets.
    Internet,
    /// Internet sockets and Unix sockets.
    InternetAndUnix,
}

/// What separates the command from other processes of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Separation {
    /// The command has its own namespaces.
    Namespaces,
    /// Only Landlock separates the command. This version of Landlock can refuse signals to processes outside.
    LandlockWithScopes,
    /// Only Landlock separates the command. This version of Landlock cannot refuse signals, so seccomp refuses nearly
    /// all signals.
    Landlock,
}

/// Seccomp refuses some calls for every command. These facts decide which further calls it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wall {
    pub(crate) sockets: Sockets,
    pub(crate) separation: Separation,
}

/// Decides what seccomp refuses. Returns `None` at the sandbox level `none`, which has no seccomp.
pub(crate) fn wall(machine: &Machine, network: &Network) -> Option<Wall> {
    let scopes = machine.landlock >= LANDLOCK_SCOPES;
    match (machine.level, network) {
        (Level::None, _) => None,
        (Level::Full, network) => Some(Wall {
            sockets: match network {
                Network::None | Network::Domains(_) => Sockets::InternetAndUnix,
                // Abstract Unix sockets belong to the network namespace. In the host's network namespace, a command
                // could connect to abstract sockets of other programs, such as an X server. A Landlock version with
                // scopes refuses these connections. If Landlock has no scopes, the command may use no Unix sockets at
                // all.
                Network::Full if scopes => Sockets::InternetAndUnix,
                Network::Full => Sockets::Internet,
            },
            separation: Separation::Namespaces,
        }),
        (Level::Partial, network) => Some(Wall {
            // Unix sockets are never allowed at this level: Landlock cannot refuse a connection to a Unix socket by
            // its path. Through the socket of a container runtime or of the person's session bus, a command could
            // start programs outside the sandbox.
            sockets: match network {
                Network::None | Network::Domains(_) => Sockets::None,
                Network::Full => Sockets::Internet,
            },
            separation: if scopes { Separation::LandlockWithScopes } else { Separation::Landlock },
        }),
    }
}
