// The message box: the person writes to root or to any agent, and attaches files by drag and drop, by paste or with a
// button.

import { h, fill, icon } from "../dom.js";
import { changed, failed, fresh, letter, mayChooseWorkspace, passes, sendable, sending, stored } from "../draft.js";
import { foresee } from "../foresee.js";
import { size } from "../format.js";
import { refill } from "../morph.js";
import { timer } from "./calls.js";
import { button, iconButton } from "./shared.js";

const FOUND = 12;
const ATTEMPTS = 5;
const PAUSE_MS = 700;
/**
 * Number of files attached since the page was opened. The count is also the id of the file that was attached last.
 */
let files = 0;

export function mountComposer(app) {
  const { store, t, api } = app;
  let known = [];
  let drawn = null;

  const narrow = matchMedia("(max-width: 900px)").matches;
  const text = h("textarea", {
    rows: "1", placeholder: t(narrow ? "write.placeholder.narrow" : "write.placeholder"), "aria-label": t("write"), name: "text",
    oninput: () => {
      edit({ text: text.value });
      grow();
    },
    onkeydown: (event) => {
      // While the person composes a character with an input method, Enter confirms the character and must not send
      // the message.
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        send();
      }
    },
    onpaste: (event) => {
      const pasted = [...(event.clipboardData?.files ?? [])];
      if (pasted.length > 0) {
        event.preventDefault();
        attach(pasted);
      }
    },
  });
  const picker = h("input", {
    type: "file", multiple: true, hidden: true, tabindex: "-1", "aria-hidden": "true",
    onchange: () => {
      attach([...picker.files]);
      picker.value = "";
    },
  });
  const receiver = h("input.receiver", {
    type: "text", role: "combobox", "aria-label": t("write.to"), "aria-expanded": "false", "aria-controls": "receivers",
    "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false",
    onfocus: () => {
      receiver.select();
      offer("");
    },
    oninput: () => offer(receiver.value.trim()),
    // Close the offers only if the person has not come back to the field during the pause.
    onblur: () => setTimeout(() => { if (document.activeElement !== receiver) close(); }, 120),
    onkeydown: onreceiverkey,
  });
  const receivers = h("ul.offers", { role: "listbox", id: "receivers", hidden: true });
  const task = h("select", { "aria-label": t("filter.task"), onchange: () => edit({ task: task.value || null }) });
  const service = h("select", { "aria-label": t("service"), onchange: () => edit({ service: service.value || null }) });
  const directory = h("input", {
    type: "text", name: "workspace", placeholder: t("write.workspace"), "aria-label": t("write.workspace"), title: t("write.workspace.what"),
    autocomplete: "off", spellcheck: "false", oninput: () => edit({ workspace: directory.value }),
  });
  const access = h("select", { "aria-label": t("write.access"), onchange: () => edit({ access: access.value }) },
    ["write", "read"].map((one) => h("option", { value: one }, t(`write.access.${one}`))));
  const attached = h("div.attached", { role: "list", "aria-label": t("attachments") });
  const foreseen = h("ul.foreseen", { role: "status", "aria-label": t("foreseen") });
  const status = h("div.write-status", { role: "status" });
  // The time stands outside of the status, because screen readers read a status again whenever it changes.
  const lasts = h("span.write-lasts", { "aria-hidden": "true" });
  const sendButton = button(t("send"), send, { class: "primary send" }, "send");
  const element = h("form.composer", {
    "aria-label": t("write"),
    onsubmit: (event) => event.preventDefault(),
    ondragover: (event) => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    },
  },
  h("div.write-head", {}, h("label.write-to", {}, h("span.dim", {}, t("write.to")), receiver), receivers, task, service, directory, access, h("span.spring"), status, lasts),
  attached,
  foreseen,
  h("div.write-body", {}, text, iconButton(t("attach"), "attach", () => picker.click()), picker, sendButton));

  // Accept dropped files anywhere on the page. Otherwise the browser would leave the page and open the file.
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  }, { signal: app.signal });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  }, { signal: app.signal });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    const dropped = [...(event.dataTransfer?.files ?? [])];
    if (dropped.length > 0) {
      app.showComposer();
      attach(dropped);
    }
  }, { signal: app.signal });

  function edit(change) {
    if (store.draft.state !== "sending") put(changed(store.draft, change));
  }

  /** Stores a draft and shows it at once. */
  function put(draft) {
    store.write(draft);
    draw();
  }

  function attach(list) {
    if (store.draft.state === "sending") return;
    const more = list.map((file) => {
      files += 1;
      return { id: files, file, name: file.name || t("attachment.unnamed"), reference: null, url: file.type.startsWith("image/") ? URL.createObjectURL(file) : null };
    });
    edit({ files: [...store.draft.files, ...more] });
    text.focus();
  }

  function detach(one) {
    if (one.url) URL.revokeObjectURL(one.url);
    edit({ files: store.draft.files.filter((file) => file.id !== one.id) });
  }

  function grow() {
    text.style.height = "auto";
    text.style.height = `${Math.min(text.scrollHeight + 2, 260)}px`;
  }

  /** Sends the draft. Every attempt has the same key and reuses the stored files, so a retry sends nothing twice. */
  async function send() {
    if (!sendable(store.draft)) return;
    const told = foresee(store.draft, store.model).map((one) => one.code);
    put(sending(store.draft, key(), Date.now()));
    for (let attempt = 1; ; attempt += 1) {
      try {
        for (const one of store.draft.files) {
          if (!one.reference) put(stored(store.draft, one.id, (await api.store(one.file)).reference));
        }
        const posted = await api.write(letter(store.draft), store.draft.key);
        for (const one of store.draft.files) if (one.url) URL.revokeObjectURL(one.url);
        put(fresh(store.draft.to, posted.task));
        app.sent(posted, told);
        return;
      } catch (error) {
        if (passes(error) && attempt < ATTEMPTS) {
          fill(status, t("write.again", { n: attempt }));
          await new Promise((resolve) => { setTimeout(resolve, PAUSE_MS * attempt); });
          continue;
        }
        put(failed(store.draft, app.explain(error)));
        return;
      }
    }
  }

  /** Generates a random key for a draft. */
  function key() {
    return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  }

  function offer(search) {
    const needle = search.toLowerCase();
    const found = [];
    for (const agent of store.model.agents.values()) {
      if (agent.id === "user" || agent.state === "ended") continue;
      const says = [agent.id, agent.role, agent.name].some((field) => field?.toLowerCase().includes(needle));
      if (says) found.push(agent);
      if (found.length === FOUND) break;
    }
    fill(receivers, found.map((agent, at) => h("li", {
      role: "option", id: `receiver-${at}`, "aria-selected": String(at === 0), "data-id": agent.id,
      onmousedown: (event) => {
        event.preventDefault();
        choose(agent.id);
      },
    }, h("span", { class: `state-shape state-${agent.state}` }, icon(agent.state)),
    h("span.name", {}, agent.name ?? agent.role), h("span.id", {}, agent.id))));
    receivers.hidden = found.length === 0;
    receiver.setAttribute("aria-expanded", String(found.length > 0));
    point(0);
  }

  function point(at) {
    const options = [...receivers.children];
    if (options.length === 0) return receiver.removeAttribute("aria-activedescendant");
    const to = (at + options.length) % options.length;
    options.forEach((option, index) => option.setAttribute("aria-selected", String(index === to)));
    options[to].scrollIntoView({ block: "nearest" });
    return receiver.setAttribute("aria-activedescendant", options[to].id);
  }

  function onreceiverkey(event) {
    const options = [...receivers.children];
    const at = options.findIndex((option) => option.getAttribute("aria-selected") === "true");
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      point(at + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      if (at >= 0 && !receivers.hidden) choose(options[at].dataset.id);
      text.focus();
    } else if (event.key === "Escape") {
      event.stopPropagation();
      close();
      text.focus();
    }
  }

  function close() {
    receivers.hidden = true;
    receiver.setAttribute("aria-expanded", "false");
    draw();
  }

  function choose(id) {
    edit({ to: id, task: id === "root" ? store.ui.task : null });
    receivers.hidden = true;
    text.focus();
  }

  function draw() {
    const { draft } = store;
    drawn = draft;
    if (text.value !== draft.text) {
      text.value = draft.text;
      grow();
    }
    if (document.activeElement !== receiver || receivers.hidden) {
      const name = app.nameOf(draft.to);
      receiver.value = name === draft.to ? name : `${name} · ${draft.to}`;
    }
    const toRoot = draft.to === "root";
    task.hidden = !toRoot;
    if (toRoot) drawTasks(draft);
    service.hidden = !toRoot || draft.task !== null || store.model.services.length < 2;
    if (!service.hidden) {
      choices(service, draft.service, [h("option", { value: "" }, t("service.default")),
        store.model.services.map((one) => h("option", { value: one.id }, one.name || one.id))]);
    }
    directory.hidden = !mayChooseWorkspace(draft);
    access.hidden = directory.hidden || draft.workspace.trim() === "";
    if (directory.value !== draft.workspace) directory.value = draft.workspace;
    if (access.value !== draft.access) access.value = draft.access;
    refill(attached, draft.files.map((one) => h("div.attached-file", { role: "listitem", "data-key": `file-${one.id}` },
      one.url ? h("img", { src: one.url, alt: "" }) : icon("document"),
      h("span.name", {}, one.name), h("span.dim", {}, size(one.file.size)),
      iconButton(t("attachment.remove", { name: one.name }), "close", () => detach(one)))));
    drawForeseen(draft);
    const busy = draft.state === "sending";
    sendButton.disabled = !sendable(draft);
    text.readOnly = busy;
    element.classList.toggle("sending", busy);
    element.classList.toggle("failed", draft.state === "failed");
    fill(lasts, busy ? timer(draft.since) : null);
    if (busy) fill(status, t("write.sending"));
    else if (draft.state === "failed") fill(status, h("span.bad", { role: "alert" }, t("write.failed", { why: draft.problem })));
    else fill(status);
  }

  /** Shows what will not work with the draft. While the draft is being sent, the shown problems stay. */
  function drawForeseen(draft) {
    if (draft.state === "sending") return;
    refill(foreseen, foresee(draft, store.model).map(({ code, capability, agent, limit, ...values }) => h("li", { "data-key": code, "data-code": code },
      icon("parked"), h("span", {}, t(`foreseen.${code}`, {
        ...values, field: capability, capability: capability && t(`capability.${capability}`), agent: agent && app.nameOf(agent),
        limit: code === "too_large" ? size(limit) : limit,
      })))));
  }

  function drawTasks(draft) {
    const all = [...store.model.tasks.values()].filter((one) => !one.forgottenAt).slice(0, 50);
    const offered = all.map((one) => h("option", { value: one.id }, t("task.continue", { title: one.title || one.id })));
    if (draft.task && !all.some((one) => one.id === draft.task)) {
      offered.push(h("option", { value: draft.task }, t("task.continue", { title: draft.task })));
    }
    choices(task, draft.task, [h("option", { value: "" }, t("task.new")), offered]);
  }

  /** Updates the options of a select element. If the options do not change, an open list stays open. */
  function choices(select, chosen, options) {
    refill(select, options);
    if (select.value !== (chosen ?? "")) select.value = chosen ?? "";
  }

  return {
    element,
    focus: () => text.focus(),
    /** Sets the receiver of the draft, and keeps its text. A draft without a text gets the text `proposed`. */
    address(to, inTask, proposed = "") {
      edit({ to, task: to === "root" ? inTask ?? null : null, text: store.draft.text || proposed });
      text.focus();
    },
    update(model, ui) {
      const receiver = model.agents.get(store.draft.to);
      const now = [model.tasks, model.services, ui.task, model.ready, model.config, receiver?.state, receiver?.service];
      const { draft } = store;
      const moved = known.length > 0 && known[2] !== ui.task;
      if (moved && draft.to === "root" && draft.state === "writing") store.write({ ...draft, task: ui.task, key: null });
      if (drawn === store.draft && known.length > 0 && !known.some((one, at) => one !== now[at])) return;
      known = now;
      draw();
    },
  };
}
