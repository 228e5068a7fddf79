//! Tests on a real database in a temporary directory.

use crate::{
    Access, Connection, Error, Journal, Json, Options, Pace, Sql, Value, query, query_scalar, raw_sql,
};
use proptest::prelude::*;
use std::sync::atomic::Ordering;

fn database() -> (tempfile::TempDir, Options, Connection) {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        journal: Journal::WalFull,
        ..Options::new(&directory.path().join("a ?&#%41.db"), Access::Create)
    };
    let mut connection = options.connect().unwrap();
    let schema =
        raw_sql("CREATE TABLE t (id INTEGER PRIMARY KEY, a, b TEXT); CREATE TABLE u (t REFERENCES t (id))");
    schema.execute(&mut connection).into_inner().unwrap();
    (directory, options, connection)
}

#[tokio::test]
async fn a_connection_caches_as_much_as_its_options_say() {
    let (_directory, options, mut connection) = database();
    let size = "SELECT cache_size FROM pragma_cache_size";
    assert_eq!(query_scalar(size).fetch_one::<i64>(&mut connection).await.unwrap(), -2_000);
    let mut large = Options { cache: 32 * 1024, ..options }.connect().unwrap();
    assert_eq!(query_scalar(size).fetch_one::<i64>(&mut large).await.unwrap(), -32 * 1024);
}

fn values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Integer),
        any::<f64>()
            .prop_filter("SQLite stores NaN as NULL", |number| !number.is_nan())
            .prop_map(Value::Real),
        ".*".prop_map(Value::Text),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Blob),
    ]
}

proptest! {
    #[test]
    fn what_is_bound_is_read_again(values in proptest::collection::vec(values(), 1..20)) {
        let (_directory, _, mut connection) = database();
        for value in &values {
            let insert = query("INSERT INTO t (a) VALUES (?1)");
            let insert = match value {
                Value::Null => insert.bind(None::<i64>),
                Value::Integer(number) => insert.bind(*number),
                Value::Real(number) => insert.bind(*number),
                Value::Text(text) => insert.bind(text),
                Value::Blob(bytes) => insert.bind(bytes.as_slice()),
                Value::BadText(_) => unreachable!(),
            };
            prop_assert_eq!(insert.execute(&mut connection).into_inner().unwrap().rows_affected(), 1);
        }
        let rows = query("SELECT a FROM t ORDER BY id").fetch_all(&mut connection).into_inner().unwrap();
        let read: Vec<Value> = rows.iter().map(|row| row.columns().next().unwrap().1.clone()).collect();
        prop_assert_eq!(read, values);
    }
}

#[tokio::test]
async fn a_value_is_read_as_its_own_type_only() {
    let (_directory, _, mut connection) = database();
    let row = query(
        "SELECT 1 AS one, 'ä' AS text, NULL AS none, CAST(x'ff' AS TEXT) AS bad, '[1]' AS list, 2.5 AS real",
    );
    let row = row.fetch_one(&mut connection).await.unwrap();
    assert_eq!((row.get::<i64, _>("one"), row.get::<u32, _>(0), row.get::<bool, _>("one")), (1, 1, true));
    assert_eq!((row.get::<&str, _>("text"), row.get::<String, _>(1)), ("ä", "ä".to_owned()));
    assert_eq!((row.get::<Option<i64>, _>("none"), row.get::<Option<i64>, _>("one")), (None, Some(1)));
    assert_eq!(row.get::<Json<Vec<i64>>, _>("list"), Json(vec![1]));
    assert!((row.get::<f64, _>("real") - 2.5).abs() < f64::EPSILON);
    let check = |failed: Result<String, Error>, expect: &str| {
        assert_eq!(failed.unwrap_err().to_string(), expect);
    };
    check(row.try_get("one"), "column one: expected TEXT, found INTEGER");
    check(row.try_get("none"), "column none: expected TEXT, found NULL");
    check(row.try_get("bad"), "column bad: the text is not valid UTF-8");
    check(row.try_get("missing"), "there is no column missing");
    check(row.try_get(6_usize), "there is no column 6");
    assert!(row.try_get::<i64, _>("text").is_err());
    assert!(row.try_get::<Json<Vec<bool>>, _>("list").is_err());
}

