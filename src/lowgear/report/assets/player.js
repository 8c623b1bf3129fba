// The episode player: frames, gears, actions, rewards and values of one episode, all at the same step.
const AHEAD = 12; // frames that are made ready before they are shown
const VIEWS = [1000, 500, 200, 100, 50, 20]; // steps
const HINT =
  "Solid lines are the actions taken, faint ones what the other gears would have done. Ticks under the gears mark the " +
  "master's picks; where several steps share a pixel, its colours show how many are in each gear. " +
  "Value: what the master expects of each gear, its price taken off. Lead: beyond the small gear; above the line a " +
  "gear is worth its price.";

function playerPanel(run, selection) {
  const title = "Watch an episode";
  if (!run.plays.length) return panel({ title, none: "No episode: the run has no policy that can be played." });
  const screen = el("div", {});
  const first = Math.max(0, run.plays.findIndex((play) => play.first));
  let player = null;
  const load = (place) => {
    player?.stop();
    player = makePlayer(run.plays[place]);
    screen.replaceChildren(player.node);
  };
  const inputs = run.plays.map((play, place) =>
    el("input", {
      type: "radio",
      name: `play-${run.id}`,
      value: place,
      checked: place === first,
      onchange: () => {
        load(place);
        if (play.key) selection.choose(play.key);
      },
    }),
  );
  selection.listen((key) => {
    const place = run.plays.findIndex((play) => play.key === key);
    if (place < 0 || inputs[place].checked) return;
    inputs[place].checked = true;
    load(place);
  });
  load(first);
  const star = (play) => play.own && el("b", { title: "own setting, which export ships" }, " ★");
  const named = (play) => el("span", {}, play.choice, star(play));
  const choices = inputs.map((input, place) => el("label", {}, input, named(run.plays[place])));
  const picker = el("fieldset", { class: "picker" }, el("legend", {}, `${run.plays[first].variant} at`), choices);
  const node = panel({ title, hint: HINT }, picker, screen);
  selection.watch = () => {
    node.scrollIntoView({ block: "start" });
    screen.querySelector(".play").focus({ preventScroll: true });
  };
  return node;
}

function makePlayer(play) {
  const count = play.gear.length;
  const screen = play.frames ? makeScreen(play) : null;
  const now = makeReadout();
  const tracks = makeTracks(play.tracks);
  const controls = makeControls(count);
  let step = 0;
  const go = (wanted) => {
    step = Math.max(0, Math.min(count - 1, Math.round(wanted)));
    const gear = play.gears[play.gear[step]];
    controls.set(step, `step ${step} of ${count}, ${gear.name}, return ${number(play.total[step])}`);
    tracks.move(step);
    now.set(play, step, gear);
    screen?.show(step, gear);
  };
  const clock = makeClock(count, 1 / play.step_s, controls, () => step, go);
  const zoom = (by) => {
    const place = controls.zoom.selectedIndex + by;
    if (place < 0 || place >= controls.zoom.length) return;
    controls.zoom.selectedIndex = place;
    controls.zoom.dispatchEvent(new Event("change"));
  };
  controls.zoomOut.addEventListener("click", () => zoom(-1));
  controls.zoomIn.addEventListener("click", () => zoom(1));
  controls.slider.addEventListener("input", () => go(controls.slider.valueAsNumber));
  tracks.drag(go);
  controls.zoom.addEventListener("change", () => {
    tracks.zoom(Number(controls.zoom.value) || count);
    controls.ends();
    go(step);
  });
  const node = el(
    "div",
    { class: screen ? "player" : "player frameless", role: "group", "aria-label": `Episode of ${play.label}` },
    screen ? el("div", { class: "screen" }, screen.node, screen.badge, now.node) : null,
    el("div", {}, screen ? null : now.node, legend(play.tracks), tracks.node, controls.node, captionOf(play)),
  );
  node.addEventListener("keydown", (event) => {
    const jump = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1 }[event.key];
    if (event.target === controls.speed || event.target === controls.zoom) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (jump) go(step + jump * (event.shiftKey ? 10 : 1));
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(count - 1);
    else if (event.key === "+" || event.key === "=") zoom(1);
    else if (event.key === "-") zoom(-1);
    else if (event.key === " " && event.target.tagName !== "BUTTON") clock.turn();
    else return;
    event.preventDefault();
  });
  go(0);
  return { node, stop: clock.stop };
}

