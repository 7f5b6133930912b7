import torch
import torch.nn as nn

ngf, nz = 8, 20
cuda = torch.cuda.is_available()
device = torch.device("cuda:0" if cuda else "cpu")


def weights_init(m):
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight.data, 0.0, 0.02)


netG = nn.Sequential(
    nn.ConvTranspose2d(nz, ngf, 4, 1, 0, bias=False),
    nn.BatchNorm2d(ngf),
    nn.ReLU(True),
    nn.ConvTranspose2d(ngf, 1, 4, 2, 1, bias=False),
    nn.Tanh(),
).to(device)
netD = nn.Sequential(
    nn.Conv2d(1, ngf, 4, 2, 1, bias=False),
    nn.LeakyReLU(0.2),
    nn.Conv2d(ngf, 1, 4, 1, 0, bias=False),
    nn.Flatten(0),
)
netG.apply(weights_init)
netD.apply(weights_init)

criterion = nn.BCEWithLogitsLoss()
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4)
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4)

for i in range(6):
    real = torch.rand(16, 1, 8, 8).to(device)
    netD.zero_grad()
    output = netD(real)
    errD_real = criterion(output, torch.full_like(output, 1.0))
    fake = netG(torch.randn(16, nz, 1, 1, device=device))
    output = netD(fake.detach())
    errD = errD_real + criterion(output, torch.zeros_like(output))
    errD.backward()
    optimizerD.step()

    netG.zero_grad()
    output = netD(fake)
    criterion(output, torch.ones_like(output)).backward()
    optimizerG.step()
