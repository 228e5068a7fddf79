-- What all calls to a model of a service have used together, so that nobody adds up all calls. Root works in all tasks,
-- so its calls have a row of their own: `share` is 'root' for them, and 'others' for the calls of all other agents.
-- `priced` counts the calls with a cost, and `cost` is their sum. Triggers keep the totals up to date.
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

INSERT INTO spent
SELECT service, model, CASE agent WHEN 'root' THEN 'root' ELSE 'others' END AS share, count(*), sum(prompt_tokens),
    sum(completion_tokens), count(cost), total(cost)
FROM model_calls GROUP BY service, model, share;

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

-- The number of live agents for each service that a role names. Agents stay alive when their task is over, so their
-- number grows with the history. Triggers keep the numbers up to date.
CREATE TABLE served (
    service TEXT PRIMARY KEY,
    agents  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO served
SELECT r.service, count(*) FROM agents a JOIN roles r ON r.id = a.role WHERE a.ended_at IS NULL GROUP BY r.service;

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

-- Root knows agents of all tasks, has hired agents in all tasks, and has had turns in all tasks. With these indexes,
-- polity reads one page of them in order.
CREATE INDEX contacts_in_order ON contacts (owner, since, agent);
CREATE INDEX agents_of_parent ON agents (parent);
CREATE INDEX turns_of_agent ON turns (agent, id, task);

-- With these indexes, polity finds rows of one task, turn, artifact or message without reading the rows of all others.
CREATE INDEX agents_paused ON agents (id) WHERE paused_at IS NOT NULL;
CREATE INDEX turns_failed ON turns (agent, task) WHERE state = 'failed';
CREATE INDEX holds_of_task ON holds (task);
CREATE INDEX commands_running_in ON commands (task) WHERE state = 'running';
CREATE INDEX artifact_grants_of ON artifact_grants (artifact);
CREATE INDEX exchanges_of_message ON exchanges (message) WHERE message IS NOT NULL;
