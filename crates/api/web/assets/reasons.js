// Finds the events that tell why something in the history of an agent failed. The history has records, but an
// explanation belongs to an event. Both are written in one transaction, so they have the same time.

/** The kinds of events that explain records. */
const KINDS = ["tool_called", "turn_ended"];
const PAGE = 500;

/** Returns the event that tells why a record is a refusal or a failure. All events must be of the record's conversation. */
export function eventOf({ at, record }, events) {
  switch (record.record) {
    case "tool_finished":
      // The ids of calls are unique in a conversation.
      return events.find((one) => one.event === "tool_called" && one.error && one.call === record.call);
    case "failed":
    case "stopped":
      return events.find((one) => one.event === "turn_ended" && one.failure && one.at === at);
    default:
      return undefined;
  }
}

/**
 * Returns a function that takes a page of a conversation's records, newest page first, and resolves to all events that
 * explain records. The function reads the events only as far back as needed.
 */
export function reasonsOf(api, agent, task) {
  const events = [];
  let before = Number.MAX_SAFE_INTEGER;
  return async (entries) => {
    const oldest = entries.find(({ record }) => ["tool_finished", "failed", "stopped"].includes(record.record));
    while (oldest && before && !(events[0]?.at < oldest.at)) {
      const page = await api.events({ agent, task, kind: KINDS.join(","), before, limit: PAGE });
      events.unshift(...page.events.filter((one) => one.agent === agent && one.task === task));
      before = page.events.length > 0 ? page.next : 0;
    }
    return events;
  };
}
