"""`lowgear tasks` as a person meets it: the table, one task, JSON, and every kind of mistake."""

import json
import subprocess
import sys
import threading

import pytest

from lowgear.commands import cli, ctrl_c
from lowgear.envs import trial


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of `lowgear ARGUMENTS`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["lowgear", *arguments])
        patch.setattr(ctrl_c, "begin", lambda: None)  # it would listen for as long as the tests run
        with pytest.raises(SystemExit) as ended:
            cli.main()
    captured = capsys.readouterr()
    return int(ended.value.code or 0), captured.out, captured.err


def test_help_teaches_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "lowgear train cartpole-swingup" in out
    assert "low gear" in out


def test_help_loads_nothing_heavy() -> None:
    """What makes `--help` slow is an import, so the imports are what is checked: a clock would be flaky."""
    script = (
        "import sys; sys.argv = ['lowgear', '--help']\n"
        "from lowgear.commands import cli\n"
        "try: cli.main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'jax', 'envpool', 'gymnasium', 'dm_control', 'mujoco', 'rich'}\n"
        "heavy &= set(sys.modules)\n"
        "sys.exit(f'loaded {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from lowgear import __version__

    assert __version__ in run(capsys, "--version")[1]


@pytest.mark.parametrize("columns", ["80", "200"])
def test_table_has_every_task_and_cuts_no_cell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    code, out, _ = run(capsys, "tasks")
    assert code == 0
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= int(columns)
    swimmer = " ".join(line for line in out.splitlines() if "Swimmer-v3" in line).split()
    for cell in ("8", "2", "8,256", "424.8", "0.0001", "2.5M", "27.9", "66.4", "98.9", "65.2%", "44.6%"):
        assert cell in swimmer
    assert sum("ball_in_cup-catch" in line for line in out.splitlines()) == (2 if columns == "80" else 1)


def test_json_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "tasks", "--json")
    rows = json.loads(out)
    assert (code, err, len(rows)) == (0, "", 16)
    ant = next(row for row in rows if row["name"] == "Ant-v3")
    assert ant["gears"] == [64, 256]
    assert ant["gear_flops"] == [24_451, 196_099]
    assert ant["published"]["asymmetric"] == [2558.8, 1140.0]


def test_one_task(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "tasks", "walker-stand")
    assert code == 0
    assert "12,803 FLOPs, cost 18.1" in out
    assert "943.8 ± 23.3" in out
    assert "Swimmer" not in out


def test_any_other_environment_with_gears(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "tasks", "envpool:FetchReach-v1", "--gears", "8,32,64", "--json")
    row = json.loads(out)
    assert code == 0
    assert (row["obs_dim"], row["act_dim"], row["max_episode_steps"]) == (16, 4, 50)
    assert row["layout"] == [["observation", 10], ["achieved_goal", 3], ["desired_goal", 3]]
    assert row["desired_goal"] == [13, 16]
    assert row["gear_flops"] == [515, 3587, 11267]
    assert row["gear_costs"][0] == 1


def test_other_widths_hide_the_published_figures(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "tasks", "walker-stand", "--gears", "8,32")
    assert "32 units" in out
    assert "943.8" not in out


def test_try_reports_a_speed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "TRIAL_S", 0.05)
    code, out, _ = run(capsys, "tasks", "MountainCarContinuous-v0", "--try", "--json")
    assert code == 0
    assert json.loads(out)["steps_per_second"] > 1000
    code, out, _ = run(capsys, "tasks", "MountainCarContinuous-v0", "--try")
    assert "steps/s" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["walkr-stand"], "did you mean walker-stand"),
        (["foo:Bar-v0"], "unknown source 'foo'"),
        (["foo:Bar"], "no Python module foo"),
        (["gym:CartPole-v1"], "Discrete(2)"),
        (["envpool:Nope-v1"], "EnvPool has no environment 'Nope-v1'"),
        (["--gears", "8,64"], "lowgear tasks NAME --gears 8,64"),
        (["walker-stand", "--gears", "64"], "two are needed"),
        (["walker-stand", "--gears", "64,hold,hold"], "hold is there twice"),
        (["walker-stand", "--gears", "0,8"], "--gears '0,8': write for example --gears 8,64"),
        (["walker-stand", "--gears", "wide"], "--gears 'wide': write for example --gears 8,64"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, out, err = run(capsys, "tasks", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("lowgear: error: ")
    assert message in err
    assert err.count("\n") == 1


def test_wrong_usage_exits_with_2_as_well(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "taskss")
    assert code == 2
    assert "taskss" in err


def test_interrupt_exits_with_130(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lowgear.config.tasks.published_tasks", interrupt)
    monkeypatch.setattr(ctrl_c, "_ending", threading.Lock())
    monkeypatch.setattr(ctrl_c.os, "_exit", sys.exit)
    assert run(capsys, "tasks")[0] == 130


def test_ones_own_environment_tells_its_names_and_its_rewards(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "tasks", "tests.fixtures.probes:Wander")
    assert code == 0
    for part in ("2 (place, steps left)", "1 (push)", "reported", "a step with random actions", "8 episodes"):
        assert part in " ".join(out.split())
    found = json.loads(run(capsys, "tasks", "tests.fixtures.probes:Wander", "--json")[1])
    assert found["rewards"]["episodes"] == 8
    assert found["observation_names"] == ["place", "steps left"]
    assert "rewards" not in json.loads(run(capsys, "tasks", "walker-stand", "--json")[1])
