// Shows the uses of an artifact: the messages that it is attached to, and the form in which each agent's model got it.

import { h } from "../dom.js";
import { detailLink, nothing, ownRoutingChip, section, time, titleOf, who } from "./shared.js";

/** Maximum number of entries to show in each of the two lists. */
const SHOWN = 100;

/** Shows the uses of the artifact `id` in two sections. */
export function usesOf(app, id, { messages, shown, more }) {
  const { t } = app;
  const rest = (count) => (count > SHOWN || more ? h("p.dim.small", {}, t("uses.more")) : null);
  return [
    section(t("uses.messages"), messages.length === 0 ? nothing(t("uses.messages.none"), []) : h("ul.plain.uses", {}, messages.slice(0, SHOWN).map((one) =>
      h("li", { "data-message": one.message }, who(app, one.from), h("span.arrow", {}, "→"), who(app, one.to), " ",
        detailLink(app, "message", one.message, {}, titleOf(app, one.task)), " ", time(app, one.at)))), rest(messages.length)),
    section(t("uses.shown"), shown.length === 0 ? nothing(t("uses.shown.none"), []) : h("div.table-holder", {}, h("table.uses-shown", {},
      h("thead", {}, h("tr", {}, ["uses.agent", "uses.way", "service", "usage.calls", "time"].map((key) => h("th", { scope: "col" }, t(key))))),
      h("tbody", {}, shown.slice(0, SHOWN).map((one) => row(app, id, one))))), rest(shown.length)),
  ];
}

function row(app, artifact, one) {
  return h("tr", { "data-routing": one.routing }, h("td", {}, who(app, one.agent)),
    h("td", {}, ownRoutingChip(app, { artifact, routing: one.routing }, one.sent)),
    h("td", {}, one.service, h("div.dim.small", {}, one.model)), h("td", {}, String(one.calls)), h("td", {}, time(app, one.at)));
}
