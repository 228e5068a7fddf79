// A message that the person is writing. Pure functions; the caller supplies the random key.
//
// A draft gets a key when the page first tries to send it. The key stays until the message has arrived or the person
// changes the draft. If the connection breaks or the daemon restarts, the page sends the draft again under this key,
// and the message arrives only once. The draft also keeps the reference of each stored file, so the page stores each
// attached file only once.

/** Returns an empty draft of a message to an agent. */
export function fresh(to = "root", task = null) {
  return { to, task, service: null, workspace: "", access: "write", text: "", files: [], key: null, state: "writing", since: null, problem: null };
}

/**
 * Applies a change by the person. A changed draft is a different message, so the draft loses its key and will get a
 * new key.
 */
export function changed(draft, change) {
  return { ...draft, ...change, key: null, state: "writing", problem: null };
}

/**
 * Marks the draft as being sent since the time `since`. A key from an earlier attempt stays; without such a key, the
 * draft gets `key`.
 */
export function sending(draft, key, since) {
  return { ...draft, key: draft.key ?? key, state: "sending", since, problem: null };
}

/** Records the reference of a file that was stored. */
export function stored(draft, id, reference) {
  return { ...draft, files: draft.files.map((file) => (file.id === id ? { ...file, reference } : file)) };
}

/** Marks the draft as failed, and keeps its text, files and key. */
export function failed(draft, problem) {
  return { ...draft, state: "failed", problem };
}

/** Whether the draft has neither a text nor files. */
export function isEmpty(draft) {
  return draft.text.trim() === "" && draft.files.length === 0;
}

/** Whether the draft can be sent: it is not empty, and is not being sent already. */
export function sendable(draft) {
  return draft.state !== "sending" && !isEmpty(draft);
}

/** Returns the body of the request that sends the draft. */
export function letter(draft) {
  const attachments = draft.files.map((file) => file.reference);
  return {
    to: draft.to,
    text: draft.text,
    ...(attachments.length > 0 ? { attachments } : {}),
    ...(draft.task ? { task: draft.task } : {}),
    ...(draft.service ? { service: draft.service } : {}),
    ...(mayChooseWorkspace(draft) && draft.workspace.trim() ? { workspace: workspaceOf(draft) } : {}),
  };
}

/** Whether the draft begins a task, so that the person may choose its workspace. */
export function mayChooseWorkspace(draft) {
  return draft.to === "root" && !draft.task;
}

/** Returns the workspace in the form that the API takes: a path, and `:ro` at its end if agents may only read. */
function workspaceOf(draft) {
  return draft.workspace.trim() + (draft.access === "read" ? ":ro" : "");
}

/** Whether an automatic retry makes sense: only if the server did not answer or is unavailable. */
export function passes(error) {
  return error.status === 0 || error.status === 503;
}
