// Reads the text inside a block of Markdown: emphasis, code, links, formulas. Returns a list of plain objects.
//
// Emphasis is found with the delimiter stack of the CommonMark specification, which takes linear time. The search for
// an end mark remembers its result. So a text with many opening marks and no end mark does not take longer.

import { DEEPEST_INLINE, deepest, merged, paired } from "./emphasis.js";
import { entityAt } from "./entity.js";
import { targetOf } from "./link.js";

/** Maximum length of a run of the same sign that can be emphasis. A longer run is treated as text. */
const LONGEST_RUN = 16;
const LONGEST_TARGET = 2000;
const DEEPEST_PARENTHESES = 32;
const PUNCTUATION = /[\p{P}\p{S}]/u;
const ESCAPABLE = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
const SPECIAL = new Set("\\`*_~[]!<&$ha\n");
const REFERENCE = /artifact:[a-z0-9]{6,20}(?![\w/:])/y;
const ADDRESS = /https?:\/\//y;
/** A web address that is not in brackets ends before such a character. */
const AFTER_ADDRESS = /[\s<>"`|\u3000-\u303f\uff00-\uffef]/;

/** Parses the text of a block. Returns its nodes. */
export function inlinesOf(text, work) {
  const reader = new Reader(text, work);
  reader.read();
  return reader.finished();
}

class Reader {
  at = 0;
  literal = [];
  nodes = [];
  /** The runs of signs that may open or close emphasis, in the order of the text. */
  delimiters = [];
  /**
   * The opening brackets of links and pictures. A link cannot contain another link. So when a link is complete, the
   * brackets before it can no longer open a link. `dead` is the number of brackets that can no longer open a link.
   */
  brackets = [];
  dead = 0;
  found = new Map();

  constructor(text, work) {
    this.text = text;
    this.work = work;
  }

  read() {
    const { text } = this;
    let from = 0;
    while (this.at < text.length) {
      this.work.steps += 1;
      if (!SPECIAL.has(text[this.at])) {
        this.at += 1;
        continue;
      }
      const before = this.at;
      const plain = text.slice(from, before);
      const length = this.literal.length;
      this.literal.push(plain);
      if (this.special(text[before])) {
        from = this.at;
      } else {
        // No link, code, formula or other construct begins here, so the sign is treated as text.
        this.literal.length = length;
        this.at = before + 1;
      }
    }
    this.literal.push(text.slice(from));
    this.flush();
  }

  finished() {
    this.emphasize(0);
    return merged(this.nodes, this.work);
  }

  flush() {
    const text = this.literal.join("");
    this.literal = [];
    if (text !== "") this.push({ kind: "text", text, depth: 0 });
  }

  push(node) {
    this.nodes.push(node);
    this.work.nodes += 1;
  }

  /** Adds a node after the text that was read before it, and continues to read at `end`. */
  add(node, end) {
    this.flush();
    this.push({ depth: 0, ...node });
    this.at = end;
    return true;
  }

  write(text, end) {
    this.literal.push(text);
    this.at = end;
    return true;
  }

  /** Reads the construct that begins with a special sign. Returns `false` if none begins here. */
  special(sign) {
    switch (sign) {
      case "\\": return this.escaped();
      case "`": return this.code();
      case "*":
      case "_":
      case "~": return this.run(sign);
      case "!": return this.text[this.at + 1] === "[" ? this.bracket(2) : false;
      case "[": return this.bracket(1);
      case "]": return this.closeBracket();
      case "<": return this.inAngles();
      case "&": return this.entity();
      case "$": return this.formula();
      case "h": return this.bare();
      case "a": return this.reference();
      default: return this.lineEnd();
    }
  }

  escaped() {
    const next = this.text[this.at + 1];
    if (next === "\n") return this.add({ kind: "break" }, this.at + 2);
    if (next === "(") {
      const end = this.next("\\)", this.at + 2);
      if (end > 0) return this.add({ kind: "math", text: this.text.slice(this.at + 2, end).trim() }, end + 2);
    }
    return next !== undefined && ESCAPABLE.includes(next) ? this.write(next, this.at + 2) : false;
  }

  /** Returns the index of the next occurrence of a mark, or -1. Remembers the result for later calls. */
  next(mark, from) {
    const known = this.found.get(mark);
    if (known !== undefined && (known === -1 || known >= from)) return known;
    const end = this.text.indexOf(mark, from);
    this.work.steps += (end < 0 ? this.text.length : end) - from;
    this.found.set(mark, end);
    return end;
  }

  /** Returns the end of a run of the same sign. */
  runEnd(at) {
    let end = at;
    while (this.text[end] === this.text[at]) end += 1;
    this.work.steps += end - at;
    return end;
  }

  code() {
    const begin = this.runEnd(this.at);
    const end = this.ticks(begin - this.at, begin);
    // A run without an end becomes text as a whole. Otherwise, its last backticks could be read as a shorter run.
    if (end < 0) return this.write(this.text.slice(this.at, begin), begin);
    let code = this.text.slice(begin, end).replaceAll("\n", " ");
    if (code.length > 2 && code[0] === " " && code.at(-1) === " " && code.trim() !== "") code = code.slice(1, -1);
    return this.add({ kind: "code", text: code }, end + begin - this.at);
  }

  /** Returns the index of the next run of exactly this many backticks, or -1. */
  ticks(length, from) {
    if (!this.tickRuns) {
      this.tickRuns = new Map();
      for (let at = this.text.indexOf("`"); at >= 0; at = this.text.indexOf("`", at)) {
        const end = this.runEnd(at);
        if (!this.tickRuns.has(end - at)) this.tickRuns.set(end - at, { starts: [], at: 0 });
        this.tickRuns.get(end - at).starts.push(at);
        at = end;
      }
      this.work.steps += this.text.length;
    }
    const runs = this.tickRuns.get(length);
    while (runs && runs.at < runs.starts.length && runs.starts[runs.at] < from) {
      runs.at += 1;
      this.work.steps += 1;
    }
    return runs?.starts[runs.at] ?? -1;
  }

  run(sign) {
    const end = this.runEnd(this.at);
    const length = end - this.at;
    if (length > LONGEST_RUN || (sign === "~" && length !== 2)) return this.write(this.text.slice(this.at, end), end);
    const before = characterBefore(this.text, this.at);
    const after = String.fromCodePoint(this.text.codePointAt(end) ?? 32);
    const [spaceBefore, spaceAfter] = [/\s/.test(before), /\s/.test(after)];
    const [markBefore, markAfter] = [PUNCTUATION.test(before), PUNCTUATION.test(after)];
    const left = !spaceAfter && (!markAfter || spaceBefore || markBefore || isWide(before));
    const right = !spaceBefore && (!markBefore || spaceAfter || markAfter || isWide(after));
    const opens = left && (sign !== "_" || !right || markBefore);
    const ends = right && (sign !== "_" || !left || markAfter);
    if (!opens && !ends) return this.write(this.text.slice(this.at, end), end);
    this.flush();
    this.push({ kind: "text", text: this.text.slice(this.at, end), depth: 0 });
    this.delimiters.push({ sign, length, left: length, opens, ends, place: this.nodes.length - 1 });
    this.at = end;
    return true;
  }

  bracket(length) {
    this.flush();
    this.push({ kind: "text", text: this.text.slice(this.at, this.at + length), depth: 0 });
    this.brackets.push({ place: this.nodes.length - 1, isPicture: length === 2, begin: this.at + length, delimiters: this.delimiters.length });
    this.at += length;
    return true;
  }

  closeBracket() {
    if (this.brackets.length === 0) return false;
    const opener = this.brackets.pop();
    const isDead = this.brackets.length < this.dead && !opener.isPicture;
    this.dead = Math.min(this.dead, this.brackets.length);
    if (isDead || this.text[this.at + 1] !== "(") return false;
    const target = this.target(this.at + 2);
    if (!target) return false;
    this.flush();
    if (opener.isPicture) {
      const alt = this.text.slice(opener.begin, this.at);
      this.nodes.length = opener.place;
      this.delimiters.length = opener.delimiters;
      this.push({ kind: "picture", ...target.link, alt, depth: 0 });
    } else {
      this.emphasize(opener.delimiters);
      const content = merged(this.nodes.splice(opener.place + 1), this.work);
      const depth = deepest(content) + 1;
      if (depth > DEEPEST_INLINE) {
        this.nodes.push(...content);
        this.push({ kind: "text", text: this.text.slice(this.at, target.end), depth: 0 });
      } else {
        this.nodes.pop();
        this.push({ kind: "link", ...target.link, content, depth });
      }
      this.dead = this.brackets.length;
    }
    this.at = target.end;
    return true;
  }

  /** Reads the target and the title of a link, beginning after the opening parenthesis. */
  target(from) {
    const { text } = this;
    let at = this.spaces(from);
    let begin = at;
    let target;
    if (text[at] === "<") {
      begin = at + 1;
      for (at = begin; at < text.length && !"<>\n".includes(text[at]); at += 1) if (text[at] === "\\") at += 1;
      this.work.steps += at - begin;
      if (text[at] !== ">") return null;
      target = text.slice(begin, at);
      at += 1;
    } else {
      let open = 0;
      for (; at < text.length && at - begin < LONGEST_TARGET && !/[\s\u0000-\u001f]/.test(text[at]); at += 1) {
        if (text[at] === "\\" && ESCAPABLE.includes(text[at + 1] ?? " ")) at += 1;
        else if (text[at] === "(") open += 1;
        else if (text[at] === ")") open -= 1;
        if (open < 0 || open > DEEPEST_PARENTHESES) break;
      }
      this.work.steps += at - begin;
      if (open > 0) return null;
      target = text.slice(begin, at);
    }
    let title = "";
    const afterTarget = at;
    at = this.spaces(at);
    if (at > afterTarget && (text[at] === "\"" || text[at] === "'")) {
      const end = this.next(text[at], at + 1);
      if (end < 0 || end - at > LONGEST_TARGET) return null;
      title = plain(text.slice(at + 1, end));
      at = this.spaces(end + 1);
    }
    return text[at] === ")" ? { link: { target: plain(target), title }, end: at + 1 } : null;
  }

  spaces(from) {
    let at = from;
    while (this.text[at] === " " || this.text[at] === "\n" || this.text[at] === "\t") at += 1;
    this.work.steps += at - from;
    return at;
  }

  inAngles() {
    const line = /<br *\/? {0,4}>/iy;
    line.lastIndex = this.at;
    const found = line.exec(this.text);
    if (found) return this.add({ kind: "break" }, this.at + found[0].length);
    if (!/^<(?:https?:|mailto:|artifact:)/i.test(this.text.slice(this.at, this.at + 12))) return false;
    let end = this.at + 1;
    while (end < this.text.length && !/[\s<>]/.test(this.text[end])) end += 1;
    this.work.steps += end - this.at;
    if (this.text[end] !== ">") return false;
    const target = this.text.slice(this.at + 1, end);
    if (!targetOf(target)) return false;
    return this.add({ kind: "link", target, title: "", content: [{ kind: "text", text: target, depth: 0 }], depth: 1 }, end + 1);
  }

  entity() {
    const entity = entityAt(this.text, this.at);
    return entity ? this.write(entity.text, entity.end) : false;
  }

  /**
   * Reads a formula on one line, between two `$` or two `$$`. A sign before a space begins no formula. A single `$`
   * after a space or before a digit ends no formula, because it may belong to a price.
   */
  formula() {
    const sign = this.text[this.at + 1] === "$" ? "$$" : "$";
    const begin = this.at + sign.length;
    if (/[\s$]/.test(this.text[begin] ?? " ")) return false;
    const end = this.next(sign, begin);
    const line = this.next("\n", begin);
    if (end < 0 || end === begin || (line >= 0 && line < end)) return false;
    if (sign === "$" && (/\s/.test(this.text[end - 1]) || /[\d$]/.test(this.text[end + 1] ?? " ") || this.text[end - 1] === "\\")) return false;
    return this.add({ kind: "math", text: this.text.slice(begin, end).trim() }, end + sign.length);
  }

  /** Reads a web address that is not in brackets. */
  bare() {
    const { text, at } = this;
    ADDRESS.lastIndex = at;
    if (!ADDRESS.test(text)) return false;
    if (/[\p{L}\p{N}_]/u.test(characterBefore(text, at)) && !isWide(characterBefore(text, at))) return false;
    let end = at;
    let open = 0;
    while (end < text.length && !AFTER_ADDRESS.test(text[end]) && !isMark(text, end)) {
      if (text[end] === "(") open += 1;
      if (text[end] === ")") open -= 1;
      if (open < 0) break;
      end += 1;
    }
    this.work.steps += end - at;
    while (end > at && ".,:;!?'*_~\\".includes(text[end - 1])) end -= 1;
    const target = text.slice(at, end);
    if (!targetOf(target)) return this.write(target, Math.max(end, at + 1));
    return this.add({ kind: "link", target, title: "", content: [{ kind: "text", text: target, depth: 0 }], depth: 1 }, end);
  }

  /** Reads a reference to an artifact that is not in brackets, such as `artifact:dcma6ttxcg`. */
  reference() {
    REFERENCE.lastIndex = this.at;
    const target = REFERENCE.exec(this.text)?.[0];
    if (!target || /[\w/.-]/.test(characterBefore(this.text, this.at))) return false;
    return this.add({ kind: "link", target, title: "", content: [{ kind: "text", text: target, depth: 0 }], depth: 1 }, this.at + target.length);
  }

  /** Two spaces at the end of a line make a line break. The view decides how to show all other line ends. */
  lineEnd() {
    const last = this.literal.at(-1);
    if (!last?.endsWith("  ")) return false;
    this.literal[this.literal.length - 1] = last.slice(0, -2);
    return this.add({ kind: "break" }, this.at + 1);
  }

  /** Turns pairs of delimiters into emphasis, beginning with the delimiter at index `bottom`. */
  emphasize(bottom) {
    const { nodes, delimiters, work } = this;
    const floor = delimiters[bottom]?.place;
    if (floor === undefined) {
      delimiters.length = Math.min(delimiters.length, bottom);
      return;
    }
    const tail = paired(nodes.splice(floor), delimiters.splice(bottom), floor, work);
    for (const node of tail) nodes.push(node);
  }
}

/** Returns the character before a place, or a space at the beginning. */
function characterBefore(text, at) {
  if (at === 0) return " ";
  const low = text.charCodeAt(at - 1);
  return low >= 0xdc00 && low < 0xe000 && at > 1 ? text.slice(at - 2, at) : text[at - 1];
}

/**
 * Whether a character belongs to a script that is written without spaces. Emphasis may begin and end beside such a
 * character.
 */
function isWide(character) {
  return /[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]/.test(character);
}

/** Whether `**` or `]` stands at a place. It ends a web address, because it closes emphasis or brackets around it. */
function isMark(text, at) {
  return (text[at] === "*" && text[at + 1] === "*") || text[at] === "]";
}

/** Replaces escapes and entities in the target or the title of a link. */
function plain(text) {
  let written = "";
  for (let at = 0; at < text.length;) {
    const entity = text[at] === "&" ? entityAt(text, at) : null;
    if (entity) {
      written += entity.text;
      at = entity.end;
    } else if (text[at] === "\\" && ESCAPABLE.includes(text[at + 1] ?? " ")) {
      written += text[at + 1];
      at += 2;
    } else {
      written += text[at];
      at += 1;
    }
  }
  return written;
}
