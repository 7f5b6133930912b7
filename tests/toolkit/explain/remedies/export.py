"""Export, TorchScript, and what a tracer or a compiler can't see."""

import warnings

import torch
from torch import nn


def quiet():
    """Leave out the warning that TorchScript is deprecated: the entries say so."""
    warnings.simplefilter("ignore", FutureWarning)


def data_dependent(device):
    class Net(nn.Module):
        def forward(self, x, n):
            if n.item() > 3:  # broken
                x = x * 2  # broken
            x = torch.where(n > 3, x * 2, x)  # fixed
            return x

    x = torch.ones(2)
    program = torch.export.export(Net(), (x, torch.tensor(5)))
    assert program.module()(x, torch.tensor(1)).tolist() == [1, 1]


def size_fixed(device):
    model = nn.Linear(4, 2)
    inputs = torch.ones(1, 4)  # broken
    inputs = torch.ones(2, 4)  # fixed
    sizes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(model, (inputs,), dynamic_shapes=sizes)
    assert program.module()(torch.ones(5, 4)).shape == (5, 2)


def traced_compiled(device):
    quiet()
    model = torch.compile(nn.Linear(4, 2), backend="eager")
    inputs = torch.ones(1, 4)
    traced = torch.jit.trace(model, inputs)  # broken
    traced = torch.jit.trace(model._orig_mod, inputs)  # fixed
    assert traced(inputs).shape == (1, 2)


def no_fake_impl(device):
    @torch.library.custom_op("mylib::double", mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    named = torch.library.register_fake("mylib::double")  # fixed
    named(lambda x: torch.empty_like(x))  # fixed
    compiled = torch.compile(lambda x: double(x) + 1, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [3, 3]


def tracer_constant(device):
    quiet()

    class Net(nn.Module):
        def forward(self, x):
            y = x * 2 if x.sum() > 0 else x  # broken
            y = torch.where(x.sum() > 0, x * 2, x)  # fixed
            return y

    traced = torch.jit.trace(Net(), torch.ones(2))
    assert traced(-torch.ones(2)).tolist() == [-1, -1]


def tracer_outputs(device):
    quiet()

    class Net(nn.Module):
        def forward(self, x):
            return {"logits": x * 2}

    class Wrapped(nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            return tuple(self.model(x).values())

    model = Net()
    model = Wrapped(model)  # fixed
    traced = torch.jit.trace(model, torch.ones(2))
    assert traced(torch.ones(2))[0].tolist() == [2, 2]


def script_python(device):
    quiet()

    class Broken(nn.Module):
        def forward(self, x, **options):
            return x * options["n"]

    class Fixed(nn.Module):
        def forward(self, x: torch.Tensor, n: int):
            return x * n

    scripted = torch.jit.script(Broken())  # broken
    scripted = torch.jit.script(Fixed())  # fixed
    assert scripted(torch.ones(2), n=3).tolist() == [3, 3]


def export_differs(device):
    quiet()
    model = nn.Sequential(nn.Linear(64, 64), nn.Dropout())
    model.eval()  # fixed
    inputs = torch.ones(1, 64)
    with torch.no_grad():
        expected = model(inputs)
    traced = torch.jit.trace(model, inputs)
    torch.testing.assert_close(traced(inputs), expected)
