// A chat model that creates one file after another, and then says that it is done.

import { calling, chatModel, saying } from "./model.mjs";

export const DONE = "都写好了。";

/** Starts the model's server. Each file is `[path, text]`. */
export function maker(files) {
  return chatModel((messages) => {
    const file = files[messages.filter((message) => message.role === "tool").length];
    return file ? calling(["str_replace_editor", { command: "create", path: file[0], file_text: file[1] }]) : saying(DONE);
  });
}
