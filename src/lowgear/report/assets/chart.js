// Axes, scales and a tooltip; drawn anew whenever the width changes, so letters keep their size on a telephone.

function niceStep(span, count) {
  const raw = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 2.5, 5, 10].find((factor) => factor * power >= raw * 0.999);
}

function linearTicks(low, high, count) {
  const step = niceStep(high - low, count);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step || 0);
  return ticks;
}

function logTicks(low, high, count) {
  for (const factors of [[1, 2, 3, 5], [1, 2, 5], [1, 3], [1]]) {
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const factor of factors) {
        const tick = factor * 10 ** power;
        if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(Number(tick.toPrecision(3)));
      }
    }
    if (ticks.length <= count || factors.length === 1) return ticks;
  }
  return [];
}

// The range that holds all values, with some room; null where there are none.
function extent(values, room, log) {
  const finite = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (!finite.length) return null;
  let low = Math.min(...finite),
    high = Math.max(...finite);
  if (log) {
    const ratio = Math.max(high / low, 1.5) ** room;
    return [low / ratio, high * ratio];
  }
  const span = high - low || Math.abs(high) || 1;
  return [low - span * room, high + span * room];
}

// Of scores: success rates end at 0 and 1.
function scoreExtent(run, values) {
  const [low, high] = extent(values, 0.07);
  return run.score === "success rate" ? [Math.max(low, -0.03), Math.min(high, 1.03)] : [low, high];
}

function scale(domain, range, log) {
  const to = log ? Math.log : Number;
  const [a, b] = domain.map(to);
  return (value) => range[0] + ((to(value) - a) / (b - a || 1)) * (range[1] - range[0]);
}

// spec: {label, height, x: {domain, label, log, format, ticks}, y: likewise, margin, draw(plot)}; returns the element.
function chart(spec) {
  const tip = el("div", { class: "tip", role: "status", hidden: true });
  const host = el("div", { class: "chart" }, tip);
  let drawn = 0;
  const redraw = () => {
    const width = host.clientWidth;
    if (!width || width === drawn) return;
    drawn = width;
    const focused = host.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    host.querySelector("svg")?.remove();
    host.prepend(drawChart(spec, width, tip, host));
    if (focused) host.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  };
  new ResizeObserver(redraw).observe(host);
  return host;
}

function drawChart(spec, width, tip, host) {
  const height = spec.height || 320;
  const margin = { left: 62, right: 14, top: 12, bottom: 46, ...(spec.margin || {}) };
  const box = { left: margin.left, right: width - margin.right, top: margin.top, bottom: height - margin.bottom };
  const x = scale(spec.x.domain, [box.left, box.right], spec.x.log);
  const y = scale(spec.y.domain, [box.bottom, box.top], spec.y.log);
  const root = svg("svg", {
    height,
    viewBox: `0 0 ${width} ${height}`,
    role: spec.group ? "group" : "img",
    "aria-label": spec.label,
  });
  const room = (box.right - box.left) / 72;
  const across = spec.x.ticks || (spec.x.log ? logTicks(...spec.x.domain, room) : linearTicks(...spec.x.domain, room));
  const up = spec.y.ticks || linearTicks(...spec.y.domain, (box.bottom - box.top) / 52);
  for (const tick of up) {
    root.append(svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y(tick), y2: y(tick) }));
    root.append(svg("text", { x: box.left - 8, y: y(tick) + 4, "text-anchor": "end" }, spec.y.format(tick)));
  }
  for (const tick of across) {
    root.append(svg("line", { class: "grid", x1: x(tick), x2: x(tick), y1: box.top, y2: box.bottom }));
    root.append(svg("text", { x: x(tick), y: box.bottom + 18, "text-anchor": "middle" }, spec.x.format(tick)));
  }
  root.append(svg("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }));
  root.append(
    svg(
      "text",
      {
        class: "title",
        x: width < 480 ? width / 2 : (box.left + box.right) / 2,
        y: height - 6,
        "text-anchor": "middle",
      },
      spec.x.label,
    ),
  );
  root.append(
    svg(
      "text",
      { class: "title", transform: `translate(11 ${(box.top + box.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" },
      spec.y.label,
    ),
  );
  const show = (px, py, lines) => showTip(tip, host, px, py, lines);
  spec.draw({ root, x, y, box, width, height, show, hide: () => (tip.hidden = true) });
  return root;
}

function showTip(tip, host, px, py, lines) {
  tip.replaceChildren(...lines.map((line, number) => el("div", {}, number ? line : el("b", {}, line))));
  tip.hidden = false;
  const width = tip.offsetWidth,
    height = tip.offsetHeight;
  tip.style.left = `${Math.min(Math.max(px - width / 2, 0), Math.max(host.clientWidth - width, 0))}px`;
  tip.style.top = `${py - height - 14 < -40 ? py + 16 : py - height - 14}px`;
}

function path(points) {
  return points.map(([px, py], i) => `${i ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`).join("");
}

function band(plot, xs, lows, highs, colour) {
  const there = xs.map((value, i) => [plot.x(value), plot.y(highs[i])]);
  const back = xs.map((value, i) => [plot.x(value), plot.y(lows[i])]).reverse();
  return svg("path", { d: `${path([...there, ...back])}Z`, fill: colour, opacity: 0.14 });
}
