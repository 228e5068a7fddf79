//! Makes tool names that the APIs of all models accept.

use polity_society::tool_group::ServerName;

/// Maximum length of a tool's name that all model APIs accept, in characters.
const MOST_CHARS: usize = 64;

/// If polity has to change a name, it adds a hash with this many hexadecimal digits.
const HASH_DIGITS: usize = 8;

/// Returns the name by which models call a tool of a server: `<server>__<tool>`.
///
/// The result depends only on the names of the server and of the tool, so it stays the same when the server lists
/// other tools. Tools of different servers never have the same name, because the name of a server contains no `__`
/// and does not end with `_`.
pub(crate) fn name(server: &ServerName, tool: &str) -> String {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let replaced: String =
        tool.chars().map(|character| if plain(character) { character } else { '_' }).collect();
    let full = format!("{server}__{replaced}");
    if replaced == tool && !tool.is_empty() && full.len() <= MOST_CHARS {
        return full;
    }
    let hash = blake3::hash(tool.as_bytes()).to_hex();
    let kept: String = full.chars().take(MOST_CHARS - 1 - HASH_DIGITS).collect();
    format!("{kept}_{}", &hash[..HASH_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn server(name: &str) -> ServerName {
        ServerName::new(name).unwrap()
    }

    #[test]
    fn a_plain_name_stays() {
        assert_eq!(name(&server("git"), "git_status"), "git__git_status");
        assert_eq!(
            name(&server("git"), "a.b/c"),
            format!("git__a_b_c_{}", &blake3::hash(b"a.b/c").to_hex()[..8])
        );
        assert_eq!(name(&server("git"), ""), format!("git___{}", &blake3::hash(b"").to_hex()[..8]));
    }

    proptest! {
        #[test]
        fn names_are_accepted_and_unique(
            servers in prop::collection::btree_set("[a-z][a-z0-9-]{0,30}[a-z0-9]|a|a_b|b", 1..5),
            tools in prop::collection::btree_set("[a-z_.文]{0,4}|[a-z_]{20,80}|[ -~]{0,40}", 1..30),
        ) {
            let mut seen = BTreeMap::new();
            for one in &servers {
                for tool in &tools {
                    let named = name(&server(one), tool);
                    prop_assert!(named.len() <= MOST_CHARS);
                    prop_assert!(named.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{named}");
                    let prefix = format!("{one}__");
                    prop_assert!(named.starts_with(&prefix), "{named}");
                    let before = seen.insert(named.clone(), (one, tool));
                    prop_assert!(before.is_none(), "{named}: {before:?} and {:?}", (one, tool));
                }
            }
        }
    }
}
