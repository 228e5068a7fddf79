-- What was written for others to look at is found without reading all of it.
CREATE INDEX messages_to ON messages (receiver, seq);
CREATE INDEX messages_from ON messages (sender, seq);
CREATE INDEX turns_open_of ON turns (agent) WHERE state = 'open';
CREATE INDEX artifacts_of_task ON artifacts (task);

-- What an agent has spent is summed up from the index alone.
DROP INDEX model_calls_of_agent;
CREATE INDEX model_calls_of_agent ON model_calls (agent, task, seq, prompt_tokens, completion_tokens, cost);

-- What the person has written under a key of its own choice: the same again is the same message. `content` is the hash
-- of what was said. A key holds as long as its message is there.
CREATE TABLE posts (
    key        TEXT PRIMARY KEY,
    content    TEXT NOT NULL,
    message    TEXT NOT NULL,
    task       TEXT NOT NULL REFERENCES tasks (id),
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX posts_of_task ON posts (task);
