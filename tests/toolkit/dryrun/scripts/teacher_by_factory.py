import torch
from torch import nn
from torch.nn import functional as F

dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def block(i, o):
    return nn.Sequential(nn.Linear(i, o), nn.ReLU())


def build(width):
    net = nn.Sequential(block(16, width), block(width, width), nn.Linear(width, 4))
    return net


def distill(student, teacher, steps=12):
    opt = torch.optim.AdamW(student.parameters())
    for _ in range(steps):
        x = torch.randn(64, 16, device=dev)
        with torch.no_grad():
            soft = teacher(x).softmax(1)
        loss = F.kl_div(student(x).log_softmax(1), soft, reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()


student = build(16).to(dev)
teacher = build(64)
distill(student, teacher)
