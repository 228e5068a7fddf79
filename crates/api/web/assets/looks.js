// Decides how the page shows an artifact. Pure functions.

const ENDS = {
  markdown: ["md", "markdown", "mdown"], json: ["json", "ipynb", "geojson"], sheet: ["csv", "tsv"], diff: ["diff", "patch"], page: ["html", "htm", "xhtml", "svg"],
};
const TYPES = {
  "text/markdown": "markdown", "application/json": "json", "text/csv": "sheet", "text/tab-separated-values": "sheet", "text/x-diff": "diff",
  "text/x-patch": "diff", "text/html": "page", "application/xhtml+xml": "page", "image/svg+xml": "page",
};

/** Returns the extension of a file name in lower case, without the dot; empty if there is none. */
export function endOf(filename) {
  return /\.([A-Za-z0-9+]{1,12})$/.exec(filename ?? "")?.[1].toLowerCase() ?? "";
}

/**
 * Returns the ways to show an artifact, the default first:
 * - A text has some of the ways `markdown`, `json`, `sheet`, `diff`, `code` and `text`.
 * - A PDF has only the way `page`, which shows the content in a frame.
 * - An HTML or SVG page has the ways `code` and `page`. It is shown as text until the person chooses the frame.
 * - Any other artifact has one way, its kind.
 */
export function looksOf({ kind, mimeType, filename }) {
  const essence = mimeType.split(";", 1)[0].trim().toLowerCase();
  if (essence === "application/pdf") return ["page"];
  const end = endOf(filename);
  const named = Object.keys(ENDS).find((one) => ENDS[one].includes(end));
  const look = TYPES[essence] ?? (essence.endsWith("+json") ? "json" : named);
  if (look === "page") return ["code", "page"];
  if (kind !== "text") return [kind];
  if (look) return [look, "text"];
  return ["code"];
}

/** Whether an artifact is a table whose cells are separated by tabs. */
export const isTabbed = ({ mimeType, filename }) => mimeType.startsWith("text/tab-separated-values") || endOf(filename) === "tsv";
