//! Recognises names that cannot be in the public DNS, such as `printer.local`.

/// Endings that are reserved for one machine or network: RFC 6761, RFC 6762 with its appendix G, RFC 7686, RFC 8375,
/// and `.internal`, which ICANN reserved for private use.
const PRIVATE_ENDINGS: &[&str] =
    &["localhost", "local", "internal", "intranet", "private", "corp", "home", "lan", "home.arpa", "onion"];

/// Returns whether a name can only belong to this machine or its network. Polity does not look up such a name, because
/// a name server would learn it. Polity looks up all other names, and judges their addresses.
pub(super) fn can_only_be_private(name: &str) -> bool {
    let is_single_label = !name.contains('.');
    is_single_label
        || PRIVATE_ENDINGS.iter().any(|ending| {
            name.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        })
}
