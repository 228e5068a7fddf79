// The stretch of a conversation that is held: without a gap, and never beyond a bound. Pure. Messages are in the order in
// which they were accepted, and so are their ids.

/** How many messages are held; what is older is read again when it is asked for. */
export const BOUND = 200;

/** Nothing yet. `next`: where older ones are; `behind`: whether newer ones are not held. */
export function nothingSaid() {
  return { messages: [], next: undefined, behind: false };
}

/** The newest page was read, and counts alone. */
export function newestOf(page) {
  return { messages: page.messages, next: page.next, behind: false };
}

/**
 * The newest page was read again. Where it does not join what is held, somebody at the end sees the page; somebody who
 * reads far back keeps what is there, and is `behind`.
 */
export function caughtUp(held, page, atEnd) {
  if (held.messages.length === 0 && !held.behind) return newestOf(page);
  const fresh = new Set(page.messages.map((message) => message.id));
  const first = page.messages[0]?.id;
  const joined = !page.next || held.messages.some((message) => fresh.has(message.id));
  if (!joined) return atEnd ? newestOf(page) : { ...held, behind: true };
  // What should be in the page and is not there any more was removed.
  const older = page.next ? held.messages.filter((message) => message.id < first) : [];
  const messages = [...older, ...page.messages];
  const next = older.length > 0 ? held.next : page.next;
  if (messages.length <= BOUND) return { messages, next, behind: false };
  if (!atEnd) return { messages: messages.slice(0, BOUND), next, behind: true };
  const kept = messages.slice(-BOUND);
  return { messages: kept, next: kept[0].id, behind: false };
}

/** The page before the oldest that is held was read: what no longer fits goes at the new end. */
export function furtherBack(held, page) {
  const messages = [...page.messages, ...held.messages];
  return { messages: messages.slice(0, BOUND), next: page.next, behind: held.behind || messages.length > BOUND };
}
