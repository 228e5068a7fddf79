// The last words of the tests in a browser.

/** Returns what the tests say in the end. `skipped` names the parts that this machine could not check. */
export function verdict(skipped) {
  if (skipped.length === 0) return "all checks passed";
  return ["all checks passed but those that were skipped:", ...skipped.map((part) => `- SKIPPED: ${part}`)].join("\n");
}
