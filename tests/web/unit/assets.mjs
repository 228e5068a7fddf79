// Finds the files of the live view, for the tests.

import { readdirSync, readFileSync } from "node:fs";

export const WEB = new URL("../../../crates/api/web/", import.meta.url);
export const ASSETS = new URL("assets/", WEB);

/** Returns every script of the live view as a pair: its path below `assets/` and its text. */
export function scripts() {
  return readdirSync(ASSETS, { recursive: true })
    .filter((name) => name.endsWith(".js"))
    .map((name) => [name, readFileSync(new URL(name, ASSETS), "utf8")]);
}
