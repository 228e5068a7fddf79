// Shows the body of a request to a model.

import { append, h } from "../dom.js";
import { code, section } from "./shared.js";

/**
 * Shows the body of a request: first each message, then the whole body as JSON. `sent` is the text of a body that was
 * sent. It is shown too, because `body` does not tell how the numbers and the spaces in this text were written.
 */
export function requestBody(app, body, sent = null) {
  const { t } = app;
  const messages = Array.isArray(body?.messages) ? body.messages : [];
  return [section(t("request.messages", { n: messages.length }), h("div.history", {}, messages.map((message) =>
    h("article.record", { class: `role-${message.role}` },
      h("header", {}, h("strong", {}, message.role), message.tool_call_id ? h("span.id", {}, message.tool_call_id) : null),
      parts(message.content),
      (message.tool_calls ?? []).map((call) => h("details.call", {}, h("summary", {}, h("code", {}, call.function?.name ?? "")), code(call.function?.arguments ?? call))))))),
  section(t("request.json"), append(h("details.call"), [h("summary", {}, t("request.json.show")), code(body)]),
    sent === null ? null : append(h("details.call.as-sent"), [h("summary", {}, t("request.json.sent")), code(sent)]))];
}

function parts(content) {
  if (content === null || content === undefined) return null;
  if (typeof content === "string") return h("div.prose", {}, content);
  return content.map((part) => (part.type === "text" ? h("div.prose", {}, part.text) : code(part)));
}
