// Learning curves, sweeps and profiles.
const DASHES = [null, "7 4", "2 3", "8 3 2 3"];

function dashes(lines) {
  const counts = {};
  return lines.map((line) => DASHES[(counts[line.variant] = (counts[line.variant] ?? -1) + 1) % DASHES.length]);
}

function curvesPanel(run) {
  const lines = run.curves.lines;
  if (!lines.length)
    return panel(
      "Learning curves",
      null,
      el("p", { class: "none" }, "No learning curves: metrics.jsonl has fewer than two points."),
    );
  const dash = dashes(lines);
  const seeds = Math.max(...lines.map((line) => line.seeds));
  const drawn = chart({
    label: `Learning curves: ${run.curves.score} against steps`,
    height: 310,
    x: {
      domain: [0, Math.max(...lines.flatMap((line) => line.steps))],
      label: "environment steps of each agent",
      format: (tick) => (tick ? steps(tick) : "0"),
    },
    y: {
      domain: scoreExtent(
        { score: run.curves.score },
        lines.flatMap((line) => [...line.low, ...line.high]),
      ),
      label: run.curves.score,
      format: axisNumber(run.curves.score),
    },
    draw: (plot) =>
      drawLines(
        plot,
        lines.map((line, i) => ({ ...line, x: line.steps, y: line.middle, dash: dash[i] })),
        (value) => `${steps(value)} steps`,
        run,
      ),
  });
  const bands = seeds > 1 ? " with 95% bootstrap intervals" : "";
  return panel(
    "Learning curves",
    `Interquartile mean over seeds${bands}, from ${run.curves.source}.`,
    legend(lines.map((line, i) => ({ label: line.label, colour: line.colour, line: true, dash: dash[i] }))),
    drawn,
  );
}

const axisNumber = (kind) => (tick) =>
  kind === "success rate" ? percentTick(tick) : number(tick, Math.abs(tick) >= 10 || Number.isInteger(tick) ? 0 : 2);

// lines: {label, colour, x, y, low, high, dash}; the pointer shows all of them where it stands.
function drawLines(plot, lines, name, run) {
  for (const line of lines) {
    if (line.low && line.high.some((value, i) => value > line.low[i]))
      plot.root.append(band(plot, line.x, line.low, line.high, themed(line.colour)));
  }
  for (const line of lines) {
    const points = line.x.map((value, i) => [plot.x(value), plot.y(line.y[i])]);
    plot.root.append(
      svg("path", {
        d: path(points),
        fill: "none",
        stroke: themed(line.colour),
        "stroke-width": 2,
        "stroke-dasharray": line.dash,
        "stroke-linejoin": "round",
      }),
    );
    if (points.length <= 12)
      for (const [px, py] of points)
        plot.root.append(svg("circle", { cx: px, cy: py, r: 3.2, fill: themed(line.colour), stroke: "var(--panel)" }));
  }
  const rule = svg("line", {
    y1: plot.box.top,
    y2: plot.box.bottom,
    stroke: "var(--soft)",
    "stroke-dasharray": "2 3",
    visibility: "hidden",
  });
  const field = svg("rect", {
    x: plot.box.left,
    y: plot.box.top,
    width: plot.box.right - plot.box.left,
    height: plot.box.bottom - plot.box.top,
    fill: "transparent",
  });
  field.addEventListener("pointermove", (event) => {
    const at = event.clientX - plot.root.getBoundingClientRect().left;
    const xs = [...new Set(lines.flatMap((line) => line.x))];
    const nearest = xs.reduce((a, b) => (Math.abs(plot.x(b) - at) < Math.abs(plot.x(a) - at) ? b : a));
    rule.setAttribute("x1", plot.x(nearest));
    rule.setAttribute("x2", plot.x(nearest));
    rule.setAttribute("visibility", "visible");
    const said = lines
      .filter((line) => line.x.includes(nearest))
      .map(
        (line) =>
          `${line.label}: ${run ? score({ score: run.curves.score }, line.y[line.x.indexOf(nearest)]) : percent(line.y[line.x.indexOf(nearest)], 0)}`,
      );
    plot.show(plot.x(nearest), plot.box.top + 20, [name(nearest), ...said]);
  });
  field.addEventListener("pointerleave", () => {
    rule.setAttribute("visibility", "hidden");
    plot.hide();
  });
  plot.root.append(rule, field);
}

