"""The impure side of learning: collecting, learners on this machine's devices, the loop, checkpoints."""
