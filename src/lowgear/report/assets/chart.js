// Draws a described chart: axes, series and a tooltip; anew whenever the width changes, so letters keep their size.

const FORMATS = {
  number: (value) => plain(value.toLocaleString("en-GB", { maximumSignificantDigits: 6 })),
  percent: (value) => plain(`${Number((100 * value).toPrecision(4))}%`),
  steps: (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : String(value)),
};
const format = (axis, value) => FORMATS[axis.format ?? "number"](value);
// A value under the pointer has more digits than a tick.
function say(axis, value) {
  if (axis.format === "percent") return percent(value);
  return axis.format === "steps" ? steps(value) : axis.log || axis.knee ? short(value) : number(value);
}

function linearTicks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw * 0.999);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step || 0);
  return ticks;
}

function logTicks(low, high, count) {
  const powers = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) powers.push(10 ** power);
  const choices = [[1, 2, 3, 5], [1, 2, 5], [1, 3], [1]].map((factors) =>
    powers.flatMap((power) => factors.map((factor) => factor * power)).filter((tick) => tick >= low && tick <= high),
  );
  return choices.find((ticks) => ticks.length <= count) ?? choices[3];
}

const ticksOf = (axis, count, factor = 1) =>
  axis.ticks ?? (axis.log ? logTicks : linearTicks)(axis.low * factor, axis.high * factor, count);

function scale(axis, from, to) {
  const of = axis.log ? Math.log : axis.knee ? (value) => Math.asinh(value / axis.knee) : Number;
  return (value) => from + ((of(value) - of(axis.low)) / (of(axis.high) - of(axis.low))) * (to - from);
}

// options: height, and select(key) where points can be selected. Returns the element.
function chartElement(chart, options = {}) {
  const tip = el("div", { class: "tip", role: "status", hidden: true });
  const host = el("div", { class: "chart" }, tip);
  let drawn = 0;
  new ResizeObserver(() => {
    const width = host.clientWidth;
    if (!width || width === drawn) return;
    drawn = width;
    const focused = host.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    host.querySelector("svg")?.remove();
    host.prepend(drawChart(chart, width, options, (...place) => showTip(tip, host, ...place)));
    if (focused) host.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }).observe(host);
  return host;
}

// Shows lines at a place, or nothing without any.
function showTip(tip, host, px, py, lines) {
  tip.hidden = !lines;
  if (!lines) return;
  tip.replaceChildren(...lines.map((line, i) => el("div", {}, i ? line : el("b", {}, line))));
  const rightmost = Math.max(host.clientWidth - tip.offsetWidth, 0),
    above = py - tip.offsetHeight - 14;
  tip.style.left = `${Math.min(Math.max(px - tip.offsetWidth / 2, 0), rightmost)}px`;
  tip.style.top = `${above < -40 ? py + 16 : above}px`;
}

function drawChart(chart, width, { height = 320, select }, tip) {
  const [top, right] = chart.bins ? [56, 66] : [chart.top ? 44 : 12, 14];
  const box = { left: 62, right: width - right, top, bottom: height - 46 };
  const plot = { box, x: scale(chart.x, box.left, box.right), y: scale(chart.y, box.bottom, box.top), tip, select };
  const named = chart.series.some((series) => series.hover);
  plot.root = svg("svg", {
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: chart.series.some((series) => series.keys) ? "group" : "img",
    "aria-label": `${chart.y.label} against ${chart.x.label}`,
  });
  drawAxes(plot, chart, width, height);
  for (const series of chart.series) drawSeries(plot, series);
  for (const series of chart.series) drawPoints(plot, series);
  if (chart.bins) drawHistograms(plot, chart);
  if (!named) drawCrosshair(plot, chart);
  return plot.root;
}

function drawAxes({ root, box, x, y }, chart, width, height) {
  const text = (px, py, anchor, said) => svg("text", { x: px, y: py, "text-anchor": anchor }, said);
  const middle = width < 480 ? width / 2 : (box.left + box.right) / 2;
  const room = (box.right - box.left) / 72;
  for (const tick of ticksOf(chart.y, (box.bottom - box.top) / 52)) {
    root.append(svg("path", { class: "grid", d: `M${box.left} ${y(tick)}H${box.right}` }));
    root.append(text(box.left - 8, y(tick) + 4, "end", format(chart.y, tick)));
  }
  for (const tick of ticksOf(chart.x, room)) {
    root.append(svg("path", { class: "grid", d: `M${x(tick)} ${box.top}V${box.bottom}` }));
    root.append(text(x(tick), box.bottom + 18, "middle", format(chart.x, tick)));
  }
  root.append(svg("path", { class: "axis", d: `M${box.left} ${box.bottom}H${box.right}` }));
  root.append(text(middle, height - 6, "middle", chart.x.label));
  const up = `translate(11 ${(box.top + box.bottom) / 2}) rotate(-90)`;
  root.append(svg("text", { transform: up, "text-anchor": "middle" }, chart.y.label));
  if (!chart.top) return;
  const [label, factor] = chart.top;
  root.append(svg("path", { class: "axis", d: `M${box.left} ${box.top}H${box.right}` }));
  root.append(text(middle, 12, "middle", label));
  for (const tick of ticksOf(chart.x, room, factor))
    root.append(text(x(tick / factor), box.top - 8, "middle", FORMATS.percent(tick)));
}

