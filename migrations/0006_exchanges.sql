-- What was asked over the OpenAI-compatible endpoint: which request became which message, and what was given as its
-- answer. `key` is what a repetition of the request is known by; `request` and `reply` are fingerprints of the
-- conversation up to what was asked, and up to the answer. `agent` is who the conversation is with, `receiver` who the
-- message is for: another where it answers a question. `awaits` is the message whose answer is the answer.
CREATE TABLE exchanges (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    key        TEXT NOT NULL UNIQUE,
    request    TEXT NOT NULL,
    agent      TEXT NOT NULL REFERENCES agents (id),
    receiver   TEXT NOT NULL REFERENCES agents (id),
    task       TEXT REFERENCES tasks (id),
    message    TEXT,
    awaits     TEXT,
    state      TEXT NOT NULL CHECK (state IN ('open', 'answered', 'failed')),
    answer     TEXT,
    reply      TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX exchanges_by_request ON exchanges (request, seq);
CREATE INDEX exchanges_by_reply ON exchanges (reply, seq) WHERE reply IS NOT NULL;
CREATE INDEX exchanges_of_task ON exchanges (task, agent, seq);
