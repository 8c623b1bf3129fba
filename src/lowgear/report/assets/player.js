// The episode player: frames, gears and actions of one episode, all at the same step.
const SECONDS = 16; // the whole episode, at normal speed

function playerPanel(run, selection) {
  const title = "Watch an episode";
  if (!run.plays.length)
    return panel(title, null, el("p", { class: "none" }, "No episode: the run has no policy that can be played."));
  const stage = el("div", {});
  const first = Math.max(
    0,
    run.plays.findIndex((play) => play.first),
  );
  let player = null;
  const load = (number) => {
    player?.stop();
    player = makePlayer(run.plays[number]);
    stage.replaceChildren(player.node);
  };
  const name = `play-${run.id}`;
  const choices = run.plays.map((play, number) =>
    el(
      "label",
      {},
      el("input", {
        type: "radio",
        name,
        value: number,
        checked: number === first,
        onchange: () => {
          load(number);
          selection.choosePlay(play);
        },
      }),
      el("span", {}, play.star && play.pays ? `λ ${short(play.coefficient)}` : play.label),
    ),
  );
  selection.listen((setting) => {
    const number = run.plays.indexOf(selection.playOf(setting));
    const input = number >= 0 ? choices[number].querySelector("input") : null;
    if (!input || input.checked) return;
    input.checked = true;
    load(number);
  });
  load(first);
  const node = panel(
    title,
    "Solid lines are the actions taken, faint ones what the other gears would have done. Ticks under the gears mark the master's picks.",
    el("fieldset", { class: "picker" }, el("legend", {}, `${run.plays[first].variant} at`), choices),
    stage,
  );
  selection.watch = () => {
    node.scrollIntoView({ block: "start" });
    stage.querySelector(".play").focus({ preventScroll: true });
  };
  return node;
}

function makePlayer(play) {
  const count = play.gear.length;
  const running = sums(play);
  const screen = play.frames ? makeScreen(play) : null;
  const now = makeReadout();
  const tracks = makeTracks(play);
  const controls = makeControls(count);
  let step = 0;
  const go = (wanted) => {
    step = Math.max(0, Math.min(count - 1, Math.round(wanted)));
    const gear = play.gears[play.gear[step]];
    controls.set(step, `step ${step} of ${count}, ${gear.name}, return ${number(running.total[step])}`);
    tracks.move(step);
    now.set(play, running, step, gear);
    screen?.show(step, gear);
  };
  const clock = makeClock(count, controls, () => step, go);
  controls.slider.addEventListener("input", () => go(controls.slider.valueAsNumber));
  tracks.drag(go);
  controls.zoom.addEventListener("change", () => {
    tracks.zoom(Number(controls.zoom.value) || count);
    go(step);
  });
  const side = el("div", {}, screen ? null : now.node, gearLegend(play), tracks.node, controls.node, caption(play));
  const node = el(
    "div",
    { class: screen ? "player" : "player blind", role: "group", "aria-label": `Episode of ${play.label}` },
    screen ? el("div", { class: "screen" }, screen.node, screen.badge, now.node) : null,
    side,
  );
  node.addEventListener("keydown", (event) => {
    const jump = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1 }[event.key];
    if (event.target === controls.speed || event.target === controls.zoom) return;
    if (jump) go(step + jump * (event.shiftKey ? 10 : 1));
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(count - 1);
    else if (event.key === " " && event.target !== controls.button) clock.turn();
    else return;
    event.preventDefault();
  });
  go(0);
  return { node, stop: clock.stop };
}

function makeControls(count) {
  const choice = (label, options, chosen) =>
    el(
      "select",
      { "aria-label": label },
      options.map(([value, text]) => el("option", { value, selected: value === chosen }, text)),
    );
  const views = [0, 300, 100].filter((steps) => steps < count);
  const speeds = { 0.25: "¼×", 0.5: "½×", 1: "1×", 2: "2×", 4: "4×" };
  const button = el("button", { type: "button", class: "play" }, "Play");
  const slider = el("input", { type: "range", min: 0, max: count - 1, step: 1, "aria-label": "Step of the episode" });
  const zoom = choice(
    "Steps in view",
    views.map((steps) => [String(steps), steps ? `${steps} steps` : "all steps"]),
    "0",
  );
  const speed = choice(
    "Speed",
    Object.entries(speeds).sort(([a], [b]) => a - b),
    "1",
  );
  const set = (step, text) => {
    slider.value = step;
    slider.setAttribute("aria-valuetext", text);
  };
  return { node: el("div", { class: "controls" }, button, slider, zoom, speed), button, slider, zoom, speed, set };
}

