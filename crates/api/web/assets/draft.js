// A message that the person is writing. Pure, but for the key that the caller brings.
//
// A draft that was sent keeps its key until it is known to have arrived or is changed: so sending it again, after a
// broken connection or a restart of the daemon, doubles nothing. A file that was stored keeps its reference likewise.

/** An empty draft to somebody. */
export function fresh(to = "root", task = null) {
  return { to, task, service: null, text: "", files: [], key: null, state: "writing", problem: null };
}

/** A change by the person: it is another message now, so the key is gone. */
export function changed(draft, change) {
  return { ...draft, ...change, key: null, state: "writing", problem: null };
}

/** It is being sent; the key of an attempt before counts on. */
export function sending(draft, key) {
  return { ...draft, key: draft.key ?? key, state: "sending", problem: null };
}

/** A file of it is stored. */
export function stored(draft, id, reference) {
  return { ...draft, files: draft.files.map((file) => (file.id === id ? { ...file, reference } : file)) };
}

/** It could not be sent: everything is kept. */
export function failed(draft, problem) {
  return { ...draft, state: "failed", problem };
}

/** Whether there is something to send. */
export function sendable(draft) {
  return draft.state !== "sending" && (draft.text.trim() !== "" || draft.files.length > 0);
}

/** What the server is told. */
export function letter(draft) {
  const attachments = draft.files.map((file) => file.reference);
  return {
    to: draft.to,
    text: draft.text,
    ...(attachments.length > 0 ? { attachments } : {}),
    ...(draft.task ? { task: draft.task } : {}),
    ...(draft.service ? { service: draft.service } : {}),
  };
}

/** Whether it is worth trying again by itself: nothing that the server has refused. */
export function passes(error) {
  return error.status === 0 || error.status === 503;
}
