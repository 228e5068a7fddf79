use super::*;
use crate::testing::Scratch;

/// Writes rows into each table that a copy has. Only records, approvals, permissions and sources get no rows. The rows
/// describe an agent with a role, a worktree and two contacts. The agent has stored an artifact and holds a text. Both
/// belong to a request of root.
async fn society() -> Scratch {
    let scratch = Scratch::new().await;
    scratch
        .execute(
            r#"INSERT INTO roles (id, task, creator, name, prompt, service, required_capabilities, tool_groups, created_at)
                VALUES ('role-1', 't-1', 'root', 'writer', 'You write.', 'one', '[]', '[]', 10);
            INSERT INTO agents (id, task, parent, role, brief, depth, own_worktree, created_at)
                VALUES ('ann-1', 't-1', 'root', 'role-1', '{"objective":"Write"}', 1, 1, 11);
            INSERT INTO contacts (owner, agent, source, since)
                VALUES ('ann-1', 'root', 'parent', 12), ('root', 'ann-1', 'child', 12);
            INSERT INTO turns (id, agent, task, began_by, works_on, state, created_at)
                VALUES (1, 'ann-1', 't-1', 'm000000001', 'm000000001', 'done', 13);
            INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, expects,
                finality, state, turn, created_at)
                VALUES (1, 'm000000001', 't-1', 'root', 'root', 'ann-1', 'general', '{"text":"write"}', '[]', 'answer',
                    'final', 'done', 1, 13);
            INSERT INTO artifacts (id, task, owner, blob, kind, mime_type, size, meta, created_at)
                VALUES ('artifact23', 't-1', 'ann-1', 'b1', 'text', 'text/plain', 1, '{}', 14);
            INSERT INTO artifact_grants (agent, artifact) VALUES ('ann-1', 'artifact23');
            INSERT INTO notes (agent, task, request, answers, text, created_at)
                VALUES ('ann-1', 't-1', 'm000000001', '["m000000001"]', 'half is written', 15);
            INSERT INTO outputs (agent, task, request, asker, artifact)
                VALUES ('ann-1', 't-1', 'm000000001', 'root', 'artifact23')"#,
        )
        .await;
    scratch
}

async fn read_task(scratch: &Scratch, task: &str) -> Rows {
    let mut reader = scratch.store.reader().await.unwrap();
    read(&mut reader, &TaskId::new(task)).await.unwrap().unwrap()
}

/// Gives every row of the task another id, as the runtime does before it writes a copy.
fn under_new_ids(mut rows: Rows) -> Rows {
    let (agent, message) = (|| "ann-2".to_owned(), || "m000000002".to_owned());
    rows.roles[0].id = "role-2".to_owned();
    (rows.agents[0].id, rows.agents[0].role) = (agent(), Some("role-2".to_owned()));
    (rows.contacts[0].owner, rows.contacts[1].agent) = (agent(), agent());
    let turn = &mut rows.turns[0];
    (turn.id, turn.agent, turn.began_by, turn.works_on) = (2, agent(), message(), Some(message()));
    let asked = &mut rows.messages[0];
    (asked.seq, asked.id, asked.receiver, asked.turn) = (2, message(), agent(), Some(2));
    rows.grants[0].agent = agent();
    let note = &mut rows.notes[0];
    (note.agent, note.request, note.answers) = (agent(), message(), r#"["m000000002"]"#.to_owned());
    (rows.outputs[0].agent, rows.outputs[0].request) = (agent(), message());
    rows
}

#[tokio::test]
async fn a_copy_has_every_row_that_it_was_given() {
    let scratch = society().await;
    let original = read_task(&scratch, "t-1").await;
    let Rows { contacts, grants, inherited, notes, outputs, agents, .. } = &original;
    assert_eq!((contacts.len(), grants.len(), inherited.len()), (2, 1, 1));
    assert_eq!((notes.len(), outputs.len()), (1, 1));
    assert_eq!((agents[0].own_worktree, outputs[0].stored_at), (1, 14));

    let copy = under_new_ids(original.clone());
    let given = copy.clone();
    scratch.write(move |tx| Box::pin(async move { write(tx, &TaskId::new("t-2"), &given).await })).await;
    assert_eq!(read_task(&scratch, "t-2").await, copy);
    assert_eq!(read_task(&scratch, "t-1").await, original);
}
