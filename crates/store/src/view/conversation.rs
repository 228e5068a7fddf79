//! Reads the records of a conversation, for the views.

use super::{Builder, cut_to_room, messages, place_and_size, sound};
use crate::{Conversation, Error, damaged, sent};
use polity_society::id::MessageId;
use polity_society::text::Texts;
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::{EntryView, page};
use serde_json::{Map, Value, json};

/// The numbers of the records. Each number comes with a size in bytes: the text of the record plus the message
/// that the record names.
const PLACES: &str = "SELECT seq, octet_length(body)
    + coalesce((SELECT octet_length(m.body) FROM messages m WHERE m.id = records.message), 0) AS size FROM records";
const BY_SEQ: &str = "SELECT * FROM records WHERE seq IN (SELECT value FROM json_each(?1)) ORDER BY seq";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[PLACES, BY_SEQ];

/// Returns the newest records of a conversation before a given record, oldest first. Also returns a number. If the
/// caller passes this number as `before` in its next call, it gets the records before these.
pub async fn part(
    connection: &mut Connection,
    texts: &Texts,
    conversation: &Conversation,
    before: Option<i64>,
    limit: Option<u32>,
) -> Result<(Vec<EntryView>, Option<i64>), Error> {
    let limit = page(limit);
    let mut query = Builder::new(PLACES);
    query.push(" WHERE agent = ");
    query.push_bind(conversation.agent.as_str().to_owned());
    query.push(" AND task = ").push_bind(conversation.task.as_str().to_owned());
    if let Some(before) = before {
        query.push(" AND seq < ").push_bind(before);
    }
    query.push(" ORDER BY seq DESC LIMIT ").push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(&mut *connection).await?;
    let mut found: Vec<(i64, u64)> = rows.iter().map(place_and_size).collect();
    let next = cut_to_room(&mut found, limit);
    let places: Vec<i64> = found.into_iter().map(|(seq, _)| seq).collect();
    let rows = polity_sql::query(BY_SEQ).bind(json!(places).to_string()).fetch_all(&mut *connection).await?;
    let heard = |row: &Row| row.try_get::<Option<String>, _>("message").ok().flatten().map(MessageId::new);
    let ids: Vec<MessageId> = rows.iter().filter_map(heard).collect();
    let messages = messages::by_id(connection, texts, &ids).await?;
    let requests = sent::of_records(connection, &places).await?;
    let mut entries = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut record = sound("records", row, read).unwrap_or_else(|error| {
            tracing::warn!(%error, "a record is shown as damaged; run `polity db check` for details");
            let damage = [("record", json!("damaged")), ("reason", json!(error.to_string()))];
            damage.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
        });
        if let Some(message) = heard(row).and_then(|id| messages.get(&id)) {
            record.insert("message".to_owned(), json!(message));
        }
        entries.push(EntryView {
            seq: row.get("seq"),
            turn: row.get("turn"),
            at: row.get("created_at"),
            sent: requests.get(&row.get("seq")).copied(),
            record,
        });
    }
    Ok((entries, next))
}

fn read(row: &Row) -> Result<Map<String, Value>, Error> {
    serde_json::from_str(&row.get::<String, _>("body"))
        .map_err(|error| damaged("records", &row.get::<i64, _>("seq").to_string(), error))
}
