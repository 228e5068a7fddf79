-- Before each model call, polity adds up what the task has spent. With the number of the call in the index, it reads
-- only the calls since the last time.
DROP INDEX model_calls_of_task;
CREATE INDEX model_calls_of_task ON model_calls (task, seq, prompt_tokens, completion_tokens, cost);
