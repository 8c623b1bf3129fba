// The frontier: every setting as a point; hover or focus tells what it is, a click selects it.
const LOG_FROM = 5;
const keyOf = (setting) => `${setting.variant} ${setting.coefficient} ${setting.dial}`;
const nameOf = (setting) => [setting.variant, lambda(setting)].filter(Boolean).join(", ");

function frontierPanel(run, selection) {
  const title = "Return against cost: the frontier";
  if (!run.frontier)
    return panel(title, null, el("p", { class: "none" }, "Nothing to draw: the run has no finite evaluation."));
  const large = run.frontier.large_flops;
  const cost = (flops) => (large ? flops / large : flops);
  const settings = run.settings;
  const paper = run.summary
    .map((row) => row)
    .find((row) => row.setting.variant === "asymmetric" && row.paper && row.paper.saved !== null);
  const costs = [
    ...settings.map((setting) => cost(setting.flops)),
    ...run.frontier.agents.flatMap((agent) => agent.points.map((point) => cost(point[0]))),
  ];
  if (paper) costs.push(1 - paper.paper.saved);
  const log = Math.max(...costs) / Math.min(...costs) > LOG_FROM;
  const heights = [
    ...settings.flatMap((s) => [s.mean, s.mean_low, s.mean_high]),
    ...run.frontier.agents.flatMap((agent) => agent.points.map((point) => point[1])),
  ];
  if (paper) heights.push(paper.paper.score[0]);
  const drawn = chart({
    label: `Frontier of ${run.score} against cost`,
    group: true,
    height: 390,
    x: {
      domain: extent(costs, 0.06, log),
      log,
      label: large ? "cost: share of the large gear's FLOPs" + (log ? " (log)" : "") : "FLOPs per step",
      format: (tick) => (large ? percentTick(tick) : steps(tick)),
    },
    y: { domain: scoreExtent(run, heights), label: run.score, format: (tick) => axisNumber(run.score)(tick) },
    draw: (plot) => drawFrontier(plot, run, cost, paper, selection),
  });
  const keys = settings.map((s) => ({
    label: s.dial ? `${s.variant} (dial)` : s.variant,
    colour: s.colour,
    marker: s.marker,
    line: s.dial,
  }));
  const unique = keys.filter((key, i) => keys.findIndex((other) => other.label === key.label) === i);
  if (paper) unique.push({ label: "paper's asymmetric", colour: "#0072b2", marker: "o", hollow: true });
  const card = el(
    "div",
    { class: "card", "aria-live": "polite" },
    el("p", { class: "none" }, "Select a point to see what it scores and costs."),
  );
  selection.listen((setting) => fillCard(card, run, setting, selection));
  const many = Math.max(...settings.map((setting) => setting.seeds));
  const bars = many > 1 ? " Bars: 95% bootstrap intervals over seeds; faint: each agent." : "";
  return panel(
    title,
    `Up is better, left is cheaper. Hover or tab to a point to see its setting, click or press Enter to select it.${bars}`,
    legend(unique),
    el("div", { class: "frontier" }, drawn, card),
  );
}

