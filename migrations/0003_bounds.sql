-- What a call cost, in the currency of the services' prices; nothing where the service has no price.
ALTER TABLE model_calls ADD COLUMN cost REAL;

-- What a task has spent is summed up before each call: from the index alone.
DROP INDEX model_calls_of_task;
CREATE INDEX model_calls_of_task ON model_calls (task, prompt_tokens, completion_tokens, cost);

-- How long agents have worked for a task, in milliseconds.
ALTER TABLE tasks ADD COLUMN worked_ms INTEGER NOT NULL DEFAULT 0;

-- When what was said and done in a task was removed to make room; nothing while it is there.
ALTER TABLE tasks ADD COLUMN forgotten_at INTEGER;

-- When the person paused an agent; nothing while it may work.
ALTER TABLE agents ADD COLUMN paused_at INTEGER;

-- The last turn that a conversation had when it was let go on: what failed before it counts no more.
CREATE TABLE releases (
    agent TEXT NOT NULL REFERENCES agents (id),
    task  TEXT NOT NULL REFERENCES tasks (id),
    turn  INTEGER NOT NULL,
    PRIMARY KEY (agent, task)
) STRICT, WITHOUT ROWID;
