// The detail view of an artifact. It shows only content that a browser can show safely. The page itself formats
// Markdown. HTML appears only in a frame that forbids scripts.

import { contentOf, pageOf } from "../api.js";
import { isDiff } from "../diff.js";
import { h, fill } from "../dom.js";
import { passes } from "../draft.js";
import { size } from "../format.js";
import { languageOf } from "../highlight.js";
import { endOf, isTabbed, looksOf } from "../looks.js";
import { refill } from "../morph.js";
import { kept } from "../reading.js";
import { codeBlock } from "./code.js";
import { diffBlock } from "./diff.js";
import { jsonTree } from "./json.js";
import { markdown } from "./markdown.js";
import { sheet } from "./sheet.js";
import { usesOf } from "./uses.js";
import { button, facts, section, time, titleOf, trouble, who } from "./shared.js";

const BEGINNING = 256 * 1024;
const MOST = 4 * 1024 * 1024;

export function showArtifact(app, id, title, body, signal) {
  const { t, api } = app;
  let started = false;
  const uses = h("div");
  fill(title, t("artifact"));

  const load = kept(async () => {
    try {
      const artifact = await api.artifact(id);
      app.knowArtifact(artifact);
      draw(artifact);
      await drawUses();
    } catch (error) {
      fill(body, trouble(app, error, load));
      if (passes(error)) throw error;
    }
  }, { delay: 0, signal });

  /** Reads and shows where the artifact was used. The artifact is shown before, because this read may take longer. */
  async function drawUses() {
    try {
      fill(uses, usesOf(app, id, await api.uses(id)));
    } catch (error) {
      fill(uses, trouble(app, error, drawUses));
    }
  }

  function draw(artifact) {
    fill(title, artifact.filename ?? t("artifact"), " ", h("span.id", {}, artifact.id));
    const meta = Object.keys(artifact.meta ?? {}).length > 0;
    fill(body, h("div.shown", {}, content(artifact)),
      h("p", {}, h("a.button", { href: contentOf(artifact.id), download: artifact.filename ?? artifact.id }, t("download"))),
      section(t("facts"), facts(
        [t("artifact.kind"), t(`kind.${artifact.kind}`)],
        [t("artifact.mime"), h("code", {}, artifact.mimeType)],
        [t("artifact.label"), artifact.type],
        [t("artifact.size"), size(artifact.size)],
        [t("artifact.reference"), h("code", {}, artifact.reference)],
        [t("artifact.owner"), who(app, artifact.owner)],
        [t("task"), artifact.task ? titleOf(app, artifact.task) : null],
        [t("time"), time(app, artifact.createdAt)],
      )),
      uses,
      meta ? section(t("artifact.meta"), jsonTree(app, artifact.meta)) : null);
  }

  function content(artifact) {
    const src = contentOf(artifact.id);
    const name = artifact.filename ?? artifact.id;
    const looks = looksOf(artifact);
    switch (looks[0]) {
      case "image":
        return h("a.whole-picture", { href: src, target: "_blank", rel: "noopener noreferrer" }, h("img", { src, alt: name }));
      case "audio":
        return h("audio", { controls: true, preload: "metadata", src, "aria-label": name });
      case "video":
        return h("video", { controls: true, preload: "metadata", src, "aria-label": name });
      case "document":
      case "other":
        return h("p.dim", {}, t("artifact.unshown"));
      default:
        return readable(artifact, looks);
    }
  }

  /** Shows an artifact in one of the ways in `looks`. If there are several ways, the person can choose one. */
  function readable(artifact, looks) {
    let look = looks[0];
    const choice = h("div.chips.looks", { role: "group", "aria-label": t("look"), hidden: looks.length < 2 });
    const shown = h("div.artifact-text");
    const draw = () => {
      refill(choice, looks.map((one) => h("button.chip", {
        type: "button", "data-key": one, "aria-pressed": String(one === look), onclick: () => {
          look = one;
          draw();
        },
      }, t(`look.${one}`))));
      if (look === "page") fill(shown, frame(artifact));
      else readText(artifact, shown, () => look, BEGINNING);
    };
    draw();
    return [choice, shown];
  }

  /** Shows an HTML page or a PDF in a frame. The server's response headers forbid scripts and requests to servers. */
  function frame(artifact) {
    const isDocument = artifact.kind === "document";
    const shown = h("iframe.page-frame", { src: pageOf(artifact.id), title: artifact.filename ?? artifact.id, referrerpolicy: "no-referrer",
      // Browsers do not show a PDF in a frame that has the attribute `sandbox`.
      sandbox: isDocument ? null : "" });
    // A link in a PDF can load another page in the whole window, perhaps an imitation of this page. So the browser asks
    // the person first.
    if (isDocument) {
      addEventListener("beforeunload", (event) => {
        if (document.activeElement === shown) event.preventDefault();
      }, { signal });
    }
    return shown;
  }

  async function readText(artifact, shown, lookNow, bytes) {
    const look = lookNow();
    /** Offers more of the text, or says that the page shows no more of it. */
    const rest = () => (bytes >= MOST ? h("p.dim.cut", {}, t("artifact.cut", { shown: size(MOST), size: size(artifact.size) }))
      : button(t("show.more", { size: size(artifact.size) }), () => readText(artifact, shown, lookNow, Math.min(MOST, bytes * 4)), { class: "link" }));
    try {
      const { text, whole } = await api.beginning(artifact.id, bytes);
      if (look !== lookNow()) return;
      fill(shown, lookOfText(artifact, look, text), whole ? null : rest());
    } catch (error) {
      if (look === lookNow()) fill(shown, trouble(app, error, () => readText(artifact, shown, lookNow, bytes)));
    }
  }

  function lookOfText(artifact, look, text) {
    const plain = () => h("pre.code", { tabindex: "0" }, text);
    switch (look) {
      case "markdown": {
        const formatted = markdown(app, text);
        return formatted ? h("div.markdown", {}, formatted) : plain();
      }
      case "json": {
        const value = parsed(text);
        return value === undefined ? plain() : jsonTree(app, value);
      }
      case "sheet":
        return sheet(app, text, { isTabbed: isTabbed(artifact) });
      case "diff":
        return isDiff(text) ? diffBlock(app, text) : plain();
      case "code": {
        const language = languageOf(endOf(artifact.filename));
        return language ? codeBlock(app, text, language) : isDiff(text) ? diffBlock(app, text) : plain();
      }
      default:
        return plain();
    }
  }

  /** Returns the value of a JSON text; undefined if the text is not JSON, for example because its end is missing. */
  function parsed(text) {
    try {
      return JSON.parse(text);
    } catch {
      return undefined;
    }
  }

  return {
    update() {
      if (started) return;
      started = true;
      load();
    },
  };
}
