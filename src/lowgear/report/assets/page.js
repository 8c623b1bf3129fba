// Puts the sections together, keeps the selection and the theme.

function makeSelection(run) {
  const listeners = [];
  let chosen = null;
  const same = (a, b) => Math.abs(a - b) <= 1e-6 * Math.max(Math.abs(a), Math.abs(b));
  const matches = (setting, play) =>
    setting.variant === play.variant && (!setting.pays || same(setting.coefficient, play.coefficient));
  const selection = {
    playOf: (setting) => run.plays.find((play) => matches(setting, play)),
    choose: (setting) => {
      chosen = setting;
      for (const listener of listeners) listener(setting);
    },
    choosePlay: (play) => {
      const setting = run.settings.find((one) => matches(one, play));
      if (setting && setting !== chosen) selection.choose(setting);
    },
    listen: (listener) => {
      listeners.push(listener);
      if (chosen) listener(chosen);
    },
    watch: () => {},
  };
  return selection;
}

function filesPanel(run) {
  const json = (value) => el("pre", { tabindex: 0 }, JSON.stringify(value, null, 2));
  return panel(
    "Configuration and provenance",
    null,
    el("details", {}, el("summary", {}, "Configuration"), json(run.config)),
    el(
      "details",
      {},
      el("summary", {}, "Provenance: versions, machine, commit"),
      run.provenance ? json(run.provenance) : el("p", { class: "none" }, "config.json says nothing about it."),
    ),
  );
}

function section(run, number, alone) {
  run.id = number;
  const selection = makeSelection(run);
  const gears = run.gears.map((units) => `${units}`).join(" and ");
  const node = el(
    "section",
    { class: alone ? "run alone" : "run", id: `run-${number}`, "aria-labelledby": `title-${number}` },
    el(
      "header",
      {},
      el("h2", { id: `title-${number}`, class: alone && "hidden" }, run.task),
      el(
        "p",
        { class: "facts" },
        `${run.recipe} recipe, ${steps(run.steps)} steps, gears of ${gears} units, from `,
        el("code", {}, run.name),
      ),
    ),
    run.notices.length
      ? el(
          "div",
          { class: "notice", role: "note" },
          "What is missing here:",
          el(
            "ul",
            {},
            run.notices.map((text) => el("li", {}, withCode(text))),
          ),
        )
      : null,
    tiles(run),
    summaryPanel(run, selection),
    frontierPanel(run, selection),
    playerPanel(run, selection),
    el("div", { class: "pair" }, curvesPanel(run), scatterPanel(run)),
    sweepPanel(run),
    filesPanel(run),
  );
  const first = run.plays.find((play) => play.first);
  if (first) selection.choosePlay(first);
  return node;
}

function themeButton() {
  const button = document.getElementById("theme"),
    root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const name = () => (button.textContent = dark() ? "Light" : "Dark");
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    name();
  });
  system.addEventListener("change", name);
  name();
}

function boot() {
  const data = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("main"),
    places = document.getElementById("places");
  themeButton();
  const several = data.runs.length > 1;
  const repeated = (run) => data.runs.filter((other) => other.task === run.task).length > 1;
  if (several) {
    places.append(
      el("a", { href: "#comparison" }, "All runs"),
      ...data.runs.map((run, number) => el("a", { href: `#run-${number}` }, repeated(run) ? run.name : run.task)),
    );
    main.append(comparison(data));
  }
  main.append(...data.runs.map((run, number) => section(run, number, !several)));
}

boot();
