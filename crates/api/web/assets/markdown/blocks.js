// Parses Markdown into a tree of plain objects. HTML tags are treated as text. The depth of the tree is bounded, so the
// work is proportional to the length of the text, whatever the text contains.

import { inlinesOf } from "./inline.js";
import {
  alignsOf, cellsOf, closes, fenceOf, headingOf, indentOf, isBlank, isQuote, isRule, itemOf, underlineOf, unquoted, untabbed,
} from "./lines.js";
import { Work } from "./work.js";

/** Maximum depth of nested lists and quotations. Lists and quotations below this depth are treated as text. */
export const DEEPEST = 16;

/** Maximum number of lines of a formula. This bounds the search for the end of a formula that is never closed. */
const LONGEST_FORMULA = 40;

/** Parses a text. Returns its blocks and a measure of the work that parsing took. */
export function parse(text) {
  const work = new Work();
  const lines = text.replace(/\r\n?/g, "\n").split("\n").map(untabbed);
  return { blocks: blocksOf(lines, 0, work), work };
}

function blocksOf(lines, depth, work) {
  const reader = { lines, at: 0, depth, work };
  const blocks = [];
  while (reader.at < lines.length) {
    work.steps += lines[reader.at].length + 1;
    if (isBlank(lines[reader.at])) {
      reader.at += 1;
      continue;
    }
    blocks.push(blockOf(reader));
    work.nodes += 1;
  }
  return blocks;
}

function blockOf(reader) {
  const { lines, at, depth } = reader;
  const line = lines[at];
  if (indentOf(line) >= 4) return indented(reader);
  const fence = fenceOf(line);
  if (fence) return fenced(reader, fence);
  const heading = headingOf(line);
  if (heading) {
    reader.at += 1;
    return { kind: "heading", level: heading.level, content: inlinesOf(heading.text, reader.work) };
  }
  if (isRule(line)) {
    reader.at += 1;
    return { kind: "rule" };
  }
  if (depth < DEEPEST && isQuote(line)) return quote(reader);
  if (depth < DEEPEST && itemOf(line)) return list(reader);
  if (isTable(reader, at)) return table(reader);
  return formula(reader) ?? paragraph(reader);
}

/** Reads code whose lines are indented by at least four spaces. */
function indented(reader) {
  const { lines } = reader;
  const code = [];
  for (; reader.at < lines.length && (isBlank(lines[reader.at]) || indentOf(lines[reader.at]) >= 4); reader.at += 1) {
    reader.work.steps += lines[reader.at].length + 1;
    code.push(lines[reader.at].slice(4));
  }
  while (isBlank(code.at(-1))) code.pop();
  return { kind: "code", language: "", text: code.join("\n") };
}

/**
 * Reads code between two fences. Without a closing fence, the code reaches to the end of the text. This happens while a
 * model's answer is still arriving.
 */
function fenced(reader, fence) {
  const { lines } = reader;
  const code = [];
  for (reader.at += 1; reader.at < lines.length; reader.at += 1) {
    const line = lines[reader.at];
    reader.work.steps += line.length + 1;
    if (closes(line, fence)) {
      reader.at += 1;
      break;
    }
    code.push(line.slice(Math.min(indentOf(line), fence.indent)));
  }
  return { kind: "code", language: fence.info, text: code.join("\n") };
}

function quote(reader) {
  const { lines } = reader;
  const inner = [];
  let fence = null;
  for (; reader.at < lines.length; reader.at += 1) {
    const line = lines[reader.at];
    if (isQuote(line)) {
      inner.push(unquoted(line));
      // Inside a code block of a quotation, each line must begin with the quotation mark `>`.
      if (fence) fence = closes(inner.at(-1), fence) ? null : fence;
      else fence = fenceOf(inner.at(-1));
    } else if (!fence && continues(inner.at(-1), line)) {
      inner.push(line);
    } else {
      break;
    }
    reader.work.steps += line.length + 1;
  }
  return { kind: "quote", blocks: blocksOf(inner, reader.depth + 1, reader.work) };
}

/**
 * Whether a line continues the paragraph of the line above it, although the quotation mark or the indentation is
 * missing.
 */
function continues(above, line) {
  return !isBlank(above) && !isBlank(line) && indentOf(above) < 4 && !fenceOf(above) && !headingOf(above) && !isRule(above)
    && !begins(line);
}

/** Whether a line ends a paragraph because it begins another block. */
function begins(line) {
  if (indentOf(line) >= 4) return false;
  if (fenceOf(line) || headingOf(line) || isRule(line) || isQuote(line)) return true;
  const item = itemOf(line);
  return item !== null && !item.isEmpty && (item.number === null || item.number === 1);
}

