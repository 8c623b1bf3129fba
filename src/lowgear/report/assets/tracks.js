// The rows of the player: described charts over the steps of an episode, with a cursor and a window that zooms.

function makeTracks(charts) {
  const count = charts[0].x.high;
  const cursor = el("i", { "data-step": 0 });
  const plots = charts.filter((chart) => !chart.bars).length;
  const rows = charts.map((chart) => track(chart, chart.bars ? 33 : plots <= 2 ? 96 : plots <= 4 ? 64 : 46));
  const node = el("div", { class: "tracks" }, rows, el("div", { class: "cursor" }, cursor));
  let [start, span, held] = [0, count, false];
  const move = (step) => {
    const wanted = Math.max(0, Math.min(count - span, Math.round(step - span / 2)));
    if (!held && wanted !== start) {
      start = wanted;
      for (const shape of node.querySelectorAll("svg"))
        shape.setAttribute("viewBox", `${start} 0 ${span} ${shape.getAttribute("height")}`);
    }
    cursor.style.left = `${Math.max(0, Math.min(100, ((step + 0.5 - start) / span) * 100))}%`;
    cursor.dataset.step = step;
  };
  const zoom = (steps) => ([span, start] = [steps, -1]);
  const drag = (go) => {
    const at = (event) => {
      const box = node.querySelector(".cursor").getBoundingClientRect();
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

// One unit across is one step, so that a zoom is a change of the view alone.
function track(chart, height) {
  const size = { viewBox: `0 0 ${chart.x.high} ${height}`, height, preserveAspectRatio: "none", "aria-hidden": "true" };
  return el(
    "div",
    { class: chart.bars ? "track gears" : "track" },
    el("span", {}, chart.y.label),
    svg("svg", size, chart.bars ? barShapes(chart) : lineShapes(chart, height)),
  );
}

function barShapes({ bars, marks = [] }) {
  const ticks = marks.map((step) => `M${step} 28V33`).join("");
  return [
    ...bars.map(([start, end, share, colour]) =>
      svg("rect", { x: start, width: end - start, y: 26 * (1 - share), height: 26 * share, fill: themed(colour) }),
    ),
    svg("path", { d: ticks, stroke: "var(--soft)", "stroke-width": 0.8, opacity: 0.7 }),
  ];
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
  return [
    svg("path", { d: `M0 ${y(0)}H${chart.x.high}`, stroke: "var(--line)" }),
    ...chart.series.map((series) => series.spans && path(series, line(series, 0), { opacity: 0.45 })),
    ...chart.series.map((series) => path(series, spans(series), solid)),
  ];
}
