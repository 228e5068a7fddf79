-- The place where the agents of a task work on files and run commands, as JSON.
-- NULL: a directory that polity makes when it is first needed.
ALTER TABLE tasks ADD COLUMN workspace TEXT;

-- 1: the agent has its own worktree. 0: it works where its parent works.
ALTER TABLE agents ADD COLUMN own_worktree INTEGER NOT NULL DEFAULT 0;
