-- Full text search over prompts, messages, agents and artifacts. Each of them has a row in `findable`; `kind` is 'task'
-- for the prompt that began a task, and `id` is then the id of that message. The table `found` is the index. It holds
-- no text, only which row has which group of three characters, so it suits Chinese as well as English. A search
-- therefore reads the text of each row that the index names and checks it. Only the first 20,000 characters of a text
-- are indexed. This limit bounds the work in a transaction.
--
-- Triggers keep the index up to date. A migration that replaces `messages`, `agents` or `artifacts` must create the
-- triggers of this table again.
CREATE TABLE findable (
    seq        INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL CHECK (kind IN ('task', 'agent', 'message', 'artifact')),
    id         TEXT NOT NULL,
    task       TEXT,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX findable_id ON findable (id, kind);
CREATE INDEX findable_of_task ON findable (task, seq);

CREATE VIRTUAL TABLE found USING fts5 (
    text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram'
);
-- The groups of three characters in the index. A search for one or two characters looks for the groups that begin with
-- these characters. Therefore two line breaks are added to each text: its last characters then begin a group, too.
CREATE VIRTUAL TABLE found_groups USING fts5vocab (found, row);

-- The beginning of a text artifact's content. NULL: the content has not been read yet.
ALTER TABLE artifacts ADD COLUMN words TEXT;
CREATE INDEX artifacts_unread ON artifacts (id) WHERE kind = 'text' AND words IS NULL;

-- Index the rows that exist already, oldest first.
INSERT INTO findable (kind, id, task, created_at)
SELECT * FROM (
    SELECT CASE WHEN m.sender = 'user' AND m.seq = (SELECT min(seq) FROM messages
            WHERE task = m.task AND sender = 'user') THEN 'task' ELSE 'message' END,
        m.id, m.task, m.created_at FROM messages m
    UNION ALL SELECT 'agent', id, task, created_at FROM agents WHERE task IS NOT NULL
    UNION ALL SELECT 'artifact', id, nullif(task, ''), created_at FROM artifacts
) ORDER BY 4;

INSERT INTO found (rowid, text)
SELECT f.seq, substr(coalesce((SELECT group_concat(atom, char(10))
        FROM json_tree(CASE WHEN json_valid(m.body) THEN m.body ELSE '{}' END) WHERE type = 'text'), ''), 1, 20000)
    || char(10, 10)
FROM findable f JOIN messages m ON m.id = f.id WHERE f.kind IN ('task', 'message');

INSERT INTO found (rowid, text)
SELECT f.seq, substr(concat_ws(char(10), a.id, a.name, (SELECT name FROM roles WHERE id = a.role),
        (SELECT group_concat(atom, char(10))
            FROM json_tree(CASE WHEN json_valid(a.brief) THEN a.brief ELSE '{}' END) WHERE type = 'text')), 1, 20000)
    || char(10, 10)
FROM findable f JOIN agents a ON a.id = f.id WHERE f.kind = 'agent';

INSERT INTO found (rowid, text)
SELECT f.seq, substr(concat_ws(char(10), x.id, x.filename, x.label, x.words), 1, 20000) || char(10, 10)
FROM findable f JOIN artifacts x ON x.id = f.id WHERE f.kind = 'artifact';

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
