-- The answers and notices that wait in a mailbox, by who they are from.
CREATE INDEX messages_unheard ON messages (receiver, task, sender)
    WHERE state = 'queued' AND (in_reply_to IS NOT NULL OR sender = 'system');
