//! Decides from which outside sources the output of a command may come. Pure.

use crate::call::{Place, Source};
use crate::places::trust_in;
use polity_sandbox::{Level, Network};
use std::collections::BTreeSet;

/// Returns the outside sources that a command can read. The files of its workspace are such a source if they are not
/// trusted. The web is such a source if the command reaches a network. Nobody knows what a command has really read, so
/// its output counts as content of all these sources. `level` is the sandbox of the command. `network` is the network
/// that the settings allow.
pub(super) fn readable(place: &Place, level: Level, network: &Network) -> BTreeSet<Source> {
    let web = reaches_web(level, network).then_some(Source::Web);
    trust_in(place).source().into_iter().chain(web).collect()
}

fn reaches_web(level: Level, network: &Network) -> bool {
    match (level, network) {
        // Without a sandbox, a command has the network of the machine, whatever the settings say.
        (Level::None, _) | (_, Network::Full | Network::Domains(_)) => true,
        (Level::Partial | Level::Full, Network::None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Access, Root};
    use polity_society::id::AgentId;

    #[test]
    fn a_command_reads_its_workspace_and_what_its_network_reaches() {
        let person = Root::Person { directory: "/p".into(), access: Access::Read };
        let check = |root: &Root, level: Level, network: &Network, expect: &[Source]| {
            for worktree in [None, Some(AgentId::new("a-1"))] {
                let place = Place { root: root.clone(), worktree };
                let readable: Vec<Source> = readable(&place, level, network).into_iter().collect();
                assert_eq!(readable, expect, "{place:?}, {level:?}, {network:?}");
            }
        };
        let domains = Network::Domains(vec!["example.org".to_owned()]);
        for level in [Level::Partial, Level::Full] {
            check(&Root::Made, level, &Network::None, &[]);
            check(&Root::Made, level, &Network::Full, &[Source::Web]);
            check(&person, level, &Network::None, &[Source::Files]);
            check(&person, level, &Network::Full, &[Source::Web, Source::Files]);
        }
        check(&Root::Made, Level::Full, &domains, &[Source::Web]);
        check(&Root::Made, Level::None, &Network::None, &[Source::Web]);
        check(&person, Level::None, &Network::None, &[Source::Web, Source::Files]);
    }
}
