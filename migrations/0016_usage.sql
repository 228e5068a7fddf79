-- What the calls of each task and of each agent have used together, so that nobody adds up the calls of all tasks.
-- `priced` and `cost` are those of the table `spent`. The indexes begin with the largest sums. Triggers keep the sums up
-- to date.
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

INSERT INTO spent_in_tasks
SELECT task, count(*), sum(prompt_tokens), sum(completion_tokens), count(cost), total(cost) FROM model_calls GROUP BY task;

INSERT INTO spent_by_agents
SELECT agent, count(*), sum(prompt_tokens), sum(completion_tokens), count(cost), total(cost) FROM model_calls GROUP BY agent;

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

-- As in the trigger `remove_call`, the cost of calls without a price is exactly 0.
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
