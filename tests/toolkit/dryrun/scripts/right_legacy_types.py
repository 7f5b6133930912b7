import numpy as np
import torch
import torch.nn as nn
from torch.autograd import Variable

cuda = True if torch.cuda.is_available() else False
generator = nn.Sequential(nn.Linear(20, 64), nn.Tanh())
discriminator = nn.Sequential(nn.Linear(64, 1), nn.Sigmoid())
adversarial_loss = torch.nn.BCELoss()
if cuda:
    generator.cuda()
    discriminator.cuda()
    adversarial_loss.cuda()
optimizer_D = torch.optim.Adam(discriminator.parameters(), lr=0.0002)
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor

for i in range(4):
    imgs = torch.rand(16, 64).double()
    valid = Variable(Tensor(imgs.size(0), 1).fill_(1.0), requires_grad=False)
    real_imgs = Variable(imgs.type(Tensor))
    z = Variable(Tensor(np.random.normal(0, 1, (imgs.shape[0], 20))))
    optimizer_D.zero_grad()
    d_loss = adversarial_loss(discriminator(real_imgs), valid)
    d_loss += adversarial_loss(discriminator(generator(z).detach()), 1 - valid)
    d_loss.backward()
    optimizer_D.step()

assert isinstance(real_imgs, Tensor) and not isinstance(real_imgs, torch.cuda.LongTensor)
torch.set_default_tensor_type("torch.cuda.FloatTensor")
assert torch.ones(2).is_cuda and torch.ones(2).long().type(Tensor).dtype == torch.float32
