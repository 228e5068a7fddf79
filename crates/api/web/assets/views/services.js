// The page with the services: capabilities, state and cost of each. It also shows the configuration.

import { h, fill, icon } from "../dom.js";
import { refill } from "../morph.js";
import { cost, short } from "../format.js";
import { button, capabilities, detailLink, facts, nothing, section, spent } from "./shared.js";
import { problemList } from "./banners.js";

export function mountServices(app) {
  const { store, t } = app;
  let before = null;
  const cards = h("div.cards");
  const configuration = h("div.configuration");
  const element = h("section.page.page-services", { "aria-label": t("page.services") },
    h("div.pane-head", {}, h("h2", {}, t("page.services")), h("span.spring"),
      button(t("config.reload"), () => app.reloadConfiguration(), {}, "reload")),
    h("div.scroll", { tabindex: "0" }, cards, configuration));

  function card(service) {
    const { state } = service;
    const circuit = state.circuit === "closed" && state.pausedForMs ? "paused" : state.circuit;
    const shape = { closed: "idle", open: "parked", half_open: "waiting", paused: "paused" }[circuit];
    return h("article.card", { class: `circuit-${circuit}`, "data-service": service.id, "data-key": service.id },
      h("header", {}, h("h3", {}, service.name || service.id), h("span.id", {}, service.id),
        service.isDefault ? h("span.tag", {}, t("service.is.default")) : null,
        h("span.spring"),
        h("span", { class: `circuit circuit-${circuit}` }, icon(shape), t(`circuit.${circuit}`))),
      service.description ? h("p.dim", {}, service.description) : null,
      state.lastError ? h("p.trouble", {}, icon("parked"), h("span", {}, state.lastError)) : null,
      service.refusedMedia ? h("p.trouble", {}, icon("parked"), h("span", {},
        t(service.refusedMedia.all ? "service.refuses.all" : "service.refuses"), " ",
        service.refusedMedia.artifacts.slice(0, 8).flatMap((id) => [detailLink(app, "artifact", id, {}, id), " "]))) : null,
      facts(
        [t("service.model"), h("code", {}, service.model)],
        [t("service.address"), service.baseURL ? h("code", {}, service.baseURL) : null],
        [t("capabilities"), capabilities(app, service.capabilities)],
        [t("service.tags"), service.capabilityTags?.length > 0 ? service.capabilityTags.map((tag) => h("span.tag", {}, tag)) : null],
        [t("service.window"), service.contextWindow ? t("service.tokens", { n: short(service.contextWindow) }) : null],
        [t("service.now"), t("service.load", { flight: state.inFlight, waiting: state.waiting, most: service.maxConcurrent ?? "∞" })],
        [t("service.paused"), state.pausedForMs ? t("seconds", { n: Math.ceil(state.pausedForMs / 1000) }) : null],
        [t("service.key"), h("span.with-icon", {}, icon("key"), t(service.keySet ? "service.key.set" : "service.key.none"))],
        [t("service.fallback"), service.fallback],
        [t("service.agents"), String(service.agents)],
        [t("usage"), h("span", {}, spent(app, service.usage), " · ", t("calls", { n: service.usage.calls }))],
        [t("service.price"), service.price ? t("service.price.value", { in: cost(service.price.input), out: cost(service.price.output) }) : null],
      ));
  }

  function drawConfiguration(config) {
    if (!config) return fill(configuration);
    return refill(configuration, section(t("config"), facts(
      [t("revision"), h("strong.revision", {}, String(config.revision))],
      [t("config.directory"), config.directory ? h("code", {}, config.directory) : null],
      [t("config.origin"), config.origin], [t("config.language"), config.language],
      [t("config.prompts"), config.prompts ? h("code", {}, config.prompts) : null],
    ), config.problems.length > 0 ? problemList(app, config.problems) : h("p.fine", {}, t("config.fine"))),
    section(t("limits"), h("dl.facts.limits", {}, Object.entries(config.limits).map(([name, limit]) => [
      h("dt", {}, h("code", {}, name)), h("dd", {}, limit === null ? t("none") : String(limit))]))));
  }

  return {
    element,
    focus: () => element.querySelector("button")?.focus(),
    update(model, ui) {
      if (ui.route.page !== "services" || (before?.[0] === model.services && before[1] === model.config)) return;
      before = [model.services, model.config];
      refill(cards, model.services.length === 0 ? nothing(t("services.none")) : model.services.map(card));
      drawConfiguration(model.config);
    },
  };
}
