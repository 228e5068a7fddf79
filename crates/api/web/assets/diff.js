// Reads diffs in the unified format, as `git diff` writes them. Pure functions.

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

/** Whether a text is a diff in the unified format. */
export function isDiff(text) {
  return text.split("\n").some((line) => HUNK.test(line));
}

/**
 * Splits a diff into lines: `{ kind, text }`. The kinds are `added`, `removed`, `same`, `hunk` and `file`. The head
 * of a hunk tells how many lines the hunk has. This function counts these lines, so that it does not mistake a removed
 * line such as `-- x` for the name of a file.
 */
export function linesOf(text) {
  let old = 0;
  let now = 0;
  const lines = text.endsWith("\n") ? text.slice(0, -1).split("\n") : text.split("\n");
  return lines.map((line) => {
    if (line.startsWith("\\")) return { kind: "file", text: line };
    if (old <= 0 && now <= 0) {
      const hunk = HUNK.exec(line);
      if (!hunk) return { kind: "file", text: line };
      old = Number(hunk[1] ?? 1);
      now = Number(hunk[2] ?? 1);
      return { kind: "hunk", text: line };
    }
    if (line.startsWith("+")) {
      now -= 1;
      return { kind: "added", text: line };
    }
    old -= 1;
    if (line.startsWith("-")) return { kind: "removed", text: line };
    now -= 1;
    return { kind: "same", text: line };
  });
}
