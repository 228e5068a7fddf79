-- Requests that failed, bounced or stay unanswered never get an answer, so they stayed in these indexes for ever. But
-- polity reads the first two as a whole, or all rows of root in all tasks. Now they have only requests that somebody may
-- still answer. A request of the person stays open when the turn that read it has failed.
DROP INDEX messages_asked;
DROP INDEX messages_open;
DROP INDEX messages_open_requests;
CREATE INDEX messages_asked ON messages (sender, task)
    WHERE expects = 'answer' AND answered_by IS NULL AND state IN ('delayed', 'queued', 'in_turn', 'done');
CREATE INDEX messages_open ON messages (task)
    WHERE expects = 'answer' AND answered_by IS NULL AND state IN ('delayed', 'queued', 'in_turn', 'done');
CREATE INDEX messages_open_requests ON messages (receiver, task, seq)
    WHERE expects = 'answer' AND answered_by IS NULL
        AND (state IN ('delayed', 'queued', 'in_turn', 'done') OR state = 'failed' AND sender = 'user');

-- All requests of the person without an answer. They decide the outcome of their task.
CREATE INDEX messages_owed_to_user ON messages (task)
    WHERE sender = 'user' AND expects = 'answer' AND answered_by IS NULL;
