import time
import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
if device.type == "cuda":
    print(torch.cuda.get_device_name(0), torch.cuda.device_count(), torch.version.cuda)

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(256, 64, device=device)


def step():
    opt.zero_grad()
    model(x).square().mean().backward()
    opt.step()


step()  # warm up
if device.type == "cuda":
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(10):
        step()
    end.record()
    torch.cuda.synchronize()
    print(f"{start.elapsed_time(end) / 10:.3f} ms a step")
else:
    t0 = time.perf_counter()
    for _ in range(10):
        step()
    print(f"{(time.perf_counter() - t0) * 100:.3f} ms a step")
