"""An arm that a weak motor holds upright: the environment of the README."""

import gymnasium
import numpy as np


class Arm(gymnasium.Env):
    metadata = {"observation_names": ["angle", "speed"], "action_names": ["torque"]}
    observation_space = gymnasium.spaces.Box(-100, 100, (2,))
    action_space = gymnasium.spaces.Box(-2, 2, (1,))

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.angle, self.speed, self.steps = *self.np_random.uniform(-1, 1, 2), 0
        return np.float32([self.angle, self.speed]), {}

    def step(self, action):
        self.speed += 0.05 * (4 * np.sin(self.angle) + 3 * action[0] - self.speed)
        self.angle, self.steps = self.angle + 0.05 * self.speed, self.steps + 1
        reward, info = float(np.cos(self.angle)), {"is_success": abs(self.angle) < 0.1}
        return np.float32([self.angle, self.speed]), reward, False, self.steps == 200, info
