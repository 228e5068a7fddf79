// The detail view of a request exactly as it was sent to a model.

import { fill, h } from "../dom.js";
import { passes } from "../draft.js";
import { refill } from "../morph.js";
import { kept } from "../reading.js";
import { requestBody } from "./request.js";
import { facts, nothing, routingChip, time, titleOf, trouble, who } from "./shared.js";

export function showSent(app, id, title, body, signal) {
  const { t, api } = app;
  let shown = false;
  let asked = false;
  fill(title, t("sent.number", { n: id }));

  // A request never changes, so the page reads it once.
  const load = kept(async () => {
    if (shown) return;
    try {
      draw(await api.sent(id));
    } catch (error) {
      if (!shown) fill(body, trouble(app, error, load));
      if (passes(error)) throw error;
    }
  }, { delay: 0, signal });

  function draw(sent) {
    shown = true;
    refill(body, h("p.dim.small", {}, t("sent.what")),
      facts([t("sent.agent"), who(app, sent.agent)], [t("task"), titleOf(app, sent.task)], [t("turn"), `#${sent.turn}`],
        [t("service"), sent.service], [t("service.model"), sent.model], [t("revision"), String(sent.revision)],
        [t("sent.outcome"), t(`sent.outcome.${sent.outcome}`)], [t("time"), time(app, sent.at)],
        [t("request.shown"), sent.shown.length > 0
          ? h("span.chips", {}, sent.shown.map((one) => routingChip(app, one, sent.number))) : null]),
      sent.body === undefined ? nothing(t("sent.gone")) : requestBody(app, JSON.parse(sent.body), sent.body));
  }

  return {
    update() {
      if (asked) return;
      asked = true;
      load();
    },
  };
}
