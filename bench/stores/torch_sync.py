"""torch_sync.py - the baseline: an LSTM in PyTorch under DistributedDataParallel with Gloo, with its communication hooks.

    torch_sync.py HOW DATA STEPS B SEGMENT CONTEXT H HORIZON SEED PROCESSES [WEIGHTS]
        HOW  plain, fp16, powersgd:R, postlocal:K      -> "MS LOSS": mean milliseconds of a step of rank 0 in the second half, loss on the validation split

The model, the windows and the steps are those of peers.py for ours: one column, standardized by the training split, segments of the
context as the steps of one LSTM layer, a head of HORIZON values at its end, MSE, Adam, clipping.  A process has one thread and B /
PROCESSES windows; denormals are flushed.  WEIGHTS is a model of ours: training begins with its weights, and the second bias of the
LSTM, which ours does not have, stays zero.  Without it PyTorch's own initial weights are used, with a forget gate of 1.
"""
import csv
import json
import math
import os
import statistics
import struct
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

TRAIN, VALID = 8640, 2880
EVERY = 5  # ours validates on about 1024 windows, of these every fifth: on all of them the loss of a trained model is 2 % lower
WARM = 20  # steps before local steps or PowerSGD


class Net(torch.nn.Module):
    def __init__(self, i, h, out):
        super().__init__()
        self.lstm = torch.nn.LSTM(i, h)
        self.head = torch.nn.Linear(h, out)
        with torch.no_grad():
            self.lstm.bias_ih_l0[h:2 * h] = 1  # of the forget gate

    def forward(self, x):
        return self.head(self.lstm(x)[0][-1])


def load(net, path):
    """Weights of a model file of ours."""
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    head, body, of = json.loads(raw[8:8 + n]), raw[8 + n:], {}
    for name in net.state_dict():
        at = head[name]["data_offsets"]
        of[name] = torch.frombuffer(bytearray(body[at[0]:at[1]]), dtype=torch.float32).reshape(head[name]["shape"])
    net.load_state_dict(of)
    net.lstm.bias_hh_l0.requires_grad_(False)


def series(path):
    with open(path, encoding="utf-8") as f:
        v = torch.tensor([float(row["OT"]) for row in csv.DictReader(f)])[:TRAIN + VALID]
    return (v - v[:TRAIN].mean()) / v[:TRAIN].std()


def windows(v, at, context, segment, horizon):
    """Inputs [T, rows, segment] and targets for forecasts from these rows on."""
    rows = v.unfold(0, context + horizon, 1)[at - context]
    return rows[:, :context].reshape(len(at), context // segment, segment).transpose(0, 1).contiguous(), rows[:, context:].contiguous()


def with_hooks(how, net):
    name, _, value = how.partition(":")
    if name == "fp16":
        net.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif name == "powersgd":
        state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=int(value), start_powerSGD_iter=WARM)
        net.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif name == "postlocal":
        state = post_localSGD_hook.PostLocalSGDState(None, subgroup=dist.new_subgroups(1)[0], start_localSGD_iter=WARM)
        net.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)


def optimizer(how, net, lr):
    adam = torch.optim.Adam([p for p in net.parameters() if p.requires_grad], lr=lr, fused=True)
    if not how.startswith("postlocal"):
        return adam
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torch.distributed.optim import PostLocalSGDOptimizer
    return PostLocalSGDOptimizer(adam, PeriodicModelAverager(period=int(how.split(":")[1]), warmup_steps=WARM))


def rate(step, steps, lr, warm_up=20):
    """The schedule of ours: cosine behind a linear rise."""
    return lr * (min(1.0, (step + 1) / warm_up) if step < warm_up else 0.5 * (1 + math.cos(math.pi * (step - warm_up) / (steps - warm_up))))


def work(rank, n, how, data, steps, b, segment, context, h, horizon, seed, weights):
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(seed)
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29518")
    dist.init_process_group("gloo", rank=rank, world_size=n)
    bare = Net(segment, h, horizon)
    if weights:
        load(bare, weights)
    # One bucket for PowerSGD: with two, both threads of Gloo wait in the hook's chain of sums, for ever.
    net = DistributedDataParallel(bare, bucket_cap_mb=1 << 10 if how.startswith("powersgd") else 25)
    with_hooks(how, net)
    adam = optimizer(how, net, 3e-3)
    v, order, times = series(data), torch.Generator().manual_seed(seed), []
    spots = torch.arange(context, TRAIN - horizon + 1)
    epoch, used = spots[torch.randperm(len(spots), generator=order)], 0
    for step in range(steps):
        if used + b > len(epoch):
            epoch, used = spots[torch.randperm(len(spots), generator=order)], 0
        at = epoch[used:used + b][rank * (b // n):(rank + 1) * (b // n)]
        used += b
        x, y = windows(v, at, context, segment, horizon)
        begin = time.perf_counter()
        for group in adam.param_groups:
            group["lr"] = rate(step, steps, 3e-3)
        adam.zero_grad(set_to_none=False)
        torch.nn.functional.mse_loss(net(x), y).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        adam.step()
        times.append(1e3 * (time.perf_counter() - begin))
    if how.startswith("postlocal"):
        for p in bare.parameters():
            dist.all_reduce(p.data)
            p.data /= n
    if rank == 0:
        with torch.no_grad():
            x, y = windows(v, torch.arange(TRAIN, TRAIN + VALID - horizon + 1, EVERY), context, segment, horizon)
            loss = torch.nn.functional.mse_loss(bare(x), y).item()
        print("%.4f %.6f" % (statistics.mean(times[len(times) // 2:]), loss), flush=True)
    dist.destroy_process_group()


def main():
    how, data, *sizes = sys.argv[1:11]
    n = int(sizes.pop())
    mp.spawn(work, args=(n, how, data, *map(int, sizes), sys.argv[11] if len(sys.argv) > 11 else None), nprocs=n)


if __name__ == "__main__":
    main()
