// Shows a diff with a colour and a sign for each line.

import { h } from "../dom.js";
import { linesOf } from "../diff.js";

/** Maximum number of lines to show of one diff, so that a huge diff does not block the page. */
const SHOWN = 2000;

/** Shows a diff in the unified format. */
export function diffBlock(app, text) {
  const lines = linesOf(text);
  return h("pre.code.diff", { tabindex: "0" },
    lines.slice(0, SHOWN).map(({ kind, text: line }) => h(`span.diff-line.diff-${kind}`, {}, `${line}\n`)),
    lines.length > SHOWN ? h("span.diff-line.diff-file", {}, app.t("diff.more", { n: lines.length - SHOWN })) : null);
}
