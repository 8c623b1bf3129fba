"""What `peer_faults.py` has libraries do, each in a process of its own: train, go on, evaluate, load.

    python benchmarks/peer_workers.py '{"tool": "sb3", "action": "train", "folder": "/tmp/x", "seed": 0, "members": 1}'

Libraries are used as their documents show: Stable-Baselines3 and SBX with a CheckpointCallback that saves the replay
buffer too, RLtools with its policy exported as often.
"""

import hashlib
import json
import re
import sys
from pathlib import Path

STEPS, EVERY = 256, 64  # of a run, and between checkpoints
TASK, ENDLESS = "FaultyPendulum-v0", "EndlessPendulum-v0"


def _algorithm(tool):
    if tool == "sb3":
        from stable_baselines3 import SAC
    else:
        from sbx import SAC
    return SAC


def _vector(task, members, guard=False):
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecCheckNan

    env = make_vec_env(task, members)
    return VecCheckNan(env, raise_exception=True) if guard else env


def _callback(folder):
    from stable_baselines3.common.callbacks import CheckpointCallback

    return CheckpointCallback(EVERY, folder, save_replay_buffer=True)


def stable_train(tool, folder, seed, members, guard=False):
    sizes = {"policy_kwargs": {"net_arch": [32, 32]}, "batch_size": 64, "learning_starts": 64}
    model = _algorithm(tool)("MlpPolicy", _vector(TASK, members, guard), seed=seed, device="cpu", **sizes)
    model.learn(STEPS, callback=_callback(folder))


def stable_go_on(tool, folder, path, steps):
    model = _algorithm(tool).load(path, env=_vector(TASK, 1), device="cpu")
    model.load_replay_buffer(str(path).replace("rl_model_", "rl_model_replay_buffer_").replace(".zip", ".pkl"))
    model.learn(STEPS - steps, callback=_callback(folder), reset_num_timesteps=False)


def stable_endless(tool, path):
    from stable_baselines3.common.evaluation import evaluate_policy

    print(evaluate_policy(_algorithm(tool).load(path, device="cpu"), _vector(ENDLESS, 1), n_eval_episodes=1))


def stable_load(tool, path):
    model = _algorithm(tool).load(path, device="cpu")
    if tool == "sb3":
        arrays = [value.numpy() for value in model.policy.state_dict().values()]
    else:
        import jax

        arrays = jax.tree.leaves((model.policy.actor_state.params, model.policy.qf_state.params))
    return model.num_timesteps, arrays


def rltools_train(tool, folder, seed, members, task=TASK):
    del tool
    import gymnasium
    from rltools import SAC

    def make():
        env = gymnasium.wrappers.RescaleAction(gymnasium.make(task), -1, 1)
        env.reset(seed=seed)
        return env

    sizes = {"ACTOR_HIDDEN_DIM": 32, "CRITIC_HIDDEN_DIM": 32, "ACTOR_BATCH_SIZE": 64, "CRITIC_BATCH_SIZE": 64}
    name = f"{task.split('-')[0]}{members}"
    module = SAC(make, interface_name=name, enable_evaluation=task == ENDLESS, N_ENVIRONMENTS=members, **sizes)
    state = module.State(seed)
    Path(folder).mkdir(exist_ok=True)
    for step in range(1, STEPS // members + 1):
        state.step()
        if step * members % EVERY == 0:
            (Path(folder) / f"policy-{step * members}.h").write_text(state.export_policy())


def rltools_load(tool, path):
    """The weights lie in the header as hexadecimal numbers."""
    del tool
    import numpy as np

    text = Path(path).read_text()
    rows = re.findall(r"memory\[\] = \{([^}]*)\}", text)
    if not rows or text.count("{") != text.count("}"):
        raise ValueError("the header breaks off")
    arrays = [np.array([float.fromhex(word.strip().removesuffix("f")) for word in row.split(",")]) for row in rows]
    return int(Path(path).stem.split("-")[-1]), arrays


def rltools_compile(tool, path):
    """As its documents load a policy."""
    del tool
    import numpy as np
    from rltools import load_checkpoint_from_path

    print(load_checkpoint_from_path(path, force_recompile=True).evaluate(np.ones(3, np.float32)))


def lowgear_load(tool, path):
    del tool
    import numpy as np

    import lowgear

    files = [Path(path)] if Path(path).is_file() else sorted(Path(path, "policies").glob("agent?.safetensors"))
    for file in files:
        lowgear.load(file)  # refuses weights that are not finite
    latest = Path(path, "checkpoint/latest.json")
    steps = json.loads(latest.read_text())["steps"] if latest.exists() else None
    return steps, [np.frombuffer(file.read_bytes(), np.uint8) for file in files]


def look(tool, path):
    """What is in a saved file: steps, a digest of the weights and whether they are finite; or why it is refused."""
    import numpy as np

    try:
        steps, arrays = READERS[tool](tool, path)
    except Exception as error:
        return {"refused": f"{type(error).__name__}: {error}".splitlines()[0][:300]}
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()
    return {"steps": steps, "digest": digest, "finite": all(bool(np.isfinite(array).all()) for array in arrays)}


READERS = {"sb3": stable_load, "sbx": stable_load, "rltools": rltools_load, "lowgear": lowgear_load}

if __name__ == "__main__":
    import faulty_pendulum  # noqa: F401  registers the environments

    given = json.loads(sys.argv[1])
    action = given.pop("action")
    if action == "load":
        print(json.dumps(look(**given)))
    else:
        family = "stable" if given["tool"] in ("sb3", "sbx") else given["tool"]
        globals()[f"{family}_{action}"](**given)