function sweepPanel(run) {
  const paying = run.settings.filter((setting) => setting.pays && setting.coefficient > 0);
  const groups = Object.values(
    Object.groupBy(paying, (setting) => `${setting.variant}${setting.dial ? " (dial)" : ""}`),
  ).filter((group) => group.length > 1);
  if (!groups.length) return null;
  const lines = groups.map((group) => ({
    label: group[0].dial ? `${group[0].variant} (dial)` : group[0].variant,
    colour: group[0].colour,
    x: group.map((s) => s.coefficient),
    settings: group,
  }));
  const along = { label: "cost coefficient λ, log scale", log: true, format: short };
  const name = (value) => `λ ${short(value)}`;
  return panel(
    "What the cost coefficient does",
    "A higher λ makes the large gear dearer to the master.",
    legend(lines.map((line) => ({ label: line.label, colour: line.colour, line: true }))),
    sweepPair(run, lines, along, name),
  );
}

function sweepPair(run, lines, along, name) {
  const xs = lines.flatMap((line) => line.x);
  const x = { ...along, domain: extent(xs, 0.03, along.log) };
  const scores = chart({
    label: `${run.score} against ${along.label}`,
    height: 280,
    x,
    y: {
      domain: scoreExtent(
        run,
        lines.flatMap((line) => line.settings.flatMap((s) => [s.mean_low, s.mean_high, s.mean])),
      ),
      label: run.score,
      format: axisNumber(run.score),
    },
    draw: (plot) =>
      drawLines(
        plot,
        lines.map((line) => ({
          ...line,
          y: line.settings.map((s) => s.mean),
          low: line.settings.map((s) => s.mean_low),
          high: line.settings.map((s) => s.mean_high),
        })),
        name,
        { curves: { score: run.score } },
      ),
  });
  const shares = chart({
    label: `Share of the large gear against ${along.label}`,
    height: 280,
    x,
    y: {
      domain: [0, Math.max(0.05, ...lines.flatMap((line) => line.settings.map((s) => s.large_share))) * 1.07],
      label: "share of steps in the large gear",
      format: percentTick,
    },
    draw: (plot) =>
      drawLines(
        plot,
        lines.map((line) => ({ ...line, y: line.settings.map((s) => s.large_share) })),
        name,
        { curves: { score: "success rate" } },
      ),
  });
  return el("div", { class: "pair" }, scores, shares);
}

function profilesPanel(profiles) {
  const drawn = chart({
    label: "Performance profiles over tasks",
    height: 330,
    x: { domain: [0, 1.3], label: "scaled score τ (0: random, 1: large-only)", format: short },
    y: {
      domain: [0, 1.02],
      ticks: [0, 0.25, 0.5, 0.75, 1],
      label: "agents that score τ or more",
      format: (tick) => percent(tick, 0),
    },
    draw: (plot) =>
      drawLines(
        plot,
        profiles.map((one) => ({ ...one, label: one.variant, x: one.at, y: one.share })),
        (value) => `τ ${value.toFixed(2)}`,
        null,
      ),
  });
  return panel(
    "Performance profiles",
    `Over ${Math.max(...profiles.map((one) => one.tasks))} tasks, each counting alike; of a variant with several settings the one with the best mean. Bands: 95% bootstrap intervals, seeds drawn task by task.`,
    legend(profiles.map((one) => ({ label: one.variant, colour: one.colour, line: true }))),
    drawn,
  );
}
