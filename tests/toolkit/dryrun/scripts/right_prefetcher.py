import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class data_prefetcher():
    def __init__(self, loader):
        self.loader = iter(loader)
        self.stream = torch.cuda.Stream()
        self.preload()

    def preload(self):
        try:
            self.next_input, self.next_target = next(self.loader)
        except StopIteration:
            self.next_input = None
            return
        with torch.cuda.stream(self.stream):
            self.next_input = self.next_input.cuda(non_blocking=True).float()
            self.next_target = self.next_target.cuda(non_blocking=True)

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        input, target = self.next_input, self.next_target
        if input is not None:
            input.record_stream(torch.cuda.current_stream())
            target.record_stream(torch.cuda.current_stream())
        self.preload()
        return input, target


ds = TensorDataset(torch.randint(0, 255, (40, 12), dtype=torch.uint8), torch.randint(2, (40,)))
loader = DataLoader(ds, batch_size=8, pin_memory=True, drop_last=True)
model = nn.Linear(12, 2).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.01)
prefetcher = data_prefetcher(loader)
images, labels = prefetcher.next()
while images is not None:
    loss = nn.functional.cross_entropy(model(images), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    images, labels = prefetcher.next()
