"""torch_etth1.py - the ETTh1 job of preset `long` as a careful PyTorch user writes it: the baseline of bench/e2e/run.py.

Same data, split, windows, model, batch, steps, schedule, clipping, validations, guard and test scores as
    stretto train ETTh1.csv --config bench/protocols/etth1-96.yaml --preset long
Omitted, in PyTorch's favor: the choice of the base by folds, quantile bands, the HTML report, checkpoints.
What makes it fast: nn.LSTM (oneDNN) over the segments, all decode steps at once with h Whh computed once per row and the embeddings'
product once per step, windows as strided views, fused Adam, inference mode with large batches.

Prints one JSON line: MSE, MAE, seconds since process start and since the end of the imports, CPU seconds.
"""
import time

BOOT = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
import argparse
import json
import math
import os
import resource

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

IMPORTED, IMPORT_CPU = time.time(), time.process_time()
MARKS = []


def mark(name):
    MARKS.append((name, round(time.time() - IMPORTED, 2), round(time.process_time() - IMPORT_CPU, 2)))


L, W, D, BATCH, STEPS, EVERY, WARMUP, LR, DROP = 336, 48, 32, 64, 300, 50, 20, 3e-3, 0.3
TRAIN, VALID, TEST = 8640, 11520, 14400
PENALTIES = [10 ** (-6 + i / 2) for i in range(13)]


def process_start():
    """Wall-clock start time of this process."""
    ticks = float(open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19])
    return BOOT + ticks / os.sysconf("SC_CLK_TCK")


