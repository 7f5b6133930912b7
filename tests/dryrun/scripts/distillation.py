import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
TEMPERATURE, ALPHA = 4.0, 0.7


def make_net(width):
    return nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 5))


class Distiller:
    def __init__(self, teacher, student):
        self.teacher = teacher.eval()
        self.student = student.to(device)
        self.optimizer = torch.optim.SGD(student.parameters(), lr=0.1, momentum=0.9)

    def train_batch(self, x, y):
        x, y = x.to(device), y.to(device)
        with torch.no_grad():
            soft = F.softmax(self.teacher(x) / TEMPERATURE, dim=1)
        logits = self.student(x)
        kd = F.kl_div(F.log_softmax(logits / TEMPERATURE, dim=1), soft, reduction="batchmean")
        loss = ALPHA * TEMPERATURE ** 2 * kd + (1 - ALPHA) * F.cross_entropy(logits, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


distiller = Distiller(make_net(128), make_net(16))
for _ in range(8):
    distiller.train_batch(torch.randn(32, 10), torch.randint(0, 5, (32,)))
