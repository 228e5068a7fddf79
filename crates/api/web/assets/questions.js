// The questions to the person that have no answer yet, however long ago they were asked.

import { isOpenQuestion } from "./state.js";

const PAGE = 200;

/** All of them, the newest first. Most are among the newest messages; the tasks say where there are more. */
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

/** The tasks in which something is asked. */
async function* waiting(api) {
  let after;
  do {
    const page = await api.tasks(after);
    for (const task of page.tasks) if (task.waitingForUser > 0) yield task;
    after = page.next;
  } while (after);
}

/** Pages back in a task until as many are found as it has. */
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
