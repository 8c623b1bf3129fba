// The rows of the player: gears along time, and below them what every gear does or would have done.

const trackHeight = (actions) => (actions <= 2 ? 96 : actions <= 4 ? 64 : 46);

function makeTracks(play) {
  const count = play.gear.length,
    gears = play.gears.length;
  const cursor = el("i", { "data-step": 0 });
  const rows = [gearTrack(play)];
  for (let action = 0; action < play.actions[0].length; action++) rows.push(actionTrack(play, action));
  const node = el("div", { class: "tracks", "data-gears": gears }, rows, el("div", { class: "cursor" }, cursor));
  let start = 0,
    span = count,
    held = false;
  const view = () => {
    for (const shape of node.querySelectorAll("svg"))
      shape.setAttribute("viewBox", `${start} 0 ${span} ${shape.dataset.high}`);
  };
  const move = (step) => {
    const wanted = Math.max(0, Math.min(count - span, Math.round(step - span / 2)));
    if (!held && wanted !== start) {
      start = wanted;
      view();
    }
    cursor.style.left = `${Math.max(0, Math.min(100, ((step + 0.5 - start) / span) * 100))}%`;
    cursor.dataset.step = step;
  };
  const zoom = (count) => {
    [span, start] = [count, -1];
  };
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

function track(name, kind, height, count, ...shapes) {
  return el(
    "div",
    { class: `track ${kind}` },
    el("span", {}, name),
    svg(
      "svg",
      {
        viewBox: `0 0 ${count} ${height}`,
        "data-high": height,
        height,
        preserveAspectRatio: "none",
        "aria-hidden": "true",
      },
      shapes,
    ),
  );
}

function gearTrack(play) {
  const count = play.gear.length,
    shapes = [];
  for (let start = 0, step = 1; step <= count; step++) {
    if (step < count && play.gear[step] === play.gear[start]) continue;
    const gear = play.gear[start],
      high = 12 + (14 * gear) / (play.gears.length - 1);
    shapes.push(
      svg("rect", { x: start, width: step - start, y: 26 - high, height: high, fill: play.gears[gear].colour }),
    );
    start = step;
  }
  const ticks = play.picks.map((step) => `M${step} 28V33`).join("");
  shapes.push(svg("path", { d: ticks, stroke: "var(--soft)", "stroke-width": 0.8, opacity: 0.7 }));
  return track("gear", "gears", 33, count, shapes);
}

function actionTrack(play, action) {
  const count = play.gear.length,
    shapes = [];
  const x = (step) => step + 0.5,
    high = trackHeight(play.actions[0].length),
    y = (value) => ((100 - value) * (high - 4)) / 200 + 2;
  shapes.push(svg("path", { d: `M0 ${y(0)}H${count}`, stroke: "var(--line)" }));
  play.gears.forEach((gear, number) => {
    const values = play.actions[number][action];
    const whole = values.map((value, step) => `${step ? "L" : "M"}${x(step)} ${y(value).toFixed(2)}`).join("");
    shapes.push(svg("path", { d: whole, stroke: gear.colour, opacity: 0.45, "stroke-width": 1 }));
  });
  play.gears.forEach((gear, number) => {
    const values = play.actions[number][action];
    let d = "";
    for (let step = 0; step < count; step++) {
      if (play.gear[step] !== number) continue;
      const begins = step === 0 || play.gear[step - 1] !== number;
      d += `${begins ? "M" : "L"}${x(step)} ${y(values[step]).toFixed(2)}`;
      if (begins && play.gear[step + 1] !== number) d += "h0.01";
    }
    shapes.push(
      svg("path", {
        d,
        stroke: gear.colour,
        "stroke-width": 1.9,
        "stroke-linecap": "round",
        "stroke-linejoin": "round",
      }),
    );
  });
  return track(`a${action + 1}`, "", high, count, shapes);
}
