"""ddp.py - the baseline: the same LSTM in PyTorch, one process or several under DistributedDataParallel with Gloo.

    ddp.py PROCESSES STEPS B T I H HORIZON       prints the median milliseconds of a step of rank 0

Each process has one thread and B / PROCESSES rows; denormals are flushed, Adam is fused where PyTorch has that for the CPU.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel


class Net(torch.nn.Module):
    def __init__(self, i, h, out):
        super().__init__()
        self.lstm = torch.nn.LSTM(i, h)
        self.head = torch.nn.Linear(h, out)

    def forward(self, x):
        return self.head(self.lstm(x)[0][-1])


def step_ms(rank, n, steps, b, t, i, h, out):
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    net = Net(i, h, out)
    if n > 1:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29517")
        dist.init_process_group("gloo", rank=rank, world_size=n)
        net = DistributedDataParallel(net)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    x, y = torch.randn(t, b // n, i), torch.randn(b // n, out)
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        adam.zero_grad(set_to_none=False)
        loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        times.append(1e3 * (time.perf_counter() - begin))
    if rank == 0:
        print("%.4f" % statistics.median(times[len(times) // 4:]), flush=True)
    if n > 1:
        dist.destroy_process_group()


def main():
    n, *sizes = map(int, sys.argv[1:8])
    if n == 1:
        step_ms(0, 1, *sizes)
    else:
        mp.spawn(step_ms, args=(n, *sizes), nprocs=n)


if __name__ == "__main__":
    main()
