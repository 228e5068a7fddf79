// The part of a conversation that the page keeps in memory. The part has no gaps and a limited length. Pure
// functions. Messages are in the order in which the society accepted them; their ids sort in the same order.

/** Maximum number of messages to hold. Dropped messages are read again on demand. */
export const BOUND = 200;

/**
 * Returns an empty part. `next` is the cursor to read older messages; `behind` means that newer messages are missing.
 */
export function nothingSaid() {
  return { messages: [], next: undefined, behind: false };
}

/** Returns a part that contains only the newest page of messages. */
export function newestOf(page) {
  return { messages: page.messages, next: page.next, behind: false };
}

/**
 * Merges a new read of the newest page of messages. If messages may be missing between the held messages and the newest
 * page, the result depends on what the person sees. If the person sees the end of the list (`atEnd`), the newest page
 * replaces the held messages. Otherwise the held messages stay, and the part is `behind`.
 */
export function caughtUp(held, page, atEnd) {
  if (held.messages.length === 0 && !held.behind) return newestOf(page);
  const fresh = new Set(page.messages.map((message) => message.id));
  const first = page.messages[0]?.id;
  const joined = !page.next || held.messages.some((message) => fresh.has(message.id));
  if (!joined) return atEnd ? newestOf(page) : { ...held, behind: true };
  // Keep only the held messages that are older than the first message of the page. If another held message is not in
  // the page, it was deleted on the server.
  const older = page.next ? held.messages.filter((message) => message.id < first) : [];
  const messages = [...older, ...page.messages];
  const next = older.length > 0 ? held.next : page.next;
  if (messages.length <= BOUND) return { messages, next, behind: false };
  if (!atEnd) return { messages: messages.slice(0, BOUND), next, behind: true };
  const kept = messages.slice(-BOUND);
  return { messages: kept, next: kept[0].id, behind: false };
}

/** Adds the page before the oldest held message. If there are too many messages, the newest messages are dropped. */
export function furtherBack(held, page) {
  const messages = [...page.messages, ...held.messages];
  return { messages: messages.slice(0, BOUND), next: page.next, behind: held.behind || messages.length > BOUND };
}
