-- Conversations that do not go on until somebody says so, because they failed again and again.
CREATE TABLE holds (
    agent      TEXT NOT NULL REFERENCES agents (id),
    task       TEXT NOT NULL REFERENCES tasks (id),
    reason     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (agent, task)
) STRICT, WITHOUT ROWID;
