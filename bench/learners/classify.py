"""classify.py - `stretto train --task classify` beside PyTorch: accuracy of the defaults, and seconds of an epoch of the same net.

    .peers/bin/python bench/learners/classify.py PROGRAM FOLDER [THREADS]      FOLDER has BasicMotions_TRAIN.ts and _TEST.ts

Accuracy: BasicMotions, 5 seeds, defaults.  Time: the net of the defaults (GRU of 64 units in both directions, mean and last states,
dropout 0.2, Adam, clipping) on BasicMotions and on drawn sequences; rounds of both programs alternate, medians are printed.
"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch

PROGRAM, FOLDER = sys.argv[1], sys.argv[2]
THREADS = int(sys.argv[3]) if len(sys.argv) > 3 else 2
ROUNDS = 3


def run(*args):
    return subprocess.run([PROGRAM, *map(str, args)], check=True, capture_output=True, text=True)


def motions(part):
    return os.path.join(FOLDER, "BasicMotions_%s.ts" % part)


def accuracy():
    got, plain, seconds = [], 0, []
    for seed in range(1, 6):
        begin = time.time()
        run("train", motions("TRAIN"), "--task", "classify", "--seed", seed, "--threads", THREADS, "-o", "m.model", "--quiet")
        seconds.append(time.time() - begin)
        text = run("eval", "m.model", motions("TEST")).stdout
        got.append(float(re.search(r"^  model +(\S+)", text, re.M)[1]))
        plain = float(re.search(r"^  ridge of mean, sd, slope +(\S+)", text, re.M)[1])
    print("BasicMotions: accuracy %s, mean %.3f; ridge %.3f; %.2f s a training (median)" % (got, statistics.mean(got), plain,
                                                                                    statistics.median(seconds)))


def read_ts(path):
    with open(path, encoding="utf-8") as f:
        lines = f.read().split("@data")[1].strip().splitlines()
    x = numpy.array([[[float(v) for v in c.split(",")] for c in line.split(":")[:-1]] for line in lines], dtype="float32")
    labels = [line.split(":")[-1] for line in lines]
    return x.transpose(0, 2, 1), numpy.array([sorted(set(labels)).index(y) for y in labels])


def drawn():
    """2,000 sequences of 200 steps, 4 channels, 5 classes by the period of a wave in noise."""
    r = numpy.random.default_rng(1)
    y = numpy.arange(2000) % 5
    t = numpy.arange(200)[None, :, None]
    wave = numpy.sin((0.1 + 0.05 * y)[:, None, None] * t + r.uniform(0, 6, (2000, 1, 4)))
    return (wave + r.normal(0, 1, (2000, 200, 4))).astype("float32"), y


def write_ts(path, x, y):
    with open(path, "w", encoding="utf-8") as f:
        f.write("@problemName drawn\n@dimensions %d\n@classLabel true %s\n@data\n" % (x.shape[2], " ".join(map(str, sorted(set(y))))))
        for a, label in zip(x, y):
            f.write(":".join(",".join("%.5g" % v for v in a[:, c]) for c in range(x.shape[2])) + ":%d\n" % label)


class Net(torch.nn.Module):
    def __init__(self, inputs, classes, hidden=64):
        super().__init__()
        self.cell = torch.nn.GRU(inputs, hidden, batch_first=True, bidirectional=True)
        self.drop, self.head = torch.nn.Dropout(0.2), torch.nn.Linear(4 * hidden, classes)

    def forward(self, x):
        out, end = self.cell(x)
        return self.head(self.drop(torch.cat([out.mean(1), end[0], end[1]], 1)))


def torch_epoch(x, y, batch, steps):
    net = Net(x.shape[2], int(y.max()) + 1)
    optim, loss = torch.optim.Adam(net.parameters(), 0.003), torch.nn.CrossEntropyLoss()
    x, y, per = torch.from_numpy(x), torch.from_numpy(y), -(-len(x) // batch)

    def step(k):
        rows = order[k % per * batch:(k % per + 1) * batch]
        optim.zero_grad()
        loss(net(x[rows]), y[rows]).backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1)
        optim.step()
    order = torch.randperm(len(x))
    for k in range(4):
        step(k)
    begin = time.time()
    for k in range(steps):
        if k % per == 0:
            order = torch.randperm(len(x))
        step(k)
    return (time.time() - begin) * per / steps


def stretto_epoch(path, segment, batch, steps, sequences):
    r = run("train", path, "--task", "classify", "--segment", segment, "--batch", batch, "--steps", steps, "--validation", 0, "--test", 0,
            "--threads", THREADS, "-o", "t.model")
    said = re.search(r"trained \d+ steps in ([0-9.]+) s", r.stderr)
    return float(said[1]) * -(-sequences // batch) / steps


def segments(x, n):
    steps = -(-x.shape[1] // n) * n
    x = numpy.pad(x, ((0, 0), (0, steps - x.shape[1]), (0, 0)))
    return numpy.ascontiguousarray(x.reshape(x.shape[0], steps // n, n * x.shape[2]))


def speed(name, x, y, path, segment, batch, steps):
    mine, theirs = [], []
    for _ in range(ROUNDS):
        mine.append(stretto_epoch(path, segment, batch, steps, len(x)))
        theirs.append(torch_epoch(segments(x, segment), y, batch, steps))
    print("%s, segment %d, batch %d: seconds of an epoch: stretto %.4f, torch %.4f (%.1f x)" % (
        name, segment, batch, statistics.median(mine), statistics.median(theirs), statistics.median(theirs) / statistics.median(mine)))


def main():
    torch.set_num_threads(THREADS)
    print("torch", torch.__version__, "threads", THREADS, "rounds", ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        accuracy()
        x, y = read_ts(motions("TRAIN"))
        x = (x - x.mean((0, 1))) / x.std((0, 1))
        speed("BasicMotions (40 x 100 x 6)", x, y, motions("TRAIN"), 3, 16, 200)
        x, y = drawn()
        write_ts("drawn.ts", x, y)
        speed("drawn (2000 x 200 x 4)", x, y, "drawn.ts", 1, 64, 32)
        speed("drawn (2000 x 200 x 4)", x, y, "drawn.ts", 5, 64, 32)


if __name__ == "__main__":
    PROGRAM, FOLDER = os.path.abspath(PROGRAM), os.path.abspath(FOLDER)
    main()
