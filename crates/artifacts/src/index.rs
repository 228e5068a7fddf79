//! The database rows of artifacts: each artifact's metadata, its blob, and the agents that may open the artifact.
//!
//! These are free functions over a connection, so that a caller can use any of them within any transaction.

use crate::blobs::BlobHash;
use crate::mime;
use polity_society::content::{Artifact, Kind};
use polity_society::id::{AgentId, ArtifactId, TaskId};
use polity_society::mime::MimeType;
use polity_sql::{Connection, Row};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// An artifact's row in the database.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Id, kind, MIME type and other metadata.
    pub artifact: Artifact,
    /// The blob with the bytes of the artifact.
    pub blob: BlobHash,
    /// The agent that stored the artifact, or the user.
    pub owner: AgentId,
    /// The task that the artifact belongs to, or [`NO_TASK`].
    pub task: TaskId,
    /// What is wrong with the row, if it is damaged. Callers must not send the bytes of a damaged row.
    pub damage: Option<String>,
}

/// Every SQL statement of this module, for a test that prepares them on the real schema.
pub const STATEMENTS: &[&str] = &[INSERT, GET, GET_MANY, GRANT, MAY_OPEN, LIST, ADOPT, BYTES, UNREAD, READ];

/// The value that stands in place of a task id while an artifact belongs to no task. A real task id is never empty.
pub const NO_TASK: &str = "";

const INSERT: &str = "INSERT INTO artifacts \
    (id, task, owner, blob, kind, mime_type, filename, label, size, meta, created_at, words) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

const GET: &str = "SELECT id, task, owner, blob, kind, mime_type, filename, label, size, meta, created_at \
    FROM artifacts WHERE id = ?1";

const GET_MANY: &str = "SELECT a.id, a.task, a.owner, a.blob, a.kind, a.mime_type, a.filename, a.label, a.size, a.meta, \
    a.created_at FROM json_each(?1) AS wanted JOIN artifacts AS a ON a.id = wanted.value ORDER BY wanted.key";

const GRANT: &str = "INSERT INTO artifact_grants (agent, artifact) VALUES (?1, ?2) ON CONFLICT DO NOTHING";

const MAY_OPEN: &str = "SELECT artifact FROM artifact_grants \
    WHERE agent = ?1 AND artifact IN (SELECT value FROM json_each(?2))";

/// The cost does not grow with the artifacts of other tasks, of which root may open many.
const LIST: &str = "SELECT a.id, a.task, a.owner, a.blob, a.kind, a.mime_type, a.filename, a.label, a.size, a.meta, \
    a.created_at FROM artifacts AS a \
    WHERE (a.task = ?2 OR a.id IN (SELECT artifact FROM inherited WHERE task = ?2)) \
    AND EXISTS (SELECT 1 FROM artifact_grants WHERE agent = ?1 AND artifact = a.id) \
    ORDER BY a.created_at DESC, a.rowid DESC LIMIT ?3";

const BYTES: &str = "SELECT coalesce(sum(size), 0) FROM artifacts WHERE task = ?1";

const ADOPT: &str = "UPDATE artifacts SET task = ?2 WHERE id = ?1 AND task = ''";

const UNREAD: &str = "SELECT id, blob FROM artifacts WHERE kind = 'text' AND words IS NULL LIMIT ?1";

const READ: &str = "UPDATE artifacts SET words = ?2 WHERE id = ?1 AND words IS NULL";

/// Inserts an artifact, and the grant that lets its owner open it. Fails if the id exists already. A search finds the
/// artifact by `words`.
pub async fn insert(conn: &mut Connection, stored: &Stored, words: &str) -> Result<(), polity_sql::Error> {
    let Stored { artifact, blob, owner, task, damage: _ } = stored;
    polity_sql::query(INSERT)
        .bind(artifact.id.as_str())
        .bind(task.as_str())
        .bind(owner.as_str())
        .bind(blob.as_str())
        .bind(artifact.kind.as_str())
        .bind(artifact.mime_type.as_str())
        .bind(&artifact.filename)
        .bind(&artifact.label)
        // No file is as large as `i64::MAX` bytes.
        .bind(i64::try_from(artifact.size).unwrap_or(i64::MAX))
        .bind(Value::Object(artifact.meta.clone()).to_string())
        .bind(artifact.created_at)
        .bind(words)
        .execute(&mut *conn)
        .await?;
    polity_points::point!("artifacts::inserted");
    grant(conn, owner, &artifact.id).await
}

/// Returns the artifact with this id, without checking who may open it.
///
/// A damaged row still yields an artifact, and [`Stored::damage`] describes the damage.
/// Unreadable columns get neutral values: [`Kind::Other`], no `meta`, size 0.
pub async fn get(conn: &mut Connection, id: &ArtifactId) -> Result<Option<Stored>, polity_sql::Error> {
    let row = polity_sql::query(GET).bind(id.as_str()).fetch_optional(conn).await?;
    row.as_ref().map(read).transpose()
}

