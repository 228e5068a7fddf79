// Finds emphasis in linear time, with the delimiter stack of the CommonMark specification.

/** Maximum depth of nested emphasis and links. Marks below this depth are treated as text. */
export const DEEPEST_INLINE = 24;

/**
 * A delimiter is a run of signs such as `**`. The search for the partner of a closing delimiter examines at most this
 * many open delimiters of the same sign.
 */
const FARTHEST_PARTNER = 8;

/**
 * Finds the emphasis in a list of nodes. These nodes are the end of the node list of a `Reader` in `inline.js`; `floor`
 * is the index of the first of them in that list. A delimiter is a run of signs such as `**`. A delimiter without a
 * partner stays in the result as a placeholder, which `merged` turns into text.
 */
export function paired(nodes, delimiters, floor, work) {
  const list = [];
  /**
   * The delimiters that may still open emphasis. For each sign, `bySign` contains the indexes of its delimiters in
   * `open`.
   */
  const open = [];
  const bySign = { "*": [], "_": [], "~": [] };
  const push = (node) => {
    list.push(node);
    if (open.length > 0) open.at(-1).depth = Math.max(open.at(-1).depth, node.depth);
  };
  /** Removes all delimiters at index `place` or later from `open`. Their signs stay in the result as text. */
  const giveUp = (place) => {
    while (open.length > place) {
      const { delimiter, depth } = open.pop();
      bySign[delimiter.sign].pop();
      if (open.length > 0) open.at(-1).depth = Math.max(open.at(-1).depth, depth);
      work.steps += 1;
    }
  };
  let at = 0;
  for (const delimiter of delimiters) {
    for (; at < delimiter.place - floor; at += 1) push(nodes[at]);
    at += 1;
    while (delimiter.ends && delimiter.left > 0) {
      work.steps += 1;
      const place = partner(open, bySign[delimiter.sign], delimiter);
      if (place < 0) break;
      giveUp(place + 1);
      const opener = open[place];
      if (opener.depth >= DEEPEST_INLINE) {
        giveUp(place);
        continue;
      }
      const strength = Math.min(2, opener.delimiter.left, delimiter.left);
      const kind = delimiter.sign === "~" ? "strike" : strength === 2 ? "strong" : "emphasis";
      opener.delimiter.left -= strength;
      delimiter.left -= strength;
      opener.depth += 1;
      list.push({ kind, content: merged(list.splice(opener.after), work), depth: opener.depth });
      work.nodes += 1;
      if (opener.delimiter.left === 0) giveUp(place);
    }
    if (delimiter.left === 0) continue;
    push({ kind: "delimiter", delimiter, depth: 0 });
    if (!delimiter.opens) continue;
    bySign[delimiter.sign].push(open.length);
    open.push({ delimiter, after: list.length, depth: 0 });
  }
  for (; at < nodes.length; at += 1) push(nodes[at]);
  return list;
}

/** Returns the index in `open` of the delimiter that `closer` closes, or -1. */
function partner(open, places, closer) {
  for (let back = 1; back <= Math.min(places.length, FARTHEST_PARTNER); back += 1) {
    const { delimiter } = open[places.at(-back)];
    // The "rule of 3" in the CommonMark specification: it decides which marks form a pair in `*a**b*` and in `**a*b**`.
    const sum = delimiter.length + closer.length;
    const mixed = (delimiter.ends || closer.opens) && sum % 3 === 0 && (delimiter.length % 3 !== 0 || closer.length % 3 !== 0);
    if (!mixed) return places.at(-back);
  }
  return -1;
}

/** Returns the largest depth of the nodes. */
export function deepest(nodes) {
  let depth = 0;
  for (const node of nodes) depth = Math.max(depth, node.depth);
  return depth;
}

/** Joins neighbouring texts into one text node. Turns unused delimiters into text. */
export function merged(nodes, work) {
  const list = [];
  let texts = [];
  const flush = () => {
    const text = texts.join("");
    if (text !== "") list.push({ kind: "text", text, depth: 0 });
    texts = [];
  };
  for (const node of nodes) {
    work.steps += 1;
    if (node.kind === "text") {
      texts.push(node.text);
    } else if (node.kind === "delimiter") {
      texts.push(node.delimiter.sign.repeat(node.delimiter.left));
    } else {
      flush();
      list.push(node);
    }
  }
  flush();
  return list;
}
