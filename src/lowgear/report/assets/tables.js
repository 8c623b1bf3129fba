// Scores and costs in words and rows, ours beside the paper's.

function tiles(run) {
  const rows = run.summary.filter((row) => row.setting.variant === "asymmetric");
  const row = rows[rows.length - 1];
  if (!row) return null;
  const ours = row.setting,
    paper = row.paper;
  const large = run.summary.find((one) => one.setting.variant === "large-only");
  const kept = large && large.setting.mean > 0 ? ours.mean / large.setting.mean : null;
  const cells = [
    [run.score, score(run, ours.mean), paper ? `paper ${score(run, paper.score[0])}` : `± ${score(run, ours.std)}`],
    kept === null
      ? ["best seed", score(run, ours.best), run.score]
      : ["of large-only's return", percent(kept), `large-only: ${score(run, large.setting.mean)}`],
    [
      "FLOPs saved",
      percent(ours.saved),
      paper && paper.saved !== null ? `paper ${percent(paper.saved)}` : "against the large gear",
    ],
    ["steps in the large gear", percent(ours.large_share), paper ? `paper ${percent(paper.large_share)}` : ""],
  ];
  const at = [ours.pays && `at ${lambda(ours)}`, row.note && `(${row.note})`].filter(Boolean).join(" ");
  return [
    el("p", { class: "lead" }, `Asymmetric agents ${at}`.trim()),
    el(
      "dl",
      { class: "tiles" },
      cells.map(([name, big, small]) =>
        el(
          "div",
          { class: "tile" },
          el("dt", {}, name),
          el("dd", { class: "big" }, big),
          el("dd", { class: "small" }, small),
        ),
      ),
    ),
  ];
}

function tableOf(title, kind, heads, rows) {
  const head = el(
    "tr",
    {},
    heads.map((text) => el("th", { scope: "col" }, text)),
  );
  const table = el(
    "table",
    { class: kind },
    el("caption", { class: "hidden" }, title),
    el("thead", {}, head),
    el("tbody", {}, rows),
  );
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title }, table);
}

// A number with the paper's below it: null where the paper prints none, undefined where nothing is to be said.
function cellOf(label, ours, paper) {
  const below = paper === undefined ? null : el("span", { class: "sub" }, paper === null ? "–" : `paper ${paper}`);
  return el("td", { "data-label": label }, ours, below);
}

const paperShare = (paper, key) => (paper && paper[key] !== null ? percent(paper[key]) : null);

function summaryPanel(run, selection) {
  const title = "Ours beside the paper's";
  if (!run.summary.length)
    return panel(title, null, el("p", { class: "none" }, "No table: the run has no finite evaluation."));
  const published = run.summary.some((row) => row.paper);
  const heads = ["controller", `${run.score}, mean ± sd`, "large gear", "FLOPs saved", "seeds", "steps"];
  const rows = run.summary.map((row) => summaryRow(run, row, heads, published));
  selection.listen((chosen) => {
    for (const row of rows) row.setAttribute("aria-current", row.dataset.key === keyOf(chosen));
  });
  const hint = [
    published && "Ours above, the paper's below.",
    `${run.episodes_each} episodes for each agent; mean and standard deviation over seeds.`,
    run.summary.some((row) => row.note) &&
      "Settings are chosen by the same scores that are shown, which flatters them a little.",
  ].filter(Boolean);
  const table = tableOf(`Scores and costs on ${run.task}`, "summary", heads, rows);
  return panel(published ? title : "Scores and costs", hint.join(" "), table);
}

function summaryRow(run, row, heads, published) {
  const { setting: ours, paper } = row;
  const said = (value) => (published ? value : undefined);
  const note = [lambda(ours), row.note].filter(Boolean).join(", ");
  const name = el(
    "th",
    { scope: "row" },
    el("i", { class: "swatch" }),
    ours.variant,
    el("span", { class: "sub" }, note),
  );
  name.firstChild.style.color = themed(ours.colour);
  return el(
    "tr",
    { "data-key": keyOf(ours), "aria-current": "false" },
    name,
    cellOf(heads[1], scorePair(run, ours.mean, ours.std), said(paper && scorePair(run, ...paper.score))),
    cellOf(heads[2], percent(ours.large_share), said(paperShare(paper, "large_share"))),
    cellOf(heads[3], percent(ours.saved), said(paperShare(paper, "saved"))),
    cellOf(heads[4], String(ours.seeds), paper ? "5" : undefined),
    cellOf(heads[5], steps(run.steps), paper ? steps(run.paper_steps) : undefined),
  );
}

const COMPARED = ["task", "small-only", "large-only", "asymmetric", "large gear", "FLOPs saved"];

function comparison(data) {
  const title = "Means over seeds";
  const hint = "Asymmetric agents at the cheapest setting that keeps 95% of their best score. Below: the paper's.";
  const periods = data.periods.map((sweep) =>
    panel(
      `What the period does: ${sweep.label}`,
      "Runs whose masters have one period each, at their best coefficient.",
      sweepPair(
        sweep,
        [{ label: "asymmetric", colour: "#0072b2", x: sweep.x, settings: sweep.settings }],
        { label: "period: steps that a pick holds", format: short },
        (value) => `period ${value}`,
      ),
    ),
  );
  return el(
    "section",
    { class: "run", id: "comparison" },
    el("header", {}, el("h2", {}, "All runs together")),
    panel(title, hint, tableOf("All runs", "", COMPARED, data.runs.map(comparisonRow))),
    data.profiles.length ? profilesPanel(data.profiles) : null,
    periods,
  );
}

function comparisonRow(run, number) {
  const last = (variant) => run.summary.findLast((row) => row.setting.variant === variant);
  const place = el("a", { href: `#run-${number}` }, run.task);
  const name = el("th", { scope: "row" }, place, el("span", { class: "sub" }, run.name));
  if (!run.summary.length) return el("tr", {}, name, el("td", { colspan: 5 }, "not evaluated"));
  const cell = (column, row, ours, paper) =>
    row
      ? cellOf(COMPARED[column], ours(row.setting), row.paper ? paper(row.paper) : null)
      : cellOf(COMPARED[column], "–", null);
  const scores = ["small-only", "large-only", "asymmetric"].map((variant, i) =>
    cell(
      i + 1,
      last(variant),
      (ours) => score(run, ours.mean),
      (paper) => score(run, paper.score[0]),
    ),
  );
  const row = last("asymmetric");
  const shares = ["large_share", "saved"].map((key, i) =>
    cell(
      i + 4,
      row,
      (ours) => percent(ours[key]),
      (paper) => paperShare(paper, key),
    ),
  );
  return el("tr", {}, name, scores, shares);
}
