import torch

# Module.to moves parameters in place: an optimizer that was made before still has them
model = torch.nn.Sequential(torch.nn.Linear(3, 10), torch.nn.BatchNorm1d(10), torch.nn.ReLU(), torch.nn.Linear(10, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=12)

if torch.cuda.is_available():
    model.cuda()

x = torch.rand(80, 3)
y = x.norm(dim=1, keepdim=True)
if torch.cuda.is_available():
    x, y = x.cuda(), y.cuda()

before = model[0].weight.detach().clone()
for step in range(12):
    loss = torch.nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
assert not torch.equal(before, model[0].weight)
print("lr", scheduler.get_last_lr()[0])
