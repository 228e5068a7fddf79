-- Conversations that do not go on until somebody says so, because they failed again and again.
CREATE TABLE holds (
    agent      TEXT NOT NULL REFERENCES agents (id),
    task       TEXT NOT NULL REFERENCES tasks (id),
    reason     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (agent, task)
) STRICT, WITHOUT ROWID;

-- The summaries of a conversation: what came before the newest is not read any more.
CREATE INDEX records_compacted ON records (agent, task, seq) WHERE json_extract(body, '$.record') = 'compacted';

-- Which record heard a message.
CREATE INDEX records_heard ON records (message) WHERE message IS NOT NULL;

-- Who wrote to whom last, for streaks between one pair.
CREATE INDEX messages_by_sender ON messages (sender, task, seq);
CREATE INDEX messages_by_receiver ON messages (receiver, task, seq);

-- What is open in a task: who waits for whom.
CREATE INDEX messages_open ON messages (task) WHERE expects = 'answer' AND answered_by IS NULL;
