-- Everything that a society is. Times are milliseconds since 1970. Append only: a change of this schema is a new file.

-- What one prompt of the person began. `service` is the one that the person chose for root, if any; `stopped_by` the
-- limit that ended it, if one did.
CREATE TABLE tasks (
    id         TEXT PRIMARY KEY,
    service    TEXT,
    state      TEXT NOT NULL CHECK (state IN ('open', 'idle')),
    nudged     INTEGER NOT NULL DEFAULT 0,
    stopped_by TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX tasks_open ON tasks (state) WHERE state = 'open';

CREATE TABLE roles (
    id                    TEXT PRIMARY KEY,
    task                  TEXT NOT NULL REFERENCES tasks (id),
    creator               TEXT NOT NULL,
    name                  TEXT NOT NULL,
    prompt                TEXT NOT NULL,
    interface_spec        TEXT,
    service               TEXT NOT NULL,
    required_capabilities TEXT NOT NULL,
    tool_groups           TEXT NOT NULL,
    created_at            INTEGER NOT NULL,
    UNIQUE (task, creator, name)
) STRICT;

-- `user` and `root` are rows too: they have no task, no role and no brief. `hired_in` is the parent's turn.
CREATE TABLE agents (
    id         TEXT PRIMARY KEY,
    task       TEXT REFERENCES tasks (id),
    parent     TEXT REFERENCES agents (id),
    role       TEXT REFERENCES roles (id),
    name       TEXT,
    brief      TEXT,
    depth      INTEGER NOT NULL,
    hired_in   INTEGER REFERENCES turns (id),
    ended_at   INTEGER,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX agents_by_parent ON agents (parent, task);
CREATE INDEX agents_by_task ON agents (task);

CREATE TABLE contacts (
    owner         TEXT NOT NULL REFERENCES agents (id),
    agent         TEXT NOT NULL REFERENCES agents (id),
    source        TEXT NOT NULL,
    introduced_by TEXT,
    since         INTEGER NOT NULL,
    PRIMARY KEY (owner, agent)
) STRICT, WITHOUT ROWID;

-- Inbox and outbox are one table. `seq` is the order of acceptance; `sent_in` the turn of the sender, `turn` that of the
-- receiver.
CREATE TABLE messages (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    id           TEXT NOT NULL UNIQUE,
    task         TEXT NOT NULL REFERENCES tasks (id),
    sender       TEXT NOT NULL,
    sender_role  TEXT NOT NULL,
    receiver     TEXT NOT NULL REFERENCES agents (id),
    type         TEXT NOT NULL,
    body         TEXT NOT NULL,
    attachments  TEXT NOT NULL,
    in_reply_to  TEXT,
    expects      TEXT NOT NULL CHECK (expects IN ('answer', 'nothing')),
    finality     TEXT NOT NULL CHECK (finality IN ('interim', 'final')),
    introduction TEXT,
    introduced   TEXT,
    due_at       INTEGER,
    state        TEXT NOT NULL CHECK (state IN ('delayed', 'queued', 'in_turn', 'done', 'failed', 'bounced')),
    answered_by  TEXT,
    sent_in      INTEGER REFERENCES turns (id),
    turn         INTEGER REFERENCES turns (id),
    created_at   INTEGER NOT NULL
) STRICT;

CREATE INDEX messages_waiting ON messages (receiver, task, seq) WHERE state = 'queued';
CREATE INDEX messages_delayed ON messages (due_at) WHERE state = 'delayed';
CREATE INDEX messages_unread ON messages (task) WHERE state IN ('queued', 'delayed');
CREATE INDEX messages_of_turn ON messages (turn);
CREATE INDEX messages_sent_in ON messages (sent_in);
CREATE INDEX messages_open_requests ON messages (receiver, task, seq) WHERE expects = 'answer' AND answered_by IS NULL;
CREATE INDEX messages_asked ON messages (sender, task) WHERE expects = 'answer' AND answered_by IS NULL;
CREATE INDEX messages_of_task ON messages (task, seq);

-- What an agent does with one message, and with those that come meanwhile.
CREATE TABLE turns (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      TEXT NOT NULL REFERENCES agents (id),
    task       TEXT NOT NULL REFERENCES tasks (id),
    began_by   TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed', 'stopped')),
    created_at INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX turns_open ON turns (task, agent) WHERE state = 'open';
CREATE INDEX turns_of_conversation ON turns (agent, task, id);

-- What happened in a turn, in order. An agent's history is its records; nothing that routing produced is in them.
CREATE TABLE records (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      TEXT NOT NULL,
    task       TEXT NOT NULL,
    turn       INTEGER NOT NULL REFERENCES turns (id),
    message    TEXT,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX records_of_conversation ON records (agent, task, seq);
CREATE INDEX records_of_turn ON records (turn, seq);

CREATE TABLE artifacts (
    id         TEXT PRIMARY KEY,
    task       TEXT NOT NULL,
    owner      TEXT NOT NULL,
    blob       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    mime_type  TEXT NOT NULL,
    filename   TEXT,
    label      TEXT,
    size       INTEGER NOT NULL,
    meta       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE artifact_grants (
    agent    TEXT NOT NULL,
    artifact TEXT NOT NULL REFERENCES artifacts (id),
    PRIMARY KEY (agent, artifact)
) STRICT, WITHOUT ROWID;

-- One row for each answer of a model: who asked, what answered, what it cost.
CREATE TABLE model_calls (
    seq               INTEGER PRIMARY KEY AUTOINCREMENT,
    task              TEXT NOT NULL,
    agent             TEXT NOT NULL,
    turn              INTEGER NOT NULL,
    service           TEXT NOT NULL,
    model             TEXT NOT NULL,
    revision          INTEGER NOT NULL,
    attempts          INTEGER NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    usage_source      TEXT NOT NULL,
    created_at        INTEGER NOT NULL
) STRICT;

CREATE INDEX model_calls_of_task ON model_calls (task);

-- What may be shown. Derived from the tables above, in the same transactions.
CREATE TABLE events (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    task       TEXT,
    agent      TEXT,
    kind       TEXT NOT NULL,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX events_of_task ON events (task, seq);

INSERT INTO agents (id, depth, created_at) VALUES ('user', 0, 0), ('root', 0, 0);
INSERT INTO contacts (owner, agent, source, since) VALUES ('user', 'root', 'system', 0), ('root', 'user', 'system', 0);
