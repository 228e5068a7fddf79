-- The place where the agents of a task work on files and run commands, as JSON.
-- NULL: a directory that polity makes when it is first needed.
ALTER TABLE tasks ADD COLUMN workspace TEXT;

-- The commit on which the own worktree of an agent is based. NULL: the agent shares the workspace of its parent.
ALTER TABLE agents ADD COLUMN worktree TEXT;
