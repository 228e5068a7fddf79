// The detail view of a message, with its full text.

import { h, fill } from "../dom.js";
import { passes } from "../draft.js";
import { refill } from "../morph.js";
import { kept } from "../reading.js";
import { jsonTree } from "./json.js";
import { typeName } from "./sentence.js";
import { detailLink, facts, preview, section, time, titleOf, trouble, who, whyLink } from "./shared.js";
import { written } from "./written.js";

/** Whether the daemon can explain why a message has no answer, or came back. */
function isExplained(message) {
  return ["unanswered", "failed", "bounced"].includes(message.state) || (message.expects === "answer" && !message.answeredBy);
}

export function showMessage(app, id, title, body, signal) {
  const { t, api } = app;
  let shown = false;
  let returns = null;
  fill(title, t("message"));

  const load = kept(async () => {
    try {
      draw(await api.message(id));
    } catch (error) {
      if (!shown) fill(body, trouble(app, error, load));
      if (passes(error)) throw error;
    }
  }, { delay: 0, signal });

  function draw(message) {
    shown = true;
    refill(title, t("message"), " ", h("span.id", {}, message.id));
    const link = (other) => other ? detailLink(app, "message", other, {}, other) : null;
    const links = (others) => others?.length ? others.flatMap((other, at) => [at > 0 ? ", " : "", link(other)]) : null;
    refill(body,
      h("p.lead", {}, who(app, message.from), h("span.arrow", {}, "→"), who(app, message.to)),
      written(app, message.id, message.text, { class: "boxed" }),
      message.attachments.length > 0
        ? section(t("attachments"), h("div.attachments", {}, message.attachments.map((one) => preview(app, one)))) : null,
      message.payload ? section(t("message.payload"), jsonTree(app, message.payload)) : null,
      section(t("facts"), facts(
        [t("message.type"), typeName(app, message.type)],
        [t("task"), titleOf(app, message.task)],
        [t("message.state"), [t.has(`message.state.${message.state}`) ? t(`message.state.${message.state}`) : message.state, " ",
          isExplained(message) ? whyLink(app, message.id) : null]],
        [t("message.expects"), t(`message.expects.${message.expects}`)],
        [t("message.finality"), message.finality === "interim" ? t("message.interim") : null],
        [t("message.replies"), links(message.inReplyTo)],
        [t("message.about"), message.inReplyTo?.length ? null : link(message.about)],
        [t("message.onBehalfOf"), link(message.onBehalfOf)],
        [t("message.answered"), link(message.answeredBy)],
        [t("message.introduced"), message.introducedAgent ? who(app, message.introducedAgent) : null],
        [t("time"), time(app, message.createdAt)],
        [t("message.due"), message.dueAt ? time(app, message.dueAt) : null],
      )));
  }

  return {
    update(model, _ui, entries) {
      if (returns === model.returns && !entries.some((entry) => entry.inReplyTo?.includes(id) || entry.message === id)) return;
      returns = model.returns;
      load();
    },
  };
}
