//! What happened in a conversation, as it is stored.

use super::{Builder, cut, messages};
use crate::store::{Conversation, Error, damaged};
use crate::view::{EntryView, page};
use polity_society::id::MessageId;
use polity_society::text::Texts;
use serde_json::json;
use sqlx::{Row, SqliteConnection};

/// The newest part of a conversation that lies before a record, oldest first; and `before` for the part before that.
pub(crate) async fn part(
    connection: &mut SqliteConnection,
    texts: &Texts,
    conversation: &Conversation,
    before: Option<i64>,
    limit: Option<u32>,
) -> Result<(Vec<EntryView>, Option<i64>), Error> {
    let limit = page(limit);
    let mut query = Builder::new("SELECT * FROM records WHERE agent = ");
    query.push_bind(conversation.agent.as_str().to_owned());
    query.push(" AND task = ").push_bind(conversation.task.as_str().to_owned());
    if let Some(before) = before {
        query.push(" AND seq < ").push_bind(before);
    }
    query.push(" ORDER BY seq DESC LIMIT ").push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(&mut *connection).await?;
    let mut found: Vec<_> = rows.iter().map(|row| (row.get::<i64, _>("seq"), row)).collect();
    let next = cut(&mut found, limit);
    found.reverse();
    let heard = |row: &sqlx::sqlite::SqliteRow| row.get::<Option<String>, _>("message").map(MessageId::new);
    let ids: Vec<MessageId> = found.iter().filter_map(|(_, row)| heard(row)).collect();
    let messages = messages::by_id(connection, texts, &ids).await?;
    let mut entries = Vec::with_capacity(found.len());
    for (seq, row) in found {
        let mut record: serde_json::Map<_, _> = serde_json::from_str(&row.get::<String, _>("body"))
            .map_err(|error| damaged("records", &seq.to_string(), error))?;
        if let Some(message) = heard(row).and_then(|id| messages.get(&id)) {
            record.insert("message".to_owned(), json!(message));
        }
        entries.push(EntryView { seq, turn: row.get("turn"), at: row.get("created_at"), record });
    }
    Ok((entries, next))
}
