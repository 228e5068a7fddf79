//! The walls that a process puts around itself before it becomes the command: Landlock and seccomp.

pub(crate) mod landlock;

pub(crate) mod seccomp;

use serde::{Deserialize, Serialize};

use crate::machine::{Level, Machine};
use crate::plan::Network;

/// Version of the Landlock interface that can stop truncation. Below it, files outside could be emptied, so it is the
/// least that the level `partial` accepts.
pub(crate) const LANDLOCK_LEAST: u32 = 3;

/// Version of the Landlock interface that can stop signals and connections to processes outside.
pub(crate) const LANDLOCK_SCOPES: u32 = 6;

/// Which sockets a command may open. Pairs of connected Unix sockets are always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Sockets {
    /// None.
    None,
    /// Internet sockets.
    Internet,
    /// Internet sockets and Unix sockets.
    InternetAndUnix,
}

/// What separates the command from other processes of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Separation {
    /// Own namespaces.
    Namespaces,
    /// Landlock, which can stop signals to processes outside.
    LandlockWithScopes,
    /// Landlock, which cannot stop signals; seccomp refuses nearly all signals.
    Landlock,
}

/// What seccomp refuses in addition to the calls that it refuses to every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Wall {
    pub(crate) sockets: Sockets,
    pub(crate) separation: Separation,
}

/// Decides what seccomp refuses. There is no wall at the level `none`.
pub(crate) fn wall(machine: &Machine, network: &Network) -> Option<Wall> {
    let scopes = machine.landlock >= LANDLOCK_SCOPES;
    match (machine.level, network) {
        (Level::None, _) => None,
        (Level::Full, network) => Some(Wall {
            sockets: match network {
                Network::None | Network::Domains(_) => Sockets::InternetAndUnix,
                // Abstract Unix sockets belong to the network namespace. In the network namespace of the host, the
                // command could connect to sockets of other programs, such as a container runtime or an X server.
                Network::Full if scopes => Sockets::InternetAndUnix,
                Network::Full => Sockets::Internet,
            },
            separation: Separation::Namespaces,
        }),
        (Level::Partial, network) => Some(Wall {
            // Landlock cannot stop a connection to a Unix socket by its path, for example to the socket of a container
            // runtime or of the person's session bus. Over such a socket, a command could start programs outside.
            sockets: match network {
                Network::None | Network::Domains(_) => Sockets::None,
                Network::Full => Sockets::Internet,
            },
            separation: if scopes { Separation::LandlockWithScopes } else { Separation::Landlock },
        }),
    }
}
