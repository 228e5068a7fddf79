// Shows a difference with a colour and a sign for each line.

import { h } from "../dom.js";
import { linesOf } from "../diff.js";

/** Maximum number of lines to show of one difference, so that a huge one does not block the page. */
const SHOWN = 2000;

/** Shows a difference in the unified format. */
export function diffBlock(app, text) {
  const lines = linesOf(text);
  return h("pre.code.diff", { tabindex: "0" },
    lines.slice(0, SHOWN).map(({ kind, text: line }) => h(`span.diff-line.diff-${kind}`, {}, `${line}\n`)),
    lines.length > SHOWN ? h("span.diff-line.diff-file", {}, app.t("diff.more", { n: lines.length - SHOWN })) : null);
}
