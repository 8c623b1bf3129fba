// Scores and costs, as Python has written them.

function tilesOf(tiles) {
  if (!tiles) return null;
  const tile = ([name, big, small]) =>
    el(
      "div",
      { class: "tile" },
      el("dt", {}, name),
      el("dd", { class: "big" }, big),
      el("dd", { class: "small" }, small),
    );
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
  return el(
    "tr",
    { "data-key": row.key, "aria-current": row.key && "false" },
    el(
      "th",
      { scope: "row" },
      row.colour && el("i", { class: "swatch", colour: row.colour }),
      row.link ? el("a", { href: row.link }, row.name) : row.name,
      sub(row.note),
    ),
    row.none ? el("td", { colspan: heads.length - 1 }, row.none) : cells,
  );
}

// The selected setting; `watch` goes to its episode where there is one.
function cardOf(card, watch) {
  const facts = Object.entries(card.facts).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]);
  return [
    el("h4", {}, el("i", { class: "swatch", colour: card.colour }), card.name),
    el("dl", {}, facts),
    watch
      ? el("button", { type: "button", onclick: watch }, "Watch an episode")
      : el("p", { class: "none" }, "No episode was recorded at this setting."),
  ];
}
