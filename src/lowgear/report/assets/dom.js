// Builds elements and writes numbers. Strings only ever become text nodes or attributes, never markup.
const SVG = "http://www.w3.org/2000/svg";
const el = (name, attributes, ...children) => fill(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "colour") node.style.color = themed(value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// The colours that Python names, THEMED, as they are in the theme.
const themed = (colour) => (THEMED[colour] ? `var(${THEMED[colour]})` : colour);

const plain = (text) => text.replace(/^-/, "−");
const short = (value) => plain(value.toLocaleString("en-GB", { maximumSignificantDigits: 3, useGrouping: false }));
const percent = (share) => plain(`${(100 * share).toFixed(1)}%`);

function number(value, digits) {
  const size = Math.abs(value);
  const shown = digits ?? (size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3);
  return plain(value.toLocaleString("en-GB", { minimumFractionDigits: shown, maximumFractionDigits: shown }));
}

function steps(count) {
  if (count >= 1e6) return `${Number((count / 1e6).toPrecision(3))}M`;
  return count >= 1e4 ? `${Math.round(count / 1000)}k` : count.toLocaleString("en-GB");
}

// What stands between backticks is something to type.
const withCode = (text) => text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));

function panel({ title, hint, none }, ...children) {
  const content = none ? el("p", { class: "none" }, none) : children;
  return el("section", { class: "panel" }, el("h3", {}, title), hint && el("p", { class: "hint" }, hint), content);
}

// Corners of markers by Matplotlib's letter, around (0, 0) with radius 1; others are circles.
const MARKERS = {
  D: [[0, -1.15], [1.15, 0], [0, 1.15], [-1.15, 0]],
  s: [[-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]],
  v: [[-1.1, -0.9], [1.1, -0.9], [0, 1.1]],
  "^": [[-1.1, 0.9], [1.1, 0.9], [0, -1.1]],
  "*": [...Array(10).keys()].map((i) => [
    Math.sin((i * Math.PI) / 5) * (i % 2 ? 0.55 : 1.3),
    -Math.cos((i * Math.PI) / 5) * (i % 2 ? 0.55 : 1.3),
  ]),
  "|": [[-0.15, -1.1], [0.15, -1.1], [0.15, 1.1], [-0.15, 1.1]],
  P: [[-0.35, -1.1], [0.35, -1.1], [0.35, -0.35], [1.1, -0.35], [1.1, 0.35], [0.35, 0.35]]
    .concat([[0.35, 1.1], [-0.35, 1.1], [-0.35, 0.35], [-1.1, 0.35], [-1.1, -0.35], [-0.35, -0.35]]),
  X: [[-1, -0.6], [-0.6, -1], [0, -0.4], [0.6, -1], [1, -0.6], [0.4, 0]]
    .concat([[1, 0.6], [0.6, 1], [0, 0.4], [-0.6, 1], [-1, 0.6], [-0.4, 0]]),
};

// What a series looks like: its markers, filled or hollow.
function markerOf(series, x, y, r, edge) {
  const colour = themed(series.style[0]);
  const hollow = { fill: "var(--panel)", stroke: colour, "stroke-width": 1.8 };
  const look = { ...(series.hollow ? hollow : { fill: colour, ...edge }), opacity: series.opacity };
  const corners = MARKERS[series.style[1]];
  if (!corners) return svg("circle", { cx: x, cy: y, r, ...look });
  return svg("polygon", { points: corners.map(([dx, dy]) => `${x + dx * r},${y + dy * r}`).join(" "), ...look });
}

const DASHES = { dashed: "7 4", dotted: "2 3", dashdot: "8 3 2 3" };
const strokeOf = (series) => ({
  fill: "none",
  stroke: themed(series.style[0]),
  "stroke-width": (series.width ?? 1.6) * 1.2,
  "stroke-dasharray": DASHES[series.line],
  "stroke-linejoin": "round",
  opacity: series.opacity,
});

// Every series with a label, once.
function legend(charts) {
  const named = charts.flatMap((chart) => chart.series).filter((series) => series.label);
  const entries = new Map(named.map((series) => [series.label, series]));
  const key = (series) => {
    const line = series.line && svg("path", { d: "M1 6H21", ...strokeOf(series) });
    const marker = series.style[1] && markerOf(series, 11, 6, series.line ? 3.5 : 4.5);
    return svg("svg", { width: 22, height: 12, "aria-hidden": "true" }, line, marker);
  };
  return el("ul", { class: "legend" }, [...entries].map(([label, series]) => el("li", {}, key(series), label)));
}
