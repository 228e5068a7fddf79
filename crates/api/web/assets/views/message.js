// A message, whole.

import { h, fill } from "../dom.js";
import { typeName } from "./sentence.js";
import { code, detailLink, facts, preview, section, time, titleOf, trouble, who } from "./shared.js";

export function showMessage(app, id, title, body) {
  const { t, api } = app;
  let started = false;
  fill(title, t("message"));

  async function load() {
    try {
      draw(await api.message(id));
    } catch (error) {
      fill(body, trouble(app, error, load));
    }
  }

  function draw(message) {
    fill(title, t("message"), " ", h("span.id", {}, message.id));
    const link = (other) => other ? detailLink(app, "message", other, {}, other) : null;
    fill(body,
      h("p.lead", {}, who(app, message.from), h("span.arrow", {}, "→"), who(app, message.to)),
      h("div.prose.boxed", {}, message.text),
      message.attachments.length > 0
        ? section(t("attachments"), h("div.attachments", {}, message.attachments.map((one) => preview(app, one)))) : null,
      message.payload ? section(t("message.payload"), code(message.payload)) : null,
      section(t("facts"), facts(
        [t("message.type"), typeName(app, message.type)],
        [t("task"), titleOf(app, message.task)],
        [t("message.state"), t.has(`message.state.${message.state}`) ? t(`message.state.${message.state}`) : message.state],
        [t("message.expects"), t(`message.expects.${message.expects}`)],
        [t("message.finality"), message.finality === "interim" ? t("message.interim") : null],
        [t("message.replies"), link(message.inReplyTo)],
        [t("message.answered"), link(message.answeredBy)],
        [t("message.introduced"), message.introducedAgent ? who(app, message.introducedAgent) : null],
        [t("time"), time(app, message.createdAt)],
        [t("message.due"), message.dueAt ? time(app, message.dueAt) : null],
      )));
  }

  return {
    update(_model, _ui, entries) {
      if (started && !entries.some((entry) => entry.inReplyTo === id || entry.message === id)) return;
      started = true;
      load();
    },
  };
}
