//! Checks the directory that the person names as a workspace.

use super::writing::WriteError;
use polity_society::workspace::Root;
use std::path::{Path, PathBuf};

/// Checks that a workspace is a directory. Also checks that the workspace contains no directory of polity itself, and
/// lies in none. Without this check, agents could read the access token and the keys of polity, or change its
/// configuration. Returns the workspace with its path resolved.
pub(super) async fn checked(root: Root, private: &[PathBuf]) -> Result<Root, WriteError> {
    let Root::Person { directory, access } = root else { return Ok(root) };
    let refused = |rule: String| WriteError::invalid("workspace", &rule);
    let resolved = tokio::fs::canonicalize(&directory).await;
    let resolved = resolved.map_err(|error| refused(format!("{}: {error}", directory.display())))?;
    let is_directory = tokio::fs::metadata(&resolved).await.is_ok_and(|metadata| metadata.is_dir());
    if !is_directory {
        return Err(refused(format!("{} is not a directory", directory.display())));
    }
    for own in private {
        // The path of a directory that does not exist yet cannot be resolved, so this path is compared unchanged.
        let own = tokio::fs::canonicalize(own).await.unwrap_or_else(|_| own.clone());
        if overlap(&resolved, &own) {
            return Err(refused(format!(
                "{} and {}, a directory of polity itself, must not contain each other; \
                 choose another workspace, or start polity with other --data and --config directories",
                resolved.display(),
                own.display()
            )));
        }
    }
    Ok(Root::Person { directory: resolved, access })
}

/// Returns whether one of two directories contains the other.
fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_society::workspace::Access;

    #[tokio::test]
    async fn a_workspace_is_a_directory_apart_from_those_of_polity() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().canonicalize().unwrap().join(name);
        for name in ["data/inside", "project"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::write(at("file"), "x").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink(at("data"), at("link")).unwrap();
        let private = [at("data"), at("not-there-yet")];
        let check = async |name: &str, expect: Option<&str>| {
            let root = Root::Person { directory: at(name), access: Access::Write };
            let checked = checked(root.clone(), &private).await;
            match (checked, expect) {
                (Ok(checked), None) => assert_eq!(checked, root, "{name}"),
                (Err(error), Some(expect)) => {
                    assert!(format!("{error:?}").contains(expect), "{name}: {error:?}")
                }
                (checked, _) => panic!("{name}: {checked:?}"),
            }
        };
        check("project", None).await;
        check("none", Some("none")).await;
        check("file", Some("is not a directory")).await;
        check("data", Some("contain each other")).await;
        check("data/inside", Some("contain each other")).await;
        check("", Some("contain each other")).await;
        if cfg!(unix) {
            check("link", Some("contain each other")).await;
        }
        assert_eq!(checked_made().await, Root::Made);
    }

    async fn checked_made() -> Root {
        checked(Root::Made, &[]).await.unwrap()
    }
}
