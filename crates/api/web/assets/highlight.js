// Splits code into comments, strings, numbers, keywords and other pieces. This file knows only what many languages have
// in common. The pieces together always contain the whole text.

/** Maximum number of characters of code that is shown in colours. */
const LONGEST = 100_000;

const words = (text) => new Set(text.split(" "));
const C_LIKE = "break case char class const continue default do double else enum extern false float for goto if import int long new null private protected public return short signed static struct super switch this throw true try catch finally typedef union unsigned void volatile while";

/** For each language: the signs of its comments, its quotes, its keywords and other differences. */
const LANGUAGES = {
  javascript: { line: ["//"], block: ["/*", "*/"], quotes: "\"'`", words: words("async await break case catch class const continue debugger default delete do else export extends false finally for from function if import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield") },
  python: { line: ["#"], quotes: "\"'", triple: true, words: words("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return self try while with yield") },
  rust: { line: ["//"], block: ["/*", "*/"], quotes: "\"", words: words("as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while") },
  go: { line: ["//"], block: ["/*", "*/"], quotes: "\"'`", words: words("break case chan const continue default defer else fallthrough false for func go goto if import interface map nil package range return select struct switch true type var") },
  c: { line: ["//"], block: ["/*", "*/"], quotes: "\"'", words: words(`${C_LIKE} abstract auto bool boolean delete explicit extends final implements inline instanceof interface namespace nullptr operator override package sizeof string template throws using var virtual`) },
  shell: { line: ["#"], quotes: "\"'", words: words("case do done elif else esac exit export fi for function if in local return set then until while") },
  sql: { line: ["--"], block: ["/*", "*/"], quotes: "\"'", anyCase: true, words: words("all alter and as asc between by case create delete desc distinct drop else end exists from group having in index inner insert into is join key left like limit not null on or order outer primary references right select set table then union unique update values view when where with") },
  yaml: { line: ["#"], quotes: "\"'", keys: ":", words: words("true false null yes no") },
  toml: { line: ["#", ";"], quotes: "\"'", triple: true, keys: "=", words: words("true false") },
  json: { line: ["//"], quotes: "\"", keys: ":", words: words("true false null") },
  markup: { block: ["<!--", "-->"], quotes: "\"'", tags: true, words: words("") },
  css: { block: ["/*", "*/"], quotes: "\"'", keys: ":", words: words("important inherit initial none auto") },
};

const NAMES = {
  js: "javascript", jsx: "javascript", ts: "javascript", tsx: "javascript", mjs: "javascript", cjs: "javascript", typescript: "javascript", node: "javascript",
  py: "python", python3: "python", rs: "rust", golang: "go", h: "c", cc: "c", cpp: "c", "c++": "c", hpp: "c", java: "c", cs: "c", csharp: "c", "c#": "c", kotlin: "c", kt: "c", swift: "c", php: "c", scala: "c",
  sh: "shell", bash: "shell", zsh: "shell", console: "shell", dockerfile: "shell", makefile: "shell", yml: "yaml", ini: "toml", cfg: "toml", conf: "toml", jsonc: "json", json5: "json", ndjson: "json", jsonl: "json",
  html: "markup", xml: "markup", svg: "markup", xhtml: "markup", vue: "markup", scss: "css", less: "css",
};

/** Returns the name that this file uses for a language, or `null` for an unknown language. */
export function languageOf(name) {
  const known = name.trim().split(/[\s,{]/, 1)[0].toLowerCase();
  if (Object.hasOwn(LANGUAGES, known)) return known;
  return Object.hasOwn(NAMES, known) ? NAMES[known] : null;
}

/** Splits code into pieces `{ kind, text }`. The kind is `null` for text that gets no colour. */
export function tokens(text, name) {
  const language = LANGUAGES[languageOf(name)];
  if (!language || text.length > LONGEST) return [{ kind: null, text }];
  const list = [];
  let plain = 0;
  let at = 0;
  let isInTag = false;
  while (at < text.length) {
    const found = tokenAt(text, at, language, isInTag);
    if (!found) {
      if (language.tags && text[at] === ">") isInTag = false;
      at += 1;
      continue;
    }
    if (found.kind) {
      if (at > plain) list.push({ kind: null, text: text.slice(plain, at) });
      list.push({ kind: found.kind, text: text.slice(at, found.end) });
      plain = found.end;
    }
    if (found.kind === "tag") isInTag = true;
    at = found.end;
  }
  if (plain < text.length) list.push({ kind: null, text: text.slice(plain) });
  return list;
}

/**
 * Returns the end and the kind of the piece that begins at a place. The kind may be `null`. Returns `null` if no piece
 * begins there.
 */
function tokenAt(text, at, language, isInTag) {
  for (const start of language.line ?? []) {
    if (!text.startsWith(start, at) || (start === "#" && /[\w$]/.test(text[at - 1] ?? " "))) continue;
    const end = text.indexOf("\n", at);
    return { kind: "comment", end: end < 0 ? text.length : end };
  }
  if (language.block && text.startsWith(language.block[0], at)) {
    const end = text.indexOf(language.block[1], at + language.block[0].length);
    return { kind: "comment", end: end < 0 ? text.length : end + language.block[1].length };
  }
  if (language.tags) {
    const tag = match(/<[/!?]?[A-Za-z][\w:-]*/y, text, at);
    if (tag) return { kind: "tag", end: at + tag.length };
    if (!isInTag) return null;
  }
  if (language.quotes.includes(text[at])) {
    const end = endOfString(text, at, language);
    const isKey = language.keys && match(/\s{0,8}:/y, text, end) && language.keys === ":";
    return { kind: isKey ? "key" : "string", end };
  }
  const number = match(/\d[\w.]*/y, text, at);
  if (number) return { kind: "number", end: at + number.length };
  const word = match(/[\p{L}_$][\p{L}\p{N}_$]*/uy, text, at);
  if (!word) return null;
  const end = at + word.length;
  if (language.words.has(language.anyCase ? word.toLowerCase() : word)) return { kind: "keyword", end };
  if (language.keys && isLineStart(text, at) && match(/[\w.-]{0,80}\s{0,8}[:=]/y, text, end)?.endsWith(language.keys)) return { kind: "key", end };
  return { kind: text[end] === "(" && !language.tags ? "call" : null, end };
}

function match(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
}

/**
 * Whether a place is at the start of its line or directly after `{`. This is also true if only spaces, tabs and the `-`
 * of a list item stand between the start or the `{` and the place.
 */
function isLineStart(text, at) {
  let before = at - 1;
  while (before >= 0 && at - before < 40 && " \t-".includes(text[before])) before -= 1;
  return before < 0 || text[before] === "\n" || text[before] === "{";
}

/** Returns the end of a string. A string that is not closed ends at the end of its line. */
function endOfString(text, at, { triple }) {
  const quote = text[at];
  if (triple && text.startsWith(quote.repeat(3), at)) {
    const end = text.indexOf(quote.repeat(3), at + 3);
    return end < 0 ? text.length : end + 3;
  }
  for (let end = at + 1; end < text.length; end += 1) {
    if (text[end] === "\\") end += 1;
    else if (text[end] === quote) return end + 1;
    else if (text[end] === "\n" && quote !== "`") return end;
  }
  return text.length;
}
