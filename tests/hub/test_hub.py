"""A controller for the Hugging Face hub: the folder, its card, and the card as the hub's own library reads it."""

import json
import math

import pytest
from click.testing import CliRunner

import lowgear
from lowgear import LowgearError
from lowgear.commands.cli import cli
from lowgear.export.source import Source, random_episodes
from lowgear.hub import folder
from lowgear.hub.front_matter import front_matter
from tests.fixtures import runs
from tests.fixtures.policies import HEADER, policy_of

HOSTILE = 'a: "b" \\ {x} #1 \u0085 é 🤖\x7f'


@pytest.fixture(autouse=True, scope="module")
def few_steps():
    """What an export is held against: whole episodes are what other tests of exports take."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Source, "episodes", lambda source, *_: random_episodes(source.policy, 1, steps=60))
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = runs.make_run(tmp_path_factory.mktemp("hub") / "run", relative=True)
    own = lowgear.load(path, agent=1).cost_coefficient
    return runs.evaluate(path, [*runs.relative_rows(-1.0, 10.0), runs.row(1, "asymmetric", own, 89.5, 0.2)])


def export(*arguments):
    return CliRunner().invoke(cli, ["export", *map(str, arguments), "--format", "hub"])


@pytest.fixture(scope="module")
def exported(run):
    result = export(run, "--agent", "1", "--repo", "me/car", "--license", "mit", "--name", "car")
    assert result.exit_code == 0, result.output
    return run / "export" / "agent1-hub", result


def test_the_folder_has_all_that_the_hub_wants(exported):
    out, result = exported
    assert {path.name for path in out.iterdir()} == {
        "car.safetensors",
        "README.md",
        "config.json",
        "frontier.png",
        "export.json",
    }
    assert f"push it with `hf upload me/car {out}`" in result.stdout
    assert "note:" not in result.stderr
    assert lowgear.load(out / "car.safetensors").policy.header.seed == 1
    config = json.loads((out / "config.json").read_text())
    assert (config["library_name"], config["policy"], config["header"]["seed"]) == ("lowgear", "car.safetensors", 1)
    assert [agent["seed"] for agent in config["training"]["agents"]] == [1]
    assert json.loads((out / "export.json").read_text())["checked"]["wrong_gears"] == 0
    assert (out / "frontier.png").read_bytes().startswith(b"\x89PNG")


def test_the_card_has_the_frontier_and_how_to_load_it(run, exported):
    text = (exported[0] / "README.md").read_text()
    rows = [row for row in json.loads((run / "evaluation.json").read_text())["agents"] if row["agent"] == 1]
    table = [line for line in text.splitlines() if line.startswith("| this one")]
    assert len(table) == len(rows) > 2
    for row in rows:
        assert any(f"| {row['cost_coefficient']:.3g} | {row['return_mean']:.4g}" in line for line in table)
    assert sum("as shipped" in line for line in table) == 1
    assert "| small-only, seed 0 |" in text
    assert "![Return against FLOPs per step](frontier.png)" in text
    assert 'lowgear.load(hf_hub_download("me/car", "car.safetensors"))' in text
    assert "agent.cost_coefficient = " in text


def test_what_is_missing_is_told_with_its_remedy(tmp_path):
    policy_of(HEADER).save(tmp_path / "agent.safetensors")
    result = export(tmp_path / "agent.safetensors", "--name", "pole")
    assert result.exit_code == 0, result.output
    assert "lowgear evaluate" in result.stderr
    assert "choose one with --license" in result.stderr
    text = (tmp_path / "agent-hub" / "README.md").read_text()
    assert 'license: "unknown"' in text
    assert "model-index" not in text
    assert not (tmp_path / "agent-hub" / "frontier.png").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--license", "My own!"], "--license 'My own!': write one of the hub's names"),
        (["--repo", "../x"], "--repo '../x': write OWNER/NAME"),
    ],
)
def test_names_that_the_hub_refuses_leave_no_folder(tmp_path, options, message):
    policy_of(HEADER).save(tmp_path / "agent.safetensors")
    result = export(tmp_path / "agent.safetensors", *options)
    assert isinstance(result.exception, LowgearError)
    assert str(result.exception).startswith(message)
    assert not (tmp_path / "agent-hub").exists()


def test_options_of_the_hub_are_for_the_hub(tmp_path):
    policy_of(HEADER).save(tmp_path / "agent.safetensors")
    result = CliRunner().invoke(cli, ["export", str(tmp_path / "agent.safetensors"), "--format", "c", "--repo", "a/b"])
    assert str(result.exception) == "--license and --repo are for --format hub, not for c: leave them out"
    with pytest.raises(LowgearError, match=r"repo='x': write OWNER/NAME"):
        lowgear.export(tmp_path / "agent.safetensors", "hub", tmp_path / "out", repo="x")


def test_a_policy_that_acts_otherwise_is_not_written(tmp_path, monkeypatch):
    policy_of(HEADER).save(tmp_path / "agent.safetensors")
    monkeypatch.setattr(folder, "load", lambda _: policy_of(HEADER, seed=1))
    with pytest.raises(LowgearError):
        lowgear.export(tmp_path / "agent.safetensors", "hub")
    assert not (tmp_path / "agent-hub").exists()


def test_front_matter_is_yaml_whatever_a_name_holds():
    text = front_matter({"a": HOSTILE, "b": [1, True, 0.25, 1e-7], "c": [{"d": {"e": "f"}, "g": -3.0}]})
    assert text.splitlines() == [
        "---",
        'a: "a: \\"b\\" \\\\ {x} #1 \\U00000085 \\U000000e9 \\U0001f916\\U0000007f"',
        "b:",
        "  - 1",
        "  - true",
        "  - 0.25",
        "  - 1.0e-07",
        "c:",
        "  - d:",
        '      e: "f"',
        "    g: -3.0",
        "---",
    ]


@pytest.mark.trackers
def test_the_hubs_own_library_reads_the_card(run, exported):
    from huggingface_hub import ModelCard

    card = ModelCard.load(exported[0] / "README.md")
    assert (card.data.library_name, card.data.license, card.data.pipeline_tag) == (
        "lowgear",
        "mit",
        "reinforcement-learning",
    )
    assert "MountainCarContinuous-v0" in card.data.tags
    own = lowgear.load(exported[0] / "car.safetensors").cost_coefficient
    rows = json.loads((run / "evaluation.json").read_text())["agents"]
    (row,) = [row for row in rows if row["agent"] == 1 and math.isclose(row["cost_coefficient"], own, rel_tol=1e-6)]
    results = {result.metric_type: result for result in card.data.eval_results}
    assert results["mean_reward"].metric_value == pytest.approx(row["return_mean"])
    assert results["flops_reduction"].metric_value == pytest.approx(row["flops_reduction"])
    assert {result.task_type for result in results.values()} == {"reinforcement-learning"}
    assert {result.dataset_name for result in results.values()} == {"MountainCarContinuous-v0"}


@pytest.mark.trackers
def test_yaml_reads_back_what_was_written():
    import yaml

    data = {"a": HOSTILE, "b": [1, True, 0.25, 1e-7, 1e15, "no", ""], "c": [{"d": {"e": "f"}, "g": -3.0}, {"h": [2]}]}
    assert yaml.safe_load(front_matter(data).strip().strip("-")) == data
