PRAGMA foreign_keys = OFF;
BEGIN;
CREATE TABLE _sqlx_migrations (
    version BIGINT PRIMARY KEY,
    description TEXT NOT NULL,
    installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    success BOOLEAN NOT NULL,
    checksum BLOB NOT NULL,
    execution_time BIGINT NOT NULL
);
CREATE TABLE tasks (
    id         TEXT PRIMARY KEY,
    service    TEXT,
    state      TEXT NOT NULL CHECK (state IN ('open', 'idle')),
    nudged     INTEGER NOT NULL DEFAULT 0,
    stopped_by TEXT,
    created_at INTEGER NOT NULL
) STRICT;
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
CREATE TABLE contacts (
    owner         TEXT NOT NULL REFERENCES agents (id),
    agent         TEXT NOT NULL REFERENCES agents (id),
    source        TEXT NOT NULL,
    introduced_by TEXT,
    since         INTEGER NOT NULL,
    PRIMARY KEY (owner, agent)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE turns (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      TEXT NOT NULL REFERENCES agents (id),
    task       TEXT NOT NULL REFERENCES tasks (id),
    began_by   TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed', 'stopped')),
    created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE records (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      TEXT NOT NULL,
    task       TEXT NOT NULL,
    turn       INTEGER NOT NULL REFERENCES turns (id),
    message    TEXT,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
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
CREATE TABLE events (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    task       TEXT,
    agent      TEXT,
    kind       TEXT NOT NULL,
    body       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE holds (
    agent      TEXT NOT NULL REFERENCES agents (id),
    task       TEXT NOT NULL REFERENCES tasks (id),
    reason     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (agent, task)
) STRICT, WITHOUT ROWID;
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (1, 'society', '2026-11-24 12:33:01', 1, X'F643489F8CDDCB55C94627F4DEEC5E9DCA5E91A306B2411183BCE6B0BCBC32888531A2FB3B267BDDFB13C74856DB1D9C', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (2, 'holds and summaries', '2026-11-24 12:33:01', 1, X'16066FA3B5DAF87849AD7832FAAAFBFE3BBC7F5CC95E6D8481A7BCD87153E8BB62A2B622ED29B1EC0ED9CFC7EFC65406', 1000000);
INSERT INTO tasks (id, service, state, nudged, stopped_by, created_at) VALUES ('t-0', NULL, 'idle', 0, 'maxModelCallsPerTask', 500);
INSERT INTO tasks (id, service, state, nudged, stopped_by, created_at) VALUES ('t-1', NULL, 'idle', 1, NULL, 1000);
INSERT INTO roles (id, task, creator, name, prompt, interface_spec, service, required_capabilities, tool_groups, created_at) VALUES ('r-1', 't-1', 'root', 'reader', 'Read.', '{"services":"reads","input_format":"a picture","output_format":"a name","examples":"none"}', 'one', '["text"]', '["messages"]', 1000);
INSERT INTO agents (id, task, parent, role, name, brief, depth, hired_in, ended_at, created_at) VALUES ('user', NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0);
INSERT INTO agents (id, task, parent, role, name, brief, depth, hired_in, ended_at, created_at) VALUES ('root', NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0);
INSERT INTO agents (id, task, parent, role, name, brief, depth, hired_in, ended_at, created_at) VALUES ('reader-1', 't-1', 'root', 'r-1', 'Ada', '{"objective":"Find the heron","constraints":[],"inputs":"the picture","outputs":"a name","completion_criteria":"the name is known"}', 1, 7, NULL, 1000);
INSERT INTO contacts (owner, agent, source, introduced_by, since) VALUES ('reader-1', 'root', 'parent', NULL, 1000);
INSERT INTO contacts (owner, agent, source, introduced_by, since) VALUES ('root', 'reader-1', 'child', NULL, 1000);
INSERT INTO contacts (owner, agent, source, introduced_by, since) VALUES ('root', 'user', 'system', NULL, 0);
INSERT INTO contacts (owner, agent, source, introduced_by, since) VALUES ('user', 'root', 'system', NULL, 0);
INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, in_reply_to, expects, finality, introduction, introduced, due_at, state, answered_by, sent_in, turn, created_at) VALUES (1, 'm000000001', 't-1', 'user', 'user', 'root', 'general', '{"text":"who is 在 it?"}', '["a1"]', NULL, 'answer', 'final', NULL, NULL, NULL, 'done', 'm000000002', NULL, 7, 1000);
INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, in_reply_to, expects, finality, introduction, introduced, due_at, state, answered_by, sent_in, turn, created_at) VALUES (2, 'm000000002', 't-1', 'root', 'root', 'user', 'general', '{"text":"Ada"}', '[]', 'm000000001', 'nothing', 'final', NULL, NULL, NULL, 'done', NULL, 7, NULL, 1001);
INSERT INTO turns (id, agent, task, began_by, state, created_at) VALUES (7, 'root', 't-1', 'm000000001', 'done', 1000);
INSERT INTO records (seq, agent, task, turn, message, body, created_at) VALUES (1, 'root', 't-1', 7, 'm000000001', '{"record":"heard","message":"m000000001"}', 1000);
INSERT INTO records (seq, agent, task, turn, message, body, created_at) VALUES (2, 'root', 't-1', 7, NULL, '{"record":"replied","text":"Ada","service":"one"}', 1001);
INSERT INTO artifacts (id, task, owner, blob, kind, mime_type, filename, label, size, meta, created_at) VALUES ('a1', 't-1', 'user', '0eacdbf3e70e08b8725396ec7d01eaad2f8682a5a30ee6aac5f2a4de900d468b', 'text', 'text/plain', 'picture.txt', NULL, 11, '{}', 1000);
INSERT INTO artifact_grants (agent, artifact) VALUES ('root', 'a1');
INSERT INTO artifact_grants (agent, artifact) VALUES ('user', 'a1');
INSERT INTO model_calls (seq, task, agent, turn, service, model, revision, attempts, prompt_tokens, completion_tokens, usage_source, created_at) VALUES (1, 't-1', 'root', 7, 'one', 'one-model', 1, 1, 10, 5, 'reported', 1000);
INSERT INTO events (seq, task, agent, kind, body, created_at) VALUES (1, 't-1', NULL, 'task_started', '{"event":"task_started","task":"t-1"}', 1000);
INSERT INTO holds (agent, task, reason, created_at) VALUES ('reader-1', 't-1', 'the server is down', 1002);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence (name, seq) VALUES ('turns', 7);
INSERT INTO sqlite_sequence (name, seq) VALUES ('messages', 9);
INSERT INTO sqlite_sequence (name, seq) VALUES ('records', 2);
INSERT INTO sqlite_sequence (name, seq) VALUES ('model_calls', 1);
INSERT INTO sqlite_sequence (name, seq) VALUES ('events', 1);
CREATE INDEX tasks_open ON tasks (state) WHERE state = 'open';
CREATE INDEX agents_by_parent ON agents (parent, task);
CREATE INDEX agents_by_task ON agents (task);
CREATE INDEX messages_waiting ON messages (receiver, task, seq) WHERE state = 'queued';
CREATE INDEX messages_delayed ON messages (due_at) WHERE state = 'delayed';
CREATE INDEX messages_unread ON messages (task) WHERE state IN ('queued', 'delayed');
CREATE INDEX messages_of_turn ON messages (turn);
CREATE INDEX messages_sent_in ON messages (sent_in);
CREATE INDEX messages_open_requests ON messages (receiver, task, seq) WHERE expects = 'answer' AND answered_by IS NULL;
CREATE INDEX messages_asked ON messages (sender, task) WHERE expects = 'answer' AND answered_by IS NULL;
CREATE INDEX messages_of_task ON messages (task, seq);
CREATE UNIQUE INDEX turns_open ON turns (task, agent) WHERE state = 'open';
CREATE INDEX turns_of_conversation ON turns (agent, task, id);
CREATE INDEX records_of_conversation ON records (agent, task, seq);
CREATE INDEX records_of_turn ON records (turn, seq);
CREATE INDEX model_calls_of_task ON model_calls (task);
CREATE INDEX events_of_task ON events (task, seq);
CREATE INDEX records_compacted ON records (agent, task, seq) WHERE substr(body, 1, 21) = '{"record":"compacted"';
CREATE INDEX records_heard ON records (message) WHERE message IS NOT NULL;
CREATE INDEX messages_between ON messages (task, sender, receiver, seq);
CREATE INDEX messages_heard ON messages (task, receiver, sender, seq);
CREATE INDEX artifacts_of ON artifacts (owner, task, created_at);
CREATE INDEX messages_open ON messages (task) WHERE expects = 'answer' AND answered_by IS NULL;
CREATE INDEX model_calls_of_agent ON model_calls (agent, task, seq);
COMMIT;
