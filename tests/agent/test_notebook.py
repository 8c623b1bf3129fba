import subprocess
import sys
from xml.etree import ElementTree

import lowgear
from tests.fixtures.probes import Valley
from tests.fixtures.weights import thrifty


def line(steps, value):
    train = {"kind": "train", "agent": 0, "variant": "asymmetric", "cost_coefficient": 0.01, "large_share": 0.25}
    return train | {"steps": steps, "return": value}


def test_a_notebook_shows_a_table_and_a_curve(tmp_path):
    agent = lowgear.Agent(Valley, gears=(2, 4), cost_coefficient=(0.001, 0.1))
    assert "call learn(total_timesteps)" in agent._repr_html_()
    assert "not trained yet" in repr(agent)
    agent._policy = thrifty()
    agent.history += [line(100, 1.0), line(200, 5.5)]
    text = agent._repr_html_()
    table, curve = text[: text.index("<svg")], text[text.index("<svg") :]
    rows = [[cell.text for cell in row] for row in ElementTree.fromstring(table)]
    assert ["return while training", "5.5, large gear 25% of steps"] in rows
    assert ["cost coefficient", "0.01, on a dial from 0.001 to 0.1"] in rows
    assert ElementTree.fromstring(curve).tag.endswith("svg")
    path = tmp_path / "<b>.safetensors"
    agent.save(path)
    assert "<svg" not in lowgear.load(path)._repr_html_()  # a controller alone knows of no training


def test_predicting_imports_no_learner(tmp_path):
    thrifty().save(tmp_path / "one.safetensors")
    program = (
        "import sys, lowgear\n"
        f"agent = lowgear.load({str(tmp_path / 'one.safetensors')!r})\n"
        "agent.predict([0.5])\n"
        "heavy = {'jax', 'envpool', 'gymnasium', 'matplotlib', 'rich', 'click'} & set(sys.modules)\n"
        "assert callable(lowgear.evaluate) and callable(lowgear.export)\n"
        "assert not heavy, heavy\n"
        "import lowgear.export.source\n"
        "assert callable(lowgear.export)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
