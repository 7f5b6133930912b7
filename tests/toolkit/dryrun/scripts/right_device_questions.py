import torch

torch.cuda.manual_seed_all(0)  # does nothing without CUDA
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.deterministic = True
torch.set_float32_matmul_precision("high")

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = torch.nn.Linear(8, 2).to(device)
opt = torch.optim.Adadelta(model.parameters())
x = torch.randn(20, 8).to(device)
y = torch.randint(0, 2, (20,)).to(x.device)

if torch.cuda.is_available():
    assert x.is_cuda and x.device.type == "cuda" and x.get_device() == 0
    assert str(device) == "cuda:0" and x.device == device and x.device.index == 0
    assert model.weight.is_cuda and torch.cuda.current_device() == 0
    assert "cuda" in repr(x) and isinstance(x, torch.Tensor)
else:
    assert not x.is_cuda and str(x.device) == "cpu"

helper = torch.zeros_like(x) + torch.arange(8, device=x.device) + x.new_ones(8)
for _ in range(6):
    loss = torch.nn.functional.cross_entropy(model(x * helper), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print("done on", device)
