import pytest

from tests.toolkit.dryrun.dry_run import LAYER, check_culprit

pytestmark = pytest.mark.usefixtures("unhurried")


TO_ALONE = "makes a tensor on the CPU: add .to(device)"
CULPRITS = [  # a model's forward, what follows, the line to change, and what is said
    (LAYER, "net(x.cuda())", 12, "this model was never moved"),
    (LAYER, "net.cuda()\nnet(x)", 13, "on the CPU: add device= or .to(device)"),
    (
        LAYER,  # a clone has no parameter for the device
        "kept = {'x': x.numpy()}\n"
        "w = torch.from_numpy(kept.get('x')).clone()\nnet.cuda()(w)",
        15,
        TO_ALONE,
    ),
    (
        LAYER,
        "def scaled(y, by=torch.ones(4)):\n    return y * by\n"
        "scaled(net.cuda()(x.cuda()))",
        14,
        "this default is a tensor on the CPU: move the parameter",
    ),
    (
        LAYER,  # a function's body in its first line is no default
        "def noise(n=torch.rand(1)): return torch.rand(2, 4)\nnet.cuda()(noise())",
        14,
        "on the CPU: add device= or .to(device)",
    ),
    (LAYER, "net.cuda()\nx.cuda()\nnet(x)", 15, "this copy on the device is lost"),
    (LAYER, "torch.compile(net.cuda())(x)", 13, "this line makes a tensor"),
    ("return x * self.scale", "net.cuda()(x.cuda())", 8, "self.register_buffer"),
    ("return self.more[0](x)", "net.cuda()(x.cuda())", 9, "nn.ModuleList"),
    ("return x + torch.ones(4)", "net.cuda()(x.cuda())", 11, "makes a tensor"),
    (
        "return x * doubled(self.scale)",
        "def doubled(t): return torch.cat([t, t])[:4]\nnet.cuda()(x.cuda())",
        8,
        "self.register_buffer",
    ),
    (
        LAYER,  # copied before the move
        "w = net.layer.weight.detach().clone()\nnet.cuda()\nnet.layer.weight - w",
        14,
        "this line used a parameter before the model was moved",
    ),
    (
        LAYER,  # copied in an object's constructor before the move
        "class Average:\n    def __init__(self, net):\n"
        "        self.kept = [p.detach().clone() for p in net.parameters()]\n"
        "average = Average(net)\nnet.cuda()\naverage.kept[0] - net.layer.weight",
        17,
        "this line used a parameter before the model was moved",
    ),
    (
        LAYER,  # the function that makes the tensor also computes with it
        "def noise():\n    z = torch.rand(2, 4)\n    y = z.exp()\n    return y + 1\n"
        "net.cuda()(noise())",
        15,
        "this line makes a tensor on the CPU",
    ),
    (
        LAYER,  # values from the device outweigh what else it meets
        "def outputs():\n    y = torch.zeros(2, 4)\n"
        "    for i in range(2): y[i] = net(x.cuda())[i]\n    return y + torch.ones(4)\n"
        "net.cuda()\nz = outputs()\nz * x.cuda()",
        15,
        "line 16 fills this tensor with values on the device",
    ),
    (
        LAYER,  # lengths stay on the CPU, which is no reason to leave it there
        "def outputs():\n    return torch.ones(2, 3, 4)\n"
        "def train(z):\n    z = nn.utils.rnn.pack_padded_sequence("
        "z, torch.tensor([3, 2]), batch_first=True)[0]\n    return z * x.cuda()[:1]\n"
        "def main():\n    train(outputs())\nmain()",
        17,
        "this tensor was made on the CPU and never moved",
    ),
    (
        LAYER,  # the function's other argument is an array
        "import numpy as np\ndef score(true, found):\n"
        "    return np.mean(np.asarray(found[:, 0]) == true[:, 0])\n"
        "def test():\n    y = net.cuda()(x.cuda())\n    y = y.detach()\n"
        "    return score(np.ones((2, 4)), y)\ntest()",
        19,
        "move each tensor to the CPU first",
    ),
    (
        LAYER,  # an attribute of a tensor is the tensor in another order
        "def start():\n    y = torch.ones(1, 4)\n    return y.T.mT + net.scale.cuda()\n"
        "net.cuda()\nstart()",
        15,
        "this line makes a tensor on the CPU",
    ),
    (
        LAYER,
        "state = net.state_dict()\nnet.cuda()\n"
        "net.load_state_dict(state, assign=True)\nnet(x.cuda())",
        16,
        "with assign=True",
    ),
    (
        LAYER,
        "y = net.cuda()(x.cuda())\nz = y.cpu()\nz - y",
        15,
        "this line copies a tensor to the CPU",
    ),
    (
        LAYER,
        "y = net.cuda()(x.cuda()).detach()\nz = y.cpu()\nz = z.exp()\nz - y",
        17,
        "line 15 copied a tensor to the CPU",
    ),
    (
        LAYER,  # autograd still needs it
        "y = net.cuda()(x.cuda())\nz = y.cpu()\nz = z.exp()\nz - y",
        15,
        "this line copies a tensor to the CPU",
    ),
    (
        "return self.layer(x).cpu()",  # a model's result
        "x = x.cuda()\nwith torch.no_grad():\n    y = net.cuda()(x)\n"
        "z = y.exp()\nz - x",
        11,
        "this line copies a tensor to the CPU",
    ),
    (
        LAYER,  # the data set keeps its tensors, and the batches are moved
        "if not net: x = torch.rand(2, 4)\n"
        "data = torch.utils.data.TensorDataset(x)\n"
        "loader = torch.utils.data.DataLoader(data)\nnet.cuda()\n"
        "for (y,) in loader: net(y.cuda())\nnet(data.tensors[0])",
        19,
        "the tensor is a data set's",
    ),
    (
        LAYER,
        "class Data(torch.utils.data.Dataset):\n"
        "    def __init__(self): self.x = torch.rand(2, 4)\n"
        "    def __len__(self): return 2\n"
        "    def __getitem__(self, i): return self.x[i]\n"
        "data = Data()\nloader = torch.utils.data.DataLoader(data)\n"
        "def first():\n    part = data.x\n    return net(part)\nnet.cuda()\nfirst()",
        21,
        "the tensor is a data set's",
    ),
    (
        LAYER,  # the batch of a loader whose data set made the tensor before
        "class Data(torch.utils.data.Dataset):\n"
        "    def __init__(self): self.x = torch.rand(2, 4)\n"
        "    def __len__(self): return 2\n"
        "    def __getitem__(self, i): return {'x': self.x[i]}\n"
        "data = Data()\nnet.cuda()\n"
        "batch = next(iter(torch.utils.data.DataLoader(data)))\n"
        "net(batch['x'])",
        20,
        "this tensor was made on the CPU and never moved",
    ),
    (
        LAYER,  # a module inside keeps what the outer one made
        "class Masked(nn.Module):\n    def __init__(self, mask):\n"
        "        super().__init__()\n        self.mask = mask\n"
        "    def forward(self, x): return x * self.mask\n"
        "class Outer(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        mask = torch.ones(4)\n"
        "        self.part = Masked(mask)\n"
        "    def forward(self, x): return self.part(x)\n"
        "Outer().cuda()(x.cuda())",
        17,
        "self.register_buffer",
    ),
    (
        "y = self.scale.exp()\n        return x * y",  # a method made it anew
        "net.scale = torch.ones(4).cuda()\n"
        "def set_scale(net, value): net.scale = torch.full((4,), value)\n"
        "net.cuda()(x.cuda())\nset_scale(net, 2.0)\nnet(x.cuda())",
        16,
        "this line makes a tensor on the CPU",
    ),
    (
        LAYER,  # the other list gets copies on the CPU
        "net.cuda()\nx = x.cuda()\ny = x[:, 0]\nseen, true = [], []\n"
        "for _ in range(2):\n    seen.append(net(x)[:, 0].detach().cpu())\n"
        "    true.append(y)\ntorch.cat(seen) == torch.cat(true)",
        20,
        "a line beside this one copies",
    ),
    (
        LAYER,  # the other tensor is joined to copies on the CPU
        "net.cuda()\nx = x.cuda()\ny = x[:, 0]\n"
        "seen, true = torch.zeros(0), torch.zeros(0)\n"
        "for _ in range(2):\n    seen = torch.cat([seen, net(x)[:, 0].cpu()])\n"
        "    true = torch.cat([true, y])",
        20,
        "a line beside this one copies",
    ),
    (
        LAYER,  # the function computes with its argument
        "net.cuda()\nx = x.cuda()\n"
        "def same(a, b):\n    a = a.round()\n    return a == b\n"
        "same(net(x).cpu(), x)",
        19,
        "this line copies a tensor to the CPU",
    ),
    (
        LAYER,
        "net.cuda()\n"
        "def pair():\n    z = torch.rand(2, 8)\n    return z[:, :4], z[:, 4:]\n"
        "a, b = pair()\na, c = a.cuda(), b\nnet(a) - c",
        19,
        "doesn't move all of them",
    ),
    (
        LAYER,  # a function makes two tensors, and its caller moves one of them
        "def ones(): return torch.ones(2, 4)\n"
        "def pair():\n    a = torch.rand(2, 4)\n    return a, ones()\n"
        "net.cuda()\na, b = pair()\n"
        "[a] = \\\n    list(map(lambda t: t.cuda(), [a]))\nnet(a) - b",
        21,
        "line 19 gets several tensors, and this line doesn't move all of them",
    ),
    (
        "return x + torch.ones(4)",  # its caller moved the result of an earlier call
        "for name in ('cpu', 'cuda'):\n    y = net(x.to(name)).cuda()",
        11,
        "makes a tensor",
    ),
    (
        LAYER,  # a class of its own moves the tensors
        "class Pair:\n    def __init__(self, *parts): self.parts = parts\n"
        "    def to(self, d): return Pair(*[part.to(d) for part in self.parts])\n"
        "net.cuda()\npair = Pair(x, x)\npair.to('cuda')\nnet(pair.parts[0])",
        19,
        "this copy on the device is lost",
    ),
    (
        "return torch.sparse.mm(self.sparse, x)",
        "net.sparse = torch.eye(2).to_sparse()\nnet.cuda()(x.cuda())",
        14,
        "a sparse tensor on cpu met a tensor on cuda:0",
    ),
    (LAYER, "net.cuda()(x.cuda()).detach().numpy()", 14, "move each tensor"),
    (
        LAYER,
        "w = torch.rand(4, requires_grad=True).cuda()\n"
        "(x.cuda() * w).sum().backward()\nw.grad.zero_()",
        14,
        "only the original gets a gradient",
    ),
    (
        LAYER,
        "torch.set_default_device('cuda')\n"
        "x = torch.from_numpy(x.numpy())\nnet.cuda()(x)",
        15,
        TO_ALONE,
    ),
    (
        LAYER,
        "lengths = torch.tensor([2, 1]).cuda()\nx = torch.rand(2, 3, 4).cuda()\n"
        "nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)",
        14,
        "the lengths have to stay on the CPU",
    ),
    (
        LAYER,
        "net.norm = nn.BatchNorm1d(4)\nswa = torch.optim.swa_utils\n"
        "swa.update_bn([x], swa.AveragedModel(net.cuda()))",
        11,
        "device=, so that update_bn moves",
    ),
    (
        LAYER,
        "adam = torch.optim.Adagrad(net.parameters())\n"
        "net.cuda()(x.cuda()).sum().backward()\nadam.step()",
        14,
        "move the model before you build the optimizer or load its state",
    ),
    (
        LAYER,
        "def make(): return torch.optim.Adam(net.parameters())\n"
        "adam = make()\nnet(x).sum().backward()\nadam.step()\n"
        "state, adam = adam.state_dict(), make()\nadam.load_state_dict(state)\n"
        "net.cuda()(x.cuda()).sum().backward()\nadam.step()",
        19,
        "move the model before you build the optimizer or load its state",
    ),
    (
        LAYER,
        "class Batch:\n    def __init__(self, x, y): self.x, self.y = x, y\n"
        "    def to(self, device): return Batch(\n        self.x.to(device),\n"
        "        self.y)\nnet.cuda()\nbatch = Batch(x, x + 1).to('cuda')\n"
        "(net(batch.x) + batch.y).cpu()",
        16,
        "this function moves tensors",
    ),
    (
        LAYER,
        "class Batch:\n    def __init__(self, x): self.x = x\n"
        "    def to(self, device):\n        self.x.to(device)\n"
        "        return self\nnet.cuda()\nbatch = Batch(x).to('cuda')\nnet(batch.x)",
        17,
        "this copy on the device is lost",
    ),
    (
        LAYER,
        "def move(batch): return {k: v.cuda() if torch.is_tensor(v) else v\n"
        "                         for k, v in batch.items()}\n"
        "net.cuda()\nbatch = move({'x': x, 'y': [x + 1]})\n"
        "net(batch['x']) + torch.stack(batch['y'])[0]",
        14,
        "this function moves tensors",
    ),
    (
        LAYER,  # all arguments are keywords, and the wrapper's helper moves no keywords
        "def move(values): return [value.cuda() for value in values]\n"
        "def wrap(f):\n    def g(*a, **k):\n        return f(*move(a), **k)\n"
        "    return g\nwrap(net.cuda())(x=x)",
        17,
        "this function moves tensors",
    ),
    (
        LAYER,  # a function that only converts types moves nothing
        "def read(batch): return batch.to(torch.float32)\n"
        "net.cuda()\nx = read(x)\nnet(x)",
        13,
        "this line makes a tensor on the CPU",
    ),
    (
        LAYER,
        "def run(x, device='cpu'): return net(x.to(device))\n"
        "net.cuda()\nrun(x + 1, 'cuda')\nrun(x)",
        17,
        "this call doesn't pass device",
    ),
    (
        LAYER,
        "net.cuda()\ndevice = torch.device('cpu')\nnet(x.to(device))",
        16,
        "this line moves the tensor to the CPU",
    ),
    (
        LAYER,
        "class Clip(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.scale = nn.Parameter(torch.ones(1)).cuda()\n"
        "clip = Clip()\ntorch.optim.SGD([clip.scale])",
        17,
        "only the original gets a gradient",
    ),
    (
        LAYER,
        "torch.manual_seed(0)\nstate = torch.get_rng_state().cuda()\n"
        "torch.set_rng_state(state)",
        16,
        "the random state has to stay on the CPU",
    ),
    (
        "return self.more[0](x)",
        "def change(net):\n    net.more[0] = nn.Linear(4, 4)\n    return net\n"
        "change(net.cuda())(x.cuda())",
        15,
        "this model was never moved",
    ),
    (
        LAYER,
        "class Gains(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.all = []\n"
        "        self.all.append(nn.Parameter(torch.ones(4)))\n"
        "        self.all.append(self.all)\n"
        "gains = Gains().cuda()\nx.cuda() * gains.all[0]",
        17,
        "nn.ParameterList",
    ),
    (
        LAYER,
        "net.cuda()\nnet(x.cuda())\nstate = net.cpu().state_dict()\nnet(x.cuda())",
        16,
        "puts tensors back on the CPU",
    ),
    (
        LAYER,  # tied weights, which a move meets twice
        "net.more[0].weight = net.layer.weight\nnet.last = net.more[0]\n"
        "net.cuda()\nfor p in net.parameters():\n"
        "    average = torch.zeros(p.size())\n    p.data = average.clone()\n"
        "net(x.cuda())",
        19,
        "puts tensors back on the CPU",
    ),
    (LAYER, "y = torch.rand(2)\ntorch.vmap(torch.mul)(x.cuda(), y)", 14, "add device="),
    (
        LAYER,
        "y = torch.rand(2).cuda()\nwith torch.autocast('cuda'):\n"
        "    nn.functional.binary_cross_entropy(y, y)",
        16,
        "use BCEWithLogitsLoss",
    ),
    (
        LAYER,
        "y = net.cuda()(x.cuda())\nones = torch.ones(2, 4)\ny.backward(ones)",
        15,
        "expected device cuda:0 but got cpu",
    ),
    (LAYER, "x = x.long().cuda()\nx @ x.T", 15, "not implemented for 'Long'"),
    (
        LAYER,  # the batch is converted where it is collated, and then unpacked
        "def collate(rows): return {'x': (torch.stack(rows) > 0).float()}\n"
        "loader = torch.utils.data.DataLoader([*x], 2, collate_fn=collate)\n"
        "net.cuda()\nfor batch in loader:\n    y = batch['x']\n    net(y)",
        18,
        "after this line, y is still on the CPU",
    ),
    (
        LAYER,  # one part of the batch is converted and not moved
        "loader = torch.utils.data.DataLoader([*zip(x.double(), x)], 2)\n"
        "net.cuda()\nfor y, z in loader:\n    y = y.float()\n    z = z.cuda()\n"
        "    net(z)\n    net(y)",
        17,
        "after this line, y is still on the CPU",
    ),
    (
        LAYER,  # what is made on a tensor's device is where that tensor is
        "def weights(like):\n    w = torch.ones(2, 4, device=like.device)\n"
        "    return w.exp()\nnet.cuda()\nx.cuda() * weights(x)",
        13,
        "this line makes a tensor",
    ),
    (
        "x = self.layer(x).cpu()\n        "  # a move to it, too
        "one = torch.eye(4).to(x.device)\n        return x @ one + self.layer.bias",
        "net.cuda()(x.cuda())",
        11,
        "this line copies a tensor to the CPU",
    ),
    (
        "y = torch.nn.utils.rnn.pack_padded_sequence(x[None], [2], True)\n        "
        "h = torch.zeros(1, 1, 4)\n        return self.rnn(y, h)",  # beside lengths
        "net.rnn = nn.GRU(4, 4, batch_first=True)\nnet.cuda()(x.cuda())",
        12,
        "this line makes a tensor",
    ),
    (
        LAYER,  # the part of the batch gets another name
        "loader = torch.utils.data.DataLoader([*zip(x, x)], 2)\n"
        "net.cuda()\nfor y, z in loader:\n    y = y.cuda()\n    w = z\n"
        "    net(y)\n    net(w)",
        16,
        "z is still on the CPU",
    ),
    (
        LAYER,  # one line keeps two tensors in an object, and only one is moved
        "class Data:\n    def __init__(self):\n"
        "        self.x, self.y = torch.rand(2, 4), torch.rand(2, 4)\n"
        "data = Data()\nnet.cuda()\nx = data.x[:1].cuda()\ny = data.y[:1]\nnet(y)",
        20,
        "this tensor was made on the CPU and never moved",
    ),
    (LAYER, "y = torch.FloatTensor([1] * 4)\nnet.cuda()(y)", 14, "makes a tensor"),
    (
        LAYER,
        "y = torch.Tensor(2, 4)\ny = torch.autograd.Variable(y)\nnet.cuda()(y)",
        14,
        "makes a tensor on the CPU",
    ),
    (
        LAYER,  # a class keeps what it samples from, and its callers move the samples
        "class Source:\n    def __init__(self):\n"
        "        self.normal = torch.distributions.Normal(0.0, 1.0)\n"
        "    def sample(self):\n        return self.normal.sample((2, 4))\n"
        "source = Source()\nnet.cuda()\nnet(source.sample().cuda())\n"
        "y = source.sample()\nnet(y)",
        22,
        "move it here with .to(device), as line 21 does",
    ),
    (
        LAYER,  # numpy gets the result, so this belongs on the CPU
        "mean = x.mean(0)\nnet.cuda()\nwith torch.no_grad():\n"
        "    y = net(torch.rand(2, 4, device='cuda'))\n    z = y + mean\n"
        "print(z.exp().numpy())",
        17,
        "line 19 takes the result for a tensor on the CPU",
    ),
    (
        LAYER,  # the same, where another function computes the result
        "import numpy as np\nmean = x.mean(0)\nnet.cuda()\n"
        "def shifted(z):\n    z += mean\n    return z\n"
        "y = net(torch.rand(2, 4, device='cuda')).detach()\n"
        "y = shifted(y)\nkept = []\nkept.append(y)\nprint(np.stack(kept))",
        20,
        "line 24 takes the result for a tensor on the CPU",
    ),
    (
        LAYER,  # the line that fails has worked with a tensor on the CPU
        "def gap(a, b):\n    mean = a.mean(0)\n    return (mean - b).norm()\n"
        "mean = x.mean(0)\nprint(gap(x + 1, mean))\nnet.cuda()\n"
        "y = net(torch.rand(2, 4, device='cuda')).detach()\nprint(gap(y, mean))",
        20,
        "line 16 works with tensors on the CPU at other times",
    ),
    (
        LAYER,  # both would be right
        "mean = x.mean(0)\nx = x - mean\nnet.cuda()\n"
        "y = net(torch.rand(2, 4, device='cuda')).detach()\nprint(y + mean)",
        17,
        "since line 15 uses the other one there; or else move that one to the device, "
        "at line 14",
    ),
    (
        LAYER,
        "mean = x.mean(0)\nnet.cuda()\ny = net(x.cuda()).detach()\nprint(y + mean)",
        16,
        "or else move that one to the device, at line 14",
    ),
    (
        LAYER,  # the model gets the result
        "mean = x.mean(0)\nx = x - mean\nnet.cuda()\n"
        "y = net(torch.rand(2, 4, device='cuda')).detach()\ny = y + mean\nnet(y)",
        14,
        "this tensor was made on the CPU",
    ),
    (
        LAYER,  # the result meets another tensor on the device
        "mean = x.mean(0)\nx = x - mean\nnet.cuda()\nz = x.cuda()\n"
        "y = net(torch.rand(2, 4, device='cuda')).detach()\ny = y + mean\nprint(y - z)",
        14,
        "this tensor was made on the CPU",
    ),
    (
        LAYER,  # the script takes the result for one on the device
        "mean = x.mean(0)\nx = x - mean\nnet.cuda()\n"
        "y = net(torch.rand(2, 4, device='cuda')).detach()\n"
        "print((y + mean).cpu().numpy())",
        14,
        "this tensor was made on the CPU",
    ),
    (
        LAYER,  # made by the model, before it was moved
        "style = net(x).detach()\nnet.cuda()\nprint(net(x.cuda()) - style)",
        14,
        "before the model was moved",
    ),
    (
        LAYER,  # a helper that needs its tensors on the CPU
        "def weights(n):\n    counts = torch.arange(1.0, n + 1)\n"
        "    return counts / (counts + torch.ones(n))\nnet.cuda()\n"
        "w = weights(4)\nprint(x.cuda() * w)",
        18,
        "move it here",
    ),
    (
        LAYER,  # a class's body is no helper
        "class Gap:\n    one = torch.ones(4)\n    two = one + torch.ones(4)\n"
        "    def of(self, a, b=one):\n        return a - b\n"
        "print(Gap().of(x.cuda()))",
        15,
        "this line makes a tensor on the CPU",
    ),
    (
        LAYER,  # taken from a copy, and passed into a function that works on both
        "net.cuda()\ny = net(x.cuda()).detach()\ndef gap(a, b):\n"
        "    return (a - b).square()\nouts = y.cpu()\none = outs[0]\n"
        "print(gap(one, y))",
        19,
        "line 18 copied a tensor to the CPU",
    ),
    (
        LAYER,  # a list of what should be numbers
        "import numpy\nnet.cuda()\nlosses = [net(x.cuda()).mean().detach()]\n"
        "def draw(values):\n    return numpy.asarray(values)\ndraw(losses)",
        16,
        "numpy",
    ),
    (
        LAYER,  # made from a parameter that went back to the CPU
        "net.cuda()\nnet.cpu()\nz = next(net.parameters()).new_zeros(2, 4)\n"
        "print(x.cuda() + z)",
        15,
        "this line puts tensors back on the CPU",
    ),
    (
        LAYER,  # a single move before a loop is better than a copy in each turn
        "mean = x.mean(0)\nx = x - mean\nnet.cuda()\nfor _ in range(2):\n"
        "    y = net(torch.rand(2, 4, device='cuda')).detach()\n    print(y + mean)",
        14,
        "this tensor was made on the CPU",
    ),
]


@pytest.mark.parametrize(("forward", "rest", "culprit", "message"), CULPRITS)
def test_the_line_to_change(
    forward: str, rest: str, culprit: int, message: str
) -> None:
    check_culprit(forward, rest, culprit, message)