/// Returns the artifacts with these ids, in the given order, and skips ids that do not exist.
pub async fn get_many(conn: &mut Connection, ids: &[ArtifactId]) -> Result<Vec<Stored>, polity_sql::Error> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows = polity_sql::query(GET_MANY).bind(json!(ids).to_string()).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// Lets an agent open an artifact. Does nothing if the agent already may open it; fails if the artifact does not exist.
pub async fn grant(
    conn: &mut Connection,
    agent: &AgentId,
    artifact: &ArtifactId,
) -> Result<(), polity_sql::Error> {
    polity_sql::query(GRANT).bind(agent.as_str()).bind(artifact.as_str()).execute(conn).await?;
    polity_points::point!("artifacts::granted");
    Ok(())
}

/// Assigns an artifact to a task, unless it already belongs to one.
pub async fn adopt(
    conn: &mut Connection,
    artifact: &ArtifactId,
    task: &TaskId,
) -> Result<(), polity_sql::Error> {
    polity_sql::query(ADOPT).bind(artifact.as_str()).bind(task.as_str()).execute(conn).await?;
    polity_points::point!("artifacts::adopted");
    Ok(())
}

/// Returns at most `limit` text artifacts whose content was never read for the search, each with its blob.
pub async fn unread(
    conn: &mut Connection,
    limit: u32,
) -> Result<Vec<(ArtifactId, BlobHash)>, polity_sql::Error> {
    let rows = polity_sql::query(UNREAD).bind(limit).fetch_all(conn).await?;
    let read = |row: &Row| {
        let (id, blob) = (row.try_get::<String, _>("id")?, row.try_get::<String, _>("blob")?);
        Ok((ArtifactId::new(id), BlobHash::new(blob)))
    };
    rows.iter().map(read).collect()
}

/// Notes the words by which a search finds an artifact.
pub async fn note_words(
    conn: &mut Connection,
    artifact: &ArtifactId,
    words: &str,
) -> Result<(), polity_sql::Error> {
    polity_sql::query(READ).bind(artifact.as_str()).bind(words).execute(conn).await?;
    Ok(())
}

/// Returns the size of all artifacts of a task together, in bytes.
pub async fn bytes_of_task(conn: &mut Connection, task: &TaskId) -> Result<u64, polity_sql::Error> {
    let bytes: i64 = polity_sql::query_scalar(BYTES).bind(task.as_str()).fetch_one(conn).await?;
    Ok(bytes.unsigned_abs())
}

/// Returns the ids of the given artifacts that the agent may open, in the given order.
pub async fn may_open(
    conn: &mut Connection,
    agent: &AgentId,
    artifacts: &[ArtifactId],
) -> Result<Vec<ArtifactId>, polity_sql::Error> {
    let rows: Vec<String> = polity_sql::query_scalar(MAY_OPEN)
        .bind(agent.as_str())
        .bind(json!(artifacts).to_string())
        .fetch_all(conn)
        .await?;
    let granted: HashSet<&str> = rows.iter().map(String::as_str).collect();
    Ok(artifacts.iter().filter(|id| granted.contains(id.as_str())).cloned().collect())
}

/// Lists at most `limit` artifacts of a task, newest first. Lists only artifacts that the agent may open.
pub async fn list(
    conn: &mut Connection,
    agent: &AgentId,
    task: &TaskId,
    limit: u32,
) -> Result<Vec<Stored>, polity_sql::Error> {
    let rows =
        polity_sql::query(LIST).bind(agent.as_str()).bind(task.as_str()).bind(limit).fetch_all(conn).await?;
    rows.iter().map(read).collect()
}

