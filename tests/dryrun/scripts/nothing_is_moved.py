import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
print("Training on", device)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 12, 3)
        self.fc = nn.Linear(12 * 3 * 3, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


net = LeNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
images, labels = torch.rand(64, 1, 20, 20), torch.randint(0, 10, (64,))

for epoch in range(2):
    for i in range(0, 64, 16):
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images[i:i + 16]), labels[i:i + 16])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
