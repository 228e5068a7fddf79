//! Finds artifacts that nobody can need any more. There are two groups. The artifacts of the first group belong to
//! tasks that ended long ago, and nothing outside such tasks names them. The artifacts of the second group were stored
//! by the person some time ago, and the person has sent them to nobody.

use crate::messages::requests::open_question;
use crate::{Error, Tx};
use polity_society::id::ArtifactId;
use polity_society::time::Timestamp;
use polity_sql::{Connection, Row};
use serde_json::json;
use std::collections::{BTreeSet, HashSet};

/// Idle tasks without an open turn, a waiting message or a parked conversation, in which nothing has happened since ?1.
const OVER: &str = concat!(
    "SELECT id FROM tasks WHERE state = 'idle' AND created_at < ?1
    AND id NOT IN (SELECT task FROM turns WHERE state = 'open' OR created_at >= ?1)
    AND id NOT IN (SELECT task FROM records WHERE created_at >= ?1)
    AND id NOT IN (SELECT task FROM artifacts WHERE created_at >= ?1)
    AND id NOT IN (SELECT task FROM holds)
    AND id NOT IN (SELECT task FROM messages WHERE created_at >= ?1 OR state IN ('queued', 'delayed', 'in_turn')
        OR ",
    open_question!(),
    ")"
);
/// The artifacts of the tasks ?1, except artifacts that agents of other tasks may open or that other tasks have
/// inherited.
const OF_TASKS: &str = "SELECT id FROM artifacts WHERE task IN (SELECT value FROM json_each(?1))
    AND id NOT IN (SELECT g.artifact FROM artifact_grants g JOIN agents a ON a.id = g.agent
        WHERE a.task IS NOT NULL AND a.task NOT IN (SELECT value FROM json_each(?1)))
    AND id NOT IN (SELECT artifact FROM inherited WHERE task NOT IN (SELECT value FROM json_each(?1)))";
/// Every text outside the tasks ?1 that may name an artifact. The texts are read as bytes, because a text that is not
/// valid UTF-8 may still name artifacts.
const OTHER_TEXTS: &str = "WITH done (task) AS (SELECT value FROM json_each(?1))
    SELECT CAST(concat_ws(' ', body, attachments, introduction, introduced) AS BLOB) FROM messages
        WHERE task NOT IN done
    UNION ALL SELECT CAST(body AS BLOB) FROM records WHERE task NOT IN done
    UNION ALL SELECT CAST(text AS BLOB) FROM notes WHERE task NOT IN done
    UNION ALL SELECT CAST(brief AS BLOB) FROM agents WHERE brief IS NOT NULL AND task NOT IN done
    UNION ALL SELECT CAST(concat_ws(' ', prompt, interface_spec) AS BLOB) FROM roles WHERE task NOT IN done
    UNION ALL SELECT CAST(concat_ws(' ', filename, label, meta) AS BLOB) FROM artifacts WHERE task NOT IN done";
/// Artifacts that the person has stored and sent to nobody. A sent artifact belongs to the task of its message, and the
/// receiver of the message may open the artifact.
const STRAY: &str = "SELECT id FROM artifacts WHERE task = '' AND created_at < ?1
    AND id NOT IN (SELECT artifact FROM artifact_grants WHERE agent <> 'user')";
const REMOVE_GRANTS: &str = "DELETE FROM artifact_grants WHERE artifact IN (SELECT value FROM json_each(?1))";
const REMOVE_INHERITED: &str = "DELETE FROM inherited WHERE artifact IN (SELECT value FROM json_each(?1))";
/// Removes the sources of artifacts, in the tasks of the artifacts and in the forks that inherited them. Reads the rows
/// of these tasks only: because of the `+`, SQLite does not look for each artifact in each task.
const REMOVE_SEEN: &str = "DELETE FROM seen WHERE task IN (
        SELECT task FROM artifacts WHERE id IN (SELECT value FROM json_each(?1))
        UNION SELECT task FROM inherited WHERE artifact IN (SELECT value FROM json_each(?1)))
    AND +holder IN (SELECT 'artifact:' || value FROM json_each(?1))";
const REMOVE: &str = "DELETE FROM artifacts WHERE id IN (SELECT value FROM json_each(?1))";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] =
    &[OVER, OF_TASKS, OTHER_TEXTS, STRAY, REMOVE_GRANTS, REMOVE_INHERITED, REMOVE_SEEN, REMOVE];

/// Returns the artifacts of both groups. The first group belongs to ended tasks in which nothing has happened since the
/// time `since`, and nothing outside such tasks names these artifacts. The person stored the second group before
/// `since` and has sent it to nobody.
pub async fn find(connection: &mut Connection, since: Timestamp) -> Result<BTreeSet<ArtifactId>, Error> {
    let over = over(connection, since).await?;
    let mut found = of_tasks(connection, &over).await?;
    found.extend(strays(connection, since).await?);
    Ok(found)
}

