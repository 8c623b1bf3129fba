// Builds elements and writes numbers. Strings only ever become text nodes or attributes, never markup.
const SVG = "http://www.w3.org/2000/svg";

function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// The colours that Python names, as they are in the theme.
const THEMED = {
  "#0072b2": "--blue",
  "#cc79a7": "--pink",
  "#d55e00": "--red",
  "#e69f00": "--amber",
  "#009e73": "--green",
  "#000000": "--ink",
  "#777777": "--grey",
  "#56b4e9": "--sky",
};
const themed = (colour) => `var(${THEMED[colour.toLowerCase()] || "--grey"})`;

const MINUS = "−";
const plain = (text) => text.replace(/^-/, MINUS);

function number(value, digits) {
  if (value === null || value === undefined) return "–";
  if (digits === undefined) {
    const size = Math.abs(value);
    digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  }
  return plain(value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
}

function percent(share, digits = 1) {
  return share === null || share === undefined ? "–" : plain(`${(100 * share).toFixed(digits)}%`);
}

// A tick of an axis of shares: no more digits than it needs.
const percentTick = (tick) => plain(`${Number((100 * tick).toPrecision(4))}%`);
const short = (value) => plain(String(Number(value.toPrecision(3))));
const lambda = (setting) => (setting.pays ? `λ ${short(setting.coefficient)}` : "");

function steps(count) {
  if (count >= 1e6) return `${Number((count / 1e6).toPrecision(3))}M`;
  return count >= 1e4 ? `${Math.round(count / 1000)}k` : count.toLocaleString("en-GB");
}

function score(run, value, digits) {
  return run.score === "success rate" ? percent(value) : number(value, digits);
}

function scorePair(run, mean, std, digits) {
  if (run.score === "success rate") return `${percent(mean)} ± ${percent(std)}`;
  const size = Math.abs(mean);
  const shown = digits !== undefined ? digits : size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
  return `${number(mean, shown)} ± ${number(std, shown)}`;
}

// What stands between backticks is something to type.
function withCode(text) {
  return text.split("`").map((part, i) => (i % 2 ? el("code", {}, part) : part));
}

function panel(title, hint, ...children) {
  return el("section", { class: "panel" }, el("h3", {}, title), hint && el("p", { class: "hint" }, hint), ...children);
}

function legend(items) {
  return el(
    "ul",
    { class: "legend" },
    items.map((item) => {
      const key = svg("svg", { width: 22, height: 12, "aria-hidden": "true" });
      const colour = themed(item.colour);
      if (item.line)
        key.append(
          svg("line", {
            x1: 1,
            x2: 21,
            y1: 6,
            y2: 6,
            stroke: colour,
            "stroke-width": 2,
            "stroke-dasharray": item.dash,
          }),
        );
      if (item.marker)
        key.append(
          mark(item.marker, 11, 6, 4.5, {
            fill: item.hollow ? "none" : colour,
            stroke: item.hollow ? colour : "none",
            "stroke-width": 1.6,
            "fill-opacity": item.faint ? 0.5 : 1,
          }),
        );
      return el("li", {}, key, item.label);
    }),
  );
}

// A marker by Matplotlib's letter.
function mark(kind, x, y, r, attributes) {
  const at = (...pairs) => pairs.map(([dx, dy]) => `${x + dx * r},${y + dy * r}`).join(" ");
  const shapes = {
    D: at([0, -1.15], [1.15, 0], [0, 1.15], [-1.15, 0]),
    s: at([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9]),
    v: at([-1.1, -0.9], [1.1, -0.9], [0, 1.1]),
    "^": at([-1.1, 0.9], [1.1, 0.9], [0, -1.1]),
    P: at(
      [-0.35, -1.1],
      [0.35, -1.1],
      [0.35, -0.35],
      [1.1, -0.35],
      [1.1, 0.35],
      [0.35, 0.35],
      [0.35, 1.1],
      [-0.35, 1.1],
      [-0.35, 0.35],
      [-1.1, 0.35],
      [-1.1, -0.35],
      [-0.35, -0.35],
    ),
    X: at(
      [-1, -0.6],
      [-0.6, -1],
      [0, -0.4],
      [0.6, -1],
      [1, -0.6],
      [0.4, 0],
      [1, 0.6],
      [0.6, 1],
      [0, 0.4],
      [-0.6, 1],
      [-1, 0.6],
      [-0.4, 0],
    ),
  };
  if (!shapes[kind]) return svg("circle", { cx: x, cy: y, r, ...attributes });
  return svg("polygon", { points: shapes[kind], ...attributes });
}