function makeControls(count) {
  const option = ([value, text], chosen) => el("option", { value, selected: value === chosen }, text);
  const choice = (label, options, chosen) =>
    el("select", { "aria-label": label }, options.map((one) => option(one, chosen)));
  const button = el("button", { type: "button", class: "play" }, "Play");
  const slider = el("input", { type: "range", min: 0, max: count - 1, step: 1, "aria-label": "Step of the episode" });
  const views = [0, ...VIEWS.filter((steps) => steps < count)];
  const zoom = choice("Steps in view", views.map((steps) => [steps, steps ? `${steps} steps` : "all steps"]), 0);
  const zoomOut = el("button", { type: "button", "aria-label": "Zoom out" }, "−");
  const zoomIn = el("button", { type: "button", "aria-label": "Zoom in" }, "+");
  const speed = choice("Speed", [[0.1, "0.1×"], [0.25, "¼×"], [0.5, "½×"], [1, "1×"], [2, "2×"], [4, "4×"]], 1);
  const set = (step, text) => {
    slider.value = step;
    slider.setAttribute("aria-valuetext", text);
  };
  const ends = () => {
    zoomOut.disabled = zoom.selectedIndex === 0;
    zoomIn.disabled = zoom.selectedIndex === zoom.length - 1;
  };
  ends();
  const group = el("div", { class: "zoom", role: "group", "aria-label": "Zoom" }, zoomOut, zoom, zoomIn);
  const node = el("div", { class: "controls" }, button, slider, group, speed);
  return { node, button, slider, zoom, zoomOut, zoomIn, speed, set, ends };
}

// Plays from where the episode stands; `rate` are the steps of a second in the simulation.
function makeClock(count, rate, controls, at, go) {
  let [playing, last, carry] = [false, 0, 0];
  const tick = (time) => {
    if (!playing) return;
    carry += ((time - last) / 1000) * rate * Number(controls.speed.value);
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

function captionOf(play) {
  const key = (name) => el("kbd", {}, name);
  const steps = [key("Space"), " plays, ", key("←"), " ", key("→"), " step, with ", key("Shift"), " ten at a time, "];
  const keys = [...steps, key("+"), " ", key("−"), " zoom. "];
  return el("p", { class: "keys" }, keys, play.caption);
}

// A background and, for each frame, the rectangle that differs from it.
function makeScreen(play) {
  const { width, height, background, tiles, every } = play.frames;
  const canvas = el("canvas", { width, height, role: "img", "aria-label": "The simulation at this step" });
  const badge = el("div", { class: "badge", "aria-hidden": "true" }, el("i", {}), el("span", {}, ""));
  const pen = canvas.getContext("2d");
  const ready = new Map();
  let wanted = 0;
  const picture = (place, data) => {
    const image = new Image();
    image.addEventListener("load", () => (place === wanted || place === "ground") && paint());
    image.src = data;
    return image;
  };
  const isDrawn = (image) => image.complete && image.naturalWidth > 0;
  const paint = () => {
    const [left, top, data] = tiles[wanted];
    const tile = ready.get(wanted);
    if (!isDrawn(ground) || (data && !(tile && isDrawn(tile)))) return;
    pen.drawImage(ground, 0, 0);
    if (data) pen.drawImage(tile, left, top);
  };
  const ground = picture("ground", background);
  const show = (step, gear) => {
    wanted = Math.min(tiles.length - 1, Math.floor(step / every));
    for (const place of ready.keys()) if (place < wanted - AHEAD || place > wanted + 2 * AHEAD) ready.delete(place);
    for (let place = wanted; place < Math.min(tiles.length, wanted + AHEAD); place++)
      if (tiles[place][2] && !ready.has(place)) ready.set(place, picture(place, tiles[place][2]));
    paint();
    badge.firstChild.style.background = themed(gear.colour);
    badge.lastChild.textContent = gear.name;
  };
  return { node: canvas, badge, show };
}

function makeReadout() {
  const names = ["step", "gear", "reward", "return so far", "FLOPs saved", "value of the gear"];
  const cells = names.map((name) => [name, el("dd", {}, "")]);
  const rows = cells.map(([name, cell]) => el("div", {}, el("dt", {}, name), cell));
  const set = (play, step, gear) => {
    const values = [
      `${step} of ${play.gear.length}`,
      gear.name.replace(" gear", ""),
      number(play.reward[step], 2),
      number(play.total[step], 1),
      percent(play.saved[step]),
      play.values ? number(play.values[step][play.gear[step]], 2) : "–",
    ];
    cells.forEach(([, cell], i) => (cell.textContent = values[i]));
  };
  return { node: el("dl", { class: "now" }, rows), set };
}
