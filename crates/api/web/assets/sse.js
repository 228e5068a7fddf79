// An incremental parser of server-sent events.

/**
 * Parses the next piece of a stream. `rest` is the text from earlier pieces that is not parsed yet. Returns the parsed
 * blocks and the new `rest`.
 */
export function parse(rest, piece) {
  const text = rest + piece;
  const lines = text.split(/\r\n|\n|\r(?!$)/);
  let left = lines.pop();
  const blocks = [];
  let begun = [];
  for (const line of lines) {
    if (line !== "") {
      begun.push(line);
      continue;
    }
    const block = read(begun);
    if (block) blocks.push(block);
    begun = [];
  }
  if (begun.length > 0) left = `${begun.join("\n")}\n${left}`;
  return { blocks, rest: left };
}

function read(lines) {
  let id = null;
  let event = "message";
  const data = [];
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon === 0) continue;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    else if (field === "id") id = value;
    else if (field === "event") event = value;
  }
  // The event `reset` is returned even if it has no data. Any other block without data is ignored.
  return data.length > 0 || event === "reset" ? { id, event, data: data.join("\n") } : null;
}
