// Reads tables whose cells are separated by commas, semicolons or tabs. Pure functions.

/**
 * Splits a text into rows of cells, and returns at most `most` rows. A cell in double quotes may contain separators and
 * line ends. `more` is the number of lines after the last returned row.
 */
export function rowsOf(text, separator, most) {
  const rows = [];
  let row = [];
  let at = 0;
  while (at < text.length && rows.length < most) {
    const { cell, end } = text[at] === "\"" ? quoted(text, at, separator) : bare(text, at, separator);
    row.push(cell);
    at = end;
    if (at < text.length && text[at] === separator) {
      at += 1;
      if (at < text.length) continue;
      row.push("");
    }
    rows.push(row);
    row = [];
    if (text[at] === "\r") at += 1;
    if (text[at] === "\n") at += 1;
  }
  let more = 0;
  for (let line = at; line < text.length && line >= 0; more += 1) {
    const end = text.indexOf("\n", line);
    line = end < 0 ? text.length : end + 1;
  }
  return { rows, more };
}

/** Returns a tab if `isTabbed`, otherwise the separator that occurs most often in the first line. */
export function separatorOf(text, isTabbed) {
  if (isTabbed) return "\t";
  const end = text.indexOf("\n");
  const line = text.slice(0, Math.min(end < 0 ? text.length : end, 4000));
  const count = (sign) => line.split(sign).length;
  return [",", ";", "\t"].reduce((best, sign) => (count(sign) > count(best) ? sign : best));
}

function bare(text, at, separator) {
  let end = at;
  while (end < text.length && text[end] !== separator && text[end] !== "\n" && text[end] !== "\r") end += 1;
  return { cell: text.slice(at, end), end };
}

function quoted(text, at, separator) {
  const pieces = [];
  let from = at + 1;
  for (;;) {
    const end = text.indexOf("\"", from);
    if (end < 0) return { cell: pieces.join("") + text.slice(from), end: text.length };
    pieces.push(text.slice(from, end));
    if (text[end + 1] !== "\"") {
      // Some programs write text after the closing quote. This text belongs to the cell.
      const rest = bare(text, end + 1, separator);
      return { cell: pieces.join("") + rest.cell, end: rest.end };
    }
    pieces.push("\"");
    from = end + 2;
  }
}
