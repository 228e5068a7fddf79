// A chat model that asks the user one question, and then accepts any answer.

import { calling, chatModel, saying } from "./model.mjs";

export const QUESTION = "五月的还是六月的？";
export const CONTENT = "好的，就用它。";

/** Starts the model's server. */
export function asker() {
  return chatModel((messages) => {
    const asked = messages.some((message) => message.tool_calls?.length > 0);
    if (asked) return saying(messages.at(-1).role === "tool" ? "我在等答复。" : CONTENT);
    return calling(["send_message", { to: "user", payload: { message_type: "collaboration_request", text: QUESTION } }]);
  });
}
