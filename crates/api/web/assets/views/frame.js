// The frame around all pages: navigation, state of the connection, theme and language.

import { h, fill, icon } from "../dom.js";
import { PAGES, write } from "../route.js";
import { iconButton } from "./shared.js";

const THEMES = ["auto", "light", "dark"];
const SHAPES = { auto: "auto", light: "sun", dark: "moon" };

export function mountFrame(app, { banners, tree, pages, composer, detail }) {
  const { store, t } = app;
  let before = [];
  const count = h("b.count-badge", { hidden: true });
  const links = Object.fromEntries(PAGES.map((page) => [page, h("a", {
    href: write({ page, detail: null }), class: `to-${page}`,
    onclick: (event) => {
      // If the browser followed the link, the detail column would close; `go` keeps it open on wide screens.
      event.preventDefault();
      app.go(page);
    },
  }, icon(page), h("span", {}, t(`page.${page}`)), page === "approvals" ? count : null)]));
  const connection = h("span.connection", { role: "status" });
  const theme = h("span");
  const main = h("main", { id: "main", tabindex: "-1" }, Object.values(pages).map((page) => page.element), composer.element);
  const element = [
    h("a.skip", { href: "#main", onclick: (event) => {
      event.preventDefault();
      main.focus();
    } }, t("skip")),
    h("header.top", {}, h("span.brand", {}, icon("society"), "polity"), h("nav.pages", { "aria-label": t("pages") }, Object.values(links)),
      h("span.spring"), connection,
      h("div.top-end", {}, iconButton(t("shortcuts"), "question", () => app.act({ does: "help" })), theme,
        h("button.bare.language", { type: "button", title: t("language"), "aria-label": t("language"), onclick: () => app.act({ does: "language" }) }, t("language.other")))),
    banners.element,
    h("div.columns", {}, tree.element, main, detail.element),
  ];

  function drawTheme() {
    fill(theme, iconButton(t(`theme.${app.preferences.theme}`), SHAPES[app.preferences.theme], () => {
      app.preferences.theme = THEMES[(THEMES.indexOf(app.preferences.theme) + 1) % THEMES.length];
      app.applyTheme();
      drawTheme();
    }, { class: "theme" }));
  }
  drawTheme();

  return {
    element,
    drawTheme,
    update(model, ui) {
      if (before[0] !== ui.route.page) {
        document.body.dataset.page = ui.route.page;
        for (const [page, link] of Object.entries(links)) {
          if (page === ui.route.page) link.setAttribute("aria-current", "page");
          else link.removeAttribute("aria-current");
        }
        for (const [page, view] of Object.entries(pages)) view.element.hidden = page !== ui.route.page && !(ui.route.page === "society" && page === "conversation");
        composer.element.hidden = !["now", "conversation", "timeline", "society"].includes(ui.route.page);
      }
      if (before[1] !== model.connection) {
        connection.className = `connection is-${model.connection}`;
        fill(connection, icon({ live: "idle", lost: "ended", connecting: "reload" }[model.connection]),
          h("span", {}, t(`connection.${model.connection}`)));
        connection.dataset.state = model.connection;
      }
      const asks = model.questions.length + model.approvals.length;
      if (before[3] !== model.approvals.length) {
        count.hidden = model.approvals.length === 0;
        fill(count, String(model.approvals.length));
        links.approvals.setAttribute("aria-label", count.hidden ? t("page.approvals") : `${t("page.approvals")}: ${t("approvals.open", { n: model.approvals.length })}`);
      }
      if (before[2] !== asks) document.title = asks > 0 ? `(${asks}) polity` : "polity";
      before = [ui.route.page, model.connection, asks, model.approvals.length];
    },
  };
}
