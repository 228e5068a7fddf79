// The detail view of an artifact. It shows only content that a browser can show safely; text is never treated as
// markup.

import { contentOf } from "../api.js";
import { h, fill } from "../dom.js";
import { passes } from "../draft.js";
import { size } from "../format.js";
import { kept } from "../reading.js";
import { button, code, facts, section, time, titleOf, trouble, who } from "./shared.js";

const BEGINNING = 64 * 1024;
const MOST = 4 * 1024 * 1024;

export function showArtifact(app, id, title, body, signal) {
  const { t, api } = app;
  let started = false;
  fill(title, t("artifact"));

  const load = kept(async () => {
    try {
      const artifact = await api.artifact(id);
      app.knowArtifact(artifact);
      draw(artifact);
    } catch (error) {
      fill(body, trouble(app, error, load));
      if (passes(error)) throw error;
    }
  }, { delay: 0, signal });

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
      meta ? section(t("artifact.meta"), code(artifact.meta)) : null);
  }

  function content(artifact) {
    const src = contentOf(artifact.id);
    const name = artifact.filename ?? artifact.id;
    switch (artifact.kind) {
      case "image":
        return h("a.whole-picture", { href: src, target: "_blank", rel: "noopener noreferrer" }, h("img", { src, alt: name }));
      case "audio":
        return h("audio", { controls: true, preload: "metadata", src, "aria-label": name });
      case "video":
        return h("video", { controls: true, preload: "metadata", src, "aria-label": name });
      case "text":
        return text(artifact);
      default:
        return h("p.dim", {}, t("artifact.unshown"));
    }
  }

  function text(artifact) {
    const shown = h("pre.code.artifact-text", { tabindex: "0" }, "…");
    const holder = h("div", {}, shown);
    const read = async (bytes) => {
      try {
        const { text: beginning, whole } = await api.beginning(artifact.id, bytes);
        shown.textContent = beginning;
        holder.querySelector("button")?.remove();
        if (!whole && bytes < MOST) {
          holder.append(button(t("show.more", { size: size(artifact.size) }), () => read(Math.min(MOST, bytes * 8)), { class: "link" }));
        }
      } catch (error) {
        fill(holder, trouble(app, error, () => {
          fill(holder, shown);
          read(bytes);
        }));
      }
    };
    read(BEGINNING);
    return holder;
  }

  return {
    update() {
      if (started) return;
      started = true;
      load();
    },
  };
}
