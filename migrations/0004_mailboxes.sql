-- The answers and notices that wait in a mailbox, by who they are from.
CREATE INDEX messages_unheard ON messages (receiver, task, sender)
    WHERE state = 'queued' AND (in_reply_to IS NOT NULL OR sender = 'system');
-- The requests that an agent has read and not answered.
CREATE INDEX messages_unanswered ON messages (receiver, task, seq)
    WHERE expects = 'answer' AND answered_by IS NULL AND state IN ('in_turn', 'done');
