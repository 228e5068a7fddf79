// Shows a table of values, such as a CSV file. Only a limited number of rows and columns is shown, so that a huge table
// does not block the page.

import { rowsOf, separatorOf } from "../csv.js";
import { h } from "../dom.js";

const ROWS = 500;
const COLUMNS = 60;

/** Shows the first rows and columns of a table. */
export function sheet(app, text, { isTabbed }) {
  const { rows, more } = rowsOf(text, separatorOf(text, isTabbed), ROWS + 1);
  const [head, ...body] = rows;
  const cells = (row, tag, properties) => [row.slice(0, COLUMNS).map((cell) => h(tag, properties, cell)),
    row.length > COLUMNS ? h(`${tag}.dim`, {}, app.t("sheet.columns", { n: row.length - COLUMNS })) : null];
  return h("div.sheet", {}, h("div.table-holder", { tabindex: "0" }, h("table", {},
    h("thead", {}, h("tr", {}, cells(head ?? [], "th", { scope: "col" }))),
    h("tbody", {}, body.map((row) => h("tr", {}, cells(row, "td", {})))))),
  more > 0 ? h("p.dim.small", {}, app.t("sheet.rows", { n: more })) : null);
}
