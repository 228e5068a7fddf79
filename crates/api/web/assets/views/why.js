// The detail view "Why?": an explanation as a chain of facts with links, and the remedies.

import { fill, h } from "../dom.js";
import { refill } from "../morph.js";
import { kept } from "../reading.js";
import { passes } from "../draft.js";
import { size } from "../format.js";
import { forkTurn } from "./dialogs.js";
import { doingLine } from "./doing.js";
import { artifactIdChip, button, code, detailLink, section, time, titleOf, trouble, who } from "./shared.js";

export function showWhy(app, id, title, body, signal) {
  const { t, api } = app;
  let shown = false;
  let returns = null;
  const [about, sent] = id.split("@");
  fill(title, t("why"));

  const load = kept(async () => {
    try {
      draw(await api.why(about, { sent }));
    } catch (error) {
      if (!shown) fill(body, trouble(app, error, load));
      if (passes(error)) throw error;
    }
  }, { delay: 0, signal });

  function draw(why) {
    shown = true;
    const remedies = why.remedies ?? [];
    refill(body,
      h("ol.why", {}, why.chain.map((fact) => h("li", { class: `fact-${fact.fact}` }, factParts(app, fact)))),
      remedies.length > 0 ? section(t("why.remedies"), h("ul.plain.remedies", {}, remedies.map((one) =>
        h("li", { "data-remedy": one.remedy }, remedyRow(one))))) : null);
  }

  function remedyRow(one) {
    const words = h("span", {}, t.parts(wordsOf(one), valuesOf(app, one)));
    const act = actionOf(one);
    return [words, " ", act ? button(t(`remedy.${one.remedy}.do`), act, { class: "primary" }) : null];
  }

  /** Returns the key of a remedy's words. An introduction has other words if the service of the agent does not matter. */
  function wordsOf(one) {
    return one.remedy === "introduce" && !one.service ? "remedy.introduce.contact" : `remedy.${one.remedy}`;
  }

  /**
   * Returns the click handler for a remedy's button, or `null` if the person can carry out the remedy only outside this
   * page.
   */
  function actionOf(one) {
    switch (one.remedy) {
      case "introduce": {
        const hint = one.service ? t("remedy.introduce.text", { service: one.service }) : t("remedy.introduce.contact.text");
        return () => tried(() => api.write({ to: one.to, task: one.task,
          payload: { message_type: "introduction_response", target_agent: { id: one.agent }, usage_hint: hint } },
        crypto.randomUUID()));
      }
      case "allow_groups":
        return () => tried(() => api.patchRole(one.role, { toolGroups: one.toolGroups }));
      case "use_service":
        return () => tried(() => api.patchRole(one.role, { serviceId: one.service }));
      case "resume":
        return () => app.steer(one.agent, "resume");
      case "stop":
        return () => app.steer(one.agent, "stop");
      case "decide":
        return () => app.act({ does: "approval" });
      case "run_again":
        return () => forkTurn(app, one, null, one.service);
      case "hire":
        return () => app.compose({ to: one.agent, task: one.task, text: t("remedy.hire.text", { service: one.service }) });
      case "answer":
      case "write":
        return () => app.compose({ to: one.agent, task: one.task });
      default:
        return null;
    }
  }

  async function tried(act) {
    try {
      await act();
      app.say(t("remedy.done"));
      load();
    } catch (error) {
      app.say(app.explain(error), "bad");
    }
  }

  return {
    update(model) {
      if (returns === model.returns) return;
      ({ returns } = model);
      load();
    },
  };
}

/** Returns a fact as text and links. */
export function factParts(app, fact) {
  const { t } = app;
  const values = valuesOf(app, fact);
  switch (fact.fact) {
    case "not_shown":
      return t.parts(`why.because.${fact.because.because}`, { ...valuesOf(app, fact.because), service: values.service, revision: values.revision });
    case "does":
      return [values.agent, " ", doingLine(app, { state: fact.doing.state, doing: fact.doing })];
    case "failed_turns":
      return t.parts("why.failed_turns", { ...values, n: fact.count });
    case "turn_failed":
      return [t.parts("why.turn_failed", values), fact.at ? [" ", time(app, fact.at)] : null];
    case "unanswered":
      return [t.parts(fact.to === "user" ? "why.unanswered.you" : "why.unanswered", values), fact.since ? [" ", values.since] : null];
    case "call_asked":
      return [t.parts(`why.call_asked.${fact.state}`, values), fact.reason ? [" ", h("q", {}, fact.reason)] : null];
    case "said":
      return [h("q", {}, fact.text)];
    case "then":
      return [t(`next.${fact.next}`)];
    case "task_ended":
      return t.parts("why.task_ended", { ...values, outcome: t(`outcome.${fact.outcome}`) });
    case "attempt_failed":
      return [...t.parts("why.attempt_failed", { ...values, kind: t(`failure.${fact.kind}`), attempt: fact.attempt }),
        fact.sent ? [" ", sentLink(app, fact.sent)] : null, code(fact.reason)];
    default:
      return t.parts(`why.${fact.fact}`, values);
  }
}

function sentLink(app, number) {
  return detailLink(app, "sent", number, {}, app.t("sent.number", { n: number }));
}

const some = (ids, shown) => ids.flatMap((one, at) => [at > 0 ? ", " : "", shown(one)]);

/** Maps each field of a fact or a remedy to its value, as text or as a link. */
function valuesOf(app, what) {
  const strong = (text) => h("strong", {}, text);
  const party = (id) => who(app, id);
  const capability = (name) => (app.t.has(`capability.${name}`) ? app.t(`capability.${name}`) : name);
  const shapes = {
    agent: party, to: party, from: party,
    contacts: (ids) => h("span", {}, some(ids, party)),
    artifact: (one) => artifactIdChip(app, one),
    message: (one) => detailLink(app, "message", one, {}, one),
    task: (one) => strong(titleOf(app, one)),
    service: strong, fallback: strong,
    since: (at) => time(app, at),
    services: (ids) => h("span", {}, some(ids, strong)),
    groups: (names) => h("span", {}, some(names, (name) => h("code", {}, name))),
    takes: (names) => names.map(capability).join(", "),
    capability,
    sent: (number) => sentLink(app, number),
    tool: (name) => h("code", {}, name), arguments: (json) => h("code", {}, json), code: (name) => h("code", {}, name), limit: (name) => h("code", {}, name),
    encoded: size,
  };
  return Object.fromEntries(Object.entries(what).map(([name, value]) => {
    const shape = name === "limit" && typeof value === "number" ? size : shapes[name];
    return [name, shape ? shape(value) : value];
  }));
}
