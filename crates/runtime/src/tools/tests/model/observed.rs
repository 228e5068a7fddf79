//! Watches the database: which rows a step has changed. Triggers of the connection that writes put each changed row on a
//! list; a step that is taken back takes its entries back, too.

use super::rows::{Key, Row, Rows, TABLES, fields};
use polity_store::{Error, Tx};
use sqlx::{AssertSqlSafe, Row as _, SqliteConnection};

/// Tables that tell what happened. A refusal is told of, too.
const TELLING: [&str; 3] = ["events", "records", "_sqlx_migrations"];

/// The rows that are there, and how far the list of changes was read.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) rows: Rows,
    read: i64,
}

/// A row as it was and as it is.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) key: Key,
    pub(super) before: Option<Row>,
    pub(super) after: Option<Row>,
}

/// What a step has changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) rows: Vec<Change>,
    /// Tables whose rows are not compared, and were changed.
    pub(super) others: Vec<String>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.others.is_empty()
    }
}

impl Observed {
    /// Begins to watch through a connection.
    pub(super) async fn begin(tx: &mut Tx) -> Result<Self, Error> {
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
        let mut sql =
            "CREATE TEMP TABLE changes (n INTEGER PRIMARY KEY, tab TEXT, gone INTEGER, fields TEXT);"
                .to_owned();
        for row in sqlx::query(tables).fetch_all(&mut tx.connection).await? {
            let table: String = row.get(0);
            if TELLING.contains(&table.as_str()) {
                continue;
            }
            let compared = TABLES.iter().find(|(name, _)| *name == table).map_or(&[][..], |(_, sql)| sql);
            for (event, gone, before) in [("INSERT", 0, "new."), ("UPDATE", 0, "new."), ("DELETE", 1, "old.")]
            {
                let fields = fields(compared, before);
                sql.push_str(&format!(
                    "CREATE TEMP TRIGGER {table}_{event} AFTER {event} ON main.{table} BEGIN
                     INSERT INTO changes (tab, gone, fields) VALUES ('{table}', {gone}, {fields}); END;"
                ));
            }
        }
        sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut tx.connection).await?;
        Ok(Self { rows: read_all(&mut tx.connection).await?, read: 0 })
    }

    /// What was changed since the last look.
    pub(super) async fn look(&mut self, tx: &mut Tx) -> Result<Changes, Error> {
        let query =
            sqlx::query("SELECT n, tab, gone, fields FROM changes WHERE n > ?1 ORDER BY n").bind(self.read);
        let mut changes = Changes::default();
        for row in query.fetch_all(&mut tx.connection).await? {
            self.read = row.get(0);
            let table: &str = row.get(1);
            let Some(changed) = Row::read(table, row.get(3)) else {
                changes.others.push(table.to_owned());
                continue;
            };
            let key = changed.key();
            let before = self.rows.get(&key);
            let after = (row.get::<i64, _>(2) == 0).then_some(changed);
            match &after {
                Some(after) => self.rows.put(after.clone()),
                None => self.rows.remove(&key),
            }
            match changes.rows.iter_mut().find(|known| known.key == key) {
                Some(known) => known.after = after,
                None => changes.rows.push(Change { key, before, after }),
            }
        }
        changes.rows.retain(|change| change.before != change.after);
        Ok(changes)
    }
}

/// All rows that are compared.
pub(super) async fn read_all(connection: &mut SqliteConnection) -> Result<Rows, Error> {
    let mut rows = Rows::default();
    for (table, sql) in TABLES {
        let select = format!("SELECT {} FROM {table}", fields(sql, ""));
        for row in sqlx::query(AssertSqlSafe(select)).fetch_all(&mut *connection).await? {
            rows.put(Row::read(table, row.get(0)).unwrap());
        }
    }
    Ok(rows)
}
