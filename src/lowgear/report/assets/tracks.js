// The rows of the player: described charts over the steps of an episode, with a cursor, an axis and a window that zooms.
const GEARS = 26; // pixels of the gears' row; picks stand below

function makeTracks(charts) {
  const count = charts[0].x.high;
  const cursor = el("i", { "data-step": 0 });
  const plots = charts.filter((chart) => !chart.bars).length;
  const height = plots <= 3 ? 84 : plots <= 5 ? 60 : 46;
  const rows = charts.map((chart) => (chart.bars ? gearTrack(chart) : lineTrack(chart, height)));
  const axis = stepAxis();
  const shade = el("div", { class: "cursor" }, cursor);
  const node = el("div", { class: "tracks" }, [...rows, axis].map((row) => row.node), shade);
  let [start, span, held] = [0, count, false];
  const draw = () => {
    const width = shade.clientWidth;
    if (width) for (const row of [...rows, axis]) row.draw(start, span, width);
  };
  new ResizeObserver(draw).observe(shade);
  const move = (step) => {
    const wanted = Math.max(0, Math.min(count - span, Math.round(step - span / 2)));
    if (!held && wanted !== start) {
      start = wanted;
      draw();
    }
    cursor.style.left = `${Math.max(0, Math.min(100, ((step + 0.5 - start) / span) * 100))}%`;
    cursor.dataset.step = step;
  };
  const zoom = (steps) => ([span, start] = [steps, -1]);
  const drag = (go) => {
    const at = (event) => {
      const box = shade.getBoundingClientRect();
      go(start + ((event.clientX - box.left) / box.width) * span - 0.5);
    };
    // While the pointer is down the view stands still, else it would run away from under it.
    node.addEventListener("pointerdown", (event) => {
      node.setPointerCapture(event.pointerId);
      held = true;
      at(event);
    });
    node.addEventListener("pointermove", (event) => held && at(event));
    for (const name of ["pointerup", "pointercancel"]) node.addEventListener(name, () => (held = false));
  };
  return { node, move, drag, zoom };
}

function trackRow(kind, label, ...content) {
  return el("div", { class: `track ${kind}` }, el("span", {}, label), content);
}

// Steps under the window.
function stepAxis() {
  const shape = svg("svg", { height: 20, "aria-hidden": "true" });
  const draw = (start, span, width) => {
    const x = (step) => ((step - start) / span) * width;
    const ticks = linearTicks(start, start + span, width / 80).filter(Number.isInteger);
    const edge = (px) => (px < 14 ? "start" : px > width - 14 ? "end" : "middle");
    shape.setAttribute("viewBox", `0 0 ${width} 20`);
    shape.replaceChildren(
      svg("path", { d: `M0 0.5H${width}${ticks.map((tick) => `M${x(tick)} 0V5`).join("")}`, class: "axis" }),
      ...ticks.map((tick) =>
        svg("text", { x: x(tick), y: 17, "text-anchor": edge(x(tick)) }, tick.toLocaleString("en-GB")),
      ),
    );
  };
  return { node: trackRow("steps", "step", shape), draw };
}

// Drawn for the pixels that there are: a column that several steps share shows the share of each gear, not a blend.
function gearTrack({ bars, marks = [], y }) {
  const shape = svg("svg", { height: GEARS + 8, "aria-hidden": "true", "shape-rendering": "crispEdges" });
  const draw = (start, span, width) => {
    shape.setAttribute("viewBox", `0 0 ${width} ${GEARS + 8}`);
    const wide = width / span >= 2;
    shape.replaceChildren(
      ...(wide ? blocks(bars, start, span, width) : columns(bars, start, span, width)),
      svg("path", { d: picksOf(marks, start, span, width), class: "picks" }),
    );
  };
  return { node: trackRow("gears", y.label, shape), draw };
}

const block = (x, width, bottom, height, colour) =>
  svg("rect", { x, width, y: bottom - height, height, fill: themed(colour) });

