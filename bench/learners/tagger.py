#!/usr/bin/env python3
"""tagger.py - training speed of `--task tagger` beside the same network in PyTorch: embeddings of 15 features, one LSTM in both directions, CRF.

    tagger.py PROGRAM TRAIN.txt [--threads N] [--hidden H] [--steps S] [--rounds R]

Both train on the sentences of TRAIN.txt (CoNLL format), 32 a batch, sentences of similar length together, Adam, dropout 0.5, in fp32.  PyTorch packs its
sequences and computes log Z for a whole batch at once.  A round is S steps of each, one after the other; the first steps of each process are not
counted.  Prints tokens per second of each round and the ratio of the medians.  Needs .peers (bench/peers.sh)."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parent.parent))
from peers import enter  # noqa: E402

if __name__ == "__main__":
    enter()

import torch  # noqa: E402
from torch import nn  # noqa: E402

BATCH, WARM = 32, 20


def sentences(path):
    out, now = [], []
    for line in open(path, encoding="utf-8"):
        fields = line.split()
        if fields:
            now.append(fields)
        elif now:
            out.append(now)
            now = []
    return out + ([now] if now else [])


def features(word, columns):
    """The texts that src/learn/tagger/features.c makes of a token."""
    pattern = ""
    for c in word:
        k = "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c
        pattern += "" if pattern.endswith(k) else k
    return [word, *columns, word[:2], word[:3], word[-2:], word[-3:], word[-4:], word[:1], word[1:2], word[2:3], word[-1:], word[-2:-1], word[-3:-2], pattern]


WIDTH = [100, 32, 24, 24, 24, 24, 24, 8, 8, 8, 8, 8, 8, 16]


class Tagger(nn.Module):
    def __init__(self, sizes, hidden, tags):
        super().__init__()
        self.embed = nn.ModuleList(nn.Embedding(n + 1, w) for n, w in zip(sizes, WIDTH))
        self.lstm = nn.LSTM(sum(WIDTH), hidden, bidirectional=True)
        self.scores, self.drop = nn.Linear(2 * hidden, tags), nn.Dropout(0.5)
        self.a, self.start, self.end = (nn.Parameter(torch.rand(s) * 0.2 - 0.1) for s in ((tags, tags), (tags,), (tags,)))

    def forward(self, ids, tags, lengths):
        x = self.drop(torch.cat([e(i) for e, i in zip(self.embed, ids)], -1))
        packed, _ = self.lstm(nn.utils.rnn.pack_padded_sequence(x, lengths))
        u = self.scores(self.drop(nn.utils.rnn.pad_packed_sequence(packed)[0]))
        T, B, _ = u.shape
        mask = torch.arange(T)[:, None] < lengths[None, :]
        rows, last = torch.arange(B), lengths - 1
        alpha, score = self.start + u[0], self.start[tags[0]] + u[0][rows, tags[0]]
        for t in range(1, T):
            after = torch.logsumexp(alpha[:, :, None] + self.a, 1) + u[t]
            alpha = torch.where(mask[t][:, None], after, alpha)
            score = score + mask[t] * (self.a[tags[t - 1], tags[t]] + u[t][rows, tags[t]])
        score = score + self.end[tags[last, rows]]
        return (torch.logsumexp(alpha + self.end, 1) - score).sum() / lengths.sum()


def peer(path, hidden, threads, steps):
    """Tokens per second of PyTorch."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    data = sentences(path)
    vocabulary, tag = [{} for _ in WIDTH], {}
    coded = []
    for s in data:
        rows = [features(f[0], f[1:-1]) for f in s]
        coded.append(([[vocabulary[k].setdefault(r[k], len(vocabulary[k]) + 1) for r in rows] for k in range(len(WIDTH))],
                      [tag.setdefault(f[-1], len(tag)) for f in s]))
    order = torch.randperm(len(coded)).tolist()
    batches = []
    for g in range(0, len(order), 16 * BATCH):
        group = sorted(order[g:g + 16 * BATCH], key=lambda i: -len(coded[i][1]))
        batches += [group[i:i + BATCH] for i in range(0, len(group), BATCH)]
    net = Tagger([len(v) for v in vocabulary], hidden, len(tag))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.003)
    tokens, begin = 0, 0.0
    for step in range(WARM + steps):
        rows = [coded[i] for i in batches[torch.randint(len(batches), (1,)).item()]]
        lengths = torch.tensor([len(r[1]) for r in rows])
        T = int(lengths[0])
        ids = [torch.tensor([[r[0][k][t] if t < len(r[1]) else 0 for r in rows] for t in range(T)]) for k in range(len(WIDTH))]
        tags = torch.tensor([[r[1][t] if t < len(r[1]) else 0 for r in rows] for t in range(T)])
        now = time.monotonic()
        loss = net(ids, tags, lengths)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5)
        optimizer.step()
        if step >= WARM:
            tokens += int(lengths.sum())
            begin += time.monotonic() - now
    return tokens / begin


def ours(program, path, hidden, threads, steps):
    """Tokens per second of Stretto: the wall time of a long run less that of a short one, batches included."""
    mean = sum(map(len, sentences(path))) / len(sentences(path))
    spent = []
    for n in (WARM, WARM + steps):
        with tempfile.TemporaryDirectory() as folder:
            command = [os.path.abspath(program), "train", os.path.abspath(path), "--task", "tagger", "--steps", str(n), "--validate-every", "1000000", "--hidden", str(hidden),
                       "--threads", str(threads), "--no-refit-all", "--validation", "64", "-o", "t.model"]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            lines = [json.loads(line) for line in open(os.path.join(folder, "t.model.run", "metrics.jsonl"))]
            spent.append(max(line.get("seconds", 0) for line in lines))
    return steps * BATCH * mean / (spent[1] - spent[0])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("train")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--hidden", type=int, default=128)
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--rounds", type=int, default=3)
    a = p.parse_args()
    got = {"stretto": [], "torch": []}
    for r in range(a.rounds):
        got["stretto"].append(ours(a.program, a.train, a.hidden, a.threads, a.steps))
        got["torch"].append(peer(a.train, a.hidden, a.threads, a.steps))
        print(f"round {r + 1}: stretto {got['stretto'][-1]:.0f}, PyTorch {torch.__version__} {got['torch'][-1]:.0f} tokens/s", flush=True)
    ratio = statistics.median(got["stretto"]) / statistics.median(got["torch"])
    print(f"{a.threads} thread(s), hidden {a.hidden}: stretto / PyTorch {ratio:.2f}")


if __name__ == "__main__":
    main()
