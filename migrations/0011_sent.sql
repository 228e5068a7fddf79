-- The requests that model servers have got. `shown` tells how the request showed artifacts. `texts` lists rows of
-- `sent_texts`: the texts of these rows, joined in this order, are the body of the request. `texts` is NULL if the task
-- had no room for further texts. `kept` is the number of bytes of all texts that were stored for the task up to this
-- request.
-- `record` is the number of the record that the answer became.
CREATE TABLE sent (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    task       TEXT NOT NULL REFERENCES tasks (id),
    agent      TEXT NOT NULL REFERENCES agents (id),
    turn       INTEGER NOT NULL REFERENCES turns (id),
    service    TEXT NOT NULL,
    model      TEXT NOT NULL,
    revision   INTEGER NOT NULL,
    outcome    TEXT NOT NULL CHECK (outcome IN ('answered', 'failed')),
    record     INTEGER,
    shown      TEXT NOT NULL,
    texts      TEXT,
    kept       INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX sent_of_task ON sent (task, seq);
CREATE INDEX sent_of_agent ON sent (agent, task, seq);
CREATE INDEX sent_of_turn ON sent (turn);
CREATE INDEX sent_of_record ON sent (record) WHERE record IS NOT NULL;

-- The pieces of the bodies of requests. Each piece is stored once for a task. A piece has references in place of media.
CREATE TABLE sent_texts (
    seq  INTEGER PRIMARY KEY AUTOINCREMENT,
    task TEXT NOT NULL REFERENCES tasks (id),
    hash TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (task, hash)
) STRICT;
