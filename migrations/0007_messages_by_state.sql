-- Messages that stand somewhere, as it is shown: an answer is noted beside the state.
CREATE INDEX messages_in_state ON messages (CASE WHEN answered_by IS NULL THEN state ELSE 'answered' END, seq);
CREATE INDEX messages_of_type ON messages (type, seq);
