//! Finds the rows that an operation has changed. Triggers on the writing connection append each changed row to a
//! temporary table. If the operation is rolled back, the appended entries are rolled back, too.

use super::rows::{Key, Row, Rows, TABLES, fields};
use polity_sql::{Connection, Sql};
use polity_store::{Error, Tx};

/// Tables whose changes are not observed. `events` and `records` report what happened, also what a refused operation
/// did. `_sqlx_migrations` is the table in which the library `sqlx` notes the migrations of the database.
const TELLING: [&str; 3] = ["events", "records", "_sqlx_migrations"];

/// The current rows of the database, and the number of the last change that was read from the table `changes`.
#[derive(Debug, Default)]
pub(super) struct Observed {
    pub(super) rows: Rows,
    read: i64,
}

/// A row before and after an operation.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) key: Key,
    pub(super) before: Option<Row>,
    pub(super) after: Option<Row>,
}

/// The rows that an operation has changed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) rows: Vec<Change>,
    /// Changed tables whose rows are not compared.
    pub(super) others: Vec<String>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.others.is_empty()
    }
}

impl Observed {
    /// Creates the triggers on a connection, and reads all rows.
    pub(super) async fn begin(tx: &mut Tx) -> Result<Self, Error> {
        // A virtual table such as `found`, the index of the search, can have no triggers.
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
            AND name NOT LIKE 'found%'";
        let mut sql =
            "CREATE TEMP TABLE changes (n INTEGER PRIMARY KEY, tab TEXT, gone INTEGER, fields TEXT);"
                .to_owned();
        for row in polity_sql::query(tables).fetch_all(&mut tx.connection).await? {
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
        polity_sql::raw_sql(Sql::built(sql)).execute(&mut tx.connection).await?;
        Ok(Self { rows: read_all(&mut tx.connection).await?, read: 0 })
    }

    /// Returns the changes since the last call.
    pub(super) async fn look(&mut self, tx: &mut Tx) -> Result<Changes, Error> {
        let query = polity_sql::query("SELECT n, tab, gone, fields FROM changes WHERE n > ?1 ORDER BY n")
            .bind(self.read);
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

/// Reads all rows that are compared.
pub(super) async fn read_all(connection: &mut Connection) -> Result<Rows, Error> {
    let mut rows = Rows::default();
    for (table, sql) in TABLES {
        let select = format!("SELECT {} FROM {table}", fields(sql, ""));
        for row in polity_sql::query(Sql::built(select)).fetch_all(&mut *connection).await? {
            rows.put(Row::read(table, row.get(0)).unwrap());
        }
    }
    Ok(rows)
}