async fn strays(connection: &mut Connection, since: Timestamp) -> Result<BTreeSet<ArtifactId>, Error> {
    let ids: Vec<String> =
        polity_sql::query_scalar(STRAY).bind(since.as_millis()).fetch_all(connection).await?;
    Ok(ids.into_iter().map(ArtifactId::new).collect())
}

/// Removes the artifacts that the person stored before `since` and sent to nobody, and returns how many. If somebody
/// sends such an artifact at the same moment, either the message is written first and the artifact stays, or the
/// artifact is removed first and the message cannot name it.
pub(crate) async fn remove_strays(tx: &mut Tx, since: Timestamp) -> Result<u64, Error> {
    let strays = strays(&mut tx.connection, since).await?;
    if !strays.is_empty() {
        remove(tx, &strays).await?;
    }
    Ok(strays.len() as u64)
}

/// Returns the ended tasks in which nothing has happened since the time `since`.
pub(super) async fn over(connection: &mut Connection, since: Timestamp) -> Result<Vec<String>, Error> {
    Ok(polity_sql::query_scalar(OVER).bind(since.as_millis()).fetch_all(connection).await?)
}

/// Returns the artifacts that belong to these tasks and that nothing outside the tasks names.
pub(super) async fn of_tasks(
    connection: &mut Connection,
    over: &[String],
) -> Result<BTreeSet<ArtifactId>, Error> {
    let over = json!(over).to_string();
    let ids: Vec<String> = polity_sql::query_scalar(OF_TASKS).bind(&over).fetch_all(&mut *connection).await?;
    if ids.is_empty() {
        // Without candidates, the texts of all other tasks need not be read.
        return Ok(BTreeSet::new());
    }
    let mut left = Unnamed::new(&ids);
    let look = |row: &Row| {
        left.read(row.try_get(0)?);
        Ok(())
    };
    polity_sql::query(OTHER_TEXTS).bind(&over).for_each(connection, look).await?;
    Ok(left.ids.into_iter().map(|id| ArtifactId::new(String::from_utf8_lossy(id))).collect())
}

/// Removes artifacts, the grants (rows that let an agent open an artifact) for these artifacts, and their sources.
pub(crate) async fn remove(tx: &mut Tx, ids: &BTreeSet<ArtifactId>) -> Result<(), Error> {
    let ids = json!(ids).to_string();
    polity_sql::query(REMOVE_GRANTS).bind(&ids).execute(&mut tx.connection).await?;
    polity_points::point!("gc::grants_removed");
    polity_sql::query(REMOVE_SEEN).bind(&ids).execute(&mut tx.connection).await?;
    polity_sql::query(REMOVE_INHERITED).bind(&ids).execute(&mut tx.connection).await?;
    polity_sql::query(REMOVE).bind(&ids).execute(&mut tx.connection).await?;
    polity_points::point!("gc::artifacts_removed");
    Ok(())
}

/// The ids that no text has named so far.
struct Unnamed<'i> {
    ids: HashSet<&'i [u8]>,
    lengths: BTreeSet<usize>,
}

impl<'i> Unnamed<'i> {
    fn new(ids: &'i [String]) -> Self {
        let ids: HashSet<&[u8]> = ids.iter().map(String::as_bytes).filter(|id| !id.is_empty()).collect();
        Self { lengths: ids.iter().map(|id| id.len()).collect(), ids }
    }

    /// Removes from this set every id that occurs in a text. The id need not follow `artifact:`, because models shorten
    /// references, and JSON may put an escape right before an id.
    fn read(&mut self, text: &[u8]) {
        for &length in &self.lengths {
            for word in text.windows(length) {
                self.ids.remove(word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unnamed(ids: &[&str], text: &str) -> Vec<String> {
        let ids: Vec<String> = ids.iter().copied().map(str::to_owned).collect();
        let mut left = Unnamed::new(&ids);
        left.read(text.as_bytes());
        let mut left: Vec<String> =
            left.ids.iter().map(|id| String::from_utf8_lossy(id).into_owned()).collect();
        left.sort();
        left
    }

    #[test]
    fn ids_in_texts() {
        let check = |text: &str, expect: &[&str]| {
            assert_eq!(unnamed(&["abcdefghjk", "mnpqrstvwx", "short"], text), expect, "{text}");
        };
        let all = ["abcdefghjk", "mnpqrstvwx", "short"];
        check("", &all);
        check("artifact:abcdefghj", &all);
        check("见artifact:abcdefghjk。", &["mnpqrstvwx", "short"]);
        check(r#"{"text":"the file:\nabcdefghjk"}"#, &["mnpqrstvwx", "short"]);
        check("short and mnpqrstvwx and abcdefghjk", &[]);
    }

    proptest! {
        #[test]
        fn an_id_is_found_whatever_stands_around_it(before in any::<String>(), after in any::<String>()) {
            let text = serde_json::to_string(&format!("{before}23456789ab{after}")).unwrap();
            prop_assert!(unnamed(&["23456789ab"], &text).is_empty());
        }
    }
}
