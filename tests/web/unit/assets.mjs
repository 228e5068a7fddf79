// Where the files of the live view are.

import { readdirSync, readFileSync } from "node:fs";

export const WEB = new URL("../../../crates/api/web/", import.meta.url);
export const ASSETS = new URL("assets/", WEB);

/** Every script of the live view, by its path below `assets/`. */
export function scripts() {
  return readdirSync(ASSETS, { recursive: true })
    .filter((name) => name.endsWith(".js"))
    .map((name) => [name, readFileSync(new URL(name, ASSETS), "utf8")]);
}