function list(reader) {
  const { lines, depth, work } = reader;
  const first = itemOf(lines[reader.at]);
  const items = [];
  let isLoose = false;
  while (reader.at < lines.length) {
    const item = itemOf(lines[reader.at]);
    if (!item || item.sign !== first.sign || (items.length > 0 && item.indent >= first.indent + 4)) break;
    work.steps += lines[reader.at].length + 1;
    work.nodes += 1;
    const { inner, endsBlank } = itemLines(reader, item);
    const task = /^\[([ xX])\](?=\s|$)/.exec(inner[0]);
    if (task) inner[0] = inner[0].slice(task[0].length).trimStart();
    items.push({ task: task ? task[1] !== " " : null, blocks: blocksOf(inner, depth + 1, work) });
    const next = reader.at < lines.length ? itemOf(lines[reader.at]) : null;
    isLoose ||= endsBlank && next !== null && next.sign === first.sign;
  }
  return { kind: "list", start: first.number, isLoose, items };
}

/** Reads the lines of a list item and removes their indentation. */
function itemLines(reader, item) {
  const { lines, work } = reader;
  const inner = [item.text];
  let blanks = 0;
  for (reader.at += 1; reader.at < lines.length; reader.at += 1) {
    const line = lines[reader.at];
    work.steps += line.length + 1;
    if (isBlank(line)) {
      // An item whose first line is empty ends at the second empty line.
      if (item.isEmpty && inner.length === 1) break;
      blanks += 1;
      inner.push("");
      continue;
    }
    const indent = indentOf(line);
    // Below `1.`, the CommonMark specification requires a nested list to be indented by three spaces. Models write only
    // two spaces, so two are enough here.
    const isInside = indent >= item.width || (indent >= item.indent + 2 && itemOf(line) !== null);
    if (isInside) inner.push(line.slice(Math.min(indent, item.width)));
    else if (blanks === 0 && !itemOf(line) && continues(inner.at(-1), line)) inner.push(line.trimStart());
    else break;
    blanks = 0;
  }
  for (let left = blanks; left > 0; left -= 1) inner.pop();
  return { inner, endsBlank: blanks > 0 };
}

/** Whether a table begins at a line. A table has a head line and, below it, a line with the alignments. */
function isTable({ lines, work }, at) {
  if (!lines[at].includes("|") || at + 1 >= lines.length || indentOf(lines[at + 1]) >= 4) return false;
  work.steps += lines[at].length + lines[at + 1].length;
  return alignsOf(lines[at + 1])?.length === cellsOf(lines[at]).length;
}

function table(reader) {
  const { lines, work } = reader;
  const row = (line) => cellsOf(line).map((cell) => {
    work.nodes += 1;
    return inlinesOf(cell, work);
  });
  const head = row(lines[reader.at]);
  const aligns = alignsOf(lines[reader.at + 1]);
  const rows = [];
  for (reader.at += 2; reader.at < lines.length; reader.at += 1) {
    const line = lines[reader.at];
    if (isBlank(line) || begins(line) || !line.includes("|")) break;
    work.steps += line.length + 1;
    rows.push(row(line));
  }
  return { kind: "table", aligns, head, rows };
}

/**
 * Reads a formula that stands alone on one or more lines, between two `$$` or between `\[` and `\]`. Returns `null` if
 * it is not closed.
 */
function formula(reader) {
  const { lines, at, work } = reader;
  const first = lines[at].trim();
  const open = ["$$", "\\["].find((sign) => first.startsWith(sign));
  if (!open) return null;
  const close = open === "$$" ? "$$" : "\\]";
  if (first.length >= 4 && first.endsWith(close)) {
    reader.at += 1;
    return { kind: "math", text: first.slice(2, -2).trim() };
  }
  const text = [first.slice(2)];
  const end = Math.min(lines.length, at + LONGEST_FORMULA);
  for (let next = at + 1; next < end && !isBlank(lines[next]); next += 1) {
    const line = lines[next].trimEnd();
    work.steps += 1;
    if (line.endsWith(close)) {
      text.push(line.slice(0, -2));
      reader.at = next + 1;
      return { kind: "math", text: text.join("\n").trim() };
    }
    text.push(line);
  }
  return null;
}

function paragraph(reader) {
  const { lines, work } = reader;
  const text = [lines[reader.at].trimStart()];
  for (reader.at += 1; reader.at < lines.length; reader.at += 1) {
    const line = lines[reader.at];
    work.steps += line.length + 1;
    if (isBlank(line)) break;
    const level = underlineOf(line);
    if (level > 0) {
      reader.at += 1;
      return { kind: "heading", level, content: inlinesOf(text.join("\n").trimEnd(), work) };
    }
    if (begins(line) || isTable(reader, reader.at)) break;
    text.push(line.trimStart());
  }
  return { kind: "paragraph", content: inlinesOf(text.join("\n").trimEnd(), work) };
}
