// Recognizes the lines that begin a block of Markdown. Each function gets one line and reads each of its characters
// only a few times.

/** Replaces each tab at the beginning of a line by spaces up to the next column that is a multiple of four. */
export function untabbed(line) {
  if (!/^ *\t/.test(line)) return line;
  const pieces = [];
  let column = 0;
  let at = 0;
  for (; line[at] === " " || line[at] === "\t"; at += 1) {
    const width = line[at] === "\t" ? 4 - (column % 4) : 1;
    pieces.push(" ".repeat(width));
    column += width;
  }
  return pieces.join("") + line.slice(at);
}

/** Returns the number of spaces at the beginning of a line. */
export function indentOf(line) {
  let at = 0;
  while (line[at] === " ") at += 1;
  return at;
}

export const isBlank = (line) => !/\S/.test(line);

/** Reads the line that opens a fenced code block. Returns `null` for any other line. */
export function fenceOf(line) {
  const indent = indentOf(line);
  const sign = line[indent];
  if (indent > 3 || (sign !== "`" && sign !== "~")) return null;
  let end = indent;
  while (line[end] === sign) end += 1;
  const info = line.slice(end).trim();
  if (end - indent < 3 || (sign === "`" && info.includes("`"))) return null;
  return { sign, length: end - indent, indent, info };
}

/** Whether a line closes the code block that `fence` opened. */
export function closes(line, { sign, length }) {
  const indent = indentOf(line);
  if (indent > 3 || line[indent] !== sign) return false;
  let end = indent;
  while (line[end] === sign) end += 1;
  return end - indent >= length && isBlank(line.slice(end));
}

/** Reads a heading such as `## Results`. Returns `null` if the line is not a heading. */
export function headingOf(line) {
  const found = /^ {0,3}(#{1,6})(?:[ \t]|$)/.exec(line);
  if (!found) return null;
  let end = line.length;
  while (end > found[0].length && /\s/.test(line[end - 1])) end -= 1;
  let signs = end;
  while (signs > found[0].length && line[signs - 1] === "#") signs -= 1;
  // The `#` signs at the end are markup only if a space separates them from the text of the heading.
  if (signs <= found[0].length || /\s/.test(line[signs - 1])) end = signs;
  return { level: found[1].length, text: line.slice(found[0].length, end).trim() };
}

/** Whether a line is a horizontal rule: at least three of the same sign, with or without spaces between them. */
export function isRule(line) {
  const indent = indentOf(line);
  const sign = line[indent];
  if (indent > 3 || (sign !== "-" && sign !== "*" && sign !== "_")) return false;
  let count = 0;
  for (let at = indent; at < line.length; at += 1) {
    if (line[at] === sign) count += 1;
    else if (line[at] !== " " && line[at] !== "\t") return false;
  }
  return count >= 3;
}

/**
 * Returns the level of the heading that this line underlines with `=` or `-`, or 0. The text of the heading is above
 * the line.
 */
export function underlineOf(line) {
  const indent = indentOf(line);
  const sign = line[indent];
  if (indent > 3 || (sign !== "=" && sign !== "-")) return 0;
  let end = indent;
  while (line[end] === sign) end += 1;
  if (!isBlank(line.slice(end))) return 0;
  return sign === "=" ? 1 : 2;
}

/** Whether a line begins with the quotation mark `>`. */
export const isQuote = (line) => /^ {0,3}>/.test(line);

/** Removes one quotation mark `>` and the space after it. */
export function unquoted(line) {
  const at = line.indexOf(">") + 1;
  return untabbed(line[at] === " " ? line.slice(at + 1) : line.slice(at));
}

/**
 * Reads the beginning of a list item. Returns `null` if the line begins no item. `width` is the indentation of the
 * item's content.
 */
export function itemOf(line) {
  const found = /^( *)([-*+]|\d{1,9}[.)])(?= |\t|$)/.exec(line);
  if (!found || isRule(line)) return null;
  const [mark, space, sign] = found;
  const rest = untabbed(line.slice(mark.length));
  const gap = indentOf(rest);
  const isEmpty = gap === rest.length;
  const used = isEmpty || gap > 4 ? 1 : gap;
  return {
    indent: space.length, width: mark.length + used, text: isEmpty ? "" : rest.slice(used), isEmpty,
    sign: sign.at(-1), number: sign.length > 1 ? Number.parseInt(sign, 10) : null,
  };
}

/** Splits a row of a table at the `|` signs. A `|` after a backslash belongs to the text of its cell. */
export function cellsOf(line) {
  const row = line.trim();
  const cells = [];
  let cell = "";
  let from = row[0] === "|" ? 1 : 0;
  for (let at = from; at < row.length; at += 1) {
    if (row[at] === "\\" && row[at + 1] === "|") {
      cell += `${row.slice(from, at)}|`;
      from = at + 2;
      at += 1;
    } else if (row[at] === "|") {
      cells.push((cell + row.slice(from, at)).trim());
      cell = "";
      from = at + 1;
    }
  }
  if (from < row.length || cell !== "") cells.push((cell + row.slice(from)).trim());
  return cells;
}

/** Reads the alignment of each column from the line below the head of a table. Returns `null` for any other line. */
export function alignsOf(line) {
  if (!line.includes("-") || !/^[\s|:-]+$/.test(line) || !/[|:]/.test(line)) return null;
  const cells = cellsOf(line);
  const aligns = [];
  for (const cell of cells) {
    if (!/^:?-+:?$/.test(cell)) return null;
    const [left, right] = [cell[0] === ":", cell.at(-1) === ":"];
    aligns.push(left && right ? "center" : right ? "right" : left ? "left" : null);
  }
  return aligns.length > 0 ? aligns : null;
}
