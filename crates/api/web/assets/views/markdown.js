// Shows Markdown. Only this file turns the parsed blocks into elements; a text always becomes a text node. Nothing is
// loaded from other servers: a picture on another server is shown as a link.

import { contentOf } from "../api.js";
import { h, icon } from "../dom.js";
import { parse } from "../markdown/blocks.js";
import { targetOf } from "../markdown/link.js";
import { codeBlock } from "./code.js";
import { detailLink } from "./shared.js";

/**
 * Maximum number of nodes of a formatted text. A text with more nodes is shown unformatted, because so many elements
 * would block the page.
 */
const MOST_NODES = 20_000;
/** Maximum number of characters to show of a link's target. The tooltip contains the whole target. */
const SHOWN_TARGET = 100;
const PICTURE = /\.(?:png|jpe?g|gif|webp|avif)$/i;

/**
 * Returns the elements of a text. Returns `null` if the text has no markup or too many nodes; the caller then shows it
 * unformatted.
 */
export function markdown(app, text) {
  const { blocks, work } = parse(text);
  if (work.nodes > MOST_NODES || blocks.every(isPlain)) return null;
  return blocks.map((block) => blockElement(app, block));
}

const isPlain = (block) => block.kind === "paragraph" && block.content.every((node) => node.kind === "text");

function blockElement(app, block) {
  const inner = (nodes) => inlineElements(app, nodes, { isInLink: false });
  switch (block.kind) {
    case "heading":
      // The elements `h1` and `h2` are for headings of the page itself, so the headings of a text begin with `h3`.
      return h(`h${Math.min(6, block.level + 2)}.heading-${block.level}`, {}, inner(block.content));
    case "code":
      return codeBlock(app, block.text, block.language);
    case "math":
      return h("pre.code.math", { tabindex: "0" }, block.text);
    case "rule":
      return h("hr");
    case "quote":
      return h("blockquote", {}, block.blocks.map((one) => blockElement(app, one)));
    case "list":
      return list(app, block);
    case "table":
      return table(block, inner);
    default:
      return h("p", {}, inner(block.content));
  }
}

function list(app, { start, isLoose, items }) {
  const item = ({ task, blocks }) => h("li", { class: task === null ? "" : "task-item" },
    task === null ? null : h("input", { type: "checkbox", checked: task, disabled: true, "aria-label": app.t(task ? "markdown.done" : "markdown.open") }),
    blocks.map((block) => (block.kind === "paragraph" && !isLoose
      ? h("span.item-text", {}, inlineElements(app, block.content, { isInLink: false })) : blockElement(app, block))));
  const classes = isLoose ? "loose" : "";
  return start === null ? h("ul", { class: classes }, items.map(item))
    : h("ol", { class: classes, start: String(start) }, items.map(item));
}

function table({ aligns, head, rows }, inner) {
  const aligned = (at) => ({ class: aligns[at] ? `align-${aligns[at]}` : "" });
  return h("div.table-holder", { tabindex: "0" }, h("table", {},
    h("thead", {}, h("tr", {}, head.map((cell, at) => h("th", { scope: "col", ...aligned(at) }, inner(cell))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, at) => h("td", aligned(at), inner(cell))))))));
}

function inlineElements(app, nodes, place) {
  return nodes.map((node) => {
    switch (node.kind) {
      case "text": return node.text;
      case "break": return h("br");
      case "code": return h("code", {}, node.text);
      case "math": return h("code.math", {}, node.text);
      case "strong": return h("strong", {}, inlineElements(app, node.content, place));
      case "emphasis": return h("em", {}, inlineElements(app, node.content, place));
      case "strike": return h("s", {}, inlineElements(app, node.content, place));
      case "picture": return picture(app, node, place);
      default: return link(app, node, place);
    }
  });
}

/**
 * Shows a link. If the text of the link is not the target itself, the target stands beside the link. A target that must
 * not become a link is shown as text.
 */
function link(app, { target, title, content }, place) {
  const inside = inlineElements(app, content, { isInLink: true });
  if (place.isInLink) return inside;
  const found = targetOf(target);
  if (!found) return [inside, h("span.link-target.refused", { title: app.t("link.refused") }, ` (${brief([target, title].join(" ").trim())})`)];
  if (found.kind === "artifact") return detailLink(app, "artifact", found.id, { class: "artifact-link", title: title || null }, icon("attach"), inside);
  const isSpelled = content.length === 1 && content[0].kind === "text" && isSame(content[0].text, found.href);
  return [outside(found.href, title, inside), isSpelled ? null : h("span.link-target", {}, ` (${brief(found.href)})`)];
}

function outside(href, title, ...inside) {
  return h("a.outside-link", { href, target: "_blank", rel: "noopener noreferrer", title: title ? `${title} — ${href}` : href }, inside);
}

/**
 * Shows a picture if it is an artifact, the page knows the artifact's name, and this name has the extension of a
 * picture. Any other picture is shown as a link.
 */
function picture(app, { target, title, alt }, place) {
  const found = targetOf(target);
  const name = alt || title || app.t("picture");
  if (place.isInLink || !found) return h("span.artifact-link", { title: target }, icon("image"), name, found ? null : ` (${brief(target)})`);
  if (found.kind === "outside") return [outside(found.href, title, icon("image"), name), h("span.link-target", {}, ` (${brief(found.href)})`)];
  if (PICTURE.test(app.nameOfArtifact(found.id))) {
    return detailLink(app, "artifact", found.id, { class: "picture inline-picture", title: name },
      h("img", { src: contentOf(found.id), alt: name, loading: "lazy", decoding: "async" }));
  }
  return detailLink(app, "artifact", found.id, { class: "artifact-link" }, icon("image"), name);
}

const isSame = (text, href) => text === href || `${text}/` === href || `mailto:${text}` === href;
const brief = (target) => (target.length > SHOWN_TARGET ? `${target.slice(0, SHOWN_TARGET)}…` : target);
