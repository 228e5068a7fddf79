-- Requests and their answers: on whose behalf a request was made, the request that a report or a notice is about,
-- answers to several requests at once, requests that stay unanswered. SQLite changes a CHECK only with the table.
-- `in_reply_to` is a JSON list. `answered_in` is the turn in which a request was answered, while that turn goes on.
-- `reminded` says that the receiver was reminded of a request, which happens once.
CREATE TABLE messages_new (
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

INSERT INTO messages_new (seq, id, task, sender, sender_role, receiver, type, body, attachments, in_reply_to, expects,
    finality, introduction, introduced, due_at, state, answered_by, sent_in, turn, created_at)
SELECT seq, id, task, sender, sender_role, receiver, type, body, attachments,
    CASE WHEN in_reply_to IS NOT NULL THEN json_array(in_reply_to) END, expects,
    finality, introduction, introduced, due_at, state, answered_by, sent_in, turn, created_at
FROM messages ORDER BY seq;

-- Numbers are never given twice: those of messages that were forgotten count, too.
DELETE FROM sqlite_sequence WHERE name = 'messages_new';
INSERT INTO sqlite_sequence (name, seq) SELECT 'messages_new', seq FROM sqlite_sequence WHERE name = 'messages';

DROP TABLE messages;
ALTER TABLE messages_new RENAME TO messages;

CREATE INDEX messages_waiting ON messages (receiver, task, seq) WHERE state = 'queued';
CREATE INDEX messages_delayed ON messages (due_at) WHERE state = 'delayed';
CREATE INDEX messages_unread ON messages (task) WHERE state IN ('queued', 'delayed');
CREATE INDEX messages_of_turn ON messages (turn);
CREATE INDEX messages_sent_in ON messages (sent_in);
CREATE INDEX messages_open_requests ON messages (receiver, task, seq) WHERE expects = 'answer' AND answered_by IS NULL;
CREATE INDEX messages_asked ON messages (sender, task) WHERE expects = 'answer' AND answered_by IS NULL;
CREATE INDEX messages_of_task ON messages (task, seq);
CREATE INDEX messages_between ON messages (task, sender, receiver, seq);
CREATE INDEX messages_heard ON messages (task, receiver, sender, seq);
CREATE INDEX messages_open ON messages (task) WHERE expects = 'answer' AND answered_by IS NULL;
CREATE INDEX messages_unanswered ON messages (receiver, task, seq)
    WHERE expects = 'answer' AND answered_by IS NULL AND state IN ('in_turn', 'done');
CREATE INDEX messages_to ON messages (receiver, seq);
CREATE INDEX messages_from ON messages (sender, seq);
CREATE INDEX messages_in_state ON messages (CASE WHEN answered_by IS NULL THEN state ELSE 'answered' END, seq);
CREATE INDEX messages_of_type ON messages (type, seq);

-- The answers, reports and notices that wait in a mailbox.
CREATE INDEX messages_unheard ON messages (receiver, task, seq)
    WHERE state = 'queued' AND (in_reply_to IS NOT NULL OR about IS NOT NULL OR sender = 'system');
-- Requests that were answered in a turn that goes on: by that turn, and by who still waits.
CREATE INDEX messages_answered_in ON messages (answered_in) WHERE answered_in IS NOT NULL;
CREATE INDEX messages_still_awaited ON messages (sender, task) WHERE answered_in IS NOT NULL;
-- The request that a turn works on.
ALTER TABLE turns ADD COLUMN works_on TEXT;

-- Closing texts that are held for a request because their agent waits for others; `answers` lists all that they answer.
CREATE TABLE notes (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      TEXT NOT NULL REFERENCES agents (id),
    task       TEXT NOT NULL REFERENCES tasks (id),
    request    TEXT NOT NULL,
    answers    TEXT NOT NULL,
    text       TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX notes_of ON notes (agent, task, request, seq);
CREATE INDEX notes_of_task ON notes (task);

-- Artifacts that an agent stored while it worked on a request, until it names them to whoever asked.
CREATE TABLE outputs (
    agent    TEXT NOT NULL REFERENCES agents (id),
    task     TEXT NOT NULL REFERENCES tasks (id),
    request  TEXT NOT NULL,
    asker    TEXT NOT NULL,
    artifact TEXT NOT NULL REFERENCES artifacts (id) ON DELETE CASCADE,
    PRIMARY KEY (agent, task, asker, request, artifact)
) STRICT, WITHOUT ROWID;

CREATE INDEX outputs_of_task ON outputs (task);
CREATE INDEX outputs_of_artifact ON outputs (artifact);
