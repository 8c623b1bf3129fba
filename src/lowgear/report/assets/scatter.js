// Return against cost: a dot for each episode, histograms on both margins.

function scatterPanel(run) {
  const groups = run.clouds.groups.filter((group) => group.dots.length);
  const title = "Return against cost, episode by episode";
  if (!groups.length)
    return panel(
      title,
      null,
      el(
        "p",
        { class: "none" },
        "No episodes were played for this picture: the run has no policies, or --episodes was 0.",
      ),
    );
  const dots = groups.flatMap((group) => group.dots);
  const seen = new Set();
  for (const group of groups) {
    group.faint = seen.has(group.colour);
    seen.add(group.colour);
  }
  const drawn = chart({
    label: "One dot for each episode: return against cost, with histograms on both margins",
    height: 330,
    margin: { top: 56, right: 66 },
    x: {
      domain: extent(
        dots.map((dot) => dot[0]),
        0.05,
      ),
      label: "cost: share of the large gear's FLOPs",
      format: percentTick,
    },
    y: {
      domain: extent(
        dots.map((dot) => dot[1]),
        0.05,
      ),
      label: run.clouds.scaled ? "return, scaled" : "return",
      format: run.clouds.scaled ? (tick) => plain(String(Number(tick.toFixed(3)))) : axisNumber("return"),
    },
    draw: (plot) => drawScatter(plot, groups, run),
  });
  return panel(
    title,
    `${groups[0].dots.length} episodes of each controller. ${run.clouds.note}`,
    legend(
      groups.map((group) => ({ label: group.label, colour: group.colour, marker: group.marker, faint: group.faint })),
    ),
    drawn,
  );
}

function drawScatter(plot, groups, run) {
  const bins = 32;
  for (const group of groups) {
    const colour = themed(group.colour),
      strength = group.faint ? 0.5 : 1;
    for (const [cost, height, total] of group.dots) {
      const x = plot.x(cost),
        y = plot.y(height);
      const dot = mark(group.marker, x, y, 3, { fill: colour, "fill-opacity": 0.55 * strength });
      dot.addEventListener("pointerenter", () =>
        plot.show(x, y, [group.label, `return ${number(total)}`, `${percent(cost)} of the large gear's FLOPs`]),
      );
      dot.addEventListener("pointerleave", plot.hide);
      plot.root.append(dot);
    }
    const { left, right, top, bottom } = plot.box;
    margin(
      group.dots.map((dot) => plot.x(dot[0])),
      left,
      right,
      bins,
    ).forEach((share, i, all) => {
      const size = (right - left) / bins;
      if (share)
        plot.root.append(
          svg("rect", {
            x: left + i * size,
            width: size - 1,
            y: top - 6 - 44 * share,
            height: 44 * share,
            fill: colour,
            opacity: 0.5 * strength,
          }),
        );
    });
    margin(
      group.dots.map((dot) => plot.y(dot[1])),
      top,
      bottom,
      bins,
    ).forEach((share, i) => {
      const size = (bottom - top) / bins;
      if (share)
        plot.root.append(
          svg("rect", {
            x: right + 6,
            width: 50 * share,
            y: top + i * size,
            height: size - 1,
            fill: colour,
            opacity: 0.5 * strength,
          }),
        );
    });
  }
}

// Shares of the fullest bin.
function margin(values, low, high, bins) {
  const counts = new Array(bins).fill(0);
  for (const value of values)
    counts[Math.min(bins - 1, Math.max(0, Math.floor(((value - low) / (high - low)) * bins)))]++;
  const most = Math.max(...counts);
  return counts.map((count) => count / most);
}
