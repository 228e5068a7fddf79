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
, worked_ms INTEGER NOT NULL DEFAULT 0, forgotten_at INTEGER, workspace TEXT) STRICT;
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
, paused_at INTEGER, own_worktree INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE contacts (
    owner         TEXT NOT NULL REFERENCES agents (id),
    agent         TEXT NOT NULL REFERENCES agents (id),
    source        TEXT NOT NULL,
    introduced_by TEXT,
    since         INTEGER NOT NULL, task TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (owner, agent)
) STRICT, WITHOUT ROWID;
CREATE TABLE turns (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      TEXT NOT NULL REFERENCES agents (id),
    task       TEXT NOT NULL REFERENCES tasks (id),
    began_by   TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('open', 'done', 'failed', 'stopped')),
    created_at INTEGER NOT NULL
, works_on TEXT) STRICT;
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
, words TEXT) STRICT;
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
, cost REAL) STRICT;
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
CREATE TABLE releases (
    agent TEXT NOT NULL REFERENCES agents (id),
    task  TEXT NOT NULL REFERENCES tasks (id),
    turn  INTEGER NOT NULL,
    PRIMARY KEY (agent, task)
) STRICT, WITHOUT ROWID;
CREATE TABLE posts (
    key        TEXT PRIMARY KEY,
    content    TEXT NOT NULL,
    message    TEXT NOT NULL,
    task       TEXT NOT NULL REFERENCES tasks (id),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
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
CREATE TABLE "messages" (
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
    about        TEXT,
    on_behalf_of TEXT,
    expects      TEXT NOT NULL CHECK (expects IN ('answer', 'nothing')),
    finality     TEXT NOT NULL CHECK (finality IN ('interim', 'final')),
    introduction TEXT,
    introduced   TEXT,
    due_at       INTEGER,
    state        TEXT NOT NULL
        CHECK (state IN ('delayed', 'queued', 'in_turn', 'done', 'unanswered', 'failed', 'bounced')),
    answered_by  TEXT,
    answered_in  INTEGER REFERENCES turns (id),
    reminded     INTEGER NOT NULL DEFAULT 0,
    sent_in      INTEGER REFERENCES turns (id),
    turn         INTEGER REFERENCES turns (id),
    created_at   INTEGER NOT NULL
) STRICT;
CREATE TABLE notes (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      TEXT NOT NULL REFERENCES agents (id),
    task       TEXT NOT NULL REFERENCES tasks (id),
    request    TEXT NOT NULL,
    answers    TEXT NOT NULL,
    text       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE outputs (
    agent    TEXT NOT NULL REFERENCES agents (id),
    task     TEXT NOT NULL REFERENCES tasks (id),
    request  TEXT NOT NULL,
    asker    TEXT NOT NULL,
    artifact TEXT NOT NULL REFERENCES artifacts (id) ON DELETE CASCADE,
    PRIMARY KEY (agent, task, asker, request, artifact)
) STRICT, WITHOUT ROWID;
CREATE TABLE approvals (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    task        TEXT NOT NULL REFERENCES tasks (id),
    agent       TEXT NOT NULL REFERENCES agents (id),
    turn        INTEGER NOT NULL,
    call        TEXT NOT NULL,
    tool        TEXT NOT NULL,
    role        TEXT NOT NULL,
    arguments   TEXT NOT NULL,
    preview     TEXT,
    remembered  TEXT NOT NULL,
    why         TEXT NOT NULL,
    scope       TEXT NOT NULL CHECK (scope IN ('call', 'task')),
    way         TEXT NOT NULL,
    state       TEXT NOT NULL CHECK (state IN ('open', 'allowed', 'denied', 'expired', 'dropped')),
    answer      TEXT,
    note        TEXT,
    asked_at    INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    answered_at INTEGER
) STRICT;
CREATE TABLE permissions (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    task       TEXT REFERENCES tasks (id),
    tool       TEXT NOT NULL,
    role       TEXT NOT NULL,
    calls      TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE commands (
    id      TEXT PRIMARY KEY,
    agent   TEXT NOT NULL REFERENCES agents (id),
    task    TEXT NOT NULL REFERENCES tasks (id),
    request TEXT,
    state   TEXT NOT NULL CHECK (state IN ('running', 'ended'))
) STRICT, WITHOUT ROWID;
CREATE TABLE seen (
    task   TEXT NOT NULL REFERENCES tasks (id),
    holder TEXT NOT NULL,
    source TEXT NOT NULL,
    way    TEXT NOT NULL,
    since  INTEGER NOT NULL,
    PRIMARY KEY (task, holder, source)
) STRICT, WITHOUT ROWID;
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
CREATE TABLE sent_texts (
    seq  INTEGER PRIMARY KEY AUTOINCREMENT,
    task TEXT NOT NULL REFERENCES tasks (id),
    hash TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (task, hash)
) STRICT;
CREATE TABLE findable (
    seq        INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL CHECK (kind IN ('task', 'agent', 'message', 'artifact')),
    id         TEXT NOT NULL,
    task       TEXT,
    created_at INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE found USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram'
);
CREATE VIRTUAL TABLE found_groups USING fts5vocab (found, row);
CREATE TABLE inherited (
    task     TEXT NOT NULL REFERENCES tasks (id),
    artifact TEXT NOT NULL,
    PRIMARY KEY (task, artifact)
) STRICT, WITHOUT ROWID;
CREATE TABLE spent (
    service           TEXT NOT NULL,
    model             TEXT NOT NULL,
    share             TEXT NOT NULL CHECK (share IN ('root', 'others')),
    calls             INTEGER NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    priced            INTEGER NOT NULL,
    cost              REAL NOT NULL,
    PRIMARY KEY (service, model, share)
) STRICT, WITHOUT ROWID;
CREATE TABLE served (
    service TEXT PRIMARY KEY,
    agents  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE spent_in_tasks (
    task              TEXT PRIMARY KEY,
    calls             INTEGER NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    priced            INTEGER NOT NULL,
    cost              REAL NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE spent_by_agents (
    agent             TEXT PRIMARY KEY,
    calls             INTEGER NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    priced            INTEGER NOT NULL,
    cost              REAL NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (1, 'society', '2026-11-24 12:33:01', 1, X'F643489F8CDDCB55C94627F4DEEC5E9DCA5E91A306B2411183BCE6B0BCBC32888531A2FB3B267BDDFB13C74856DB1D9C', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (2, 'holds and summaries', '2026-11-24 12:33:01', 1, X'16066FA3B5DAF87849AD7832FAAAFBFE3BBC7F5CC95E6D8481A7BCD87153E8BB62A2B622ED29B1EC0ED9CFC7EFC65406', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (3, 'bounds', '2026-11-24 12:33:01', 1, X'EA7066E840E80B921A97885476C3A7E77D9CA6D8AF8E2B24420E51A0842F1F42C3853AED7C2DE1143BD5D1C056E47A1B', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (4, 'mailboxes', '2026-11-24 12:33:01', 1, X'7D6E8C5AD1D217CADC3E3D2005E245938EB905924C94D15F74D5C56F217F787D8A0F62B2066A4BA3DF1A35524F1B9A7F', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (5, 'views', '2026-11-24 12:33:01', 1, X'02029934698EA4BF29C308B639AB26F5AF870E0D903D4AAF5004C592B9EB75FCD33FAEDCDA5BC97BFAF7E6AC43CC939C', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (6, 'exchanges', '2026-11-24 12:33:01', 1, X'D75C5733B449F68C46AFA59FC962DE8BABB935D5D8874A83FAA3EBCEFF74F4F1282F151CC5967FCC52829EBF2CDDE72F', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (7, 'messages by state', '2026-11-24 12:33:01', 1, X'33EC127B13085A907F07F3EFC9BD59AA0E2167B566522047CD5FC1A1224FE6D4D3D3E714430808E3F8EB56852A9DAD9C', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (8, 'answers', '2026-11-24 12:33:01', 1, X'6B478A53B4B5EA2B217F2E9D1FBC376B11F8EB069A641B1C5B55DFC644BF1282A5C8CBF908A3C644FF55680F105D3E07', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (9, 'places', '2026-11-24 12:33:01', 1, X'0277E565DB25847F528F93A484C581BB57AB33D9043EE29F1257CFE9F324E784E1C1BBE55D48F6C5A18ECD7E8F6C5051', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (10, 'approvals', '2026-11-24 12:33:01', 1, X'09923E814382968A10729F53EC3E8437A106863347B15274C20E64893953C42AB5D04B1CEC45EA6656C310531D7E6A90', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (11, 'sent', '2026-11-24 12:33:01', 1, X'4E901469DDF9BB21C1FAEB6241195D610BBB9CDD154248C0D9F32A39A9892E8945A8033051DA2D59252700CF4195D9C0', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (12, 'search', '2026-11-24 12:33:01', 1, X'6E94928877E00516A7F5452A5A98EF0FA0DDBFBBC167E3E7E31E5602E20ECC283E061C5A4867E3647CD102035B9CE2C3', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (13, 'calls in order', '2026-11-24 12:33:01', 1, X'8407D920B34EFED673980C19E7BAB521954A287553F8A6D1D9186545032F0ED5D20E6400DD31427AEB8EA63A8238A163', 1000000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (14, 'many tasks', '2026-11-28 07:31:41', 1, X'EF4E6E1CE4E95AF6AB9BEC9DB0643F93B6EC39850BA194C481381C706C0B83F081EEC7F61B125D2A62A57F3C44DA7400', 1774638);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (15, 'running totals', '2026-11-28 10:10:00', 1, X'9A5139BA4E703A2EBC1BA5E19915A82DC6A93E6F923431EE4A73511621369D5C409ED73B50D00B527ED9F6F4BD001940', 1500000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (16, 'usage', '2026-11-28 14:40:00', 1, X'C496125E39B10F708E053A5D623BC8A587C3CCF08E9A9544345239516A05FB9627899A07D7AF8D7BFAEA358DD2C9331D', 1500000);
INSERT INTO _sqlx_migrations (version, description, installed_on, success, checksum, execution_time) VALUES (17, 'open requests', '2026-11-28 14:45:00', 1, X'3A59382B219AC3A51DA117C8D0FBBF767347843FFF8A28BFCB9B7DF4A8E1CEA49FBC0F1CA8FAC1775E05543EC4475B5D', 1500000);
INSERT INTO tasks (id, service, state, nudged, stopped_by, created_at, worked_ms, forgotten_at, workspace) VALUES ('t-0', NULL, 'idle', 0, 'maxModelCallsPerTask', 500, 0, 1003, NULL);
INSERT INTO tasks (id, service, state, nudged, stopped_by, created_at, worked_ms, forgotten_at, workspace) VALUES ('t-1', NULL, 'idle', 1, NULL, 1000, 1500, NULL, '{"kind":"person","directory":"/home/ada/birds","access":"write"}');
INSERT INTO roles (id, task, creator, name, prompt, interface_spec, service, required_capabilities, tool_groups, created_at) VALUES ('r-1', 't-1', 'root', 'reader', 'Read.', '{"services":"reads","input_format":"a picture","output_format":"a name","examples":"none"}', 'one', '["text"]', '["messages"]', 1000);
INSERT INTO agents (id, task, parent, role, name, brief, depth, hired_in, ended_at, created_at, paused_at, own_worktree) VALUES ('user', NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0);
INSERT INTO agents (id, task, parent, role, name, brief, depth, hired_in, ended_at, created_at, paused_at, own_worktree) VALUES ('root', NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, 0, NULL, 0);
INSERT INTO agents (id, task, parent, role, name, brief, depth, hired_in, ended_at, created_at, paused_at, own_worktree) VALUES ('reader-1', 't-1', 'root', 'r-1', 'Ada', '{"objective":"Find the heron","constraints":[],"inputs":"the picture","outputs":"a name","completion_criteria":"the name is known"}', 1, 7, NULL, 1000, 1003, 1);
INSERT INTO contacts (owner, agent, source, introduced_by, since, task) VALUES ('reader-1', 'root', 'parent', NULL, 1000, '');
INSERT INTO contacts (owner, agent, source, introduced_by, since, task) VALUES ('root', 'reader-1', 'child', NULL, 1000, 't-1');
INSERT INTO contacts (owner, agent, source, introduced_by, since, task) VALUES ('root', 'user', 'system', NULL, 0, '');
INSERT INTO contacts (owner, agent, source, introduced_by, since, task) VALUES ('user', 'root', 'system', NULL, 0, '');
INSERT INTO turns (id, agent, task, began_by, state, created_at, works_on) VALUES (7, 'root', 't-1', 'm000000001', 'done', 1000, NULL);
INSERT INTO turns (id, agent, task, began_by, state, created_at, works_on) VALUES (8, 'reader-1', 't-1', 'm000000003', 'open', 1008, 'm000000003');
INSERT INTO records (seq, agent, task, turn, message, body, created_at) VALUES (1, 'root', 't-1', 7, 'm000000001', '{"record":"heard","message":"m000000001"}', 1000);
INSERT INTO records (seq, agent, task, turn, message, body, created_at) VALUES (2, 'root', 't-1', 7, NULL, '{"record":"replied","text":"Ada","service":"one"}', 1001);
INSERT INTO artifacts (id, task, owner, blob, kind, mime_type, filename, label, size, meta, created_at, words) VALUES ('a1', 't-1', 'user', '0eacdbf3e70e08b8725396ec7d01eaad2f8682a5a30ee6aac5f2a4de900d468b', 'text', 'text/plain', 'picture.txt', NULL, 11, '{}', 1000, 'the picture');
INSERT INTO artifact_grants (agent, artifact) VALUES ('root', 'a1');
INSERT INTO artifact_grants (agent, artifact) VALUES ('user', 'a1');
INSERT INTO model_calls (seq, task, agent, turn, service, model, revision, attempts, prompt_tokens, completion_tokens, usage_source, created_at, cost) VALUES (1, 't-1', 'root', 7, 'one', 'one-model', 1, 1, 10, 5, 'reported', 1000, 0.25);
INSERT INTO events (seq, task, agent, kind, body, created_at) VALUES (1, 't-1', NULL, 'task_started', '{"event":"task_started","task":"t-1"}', 1000);
INSERT INTO holds (agent, task, reason, created_at) VALUES ('reader-1', 't-1', 'the server is down', 1002);
INSERT INTO releases (agent, task, turn) VALUES ('root', 't-1', 7);
INSERT INTO posts (key, content, message, task, created_at) VALUES ('key-1', 'the hash', 'm000000001', 't-1', 1000);
INSERT INTO exchanges (seq, key, request, agent, receiver, task, message, awaits, state, answer, reply, created_at) VALUES (1, 'exchange-1', 'asked', 'root', 'root', 't-1', 'm000000001', 'm000000001', 'answered', 'm000000002', 'told', 1001);
INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, in_reply_to, about, on_behalf_of, expects, finality, introduction, introduced, due_at, state, answered_by, answered_in, reminded, sent_in, turn, created_at) VALUES (1, 'm000000001', 't-1', 'user', 'user', 'root', 'general', '{"text":"who is 在 it?"}', '["a1"]', NULL, NULL, NULL, 'answer', 'final', NULL, NULL, NULL, 'done', 'm000000002', NULL, 0, NULL, 7, 1000);
INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, in_reply_to, about, on_behalf_of, expects, finality, introduction, introduced, due_at, state, answered_by, answered_in, reminded, sent_in, turn, created_at) VALUES (2, 'm000000002', 't-1', 'root', 'root', 'user', 'general', '{"text":"Ada"}', '[]', '["m000000001"]', NULL, NULL, 'nothing', 'final', NULL, NULL, NULL, 'done', NULL, NULL, 0, 7, NULL, 1001);
INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, in_reply_to, about, on_behalf_of, expects, finality, introduction, introduced, due_at, state, answered_by, answered_in, reminded, sent_in, turn, created_at) VALUES (3, 'm000000003', 't-1', 'root', 'root', 'reader-1', 'collaboration_request', '{"text":"Please look again."}', '["a1"]', NULL, NULL, 'm000000001', 'answer', 'final', NULL, NULL, NULL, 'in_turn', 'm000000005', 8, 1, 7, 8, 1008);
INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, in_reply_to, about, on_behalf_of, expects, finality, introduction, introduced, due_at, state, answered_by, answered_in, reminded, sent_in, turn, created_at) VALUES (4, 'm000000004', 't-1', 'reader-1', 'reader', 'root', 'status_report', '{"text":"I am looking."}', '[]', NULL, 'm000000003', NULL, 'nothing', 'interim', NULL, NULL, NULL, 'queued', NULL, NULL, 0, 8, NULL, 1008);
INSERT INTO messages (seq, id, task, sender, sender_role, receiver, type, body, attachments, in_reply_to, about, on_behalf_of, expects, finality, introduction, introduced, due_at, state, answered_by, answered_in, reminded, sent_in, turn, created_at) VALUES (5, 'm000000005', 't-1', 'reader-1', 'reader', 'root', 'collaboration_response', '{"text":"A grey heron."}', '[]', '["m000000003"]', NULL, NULL, 'nothing', 'final', NULL, NULL, NULL, 'queued', NULL, NULL, 0, 8, NULL, 1012);
INSERT INTO notes (seq, agent, task, request, answers, text, created_at) VALUES (1, 'reader-1', 't-1', 'm000000003', '["m000000003"]', 'It is a heron.', 1008);
INSERT INTO outputs (agent, task, request, asker, artifact) VALUES ('reader-1', 't-1', 'm000000003', 'root', 'a1');
INSERT INTO approvals (seq, task, agent, turn, call, tool, role, arguments, preview, remembered, why, scope, way, state, answer, note, asked_at, expires_at, answered_at) VALUES (1, 't-1', 'reader-1', 8, 'call-1', 'run_command', 'reader', '{"command":"ls"}', NULL, '{"command":"ls"}', 'It is a command.', 'call', '["the web"]', 'open', NULL, NULL, 1010, 9000000000000, NULL);
INSERT INTO approvals (seq, task, agent, turn, call, tool, role, arguments, preview, remembered, why, scope, way, state, answer, note, asked_at, expires_at, answered_at) VALUES (2, 't-1', 'root', 7, 'call-0', 'run_command', 'root', '{"command":"rm"}', 'Removes all.', '{"command":"rm"}', 'It is a command.', 'task', '[]', 'denied', 'no', 'Not today.', 1001, 2001, 1002);
INSERT INTO permissions (seq, task, tool, role, calls, created_at) VALUES (1, 't-1', 'run_command', 'reader', '{"command":"ls"}', 1010);
INSERT INTO permissions (seq, task, tool, role, calls, created_at) VALUES (2, NULL, 'fetch_url', 'root', '{}', 1010);
INSERT INTO commands (id, agent, task, request, state) VALUES ('c-1', 'reader-1', 't-1', 'm000000003', 'ended');
INSERT INTO seen (task, holder, source, way, since) VALUES ('t-1', 'agent:reader-1', 'web', '{"by":"tool","tool":"fetch_url"}', 1010);
INSERT INTO seen (task, holder, source, way, since) VALUES ('t-1', 'artifact:a1', 'web', '{"by":"agent","agent":"reader-1"}', 1010);
INSERT INTO sent (seq, task, agent, turn, service, model, revision, outcome, record, shown, texts, kept, created_at) VALUES (1, 't-1', 'root', 7, 'one', 'one-model', 1, 'answered', 2, '[{"artifact":"a1","routing":"text"}]', '[1,2]', 35, 1001);
INSERT INTO sent_texts (seq, task, hash, text) VALUES (1, 't-1', 'hash-1', '{"model":"one-model",');
INSERT INTO sent_texts (seq, task, hash, text) VALUES (2, 't-1', 'hash-2', '"messages":[]}');
INSERT INTO findable (seq, kind, id, task, created_at) VALUES (1, 'task', 'm000000001', 't-1', 1000);
INSERT INTO findable (seq, kind, id, task, created_at) VALUES (2, 'agent', 'reader-1', 't-1', 1000);
INSERT INTO findable (seq, kind, id, task, created_at) VALUES (3, 'artifact', 'a1', 't-1', 1000);
INSERT INTO findable (seq, kind, id, task, created_at) VALUES (4, 'message', 'm000000002', 't-1', 1001);
INSERT INTO findable (seq, kind, id, task, created_at) VALUES (5, 'message', 'm000000003', 't-1', 1008);
INSERT INTO findable (seq, kind, id, task, created_at) VALUES (6, 'message', 'm000000004', 't-1', 1008);
INSERT INTO findable (seq, kind, id, task, created_at) VALUES (7, 'message', 'm000000005', 't-1', 1012);
DELETE FROM found_data;
INSERT INTO found_data (id, block) VALUES (1, X'08812A');
INSERT INTO found_data (id, block) VALUES (10, X'00000000FF000001010506000501010101010000040201010202000001030101030301010104010104040000010501010505000001');
INSERT INTO found_data (id, block) VALUES (137438953473, X'000000EF04302061670503016D0602026973010301740102026C6F05010204E59CA8200101032E0A0A050101033F0A0A010103610A0A04020264610402026761050202696E0502026D20060202736505010364610A04010365206C0502026173050103672E0A0602026169050103686F200101036920610602026E2E050301670602027320010202743F0101036B2061050202696E0601036C65610502026F6F050101036D206C0601036E2E0A050202672E0601036F20690102026B20050301690602026F6B05010103706C650501057320E59CA80102026520050103743F0A01010377686F010105E59CA8206901040604050406070706060505050505060605060506060504050506050606060605060504060608050606');
INSERT INTO found_data (id, block) VALUES (274877906945, X'0000013404300A61200203016402020266690202027265020202746802010320686502020269730202026B6E0202026E61020202706902020274680201032D310A020103310A61020103610A72020202206E0202026461020301650202026D65020103637475020103642074020202610A0202026572020103650A61020301740202022068020301690203016E020301700202026164020202720A0203012D0203016F02010366696E020103686520020301720201036963740202026E6402020273200201036B6E6F0201036D650A020301200201036E0A0A02030174020202616D02020264200202026F770201036F6E0A020202776E020103706963020103720A660202022D31020202650A020301610202026F6E02010373206B0201037468650202027572020103757265020103776E0A020406040505050605050505050606060505040506060505060405040404050504040606040605050606040604050505060506060505040506060506');
INSERT INTO found_data (id, block) VALUES (412316860417, X'0000005604300A70690301032E7478030103310A7003010361310A030103637475030103652E7403010369637403010370696303010372652E030103740A0A0302027572030202787403010375726503010378740A030406060606060606060606050506');
INSERT INTO found_data (id, block) VALUES (549755813889, X'0000007A04300A706903020274680301032070690301032E7478030103310A7003010361310A030103637475030103650A0A03020220700302022E7403010368652003010369637403010370696303010372650A0303012E030103740A7403020268650302027572030202787403010375726503010378740A03040605060606060606050506060606040605050506');
INSERT INTO found_data (id, block) VALUES (687194767361, X'0000004F043020677207020268650701032E0A0A07010361206707010365726F07020279200701036772650701036865720701036E2E0A0701036F6E2E0701037265790702026F6E0701037920680704060506060605060606060605');
INSERT INTO found_data (id, block) VALUES (9007611571601408, X'04000000000000010000000000000000000000000000000300000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000');
DELETE FROM found_idx;
INSERT INTO found_idx (segid, term, pgno) VALUES (1, X'', 2);
INSERT INTO found_idx (segid, term, pgno) VALUES (2, X'', 2);
INSERT INTO found_idx (segid, term, pgno) VALUES (3, X'', 2);
INSERT INTO found_idx (segid, term, pgno) VALUES (4, X'', 2);
INSERT INTO found_idx (segid, term, pgno) VALUES (5, X'', 2);
DELETE FROM found_docsize;
INSERT INTO found_docsize (id, sz, origin) VALUES (1, X'0C', 1);
INSERT INTO found_docsize (id, sz, origin) VALUES (2, X'47', 2);
INSERT INTO found_docsize (id, sz, origin) VALUES (3, X'1A', 4);
INSERT INTO found_docsize (id, sz, origin) VALUES (4, X'03', 1);
INSERT INTO found_docsize (id, sz, origin) VALUES (5, X'12', 1);
INSERT INTO found_docsize (id, sz, origin) VALUES (6, X'0D', 1);
INSERT INTO found_docsize (id, sz, origin) VALUES (7, X'0D', 5);
DELETE FROM found_config;
INSERT INTO found_config (k, v) VALUES ('version', 4);
INSERT INTO inherited (task, artifact) VALUES ('t-1', 'a1');
INSERT INTO spent (service, model, share, calls, prompt_tokens, completion_tokens, priced, cost) VALUES ('one', 'one-model', 'root', 1, 10, 5, 1, 0.25);
INSERT INTO served (service, agents) VALUES ('one', 1);
INSERT INTO spent_in_tasks (task, calls, prompt_tokens, completion_tokens, priced, cost) VALUES ('t-1', 1, 10, 5, 1, 0.25);
INSERT INTO spent_by_agents (agent, calls, prompt_tokens, completion_tokens, priced, cost) VALUES ('root', 1, 10, 5, 1, 0.25);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence (name, seq) VALUES ('turns', 8);
INSERT INTO sqlite_sequence (name, seq) VALUES ('records', 2);
INSERT INTO sqlite_sequence (name, seq) VALUES ('model_calls', 1);
INSERT INTO sqlite_sequence (name, seq) VALUES ('events', 1);
INSERT INTO sqlite_sequence (name, seq) VALUES ('exchanges', 1);
INSERT INTO sqlite_sequence (name, seq) VALUES ('messages', 9);
INSERT INTO sqlite_sequence (name, seq) VALUES ('notes', 1);
INSERT INTO sqlite_sequence (name, seq) VALUES ('approvals', 2);
INSERT INTO sqlite_sequence (name, seq) VALUES ('permissions', 2);
INSERT INTO sqlite_sequence (name, seq) VALUES ('sent_texts', 2);
INSERT INTO sqlite_sequence (name, seq) VALUES ('sent', 1);
CREATE INDEX tasks_open ON tasks (state) WHERE state = 'open';
CREATE INDEX agents_by_parent ON agents (parent, task);
CREATE INDEX agents_by_task ON agents (task);
CREATE UNIQUE INDEX turns_open ON turns (task, agent) WHERE state = 'open';
CREATE INDEX turns_of_conversation ON turns (agent, task, id);
CREATE INDEX records_of_conversation ON records (agent, task, seq);
CREATE INDEX records_of_turn ON records (turn, seq);
CREATE INDEX events_of_task ON events (task, seq);
CREATE INDEX records_compacted ON records (agent, task, seq) WHERE substr(body, 1, 21) = '{"record":"compacted"';
CREATE INDEX records_heard ON records (message) WHERE message IS NOT NULL;
CREATE INDEX artifacts_of ON artifacts (owner, task, created_at);
CREATE INDEX agents_hired_in ON agents (hired_in) WHERE hired_in IS NOT NULL;
CREATE INDEX turns_open_of ON turns (agent) WHERE state = 'open';
CREATE INDEX artifacts_of_task ON artifacts (task);
CREATE INDEX model_calls_of_agent ON model_calls (agent, task, seq, prompt_tokens, completion_tokens, cost);
CREATE INDEX posts_of_task ON posts (task);
CREATE INDEX exchanges_by_request ON exchanges (request, seq);
CREATE INDEX exchanges_by_reply ON exchanges (reply, seq) WHERE reply IS NOT NULL;
CREATE INDEX exchanges_of_task ON exchanges (task, agent, seq);
CREATE INDEX messages_waiting ON messages (receiver, task, seq) WHERE state = 'queued';
CREATE INDEX messages_delayed ON messages (due_at) WHERE state = 'delayed';
CREATE INDEX messages_unread ON messages (task) WHERE state IN ('queued', 'delayed');
CREATE INDEX messages_of_turn ON messages (turn);
CREATE INDEX messages_sent_in ON messages (sent_in);
CREATE INDEX messages_of_task ON messages (task, seq);
CREATE INDEX messages_between ON messages (task, sender, receiver, seq);
CREATE INDEX messages_heard ON messages (task, receiver, sender, seq);
CREATE INDEX messages_unanswered ON messages (receiver, task, seq)
    WHERE expects = 'answer' AND answered_by IS NULL AND state IN ('in_turn', 'done');
CREATE INDEX messages_to ON messages (receiver, seq);
CREATE INDEX messages_from ON messages (sender, seq);
CREATE INDEX messages_in_state ON messages (CASE WHEN answered_by IS NULL THEN state ELSE 'answered' END, seq);
CREATE INDEX messages_of_type ON messages (type, seq);
CREATE INDEX messages_unheard ON messages (receiver, task, seq)
    WHERE state = 'queued' AND (in_reply_to IS NOT NULL OR about IS NOT NULL OR sender = 'system');
CREATE INDEX messages_answered_in ON messages (answered_in) WHERE answered_in IS NOT NULL;
CREATE INDEX messages_still_awaited ON messages (sender, task) WHERE answered_in IS NOT NULL;
CREATE INDEX notes_of ON notes (agent, task, request, seq);
CREATE INDEX notes_of_task ON notes (task);
CREATE INDEX outputs_of_task ON outputs (task);
CREATE INDEX outputs_of_artifact ON outputs (artifact);
CREATE UNIQUE INDEX approvals_open ON approvals (turn) WHERE state = 'open';
CREATE INDEX approvals_expiring ON approvals (expires_at) WHERE state = 'open';
CREATE INDEX approvals_waiting ON approvals (task, agent) WHERE state = 'open';
CREATE INDEX approvals_of_agent ON approvals (agent) WHERE state = 'open';
CREATE INDEX approvals_of_task ON approvals (task, seq);
CREATE INDEX permissions_of_task ON permissions (task);
CREATE INDEX commands_running ON commands (agent, task) WHERE state = 'running';
CREATE INDEX commands_of_task ON commands (task);
CREATE INDEX sent_of_task ON sent (task, seq);
CREATE INDEX sent_of_agent ON sent (agent, task, seq);
CREATE INDEX sent_of_turn ON sent (turn);
CREATE INDEX sent_of_record ON sent (record) WHERE record IS NOT NULL;
CREATE INDEX findable_id ON findable (id, kind);
CREATE INDEX findable_of_task ON findable (task, seq);
CREATE INDEX artifacts_unread ON artifacts (id) WHERE kind = 'text' AND words IS NULL;
CREATE TRIGGER find_message AFTER INSERT ON messages BEGIN
    INSERT INTO findable (kind, id, task, created_at) VALUES (
        CASE WHEN NEW.sender = 'user' AND NOT EXISTS (SELECT 1 FROM messages INDEXED BY messages_between
            WHERE task = NEW.task AND sender = 'user' AND seq < NEW.seq) THEN 'task' ELSE 'message' END,
        NEW.id, NEW.task, NEW.created_at);
    INSERT INTO found (rowid, text) VALUES (last_insert_rowid(),
        substr(coalesce((SELECT group_concat(atom, char(10))
            FROM json_tree(CASE WHEN json_valid(NEW.body) THEN NEW.body ELSE '{}' END) WHERE type = 'text'), ''), 1, 20000)
        || char(10, 10));
END;
CREATE TRIGGER lose_message AFTER DELETE ON messages BEGIN
    DELETE FROM found WHERE rowid IN (SELECT seq FROM findable WHERE id = OLD.id AND kind IN ('task', 'message'));
    DELETE FROM findable WHERE id = OLD.id AND kind IN ('task', 'message');
END;
CREATE TRIGGER find_agent AFTER INSERT ON agents WHEN NEW.task IS NOT NULL BEGIN
    INSERT INTO findable (kind, id, task, created_at) VALUES ('agent', NEW.id, NEW.task, NEW.created_at);
    INSERT INTO found (rowid, text) VALUES (last_insert_rowid(),
        substr(concat_ws(char(10), NEW.id, NEW.name, (SELECT name FROM roles WHERE id = NEW.role),
            (SELECT group_concat(atom, char(10))
                FROM json_tree(CASE WHEN json_valid(NEW.brief) THEN NEW.brief ELSE '{}' END) WHERE type = 'text')), 1, 20000)
        || char(10, 10));
END;
CREATE TRIGGER lose_agent AFTER DELETE ON agents BEGIN
    DELETE FROM found WHERE rowid IN (SELECT seq FROM findable WHERE id = OLD.id AND kind = 'agent');
    DELETE FROM findable WHERE id = OLD.id AND kind = 'agent';
END;
CREATE TRIGGER find_artifact AFTER INSERT ON artifacts BEGIN
    INSERT INTO findable (kind, id, task, created_at)
        VALUES ('artifact', NEW.id, nullif(NEW.task, ''), NEW.created_at);
    INSERT INTO found (rowid, text) VALUES (last_insert_rowid(),
        substr(concat_ws(char(10), NEW.id, NEW.filename, NEW.label, NEW.words), 1, 20000) || char(10, 10));
END;
CREATE TRIGGER lose_artifact AFTER DELETE ON artifacts BEGIN
    DELETE FROM found WHERE rowid IN (SELECT seq FROM findable WHERE id = OLD.id AND kind = 'artifact');
    DELETE FROM findable WHERE id = OLD.id AND kind = 'artifact';
END;
CREATE TRIGGER move_artifact AFTER UPDATE OF task ON artifacts BEGIN
    UPDATE findable SET task = nullif(NEW.task, '') WHERE id = NEW.id AND kind = 'artifact';
END;
CREATE TRIGGER read_artifact AFTER UPDATE OF words ON artifacts BEGIN
    DELETE FROM found WHERE rowid IN (SELECT seq FROM findable WHERE id = NEW.id AND kind = 'artifact');
    INSERT INTO found (rowid, text)
        SELECT seq, substr(concat_ws(char(10), NEW.id, NEW.filename, NEW.label, NEW.words), 1, 20000) || char(10, 10)
        FROM findable WHERE id = NEW.id AND kind = 'artifact';
END;
CREATE INDEX model_calls_of_task ON model_calls (task, seq, prompt_tokens, completion_tokens, cost);
CREATE INDEX contacts_of_task ON contacts (owner, task);
CREATE INDEX agents_live ON agents (role) WHERE ended_at IS NULL;
CREATE INDEX inherited_artifact ON inherited (artifact);
CREATE TRIGGER add_call AFTER INSERT ON model_calls BEGIN
    INSERT INTO spent VALUES (NEW.service, NEW.model, CASE NEW.agent WHEN 'root' THEN 'root' ELSE 'others' END,
        1, NEW.prompt_tokens, NEW.completion_tokens, NEW.cost IS NOT NULL, coalesce(NEW.cost, 0.0))
    ON CONFLICT (service, model, share) DO UPDATE SET calls = calls + 1,
        prompt_tokens = prompt_tokens + excluded.prompt_tokens,
        completion_tokens = completion_tokens + excluded.completion_tokens,
        priced = priced + excluded.priced, cost = cost + excluded.cost;
END;
CREATE TRIGGER remove_call AFTER DELETE ON model_calls BEGIN
    UPDATE spent SET calls = calls - 1, prompt_tokens = prompt_tokens - OLD.prompt_tokens,
        completion_tokens = completion_tokens - OLD.completion_tokens, priced = priced - (OLD.cost IS NOT NULL),
        -- A sum of fractions is not exact. Without a call that has a cost, the sum must be exactly 0.
        cost = CASE WHEN priced = (OLD.cost IS NOT NULL) THEN 0.0 ELSE max(cost - coalesce(OLD.cost, 0.0), 0.0) END
    WHERE service = OLD.service AND model = OLD.model
        AND share = CASE OLD.agent WHEN 'root' THEN 'root' ELSE 'others' END;
    DELETE FROM spent WHERE service = OLD.service AND model = OLD.model AND calls = 0;
END;
CREATE TRIGGER serve_agent AFTER INSERT ON agents WHEN NEW.role IS NOT NULL AND NEW.ended_at IS NULL BEGIN
    INSERT INTO served SELECT service, 1 FROM roles WHERE id = NEW.role
    ON CONFLICT (service) DO UPDATE SET agents = agents + 1;
END;
CREATE TRIGGER end_agent AFTER UPDATE OF ended_at ON agents
WHEN NEW.role IS NOT NULL AND (OLD.ended_at IS NULL) <> (NEW.ended_at IS NULL) BEGIN
    UPDATE served SET agents = agents + CASE WHEN NEW.ended_at IS NULL THEN 1 ELSE -1 END
    WHERE service = (SELECT service FROM roles WHERE id = NEW.role);
END;
CREATE TRIGGER remove_agent AFTER DELETE ON agents WHEN OLD.role IS NOT NULL AND OLD.ended_at IS NULL BEGIN
    UPDATE served SET agents = agents - 1 WHERE service = (SELECT service FROM roles WHERE id = OLD.role);
END;
CREATE TRIGGER serve_role AFTER UPDATE OF service ON roles WHEN NEW.service <> OLD.service BEGIN
    UPDATE served SET agents = agents - (SELECT count(*) FROM agents INDEXED BY agents_live
        WHERE role = NEW.id AND ended_at IS NULL) WHERE service = OLD.service;
    INSERT INTO served SELECT NEW.service, count(*) FROM agents INDEXED BY agents_live
        WHERE role = NEW.id AND ended_at IS NULL
    ON CONFLICT (service) DO UPDATE SET agents = agents + excluded.agents;
END;
CREATE INDEX contacts_in_order ON contacts (owner, since, agent);
CREATE INDEX agents_of_parent ON agents (parent);
CREATE INDEX turns_of_agent ON turns (agent, id, task);
CREATE INDEX agents_paused ON agents (id) WHERE paused_at IS NOT NULL;
CREATE INDEX turns_failed ON turns (agent, task) WHERE state = 'failed';
CREATE INDEX holds_of_task ON holds (task);
CREATE INDEX commands_running_in ON commands (task) WHERE state = 'running';
CREATE INDEX artifact_grants_of ON artifact_grants (artifact);
CREATE INDEX exchanges_of_message ON exchanges (message) WHERE message IS NOT NULL;
CREATE INDEX spent_in_tasks_largest ON spent_in_tasks (prompt_tokens + completion_tokens DESC, calls DESC, task);
CREATE INDEX spent_by_agents_largest ON spent_by_agents (prompt_tokens + completion_tokens DESC, calls DESC, agent);
CREATE TRIGGER add_call_to_sums AFTER INSERT ON model_calls BEGIN
    INSERT INTO spent_in_tasks VALUES (NEW.task, 1, NEW.prompt_tokens, NEW.completion_tokens, NEW.cost IS NOT NULL,
        coalesce(NEW.cost, 0.0))
    ON CONFLICT (task) DO UPDATE SET calls = calls + 1, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
        completion_tokens = completion_tokens + excluded.completion_tokens,
        priced = priced + excluded.priced, cost = cost + excluded.cost;
    INSERT INTO spent_by_agents VALUES (NEW.agent, 1, NEW.prompt_tokens, NEW.completion_tokens, NEW.cost IS NOT NULL,
        coalesce(NEW.cost, 0.0))
    ON CONFLICT (agent) DO UPDATE SET calls = calls + 1, prompt_tokens = prompt_tokens + excluded.prompt_tokens,
        completion_tokens = completion_tokens + excluded.completion_tokens,
        priced = priced + excluded.priced, cost = cost + excluded.cost;
END;
CREATE TRIGGER remove_call_from_sums AFTER DELETE ON model_calls BEGIN
    UPDATE spent_in_tasks SET calls = calls - 1, prompt_tokens = prompt_tokens - OLD.prompt_tokens,
        completion_tokens = completion_tokens - OLD.completion_tokens, priced = priced - (OLD.cost IS NOT NULL),
        cost = CASE WHEN priced = (OLD.cost IS NOT NULL) THEN 0.0 ELSE max(cost - coalesce(OLD.cost, 0.0), 0.0) END
    WHERE task = OLD.task;
    DELETE FROM spent_in_tasks WHERE task = OLD.task AND calls = 0;
    UPDATE spent_by_agents SET calls = calls - 1, prompt_tokens = prompt_tokens - OLD.prompt_tokens,
        completion_tokens = completion_tokens - OLD.completion_tokens, priced = priced - (OLD.cost IS NOT NULL),
        cost = CASE WHEN priced = (OLD.cost IS NOT NULL) THEN 0.0 ELSE max(cost - coalesce(OLD.cost, 0.0), 0.0) END
    WHERE agent = OLD.agent;
    DELETE FROM spent_by_agents WHERE agent = OLD.agent AND calls = 0;
END;
CREATE INDEX messages_asked ON messages (sender, task)
    WHERE expects = 'answer' AND answered_by IS NULL AND state IN ('delayed', 'queued', 'in_turn', 'done');
CREATE INDEX messages_open ON messages (task)
    WHERE expects = 'answer' AND answered_by IS NULL AND state IN ('delayed', 'queued', 'in_turn', 'done');
CREATE INDEX messages_open_requests ON messages (receiver, task, seq)
    WHERE expects = 'answer' AND answered_by IS NULL
        AND (state IN ('delayed', 'queued', 'in_turn', 'done') OR state = 'failed' AND sender = 'user');
CREATE INDEX messages_owed_to_user ON messages (task)
    WHERE sender = 'user' AND expects = 'answer' AND answered_by IS NULL;
COMMIT;
