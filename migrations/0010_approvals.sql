-- Questions to the person: may an agent make this call? A turn has at most one open question.
-- `remembered` is what a permission for more than this call would contain, `scope` what a plain yes allows, `way` how
-- content from outside reached the agent.
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

CREATE UNIQUE INDEX approvals_open ON approvals (turn) WHERE state = 'open';
CREATE INDEX approvals_expiring ON approvals (expires_at) WHERE state = 'open';
CREATE INDEX approvals_waiting ON approvals (task, agent) WHERE state = 'open';
CREATE INDEX approvals_of_agent ON approvals (agent) WHERE state = 'open';
CREATE INDEX approvals_of_task ON approvals (task, seq);

-- What the person has allowed for more than one call: for a task, or for ever if `task` is NULL. `calls` is the rule.
CREATE TABLE permissions (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    task       TEXT REFERENCES tasks (id),
    tool       TEXT NOT NULL,
    role       TEXT NOT NULL,
    calls      TEXT NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX permissions_of_task ON permissions (task);

-- The commands that agents run in the background. The agent waits for a running one on behalf of `request`.
CREATE TABLE commands (
    id      TEXT PRIMARY KEY,
    agent   TEXT NOT NULL REFERENCES agents (id),
    task    TEXT NOT NULL REFERENCES tasks (id),
    request TEXT,
    state   TEXT NOT NULL CHECK (state IN ('running', 'ended'))
) STRICT, WITHOUT ROWID;

CREATE INDEX commands_running ON commands (agent, task) WHERE state = 'running';
CREATE INDEX commands_of_task ON commands (task);

-- The sources outside from which a holder has content: an agent, an artifact, or the workspace of a task.
-- `way` is one step: from whom or what the holder has it.
CREATE TABLE seen (
    task   TEXT NOT NULL REFERENCES tasks (id),
    holder TEXT NOT NULL,
    source TEXT NOT NULL,
    way    TEXT NOT NULL,
    since  INTEGER NOT NULL,
    PRIMARY KEY (task, holder, source)
) STRICT, WITHOUT ROWID;
