// Finds all unanswered questions to the person, including very old questions.

import { isOpenQuestion } from "./state.js";

const PAGE = 200;

/**
 * Returns all open questions, newest first. Most open questions are on the newest page of messages. The number
 * `waitingForUser` of a task shows whether older questions exist.
 */
export async function openQuestions(api) {
  const found = new Map();
  const learn = (messages) => {
    for (const message of messages) if (isOpenQuestion(message)) found.set(message.id, message);
  };
  const newest = await api.messages({ to: "user", order: "newest", limit: PAGE });
  learn(newest.messages);
  if (newest.next) {
    for await (const task of waiting(api)) await search(api, task, found, learn);
  }
  return [...found.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
}

/** Yields the tasks that have open questions. */
async function* waiting(api) {
  let after;
  do {
    const page = await api.tasks(after);
    for (const task of page.tasks) if (task.waitingForUser > 0) yield task;
    after = page.next;
  } while (after);
}

/** Reads the messages of a task backwards, page by page, until all its open questions are found. */
async function search(api, task, found, learn) {
  const missing = () => [...found.values()].filter((message) => message.task === task.id).length < task.waitingForUser;
  let before;
  while (missing()) {
    const page = await api.messages({ to: "user", task: task.id, order: "newest", limit: PAGE, before });
    learn(page.messages);
    before = page.next;
    if (!before) return;
  }
}