#[tokio::test]
async fn errors_name_the_code_of_sqlite() {
    let (_directory, options, mut connection) = database();
    let broken = query("INSERT INTO u (t) VALUES (7)").execute(&mut connection).await.unwrap_err();
    assert_eq!(broken.to_string(), "error returned from database: (code: 787) FOREIGN KEY constraint failed");
    assert_eq!((broken.code(), broken.message()), (Some(19), Some("FOREIGN KEY constraint failed")));
    let wrong = query("SELECT * FROM missing").execute(&mut connection).await.unwrap_err();
    assert_eq!((wrong.code(), wrong.message()), (Some(1), Some("no such table: missing")));
    let mut reader = Options { access: Access::Read, journal: Journal::AsItIs, ..options }.connect().unwrap();
    let refused = query("DELETE FROM t").execute(&mut reader).await.unwrap_err();
    assert_eq!(refused.code(), Some(8), "{refused}");
    let none = query_scalar("SELECT id FROM t").fetch_one::<i64>(&mut connection).await.unwrap_err();
    assert!(matches!(none, Error::NoRow), "{none}");
}

#[tokio::test]
async fn only_a_statement_that_writes_has_changed_rows() {
    let (_directory, options, mut connection) = database();
    let three = query("INSERT INTO t (b) VALUES ('1'), ('2'), ('3')").execute(&mut connection).await.unwrap();
    let read = query("SELECT * FROM t").execute(&mut connection).await.unwrap();
    let returned = query("DELETE FROM t WHERE id > 1 RETURNING id").fetch_all(&mut connection).await.unwrap();
    assert_eq!((three.rows_affected(), read.rows_affected(), returned.len()), (3, 0, 2));
    let mut seen = Vec::new();
    let look = |row: &crate::Row| {
        seen.push(row.try_get::<String, _>("b")?);
        Ok(())
    };
    query("SELECT b FROM t").for_each(&mut connection, look).await.unwrap();
    assert_eq!(seen, ["1"]);
    assert_eq!(options.statements.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_file_that_nobody_changes_is_read_without_a_log() {
    let (directory, options, mut connection) = database();
    query("INSERT INTO t (b) VALUES ('kept')").execute(&mut connection).await.unwrap();
    connection.close().unwrap();
    let immutable = Options { access: Access::ReadImmutable, journal: Journal::AsItIs, ..options };
    let mut connection = immutable.connect().unwrap();
    let texts: Vec<String> = query_scalar("SELECT b FROM t").fetch_all(&mut connection).await.unwrap();
    assert_eq!(texts, ["kept"]);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "no log was created");
}

#[tokio::test]
async fn a_long_statement_can_be_ended() {
    let (_directory, _, mut connection) = database();
    let endless = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n";
    connection.watch_progress(1000, || false).unwrap();
    let ended = query(endless).execute(&mut connection).await.unwrap_err();
    assert_eq!(ended.code(), Some(9), "{ended}");
    connection.stop_watching().unwrap();
    let counted =
        "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 9999) SELECT count(*) FROM n";
    assert_eq!(query_scalar(counted).fetch_one::<i64>(&mut connection).await.unwrap(), 9999);
}

/// A slow statement must not keep the other tasks of a runtime from running.
#[test]
fn a_slow_statement_leaves_the_thread_to_other_tasks() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (_directory, _, mut connection) = database();
    connection.set_pace(Pace::Slow);
    let (go, mut gone) = tokio::sync::watch::channel(false);
    let wait = move || !*gone.borrow_and_update();
    connection.watch_progress(100, wait).unwrap();
    let endless = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n) SELECT count(*) FROM n";
    let slow = async move { query(Sql::built(endless)).execute(&mut connection).await };
    let ended = runtime.block_on(async {
        let slow = tokio::spawn(slow);
        // The runtime has only one worker, so this task can run only if the slow statement does not block the worker.
        tokio::spawn(async move { go.send(true) }).await.unwrap().unwrap();
        slow.await.unwrap()
    });
    assert_eq!(ended.unwrap_err().code(), Some(9));
}
