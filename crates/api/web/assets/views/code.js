// Shows code in colours, with the name of its language and a button that copies it. `diff.js` shows diffs.

import { isDiff } from "../diff.js";
import { h } from "../dom.js";
import { tokens } from "../highlight.js";
import { diffBlock } from "./diff.js";
import { button } from "./shared.js";

/** Shows a block of code. `language` is the language that the author of the text named. It may be any text. */
export function codeBlock(app, text, language) {
  const { t } = app;
  const isPatch = /^(?:diff|patch)\b/i.test(language) || (language === "" && isDiff(text));
  return h("div.code-block", {},
    h("div.code-head", {}, h("span.code-language", {}, language), h("span.spring"),
      button(t("copy"), () => copy(app, text), { class: "small copy" })),
    isPatch ? diffBlock(app, text) : h("pre.code", { tabindex: "0" }, h("code", {}, coloured(text, language))));
}

/** Returns the pieces of code as elements and texts. */
export function coloured(text, language) {
  return tokens(text, language).map(({ kind, text: piece }) => (kind ? h(`span.token-${kind}`, {}, piece) : piece));
}

async function copy(app, text) {
  try {
    await navigator.clipboard.writeText(text);
    app.say(app.t("copied"));
  } catch {
    app.say(app.t("copy.failed"), "bad");
  }
}
