// Formats numbers, sizes and times for people.

/** Formats a count in about four characters: 950, 1.2k, 34k, 5.1M. */
export function short(count) {
  if (count < 1000) return String(count);
  if (count < 9950) return `${(count / 1000).toFixed(1)}k`;
  if (count < 999500) return `${Math.round(count / 1000)}k`;
  if (count < 9950000) return `${(count / 1000000).toFixed(1)}M`;
  return `${Math.round(count / 1000000)}M`;
}

/** Formats a number of bytes. */
export function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 999500) return `${trim(bytes / 1000)} kB`;
  if (bytes < 999500000) return `${trim(bytes / 1000000)} MB`;
  return `${trim(bytes / 1000000000)} GB`;
}

function trim(value) {
  return value < 9.95 ? value.toFixed(1) : String(Math.round(value));
}

/** Formats an amount of money without a currency, because the configuration does not name one. */
export function cost(amount) {
  if (amount === 0) return "0";
  return amount < 0.01 ? amount.toPrecision(2) : amount.toFixed(2);
}

/** Formats a duration as hours, minutes and seconds: 0:07, 12:05, 1:02:03. */
export function elapsed(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const two = (value) => String(value).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}:${two(seconds % 60)}`;
  return `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(seconds % 60)}`;
}

/** The text for an invalid time. */
const NO_TIME = "—";

const formats = new Map();

function format(language, options) {
  const key = language + JSON.stringify(options);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat(language, options));
  return formats.get(key);
}

/** Whether a number is a valid time in milliseconds. */
export function isTime(at) {
  return !Number.isNaN(new Date(at).getTime());
}

/** Formats the time of day with seconds. */
export function clock(at) {
  if (!isTime(at)) return NO_TIME;
  const date = new Date(at);
  const two = (value) => String(value).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** Formats the time of day, with the date unless it is today. */
export function moment(at, now, language) {
  if (!isTime(at)) return NO_TIME;
  if (new Date(at).toDateString() === new Date(now).toDateString()) return clock(at).slice(0, 5);
  return format(language, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" })
    .format(at);
}

/** Formats the full date and time. */
export function whole(at, language) {
  if (!isTime(at)) return NO_TIME;
  return format(language, { dateStyle: "long", timeStyle: "medium" }).format(at);
}

/** Returns the first line of a text, cut to `limit` characters. */
export function firstLine(text, limit) {
  const line = text.split("\n", 1)[0];
  const characters = Array.from(line);
  return characters.length <= limit ? line : `${characters.slice(0, limit - 1).join("")}…`;
}