// Plays: so many steps a second as the speed says, from where the episode stands.
function makeClock(count, controls, at, go) {
  let playing = false,
    last = 0,
    carry = 0;
  const tick = (time) => {
    if (!playing) return;
    carry += ((time - last) / 1000) * (count / SECONDS) * Number(controls.speed.value);
    last = time;
    const whole = Math.floor(carry);
    carry -= whole;
    if (whole > 0) go(at() + whole);
    if (at() >= count - 1) stop();
    else requestAnimationFrame(tick);
  };
  const stop = () => {
    playing = false;
    controls.button.textContent = "Play";
  };
  const turn = () => {
    if (playing) return stop();
    if (at() >= count - 1) go(0);
    [playing, last, carry] = [true, performance.now(), 0];
    controls.button.textContent = "Pause";
    requestAnimationFrame(tick);
  };
  controls.button.addEventListener("click", turn);
  return { turn, stop };
}

function caption(play) {
  const key = (name) => el("kbd", {}, name);
  const facts = [
    `Played in ${play.stage}: return ${number(play.total, 1)}, ${percent(play.saved)} of FLOPs saved, seed ${play.seed} (agent ${play.agent}).`,
    play.cut && "Recorded until the limit of steps; the episode went on.",
    play.actions_left_out && `${play.actions_left_out} more actions are not drawn.`,
  ].filter(Boolean);
  const keys = [key("Space"), " plays, ", key("←"), " ", key("→"), " step, with ", key("Shift"), " ten at a time. "];
  return el("p", { class: "keys" }, keys, facts.join(" "));
}

function sums(play) {
  const total = [],
    flops = [];
  const picks = new Set(play.picks);
  let gained = 0,
    spent = 0;
  play.gear.forEach((gear, step) => {
    gained += play.reward[step];
    spent += play.gears[gear].flops + (picks.has(step) ? play.pick_flops : 0);
    total.push(gained);
    flops.push(spent);
  });
  return { total, flops };
}

function makeScreen(play) {
  const { width, height, columns, source, count } = play.frames;
  const canvas = el("canvas", {
    width: 2 * width,
    height: 2 * height,
    role: "img",
    "aria-label": "The simulation at this step",
  });
  const badge = el("div", { class: "badge", "aria-hidden": "true" }, el("i", {}), el("span", {}, ""));
  const pen = canvas.getContext("2d");
  const sheet = new Image();
  let wanted = 0,
    shown = -1;
  const paint = () => {
    if (!sheet.complete || !sheet.naturalWidth || wanted === shown) return;
    shown = wanted;
    pen.drawImage(
      sheet,
      (wanted % columns) * width,
      Math.floor(wanted / columns) * height,
      width,
      height,
      0,
      0,
      canvas.width,
      canvas.height,
    );
  };
  sheet.addEventListener("load", paint);
  sheet.src = source;
  const show = (step, gear) => {
    wanted = Math.min(count - 1, Math.floor(step / play.every));
    paint();
    badge.firstChild.style.background = gear.colour;
    badge.lastChild.textContent = gear.name;
  };
  return { node: canvas, badge, show };
}

function makeReadout() {
  const cells = ["step", "gear", "reward", "return so far", "FLOPs saved"].map((name) => [name, el("dd", {}, "")]);
  const node = el(
    "dl",
    { class: "now" },
    cells.map(([name, cell]) => el("div", {}, el("dt", {}, name), cell)),
  );
  const set = (play, running, step, gear) => {
    const large = play.gears[play.gears.length - 1].flops;
    const values = [
      `${step} of ${play.gear.length}`,
      gear.name.replace(" gear", ""),
      number(play.reward[step], 2),
      number(running.total[step], 1),
      percent(1 - running.flops[step] / (large * (step + 1))),
    ];
    cells.forEach(([, cell], i) => (cell.textContent = values[i]));
  };
  return { node, set };
}

function gearLegend(play) {
  return el(
    "ul",
    { class: "legend" },
    play.gears.map((gear) => {
      const swatch = el("i", { class: "swatch" });
      swatch.style.color = gear.colour;
      swatch.style.marginRight = "0";
      return el("li", {}, swatch, `${gear.name}, ${gear.units} units: ${percent(gear.share)} of steps`);
    }),
  );
}