function blocks(bars, start, span, width) {
  const x = (step) => Math.round(((step - start) / span) * width);
  return bars
    .filter(([from, to]) => to > start && from < start + span)
    .map(([from, to, share, colour]) => block(x(from), x(to) - x(from), GEARS, GEARS * share, colour));
}

// Shares within each column of a pixel, neighbours that are alike as one.
function columns(bars, start, span, width) {
  const shapes = [];
  let [place, before] = [0, null];
  const close = (end) => {
    let bottom = GEARS;
    for (const [colour, high] of before.parts) {
      shapes.push(block(before.at, end - before.at, bottom, high, colour));
      bottom -= high;
    }
  };
  for (let px = 0; px < width; px++) {
    const [from, to] = [start + (px / width) * span, start + ((px + 1) / width) * span];
    while (place < bars.length - 1 && bars[place][1] <= from) place++;
    const parts = new Map();
    for (let i = place; i < bars.length && bars[i][0] < to; i++) {
      const within = (Math.min(to, bars[i][1]) - Math.max(from, bars[i][0])) / (to - from);
      if (within > 0) parts.set(bars[i][3], (parts.get(bars[i][3]) ?? 0) + within * bars[i][2] * GEARS);
    }
    const sorted = [...parts].sort();
    const same = JSON.stringify(sorted);
    if (before?.same === same) continue;
    if (before) close(px);
    before = { at: px, parts: sorted, same };
  }
  if (before) close(width);
  return shapes;
}

// A tick for each pick, or where they are too near each other a tick as high as the picks of its pixels are many.
function picksOf(marks, start, span, width) {
  const [top, high] = [GEARS + 2, 6];
  const within = marks.filter((step) => step >= start && step < start + span);
  const x = (step) => Math.floor(((step - start) / span) * width);
  if (width / span >= 1.5) return within.map((step) => `M${x(step) + 0.5} ${top}v${high}`).join("");
  const counts = new Map();
  for (const step of within) counts.set(x(step) & ~1, (counts.get(x(step) & ~1) ?? 0) + 1);
  const most = (2 * span) / width;
  return [...counts].map(([px, n]) => `M${px + 0.5} ${top}v${(high * Math.min(1, n / most)).toFixed(1)}`).join("");
}

// One unit across is one step, so that a zoom is a change of the view alone.
function lineTrack(chart, height) {
  const size = { viewBox: `0 0 ${chart.x.high} ${height}`, height, preserveAspectRatio: "none", "aria-hidden": "true" };
  const shape = svg("svg", size, lineShapes(chart, height));
  const ends = chart.y.ticks ?? [];
  const said = ends.length ? null : [chart.y.high, chart.y.low].map((end) => el("small", {}, number(end)));
  const node = trackRow("lines", chart.y.label, shape, said && el("div", { class: "ends", "aria-hidden": "true" }, said));
  const draw = (start, span) => shape.setAttribute("viewBox", `${start} 0 ${span} ${height}`);
  return { node, draw };
}

function lineShapes(chart, height) {
  const y = scale(chart.y, height, 0);
  const line = (series, from, to) => {
    const points = series.y.slice(from, to).map((value, i) => `${from + i + 0.5} ${y(value).toFixed(2)}`);
    return points.length > 1 ? `M${points.join("L")}` : `M${points[0]}h0.01`; // one step has no line to show
  };
  const path = (series, d, look) => svg("path", { d, stroke: themed(series.style[0]), ...look });
  const solid = { "stroke-width": 1.9, "stroke-linecap": "round", "stroke-linejoin": "round" };
  const spans = (series) => (series.spans ?? [[0]]).map((span) => line(series, ...span)).join("");
  const zero = chart.y.low <= 0 && chart.y.high >= 0;
  return [
    zero && svg("path", { d: `M0 ${y(0)}H${chart.x.high}`, stroke: "var(--line)" }),
    ...chart.series.map((series) => series.spans && path(series, line(series, 0), { opacity: 0.45 })),
    ...chart.series.map((series) => path(series, spans(series), solid)),
  ];
}
