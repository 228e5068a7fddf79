// The detail column next to the page. It shows an agent, a message, an artifact, a task, a request or an explanation.

import { h, fill } from "../dom.js";
import { showAgent } from "./agent.js";
import { showArtifact } from "./artifact.js";
import { showMessage } from "./message.js";
import { showSent } from "./sent.js";
import { iconButton } from "./shared.js";
import { showTask } from "./task.js";
import { showWhy } from "./why.js";

const KINDS = { agent: showAgent, message: showMessage, artifact: showArtifact, task: showTask, sent: showSent, why: showWhy };

export function mountDetail(app) {
  const { t } = app;
  let shown = null;
  let view = null;
  // Aborted when the detail view is closed or replaced by another. The abort ends the reads of the old view.
  let open = new AbortController();

  const title = h("h2", { tabindex: "-1" });
  const body = h("div.scroll.detail-body");
  const element = h("aside.detail", { hidden: true, "aria-label": t("detail") },
    h("header.pane-head.detail-head", {}, title, h("span.spring"),
      iconButton(t("detail.wide"), "wide", () => document.body.classList.toggle("wide-detail"), { class: "for-wide" }),
      iconButton(t("close"), "close", () => app.close())), body);

  return {
    element,
    focus: () => title.focus(),
    update(model, ui, entries) {
      const { detail } = ui.route;
      const key = detail ? `${detail.kind} ${detail.id}` : null;
      if (key !== shown) {
        shown = key;
        open.abort();
        open = new AbortController();
        element.hidden = !detail;
        document.body.classList.toggle("has-detail", Boolean(detail));
        fill(title);
        fill(body);
        body.scrollTop = 0;
        view = detail ? KINDS[detail.kind](app, detail.id, title, body, AbortSignal.any([open.signal, app.signal])) : null;
      }
      if (model.ready) view?.update(model, ui, entries);
    },
  };
}
