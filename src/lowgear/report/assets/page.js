// Puts the sections together, keeps the selection and the theme.

// The setting that is selected, by its key; `watch` goes to the player.
function makeSelection() {
  const listeners = [];
  let chosen = null;
  return {
    choose: (key) => {
      if (key === chosen) return;
      chosen = key;
      for (const listener of listeners) listener(key);
    },
    listen: (listener) => {
      listeners.push(listener);
      if (chosen) listener(chosen);
    },
    watch: () => {},
  };
}

function tilesOf(tiles) {
  if (!tiles) return null;
  const said = (size, text) => el("dd", { class: size }, text);
  const tile = ([name, big, small]) =>
    el("div", { class: "tile" }, el("dt", {}, name), said("big", big), said("small", small));
  return [el("p", { class: "lead" }, tiles.lead), el("dl", { class: "tiles" }, tiles.cells.map(tile))];
}

// Rows have a name and cells, each with ours and, below it, the paper's.
function tablePanel(table, kind, selection) {
  if (table.none) return panel(table);
  const rows = table.rows.map((row) => tableRow(row, table.heads));
  selection?.listen((key) => {
    for (const row of rows) row.setAttribute("aria-current", row.dataset.key === key);
  });
  const heads = table.heads.map((text) => el("th", { scope: "col" }, text));
  const caption = el("caption", { class: "hidden" }, table.caption);
  const node = el("table", { class: kind }, caption, el("thead", {}, el("tr", {}, heads)), el("tbody", {}, rows));
  return panel(table, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": table.caption }, node));
}

function tableRow(row, heads) {
  const sub = (text) => text !== null && el("span", { class: "sub" }, text);
  const cells = (row.cells ?? []).map(([ours, paper], i) => el("td", { "data-label": heads[i + 1] }, ours, sub(paper)));
  const swatch = row.colour && el("i", { class: "swatch", colour: row.colour });
  const name = row.link ? el("a", { href: row.link }, row.name) : row.name;
  return el(
    "tr",
    { "data-key": row.key, "aria-current": row.key && "false" },
    el("th", { scope: "row" }, swatch, name, sub(row.note)),
    row.none ? el("td", { colspan: heads.length - 1 }, row.none) : cells,
  );
}

// The selected setting; `watch` goes to its episode where there is one.
function cardOf(card, watch) {
  const facts = Object.entries(card.facts).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
  return [
    el("h4", {}, el("i", { class: "swatch", colour: card.colour }), card.name),
    card.note && el("p", { class: "own" }, "★ ", card.note),
    el("dl", {}, facts),
    exportOf(card.export),
    watch
      ? el("button", { type: "button", onclick: watch }, "Watch an episode")
      : el("p", { class: "none" }, "No episode was recorded at this setting."),
  ];
}

// The command that exports what is selected, and a button that copies it.
function exportOf(command) {
  const code = el("code", {}, command);
  const status = el("span", { class: "hidden", role: "status" });
  const copy = async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(command);
      status.textContent = button.textContent = "Copied";
    } catch {
      status.textContent = button.textContent = "Selected: copy it with the keyboard";
    }
  };
  const button = el("button", { type: "button", onclick: copy }, "Copy");
  return el("div", { class: "export" }, el("p", {}, "Export it as C, from where this report was made:"), code, button, status);
}

function figurePanel(figure, options) {
  if (!figure?.charts) return figure && panel(figure);
  const drawn = figure.charts.map((chart) => chartElement(chart, options));
  return panel(figure, legend(figure.charts), drawn.length > 1 ? el("div", { class: "pair" }, drawn) : drawn);
}

function frontierPanel(run, selection) {
  const node = figurePanel(run.figures.frontier, { height: 400, select: selection.choose });
  const chart = node.querySelector(".chart");
  if (!chart) return node;
  const none = el("p", { class: "none" }, "Select a point to see what it scores and costs.");
  const card = el("div", { class: "card", "aria-live": "polite" }, none);
  node.append(el("div", { class: "frontier" }, chart, card));
  let selected = null;
  const press = () => {
    for (const dot of chart.querySelectorAll(".dot[aria-pressed]"))
      dot.setAttribute("aria-pressed", dot.dataset.key === selected);
  };
  new MutationObserver(press).observe(chart, { childList: true }); // it is drawn anew when the width changes
  selection.listen((key) => {
    selected = key;
    press();
    const played = run.plays.some((play) => play.key === key);
    card.replaceChildren(...cardOf(run.cards[key], played && (() => selection.watch())).filter(Boolean));
  });
  return node;
}

function filesPanel(run) {
  const json = (value) => el("pre", { tabindex: 0 }, JSON.stringify(value, null, 2));
  const fold = (name, content) => el("details", {}, el("summary", {}, name), content);
  const none = el("p", { class: "none" }, "config.json says nothing about it.");
  return panel(
    { title: "Configuration and provenance" },
    fold("Configuration", json(run.config)),
    fold("Provenance: versions, machine, commit", run.provenance ? json(run.provenance) : none),
  );
}

function noticesOf(notices) {
  const list = el("ul", {}, notices.map((text) => el("li", {}, withCode(text))));
  return notices.length ? el("div", { class: "notice", role: "note" }, "What is missing here:", list) : null;
}

function cautionsOf(cautions) {
  const list = el("ul", {}, cautions.map((text) => el("li", {}, withCode(text))));
  return cautions.length ? el("div", { class: "notice", role: "note" }, el("b", {}, "Too little data to be sure."), list) : null;
}

function section(run, place, alone) {
  run.id = place;
  const selection = makeSelection();
  const { curves, scatter, coefficients } = run.figures;
  const title = el("h2", { id: `title-${place}`, class: alone && "hidden" }, run.task);
  const node = el(
    "section",
    { class: alone ? "run alone" : "run", id: `run-${place}`, "aria-labelledby": `title-${place}` },
    el("header", {}, title, el("p", { class: "facts" }, run.facts, el("code", {}, run.name))),
    noticesOf(run.notices),
    cautionsOf(run.cautions),
    tilesOf(run.tiles),
    tablePanel(run.summary, "summary", selection),
    frontierPanel(run, selection),
    playerPanel(run, selection),
    el("div", { class: "pair" }, figurePanel(curves), figurePanel(scatter)),
    figurePanel(coefficients, { height: 280 }),
    filesPanel(run),
  );
  const first = run.plays.find((play) => play.first);
  if (first?.key) selection.choose(first.key);
  return node;
}

function comparison({ table, figures }) {
  return el(
    "section",
    { class: "run", id: "comparison" },
    el("header", {}, el("h2", {}, "All runs together")),
    tablePanel(table, ""),
    figures.map((figure) => figurePanel(figure, { height: 300 })),
  );
}

function themeButton() {
  const button = document.getElementById("theme"),
    root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const name = () => (button.textContent = dark() ? "Light" : "Dark");
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    name();
  });
  system.addEventListener("change", name);
  name();
}

function boot() {
  const { runs, comparison: together } = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main"),
    several = runs.length > 1;
  themeButton();
  if (several) {
    const repeated = (run) => runs.filter((other) => other.task === run.task).length > 1;
    const links = runs.map((run, i) => el("a", { href: `#run-${i}` }, repeated(run) ? run.name : run.task));
    document.getElementById("places").append(el("a", { href: "#comparison" }, "All runs"), ...links);
    main.append(comparison(together));
  }
  main.append(...runs.map((run, place) => section(run, place, !several)));
}

boot();
