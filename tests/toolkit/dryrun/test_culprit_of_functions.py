"""Which of a function and its callers should have moved a tensor."""

import pytest

from tests.toolkit.dryrun.dry_run import LAYER, check_culprit

pytestmark = pytest.mark.usefixtures("unhurried")

CULPRITS = {  # by what is special: the script's rest, the line to change, what is said
    "a function computes several tensors from the batch": (
        "def widths(y, z):\n    a = z[:, 1:] - z[:, :-1]\n    b = z[:, :1] * 2\n"
        "    c = y[:, 1:].clamp(0)\n    return (c - a).sum() + (y - b).sum()\n"
        "net.cuda()\n"
        "for y, z in torch.utils.data.DataLoader([*zip(x, x)], 2):\n"
        "    widths(net(y.cuda()), z)",
        20,
        "z is still on the CPU",
    ),
    "a model changes its batch first": (
        "class Shifted(Net):\n    def forward(self, x):\n        x = x + 1\n"
        "        return super().forward(x)\nnet = Shifted().cuda()\n"
        "for y, z in torch.utils.data.DataLoader([*zip(x, x)], 2):\n    net(y)",
        19,
        "y is still on the CPU",
    ),
    "a model gets a part of the batch": (
        "net = nn.Sequential(nn.Flatten(), Net()).cuda()\n"
        "def step(batch):\n    y, z = batch\n    net(y[:, :])\n"
        "for batch in torch.utils.data.DataLoader([*zip(x, x)], 2):\n    step(batch)",
        16,
        "y is still on the CPU",
    ),
    "a network gets the weights of one on the device": (
        "other = Net()\nother.load_state_dict(net.cuda().state_dict())\n"
        "print(other(x.cuda()))",
        14,
        "this model was never moved",
    ),
    "a data set whose items a library made": (
        "from torchvision.transforms import ToTensor\nimport numpy as np\n"
        "class Rows:\n    def __getitem__(self, i):\n        if i > 1:\n"
        "            raise IndexError\n"
        "        row = ToTensor()(np.ones((2, 2, 1), np.float32))\n        return row\n"
        "def means(rows):\n    found = [row.flatten() for row in rows]\n"
        "    mean = torch.stack(found).mean(0)\n    return mean\n"
        "def train(y):\n    mean = means(Rows())\n    return net(y) - mean\n"
        "net.cuda()\ntrain(x.cuda())",
        27,
        "this line gets a tensor on the CPU",
    ),
    "a branch that doesn't run moves the batch, too": (
        "loader = torch.utils.data.DataLoader([*x], 2)\nnet.cuda()\n"
        "for y in loader:\n    if torch.cuda.is_available():\n        z = y * 2\n"
        "    else:\n        y = y.cpu()\n    net(y)",
        16,
        "after this line, y is still on the CPU",
    ),
    "a function that runs later takes the result for one on the CPU": (
        "def score(y, true):\n    return (y.numpy() - true.numpy()).mean()\n"
        "net.cuda()\nwith torch.no_grad():\n    for z in torch.ones(3, 2, 4):\n"
        "        y = net(z.cuda())\n        loss = (y - z).norm()\n"
        "        print(loss.item(), score(y, z))",
        19,
        "line 21 takes the result for a tensor on the CPU",
    ),
    "a method that runs later takes it for one on the CPU": (
        "import numpy as np\nclass Meter:\n"
        "    def add(self, n, y):\n        self.total = n * self.mean(true=1, y=y)\n"
        "    def mean(self, y, true): return np.mean(y) - true\n"
        "meter = Meter()\nnet.cuda()\nwith torch.no_grad():\n"
        "    for z in torch.ones(3, 2, 4):\n"
        "        y = net(z.cuda())\n        loss = (y - z).norm()\n"
        "        meter.add(1, y)",
        23,
        "line 25 takes the result for a tensor on the CPU",
    ),
    "a method of a model gives a tensor to another module": (
        "class Wrapper(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.net = net\n        self.make()\n"
        "    def make(self):\n        scale = torch.ones(4)\n"
        "        setattr(self.net, 'factor', scale.abs())\n"
        "    def forward(self, x):\n        return self.net(x) * self.net.factor\n"
        "Wrapper().cuda()(x.cuda())",
        21,
        "this isn't registered with the model",
    ),
    "a list gets copies on the CPU": (
        "net.cuda()\nouts = []\nfor _ in range(2):\n"
        "    out = net(x.cuda()).detach().cpu()\n    outs.append(out)\n"
        "goal = x.cuda()\nprint(torch.stack(outs).mean(0) - goal)",
        17,
        "this line copies a tensor to the CPU",
    ),
    "a parameter beside a model": (
        "class Agent:\n    def __init__(self):\n        self.net = net.cuda()\n"
        "        self.heat = nn.Parameter(torch.ones(4))\n"
        "    def act(self, x): return self.net(x) / self.heat\n"
        "Agent().act(x.cuda())",
        17,
        "this parameter is of no model",
    ),
    "a caller passes the CPU": (
        "def batches(data, device):\n"
        "    data = data.view(4, 2)\n"
        "    return data.t().to(device)\n"
        "net.cuda()\n"
        "train = batches(x, 'cuda')\n"
        "test = batches(x, 'cpu')\n"
        "net(train)\n"
        "net(test)",
        19,
        "this call passes the CPU as device",
    ),
    "a caller's caller passes the CPU": (
        "class Loader:\n"
        "    def batch(self, device): return self.first(1, device=device)\n"
        "    def first(self, n, device): return (x + n).to(device)\n"
        "net.cuda()\n"
        "place = torch.device('cpu')\n"
        "test = Loader().batch(place)\n"
        "net(test)",
        19,
        "this call passes the CPU as device",
    ),
    "a caller's caller leaves out the CPU": (
        "def first(data, device): return data.to(device)\n"
        "def batch(data, device='cpu'): return first(data, device)\n"
        "net.cuda()\n"
        "test = batch(x)\n"
        "net(test)",
        17,
        "this call doesn't pass device, whose default is the CPU",
    ),
    "a memory keeps on the CPU what is moved later": (
        "memory = []\n"
        "def store(x, y):\n"
        "    memory.append((x.to('cpu'), torch.tensor([y]).to('cpu')))\n"
        "def unpack():\n"
        "    first = torch.stack([x for x, _ in memory]).cuda()\n"
        "    second = torch.stack([y for _, y in memory])\n"
        "    return first, second\n"
        "def learn():\n"
        "    first, second = unpack()\n"
        "    net(first)[:, 0].gather(0, second[0])\n"
        "net.cuda()\n"
        "store(torch.rand(4), 0)\n"
        "learn()",
        19,
        "line 18 moves its tensor: do so here, too",
    ),
    "a function moves one of the tensors that it changes": (
        "def sample():\n"
        "    z = torch.rand(6, 4)\n"
        "    y = torch.rand(6, 4)\n"
        "    y[:3, 0] *= 2\n"
        "    z[0] = torch.ones(4)\n"
        "    if torch.cuda.is_available():\n"
        "        y = y.cuda()\n"
        "    return y, z\n"
        "net.cuda()\n"
        "y, z = sample()\n"
        "net(y) + z",
        15,
        "this line makes a tensor on the CPU",
    ),
    "a part of a tensor is no other tensor": (
        "def sample():\n"
        "    y = torch.rand(6, 4)\n"
        "    y[:3, 0] *= 2\n"
        "    return y\n"
        "net.cuda()\n"
        "y = sample()\n"
        "net(y)",
        15,
        "this line makes a tensor on the CPU",
    ),
    "a method returns the model that it makes": (
        "class Factory:\n"
        "    def create(self):\n"
        "        return Net()\n"
        "class Agent:\n"
        "    def __init__(self, factory):\n"
        "        self.net: Net = factory.create()\n"
        "agent = Agent(Factory())\n"
        "agent.net(x.cuda())",
        19,
        "this model was never moved",
    ),
    "a method keeps the tensor in another object": (
        "import copy\n"
        "class Loader:\n"
        "    def __init__(self, agent): self.agent = agent\n"
        "    def load(self):\n"
        "        file = {'x': x.clone(), 'n': 3}\n"
        "        self.agent.x = file['x']\n"
        "        self.agent.y = file['x'].cuda()\n"
        "        return file['n']\n"
        "net.cuda()\n"
        "Loader(net).load()\n"
        "net.z = net.x.exp()\n"
        "net(net.y) * net.z",
        24,
        "this tensor was made on the CPU and never moved",
    ),
    "indices may stay on the CPU": (
        "def masks(): return torch.ones(2, 4) > 0, torch.ones(2, 4) > 0\n"
        "def points(y, mask):\n"
        "    values = y[mask].view(8)\n"
        "    at = mask.nonzero()[:, 1].float().view(8)\n"
        "    return values, at\n"
        "first, second = masks()\n"
        "first = first.cuda()\n"
        "values, at = points(x.cuda(), second)\n"
        "print(values * at)",
        20,
        "this line doesn't move all of them",
    ),
    "a function fills what it returns, and another one joins it": (
        "def sample():\n"
        "    y = torch.zeros(2, 4).double().type(torch.FloatTensor)\n"
        "    y[:] = net(x.cuda())\n"
        "    return y\n"
        "def batch(): return torch.cat([sample()])[:2]\n"
        "net.cuda()\n"
        "net(batch().cuda())\n"
        "net(batch())",
        15,
        "line 16 fills this tensor",
    ),
    "a method adds the tensor to a list": (
        "class Agent:\n"
        "    def __init__(self): self.seen = []\n"
        "    def act(self, state):\n"
        "        state = torch.tensor(state)\n"
        "        self.seen.append(state)\n"
        "        return net(state.cuda())\n"
        "    def learn(self):\n"
        "        seen = torch.stack(self.seen)\n"
        "        return net(seen)\n"
        "agent, _ = Agent(), net.cuda()\n"
        "for _ in range(2):\n"
        "    action = agent.act([1.0] * 4)\n"
        "agent.learn()",
        21,
        "this tensor was made on the CPU and never moved",
    ),
    "a model only computes with its input": (
        "class Outer(nn.Module):\n"
        "    def forward(self, y):\n"
        "        z = torch.tanh(y)\n"
        "        return net(z)\n"
        "net.cuda()\n"
        "y = torch.rand(2, 4)\n"
        "Outer()(y)",
        19,
        "this line makes a tensor on the CPU",
    ),
    "a model makes a mask from lengths": (
        "class Outer(nn.Module):\n"
        "    def forward(self, y, lengths):\n"
        "        mask = lengths > 1\n"
        "        return net(y) * mask[:, None]\n"
        "net.cuda()\n"
        "lengths = torch.tensor([1, 2])\n"
        "Outer()(x.cuda(), lengths)",
        16,
        "add .to(device)",
    ),
    "a loop over a tensor's rows": (
        "net.cuda()\ny = torch.rand(2, 4)\nfor row in y:\n    net(row)",
        15,
        "this line makes a tensor on the CPU",
    ),
    "a batch is changed in its dictionary": (
        "class Outer(nn.Module):\n"
        "    def forward(self, batch):\n"
        "        y = batch['x']\n"
        "        return net(y)\n"
        "net.cuda()\n"
        "for batch in torch.utils.data.DataLoader([{'x': row} for row in x], 2):\n"
        "    batch['x'] = batch['x'].float().view(2, 4)\n"
        "    Outer()(batch)",
        20,
        "batch['x'] is still on the CPU",
    ),
    "a copied model's data": (
        "import copy\n"
        "kept = copy.deepcopy(net)\n"
        "net.cuda()\n"
        "def mean(old, new): return old * 0.9 + new * 0.1\n"
        "for old, new in zip(kept.parameters(), net.parameters()):\n"
        "    old.data = mean(old.data, new.data)",
        15,
        "this line used a parameter before the model was moved",
    ),
}


@pytest.mark.parametrize(
    ("rest", "culprit", "message"), CULPRITS.values(), ids=CULPRITS
)
def test_the_line_to_change(rest: str, culprit: int, message: str) -> None:
    check_culprit(LAYER, rest, culprit, message)