class Net(nn.Module):
    def __init__(self, columns, horizon):
        super().__init__()
        self.horizon, self.nout = horizon, -(-horizon // W)
        self.segment, self.lstm = nn.Linear(W, D), nn.LSTM(D, D)
        self.pos, self.col = nn.Parameter(torch.randn(self.nout, D // 2)), nn.Parameter(torch.randn(columns, D // 2))
        self.drop, self.head = nn.Dropout(DROP), nn.Linear(D, W)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        """x [columns][B][L], last value taken off -> correction [columns][B][horizon]"""
        columns, B, _ = x.shape
        segments = F.relu(self.segment(x.reshape(columns * B, L // W, W).transpose(0, 1)))
        _, (h, c) = self.lstm(segments)
        wx, wh, bias = self.lstm.weight_ih_l0, self.lstm.weight_hh_l0, self.lstm.bias_ih_l0 + self.lstm.bias_hh_l0
        zh = F.linear(h[0], wh).view(1, columns, B, 4 * D)
        zp = F.linear(self.pos, wx[:, : D // 2], bias).view(self.nout, 1, 1, 4 * D)
        zc = F.linear(self.col, wx[:, D // 2 :]).view(1, columns, 1, 4 * D)
        i, f, g, o = (zh + (zp + zc)).chunk(4, -1)
        cell = torch.sigmoid(f) * c.view(1, columns, B, D) + torch.sigmoid(i) * torch.tanh(g)
        y = self.head(self.drop(torch.sigmoid(o) * torch.tanh(cell)))  # [nout][columns][B][W]
        return y.permute(1, 2, 0, 3).reshape(columns, B, self.nout * W)[..., : self.horizon]


def ridge(z, horizon):
    """One linear map for all columns on (window - last), penalty chosen on the validation windows; normal equations in f64."""
    def sums(origins):
        w = z.double().unfold(1, L + horizon, 1)[:, origins[0] - L : origins[1] - L]
        xtx, xty, yty, sx, sy, n = 0, 0, 0.0, 0, 0, 0
        for column in w:
            last = column[:, L - 1 : L]
            x, y = column[:, : L - 1] - last, column[:, L:] - last
            xtx, xty, yty = xtx + x.T @ x, xty + x.T @ y, yty + float((y * y).sum())
            sx, sy, n = sx + x.sum(0), sy + y.sum(0), n + len(x)
        return xtx, xty, yty, sx, sy, n

    xtx, xty, _, sx, sy, n = sums((L, TRAIN - horizon + 1))
    vtx, vty, vyy, vx, vy, vn = sums((TRAIN, VALID - horizon + 1))
    cxx, cxy = xtx - torch.outer(sx, sx) / n, xty - torch.outer(sx, sy) / n
    best = (math.inf, None, None)
    for penalty in PENALTIES:
        m = torch.cholesky_solve(cxy, torch.linalg.cholesky(cxx + penalty * n * torch.eye(L - 1, dtype=torch.float64)))
        b = (sy - sx @ m) / n
        loss = vyy - 2 * float((m * vty).sum()) - 2 * float(b @ vy) + float((m * (vtx @ m)).sum()) + 2 * float(b @ (vx @ m)) + vn * float(b @ b)
        best = min(best, (loss, m, b), key=lambda t: t[0])
    return best[1].float(), best[2].float()


def rate(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return 0.5 * (1 + math.cos(math.pi * (step - WARMUP) / max(1, STEPS - WARMUP)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("file")
    p.add_argument("--horizon", type=int, default=96)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--compile", action="store_true")
    p.add_argument("--out", default=os.devnull)
    a = p.parse_args()
    H = a.horizon
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    values = pd.read_csv(a.file, usecols=range(1, 8), nrows=TEST).to_numpy(np.float64)
    values = (values - values[:TRAIN].mean(0)) / values[:TRAIN].std(0)
    z = torch.from_numpy(np.ascontiguousarray(values.T)).float()
    mark("read")
    m, b = ridge(z, H)
    mark("ridge")
    windows = z.unfold(1, L + H, 1)  # [columns][origin - L][L + H], a view

    def batch(index):
        w = windows[:, index]
        last = w[..., L - 1 : L]
        x = w[..., :L] - last
        return x, w[..., L:] - last, x[..., : L - 1] @ m + b

    net = Net(len(z), H)
    run = torch.compile(net) if a.compile else net
    optim = torch.optim.Adam(net.parameters(), lr=LR, fused=True)
    train = torch.arange(0, TRAIN - H + 1 - L)
    valid = torch.arange(TRAIN - L, VALID - H + 1 - L)
    thin = valid[:: -(-len(valid) // 1024)]

    def evaluate(index):
        """Squared error of base and of base + correction for each origin."""
        net.eval()
        with torch.inference_mode():
            for part in index.split(1024):
                x, y, base = batch(part)
                yield y, base, base + run(x)
        net.train()

    def validate():
        total = sum(float((both - y).square().sum()) for y, _, both in evaluate(thin))
        return total / (len(thin) * len(z) * H)

    best, kept, step = validate(), {k: v.clone() for k, v in net.state_dict().items()}, 0
    while step < STEPS:
        for part in train[torch.randperm(len(train))].split(BATCH):
            if len(part) < BATCH or step == STEPS:
                break
            for group in optim.param_groups:
                group["lr"] = LR * rate(step)
            x, y, base = batch(part)
            loss = F.mse_loss(base + run(x), y)
            optim.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optim.step()
            step += 1
            if step % EVERY == 0:
                score = validate()
                if score < best:
                    best, kept = score, {k: v.clone() for k, v in net.state_dict().items()}
    net.load_state_dict(kept)
    mark("train")

    gain = torch.cat([((base - y).square() - (both - y).square()).mean((0, 2)) for y, base, both in evaluate(valid)])
    blocks = torch.stack([part.mean() for part in gain.split(H)][: len(gain) // H])
    t = float(blocks.mean() / (blocks.std() / math.sqrt(len(blocks)))) if len(blocks) > 2 else 0.0
    share = max(0.0, t) ** 2 / (1 + max(0.0, t) ** 2)

    mark("guard")
    test = torch.arange(VALID - L, TEST - H + 1 - L)
    sums, cells = np.zeros((4, 2)), len(test) * len(z) * H
    for part, (y, base, both) in zip(test.split(1024), evaluate(test)):
        day = windows[:, part][..., L - 24 : L] - windows[:, part][..., L - 1 : L]
        rows = [base + share * (both - base), base, torch.zeros(()), day.repeat(1, 1, -(-H // 24))[..., :H]]
        for i, f in enumerate(rows):
            e = y - f
            sums[i] += [float(e.square().sum()), float(e.abs().sum())]
    torch.save(net.state_dict(), a.out)
    mark("test")
    now, use = time.time(), resource.getrusage(resource.RUSAGE_SELF)
    (mse, mae), base_mse = sums[0] / cells, sums[1][0] / cells
    print(json.dumps({"MSE": mse, "MAE": mae, "base": base_mse, "share": share, "seconds": now - process_start(),
                      "after_import": now - IMPORTED, "cpu": use.ru_utime + use.ru_stime,
                      "cpu_after_import": time.process_time() - IMPORT_CPU, "parts": MARKS}))


main()
