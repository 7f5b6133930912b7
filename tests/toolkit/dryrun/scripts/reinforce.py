import random
import torch
from torch import nn
from torch.distributions import Categorical

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


class Corridor:
    """Walk right to win."""

    def reset(self):
        self.x = 0
        return [self.x / 5, 1.0]

    def step(self, action):
        self.x += 1 if action == 1 else -1
        done = abs(self.x) >= 3 or random.random() < 0.05
        return [self.x / 5, 1.0], float(self.x >= 3), done


policy = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).to(device)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
env = Corridor()

for episode in range(6):
    state, done, log_probs, rewards = env.reset(), False, [], []
    while not done:
        s = torch.tensor(state, device=device)
        dist = Categorical(logits=policy(s))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        state, reward, done = env.step(action.item())
        rewards.append(reward)

    returns, R = [], 0.0
    for r in reversed(rewards):
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns)
    policy_loss = -(torch.stack(log_probs) * returns).sum()
    optimizer.zero_grad()
    policy_loss.backward()
    optimizer.step()
