"""One layer of PyTorch's LSTM (or GRU) at the shapes of bench_kern: forward + backward, ms medians, one line a shape.

    torch_lstm.py [--cell lstm|gru] [--threads N] [--shape 1..5] [--seconds S]

The input needs no gradient, the weights do; gradients are set to None between steps, as a training loop does."""
import argparse
import statistics
import time

import torch

SHAPES = [(100, 32, 8, 64), (100, 64, 16, 128), (168, 64, 32, 256), (512, 1, 8, 128), (50, 256, 64, 512)]

p = argparse.ArgumentParser()
p.add_argument("--cell", default="lstm")
p.add_argument("--threads", type=int, default=1)
p.add_argument("--shape", type=int, default=0)
p.add_argument("--seconds", type=float, default=2)
a = p.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(1)

for number, (T, B, I, H) in enumerate(SHAPES, 1):
    if a.shape and a.shape != number:
        continue
    layer = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}[a.cell](I, H)
    x, dy = torch.randn(T, B, I), torch.randn(T, B, H)

    def step():
        for w in layer.parameters():
            w.grad = None
        y, _ = layer(x)
        y.backward(dy)

    for _ in range(2):
        step()
    ms, begin = [], time.perf_counter()
    while len(ms) < 7 or time.perf_counter() - begin < a.seconds:
        t = time.perf_counter()
        step()
        ms.append((time.perf_counter() - t) * 1e3)
    ms.sort()
    print(f"S{number} T{T} B{B} I{I} H{H} threads {a.threads}: quiet {statistics.median(ms):.3f} ms  p25 {ms[len(ms) // 4]:.3f}  "
          f"best {ms[0]:.3f}  ({len(ms)})  torch {torch.__version__}", flush=True)
