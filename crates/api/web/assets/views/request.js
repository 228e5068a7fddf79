// Shows the body of a request to a model.

import { append, h } from "../dom.js";
import { code, section } from "./shared.js";

/** Shows the body of a request: first each message, then the whole body as JSON. */
export function requestBody(app, body) {
  const { t } = app;
  const messages = Array.isArray(body?.messages) ? body.messages : [];
  return [section(t("request.messages", { n: messages.length }), h("div.history", {}, messages.map((message) =>
    h("article.record", { class: `role-${message.role}` },
      h("header", {}, h("strong", {}, message.role), message.tool_call_id ? h("span.id", {}, message.tool_call_id) : null),
      parts(message.content),
      (message.tool_calls ?? []).map((call) => h("details.call", {}, h("summary", {}, h("code", {}, call.function?.name ?? "")), code(call.function?.arguments ?? call))))))),
  section(t("request.json"), append(h("details.call"), [h("summary", {}, t("request.json.show")), code(body)]))];
}

function parts(content) {
  if (content === null || content === undefined) return null;
  if (typeof content === "string") return h("div.prose", {}, content);
  return content.map((part) => (part.type === "text" ? h("div.prose", {}, part.text) : code(part)));
}
