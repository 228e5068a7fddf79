// Before the person sends a message, these pure functions foresee what will not work with it. The page knows the
// services, the limits, and the names and types of the attached files. The daemon also knows the bytes of the files. So
// it may find further problems, and warns of them when it accepts the message.

import { isEmpty } from "./draft.js";
import { endOf } from "./looks.js";

/** The input capability that each kind of medium needs. */
const NEEDS = { image: "vision", audio: "audio", video: "video" };
/** Pictures that polity cannot decode. Every model gets only a description of them. */
const UNDECODED = ["heic", "heif", "avif", "jxl", "jp2", "jpx", "psd", "icns", "dds", "exr", "pcx"];
/** Endings of the names of media files. Some browsers do not know the type of such a file. */
const MEDIA = { audio: ["flac", "opus", "m4a", "caf"], video: ["mkv", "avi", "mov", "wmv"] };
/** Documents and archives from which polity extracts no text. */
const CLOSED = [
  "doc", "ppt", "pps", "pages", "numbers", "mobi", "azw3", "djvu", "one", "pub", "vsd", "mpp", "msg", "wpd", "hwp",
  "zip", "7z", "rar", "gz", "tgz", "tar", "bz2", "xz", "zst",
];

/** Returns `closed` for a file from which polity extracts no text, the kind of medium of a media file, or null. */
function kindOf({ name, file }) {
  const end = endOf(name);
  if (CLOSED.includes(end)) return "closed";
  if (UNDECODED.includes(end)) return "image";
  const family = file.type.split("/", 1)[0];
  if (family in NEEDS) return file.type === "image/svg+xml" ? null : family;
  return Object.keys(MEDIA).find((kind) => MEDIA[kind].includes(end)) ?? null;
}

/** Types of texts, apart from those that begin with `text/`. */
const TEXTS = /^(text\/.+|image\/svg\+xml|application\/(json|xml|javascript|x-sh|toml|yaml|x-yaml|.+\+json|.+\+xml))$/;

/** Whether a service takes this sort of input. A service that has refused several media gets none. */
const takes = (service, capability) => service.capabilities.input.includes(capability) && !service.refusedMedia?.all;

/** Estimates the tokens of a text as the daemon does: four ASCII characters, or one other character, are a token. */
function tokensOf(text) {
  const others = [...text].filter((character) => character > "\u007f").length;
  return Math.ceil(([...text].length - others) / 4) + others;
}

/**
 * Returns the least number of tokens that the attached texts can take in a request: as many as if they were ASCII. A
 * request shows the beginning of each text. If the window is small, it shows less.
 */
function tokensOfTexts(draft, limits, window) {
  const most = Math.min(limits.inlineTextChars, Math.max(Math.floor(window / 2), 200));
  const texts = draft.files.filter(({ file }) => TEXTS.test(file.type.split(";", 1)[0]));
  return texts.reduce((tokens, { file }) => tokens + Math.ceil(Math.min(file.size, most) / 4), 0);
}

/** Returns the service that reads the message; undefined if the page does not know it. */
function readerOf(draft, model) {
  if (draft.to !== "root") return model.services.find((one) => one.id === model.agents.get(draft.to)?.service);
  if (draft.task) return undefined;
  return model.services.find((one) => (draft.service ? one.id === draft.service : one.isDefault));
}

/**
 * Returns the problems of a draft, the worst first. Each problem has a `code` and the values for its text. The daemon's
 * warnings have the same codes, but some codes exist only here.
 */
export function foresee(draft, model) {
  if (!model.config || model.services.length === 0) return [];
  const { limits } = model.config;
  const reader = readerOf(draft, model);
  const receiver = model.agents.get(draft.to);
  const found = [];
  const add = (code, values) => found.push({ code, ...values });
  const named = (files) => files.map((one) => one.name).join(", ");

  const large = draft.files.filter((one) => one.file.size > limits.maxArtifactBytes);
  if (large.length > 0) add("too_large", { names: named(large), limit: limits.maxArtifactBytes });
  // `length` counts UTF-16 units. A text has at most as many characters and tokens as it has units. So it is enough to
  // count characters or tokens only if `length` exceeds the limit.
  if (draft.text.length > limits.maxMessageChars && [...draft.text].length > limits.maxMessageChars) {
    add("too_long", { n: [...draft.text].length, limit: limits.maxMessageChars });
  }
  const window = reader?.contextWindow;
  if (window !== undefined && !isEmpty(draft)) {
    // As the daemon does, count the rules only for root. Other agents have other rules, which the page does not know.
    const beside = (draft.to === "root" ? reader.rulesTokens : 0) + tokensOfTexts(draft, limits, window);
    const n = draft.text.length + beside > window ? tokensOf(draft.text) + beside : 0;
    if (n > window) add("does_not_fit", { service: reader.id, n, window });
  }
  // This warning is only for a message that begins a task. An empty draft to root is not such a message yet.
  if (draft.to === "root" && reader && !reader.callsTools && !isEmpty(draft)) add("no_tools", { service: reader.id });

  const undecoded = draft.files.filter((one) => UNDECODED.includes(endOf(one.name)));
  if (undecoded.length > 0) add("undecoded", { names: named(undecoded) });
  for (const [kind, capability] of Object.entries(NEEDS)) {
    const files = draft.files.filter((one) => kindOf(one) === kind && !undecoded.includes(one));
    if (files.length === 0) continue;
    const able = model.services.filter((one) => takes(one, capability));
    if (able.length === 0) add("nobody_takes", { names: named(files), capability });
    else if (draft.to !== "root" && reader && !able.includes(reader)) {
      add("described", { names: named(files), capability, service: reader.id, services: able.map((one) => one.id).join(", ") });
    }
  }
  const closed = draft.files.filter((one) => kindOf(one) === "closed");
  if (closed.length > 0 && !model.services.some((one) => takes(one, "file"))) add("unreadable", { names: named(closed) });
  if (receiver?.state === "paused" || receiver?.state === "parked") add(receiver.state, { agent: draft.to });
  return found;
}
