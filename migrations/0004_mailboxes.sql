-- The answers and notices that wait in a mailbox, by who they are from.
CREATE INDEX messages_unheard ON messages (receiver, task, sender)
    WHERE state = 'queued' AND (in_reply_to IS NOT NULL OR sender = 'system');
-- The requests that an agent has read and not answered.
CREATE INDEX messages_unanswered ON messages (receiver, task, seq)
    WHERE expects = 'answer' AND answered_by IS NULL AND state IN ('in_turn', 'done');
-- Whom a turn has hired, for when the turn is removed.
CREATE INDEX agents_hired_in ON agents (hired_in) WHERE hired_in IS NOT NULL;