const pathOf = (points) => points.map(([px, py], i) => `${i ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");

// Bands, bars and lines.
function drawSeries({ root, box, x, y }, series) {
  const colour = themed(series.style[0]);
  const line = (heights) => heights.map((value, i) => [x(series.x[i]), y(value)]);
  const [low, high] = series.interval ?? [];
  if (low && !series.bars) {
    const around = [...line(high), ...line(low).reverse()];
    root.append(svg("path", { d: `${pathOf(around)}Z`, fill: colour, opacity: 0.14 }));
  } else if (low) {
    const bars = series.x.map((at, i) => `M${x(at)} ${y(low[i])}V${y(high[i])}`);
    const within = (at) => Math.min(box.right, Math.max(box.left, x(Math.max(at, Number.MIN_VALUE))));
    const across = (series.x_error ?? []).map(
      (error, i) => `M${within(series.x[i] - error)} ${y(series.y[i])}H${within(series.x[i] + error)}`,
    );
    const opacity = 0.7 * (series.opacity ?? 1);
    root.append(svg("path", { d: [...bars, ...across].join(""), stroke: colour, opacity }));
  }
  if (series.level) {
    const level = { d: `M${box.left} ${y(series.y[0])}H${box.right}`, stroke: colour, "stroke-dasharray": "5 3" };
    root.append(svg("path", level));
  }
  if (series.line) root.append(svg("path", { d: pathOf(line(series.y)), ...strokeOf(series) }));
}

const radius = (series) => (series.style[2] ?? 5) * (series.keys || series.hollow ? 1 : 0.7);

// Points that can be selected or reached with the keyboard are groups with a halo; the others are marks.
function drawPoints(plot, series) {
  if (!series.style[1]) return;
  series.y.forEach((value, i) => {
    const px = plot.x(series.x[i]),
      py = plot.y(value),
      says = series.hover?.[i],
      key = series.keys?.[i];
    const edge = series.opacity ? {} : { stroke: "var(--panel)", "stroke-width": 1.2 };
    const point = markerOf(series, px, py, radius(series), edge);
    const node = key || series.hollow ? focusable(series, point, px, py, says, key) : point;
    if (says) {
      for (const name of ["pointerenter", "focus"]) node.addEventListener(name, () => plot.tip(px, py, says));
      for (const name of ["pointerleave", "blur"]) node.addEventListener(name, () => plot.tip());
    }
    if (key) {
      node.addEventListener("click", () => plot.select(key));
      node.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        plot.select(key);
      });
    }
    plot.root.append(node);
  });
}

function focusable(series, point, cx, cy, says, key) {
  const role = key ? { role: "button", "aria-pressed": "false" } : { role: "img" };
  const about = { "aria-label": says.join(", "), "data-key": key ?? series.label, colour: series.style[0] };
  return svg(
    "g",
    { class: "dot", tabindex: 0, ...role, ...about },
    svg("circle", { cx, cy, r: 14, fill: "transparent" }),
    point,
    svg("circle", { class: "halo", cx, cy, r: 11 }),
  );
}

function drawHistograms({ root, box, x, y }, { series, bins }) {
  const most = [0, 1].map((side) => Math.max(...series.flatMap((one) => one.counts[side])));
  for (const one of series) {
    const look = { fill: themed(one.style[0]), opacity: one.opacity };
    one.counts[0].forEach((count, i) => {
      const [left, width, height] = [x(bins[0][i]), x(bins[0][i + 1]) - x(bins[0][i]) - 1, (44 * count) / most[0]];
      if (count) root.append(svg("rect", { x: left, width, y: box.top - 6 - height, height, ...look }));
    });
    one.counts[1].forEach((count, i) => {
      const [bottom, top, width] = [y(bins[1][i]), y(bins[1][i + 1]), (50 * count) / most[1]];
      if (count) root.append(svg("rect", { x: box.right + 6, width, y: top, height: bottom - top - 1, ...look }));
    });
  }
}

// Where points do not speak for themselves, the pointer shows all series at the nearest place.
function drawCrosshair({ root, box, x, tip }, chart) {
  const rule = svg("path", { stroke: "var(--soft)", "stroke-dasharray": "2 3" });
  const size = { x: box.left, y: box.top, width: box.right - box.left, height: box.bottom - box.top };
  const field = svg("rect", { ...size, fill: "transparent" });
  const xs = [...new Set(chart.series.flatMap((series) => series.x))];
  field.addEventListener("pointermove", (event) => {
    const at = event.clientX - root.getBoundingClientRect().left;
    const nearest = xs.reduce((a, b) => (Math.abs(x(b) - at) < Math.abs(x(a) - at) ? b : a));
    const said = chart.series.flatMap((series) => {
      const i = series.x.indexOf(nearest);
      return i < 0 ? [] : `${series.label}: ${say(chart.y, series.y[i])}`;
    });
    rule.setAttribute("d", `M${x(nearest)} ${box.top}V${box.bottom}`);
    tip(x(nearest), box.top + 20, [(chart.x.name ?? "{}").replace("{}", say(chart.x, nearest)), ...said]);
  });
  field.addEventListener("pointerleave", () => {
    rule.setAttribute("d", "");
    tip();
  });
  root.append(rule, field);
}
