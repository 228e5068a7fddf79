-- Conversations that do not go on until somebody says so, because they failed again and again.
CREATE TABLE holds (
    agent      TEXT NOT NULL REFERENCES agents (id),
    task       TEXT NOT NULL REFERENCES tasks (id),
    reason     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (agent, task)
) STRICT, WITHOUT ROWID;

-- The summaries of a conversation: what came before the newest is not read any more. The condition cannot fail, whatever
-- a damaged row holds.
CREATE INDEX records_compacted ON records (agent, task, seq) WHERE substr(body, 1, 21) = '{"record":"compacted"';

-- Which record heard a message.
CREATE INDEX records_heard ON records (message) WHERE message IS NOT NULL;

-- Who wrote to whom last, for streaks between one pair; and what else the two did.
CREATE INDEX messages_between ON messages (task, sender, receiver, seq);
CREATE INDEX messages_heard ON messages (task, receiver, sender, seq);
CREATE INDEX artifacts_of ON artifacts (owner, task, created_at);

-- What is open in a task: who waits for whom.
CREATE INDEX messages_open ON messages (task) WHERE expects = 'answer' AND answered_by IS NULL;

CREATE INDEX model_calls_of_agent ON model_calls (agent, task, seq);