function drawFrontier(plot, run, cost, paper, selection) {
  for (const agent of run.frontier.agents) {
    const points = agent.points.map(([flops, value]) => [plot.x(cost(flops)), plot.y(value)]);
    const colour = themed(agent.colour);
    if (points.length > 1)
      plot.root.append(svg("path", { d: path(points), fill: "none", stroke: colour, opacity: 0.22 }));
    for (const [px, py] of points)
      plot.root.append(svg("circle", { cx: px, cy: py, r: 2, fill: colour, opacity: 0.32 }));
  }
  for (const variant of new Set(run.settings.filter((s) => s.dial).map((s) => s.variant))) {
    const own = run.settings.filter((s) => s.dial && s.variant === variant);
    const points = own.map((s) => [plot.x(cost(s.flops)), plot.y(s.mean)]);
    plot.root.append(
      svg("path", { d: path(points), fill: "none", stroke: themed(own[0].colour), "stroke-width": 2.2 }),
    );
  }
  if (paper) {
    const x = plot.x(1 - paper.paper.saved),
      y = plot.y(paper.paper.score[0]);
    const says = [
      "Paper, asymmetric",
      `${run.score} ${score(run, paper.paper.score[0])}`,
      `${percent(paper.paper.saved)} of FLOPs saved`,
    ];
    const dot = svg(
      "g",
      { class: "dot", tabindex: 0, role: "img", "aria-label": says.join(", "), "data-key": "paper" },
      svg("circle", { cx: x, cy: y, r: 6, fill: "var(--panel)", stroke: "var(--blue)", "stroke-width": 1.8 }),
      svg("circle", { class: "halo", cx: x, cy: y, r: 11 }),
    );
    hover(dot, plot, x, y, says);
    plot.root.append(dot);
  }
  for (const setting of run.settings) plot.root.append(settingDot(plot, run, setting, cost, selection));
  selection.listen((chosen) => {
    for (const dot of plot.root.querySelectorAll(".dot[aria-pressed]"))
      dot.setAttribute("aria-pressed", dot.dataset.key === keyOf(chosen));
  });
}

function settingDot(plot, run, setting, cost, selection) {
  const x = plot.x(cost(setting.flops)),
    y = plot.y(setting.mean),
    colour = themed(setting.colour);
  const says = [
    nameOf(setting),
    `${run.score} ${scorePair(run, setting.mean, setting.std)}`,
    `${percent(setting.saved)} of FLOPs saved`,
    `${percent(setting.large_share)} of steps in the large gear`,
  ];
  const dot = svg("g", {
    class: "dot",
    tabindex: 0,
    role: "button",
    "aria-pressed": "false",
    "aria-label": says.join(", "),
    "data-key": keyOf(setting),
    color: colour,
  });
  dot.style.color = colour;
  if (setting.mean_high > setting.mean_low)
    dot.append(
      svg("line", {
        x1: x,
        x2: x,
        y1: plot.y(setting.mean_low),
        y2: plot.y(setting.mean_high),
        stroke: colour,
        "stroke-width": 1.4,
        opacity: 0.75,
      }),
    );
  dot.append(svg("circle", { cx: x, cy: y, r: 14, fill: "transparent" }));
  dot.append(mark(setting.marker, x, y, 5.5, { fill: colour, stroke: "var(--panel)", "stroke-width": 1.2 }));
  dot.append(svg("circle", { class: "halo", cx: x, cy: y, r: 11 }));
  hover(dot, plot, x, y, says);
  dot.addEventListener("click", () => selection.choose(setting));
  dot.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    selection.choose(setting);
  });
  return dot;
}

function hover(dot, plot, x, y, says) {
  for (const name of ["pointerenter", "focus"]) dot.addEventListener(name, () => plot.show(x, y, says));
  for (const name of ["pointerleave", "blur"]) dot.addEventListener(name, plot.hide);
}

function fillCard(card, run, setting, selection) {
  const facts = [
    [`${run.score}, mean ± sd`, scorePair(run, setting.mean, setting.std)],
    [
      "95% interval",
      setting.seeds > 1 ? `${score(run, setting.mean_low)} to ${score(run, setting.mean_high)}` : "one seed",
    ],
    ["best seed", score(run, setting.best)],
    ["large gear", percent(setting.large_share)],
    ["FLOPs a step", number(setting.flops, 0)],
    ["FLOPs saved", percent(setting.saved)],
    ["steps a pick", setting.period === null ? "no picks" : number(setting.period, 1)],
    ["seeds", String(setting.seeds)],
  ];
  const title = el("h4", {}, el("i", { class: "swatch" }), nameOf(setting));
  title.firstChild.style.color = themed(setting.colour);
  const play = selection.playOf(setting);
  card.replaceChildren(
    title,
    el(
      "dl",
      {},
      facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]),
    ),
    play
      ? el("button", { type: "button", onclick: () => selection.watch() }, "Watch an episode")
      : el("p", { class: "none" }, "No episode was recorded at this setting."),
  );
}
