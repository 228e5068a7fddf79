-- Root and the person get to know agents of all tasks. With the task of the known agent in an index, polity reads only
-- the contacts of one task. The task is empty for root and the person, who take part in every task.
ALTER TABLE contacts ADD COLUMN task TEXT NOT NULL DEFAULT '';
UPDATE contacts SET task = coalesce((SELECT task FROM agents WHERE id = contacts.agent), '');
CREATE INDEX contacts_of_task ON contacts (owner, task);

-- With this index, polity counts the live agents of roles without reading the agents, whose briefs may be long.
CREATE INDEX agents_live ON agents (role) WHERE ended_at IS NULL;

-- A fork begins with the artifacts that its original had. Each of them still belongs to the task in which it was
-- stored. A row here says that a fork has it, too.
CREATE TABLE inherited (
    task     TEXT NOT NULL REFERENCES tasks (id),
    artifact TEXT NOT NULL,
    PRIMARY KEY (task, artifact)
) STRICT, WITHOUT ROWID;

CREATE INDEX inherited_artifact ON inherited (artifact);