/// Reads a row that has every column of the table. [`get`] describes how a damaged row is read.
pub fn read(row: &Row) -> Result<Stored, polity_sql::Error> {
    let mut damage: Vec<String> = Vec::new();
    let kind_name: String = row.try_get("kind")?;
    let kind = Kind::from_name(&kind_name);
    if kind.as_str() != kind_name {
        damage.push(format!("kind is {kind_name:?}"));
    }
    let mime_type = MimeType::unchecked(row.try_get::<String, _>("mime_type")?);
    if mime_type != MimeType::OCTET_STREAM && mime::parse(mime_type.as_str()).is_none() {
        damage.push(format!("mime_type is {mime_type:?}"));
    }
    let meta: String = row.try_get("meta")?;
    let meta: Map<String, Value> = serde_json::from_str(&meta).unwrap_or_else(|error| {
        damage.push(format!("meta is not a JSON object: {error}"));
        Map::new()
    });
    let size: i64 = row.try_get("size")?;
    let size = u64::try_from(size).unwrap_or_else(|_| {
        damage.push(format!("size is {size}"));
        0
    });
    let artifact = Artifact {
        id: ArtifactId::new(row.try_get::<String, _>("id")?),
        kind,
        mime_type,
        filename: row.try_get("filename")?,
        label: row.try_get("label")?,
        size,
        created_at: row.try_get("created_at")?,
        meta,
    };
    Ok(Stored {
        artifact,
        blob: BlobHash::new(row.try_get::<String, _>("blob")?),
        owner: AgentId::new(row.try_get::<String, _>("owner")?),
        task: TaskId::new(row.try_get::<String, _>("task")?),
        damage: (!damage.is_empty()).then(|| damage.join("; ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use polity_sql::{Access, Options, Sql};

    const SCHEMA: &str = "
        CREATE TABLE artifacts (id TEXT PRIMARY KEY, task TEXT NOT NULL, owner TEXT NOT NULL, blob TEXT NOT NULL, \
            kind TEXT NOT NULL, mime_type TEXT NOT NULL, filename TEXT, label TEXT, size INTEGER NOT NULL, \
            meta TEXT NOT NULL, created_at INTEGER NOT NULL, words TEXT) STRICT;
        CREATE TABLE inherited (task TEXT NOT NULL, artifact TEXT NOT NULL, PRIMARY KEY (task, artifact)); \
        CREATE TABLE artifact_grants (agent TEXT NOT NULL, artifact TEXT NOT NULL REFERENCES artifacts(id), \
            PRIMARY KEY (agent, artifact)) STRICT, WITHOUT ROWID;";

    async fn database() -> (tempfile::TempDir, Connection) {
        let directory = tempfile::tempdir().unwrap();
        let options = Options::new(&directory.path().join("polity.db"), Access::Create);
        let mut conn = options.connect().unwrap();
        polity_sql::raw_sql(SCHEMA).execute(&mut conn).await.unwrap();
        (directory, conn)
    }

    fn stored(id: &str, owner: &str, task: &str, created_at: i64) -> Stored {
        let artifact = Artifact {
            id: ArtifactId::new(id),
            kind: Kind::Document,
            mime_type: MimeType::PDF,
            filename: Some("报告.pdf".to_owned()),
            label: None,
            size: 1234,
            created_at,
            meta: Map::from_iter([("page".to_owned(), json!({"of": [1, "二"]}))]),
        };
        Stored {
            artifact,
            blob: BlobHash::of(id.as_bytes()),
            owner: AgentId::new(owner),
            task: TaskId::new(task),
            damage: None,
        }
    }

    fn ids(list: &[Stored]) -> Vec<&str> {
        list.iter().map(|stored| stored.artifact.id.as_str()).collect()
    }

    #[tokio::test]
    async fn what_was_written_is_read() {
        let (_directory, mut conn) = database().await;
        let one = stored("a", "reader-1", "t1", 5);
        let mut other = stored("b", "user", "t1", 6);
        other.artifact.filename = None;
        other.artifact.label = Some("笔记".to_owned());
        other.artifact.kind = Kind::Text;
        insert(&mut conn, &one, "").await.unwrap();
        insert(&mut conn, &other, "").await.unwrap();
        assert_eq!(get(&mut conn, &one.artifact.id).await.unwrap(), Some(one.clone()));
        assert_eq!(get(&mut conn, &ArtifactId::new("zzz")).await.unwrap(), None);
        let wanted = ["b", "zzz", "a", "b"].map(ArtifactId::new);
        let expect = vec![other.clone(), one.clone(), other];
        assert_eq!(get_many(&mut conn, &wanted).await.unwrap(), expect);
        assert_eq!(get_many(&mut conn, &[]).await.unwrap(), []);
        assert!(insert(&mut conn, &one, "").await.is_err(), "the id is already taken");
    }

    #[tokio::test]
    async fn a_reference_opens_for_its_owner_and_those_who_were_given_it() {
        let (_directory, mut conn) = database().await;
        let (owner, friend, stranger) =
            (AgentId::new("owner"), AgentId::new("friend"), AgentId::new("stranger"));
        for id in ["a", "b", "c"] {
            insert(&mut conn, &stored(id, "owner", "t1", 1), "").await.unwrap();
        }
        let all = ["c", "zzz", "a", "b"].map(ArtifactId::new);
        grant(&mut conn, &friend, &all[2]).await.unwrap();
        grant(&mut conn, &friend, &all[2]).await.unwrap();
        assert_eq!(may_open(&mut conn, &owner, &all).await.unwrap(), ["c", "a", "b"].map(ArtifactId::new));
        assert_eq!(may_open(&mut conn, &friend, &all).await.unwrap(), [ArtifactId::new("a")]);
        assert_eq!(may_open(&mut conn, &stranger, &all).await.unwrap(), []);
        assert_eq!(may_open(&mut conn, &owner, &[]).await.unwrap(), []);
        assert!(grant(&mut conn, &friend, &all[1]).await.is_err(), "there is no such artifact");
    }

    #[tokio::test]
    async fn lists_are_of_one_reader_and_one_task_and_newest_first() {
        let (_directory, mut conn) = database().await;
        let (a, b) = (AgentId::new("a-1"), AgentId::new("b-1"));
        for (id, owner, task, at) in [
            ("one", "a-1", "t1", 10),
            ("two", "a-1", "t1", 30),
            ("three", "b-1", "t1", 20),
            ("four", "a-1", "t2", 40),
            ("five", "a-1", "t1", 30),
        ] {
            insert(&mut conn, &stored(id, owner, task, at), "").await.unwrap();
        }
        let (t1, t2) = (TaskId::new("t1"), TaskId::new("t2"));
        assert_eq!(ids(&list(&mut conn, &a, &t1, 10).await.unwrap()), ["five", "two", "one"]);
        grant(&mut conn, &a, &ArtifactId::new("three")).await.unwrap();
        assert_eq!(ids(&list(&mut conn, &a, &t1, 3).await.unwrap()), ["five", "two", "three"]);
        assert_eq!(ids(&list(&mut conn, &a, &t2, 10).await.unwrap()), ["four"]);
        assert_eq!(ids(&list(&mut conn, &b, &t1, 10).await.unwrap()), ["three"]);
        assert_eq!(ids(&list(&mut conn, &b, &t2, 10).await.unwrap()), [""; 0]);
        // A task has the artifacts that it has inherited, but a reader still needs a grant.
        for id in ["three", "one"] {
            let inherited = polity_sql::query("INSERT INTO inherited (task, artifact) VALUES ('t2', ?1)");
            inherited.bind(id).execute(&mut conn).await.unwrap();
        }
        assert_eq!(ids(&list(&mut conn, &a, &t2, 10).await.unwrap()), ["four", "three", "one"]);
        assert_eq!(ids(&list(&mut conn, &b, &t2, 10).await.unwrap()), ["three"]);
    }

    #[tokio::test]
    async fn a_damaged_row_still_names_an_artifact() {
        let (_directory, mut conn) = database().await;
        let sound = stored("a", "owner", "t1", 1);
        insert(&mut conn, &sound, "").await.unwrap();
        let check = async |conn: &mut Connection, damage: &'static str| {
            polity_sql::query(damage).execute(&mut *conn).await.unwrap();
            get(conn, &ArtifactId::new("a")).await.unwrap().unwrap()
        };
        let read = check(&mut conn, "UPDATE artifacts SET kind = 'sculpture'").await;
        assert_eq!((read.artifact.kind, &read.artifact.meta), (Kind::Other, &sound.artifact.meta));
        assert_eq!(read.damage.as_deref(), Some("kind is \"sculpture\""));
        let read = check(&mut conn, "UPDATE artifacts SET kind = 'document', meta = '{\"page\":'").await;
        assert_eq!((&read.artifact.meta, &read.blob), (&Map::new(), &sound.blob));
        assert!(read.damage.unwrap().contains("meta is not a JSON object"));
        let read = check(&mut conn, "UPDATE artifacts SET meta = '{}', size = -5, blob = '../../x'").await;
        assert_eq!((read.artifact.size, read.blob.as_str()), (0, "../../x"));
        assert_eq!(read.damage.as_deref(), Some("size is -5"));
        let read = check(&mut conn, "UPDATE artifacts SET size = 5, mime_type = 'no type'").await;
        assert_eq!(read.damage.as_deref(), Some("mime_type is \"no type\""));
        assert_eq!(read.artifact.filename, sound.artifact.filename);
        // Two MIME types are returned unchanged: one that cannot be parsed, and one with capitals and parameters.
        assert_eq!(read.artifact.mime_type, "no type");
        let read = check(&mut conn, "UPDATE artifacts SET mime_type = 'Image/PNG; x=y'").await;
        assert_eq!((&*read.artifact.mime_type.essence(), read.damage), ("image/png", None));
        assert_eq!(read.artifact.mime_type, "Image/PNG; x=y");
        let read = check(&mut conn, "UPDATE artifacts SET mime_type = 'application/pdf'").await;
        assert_eq!(read.damage, None);
    }

    #[tokio::test]
    async fn every_statement_fits_the_schema() {
        let (_directory, mut conn) = database().await;
        for statement in STATEMENTS {
            let explained = Sql::built(format!("EXPLAIN {statement}"));
            polity_sql::query(explained).execute(&mut conn).await.unwrap();
        }
    }
}
