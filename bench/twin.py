#!/usr/bin/env python3
"""twin.py PROGRAM: repeats a training in PyTorch in f64 and compares the weights after some steps.

    program:  train --steps 1 --lr 0  --> first weights --> PyTorch: forward, loss, backward, clip, optimiser, schedule
              train --steps N         --> last weights  <-- compared: the farthest apart, as a share of how far any went

Everything between a file and its weights takes part: windows, masks, losses, gradients, parts of a batch, ranks, slices of
time.  All windows are one batch, so the order they are drawn in is of no matter.  Exit status 77 where there is no PyTorch
(bench/peers.sh)."""
import csv
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import peers  # noqa: E402

H, HELD, STEPS = 12, 25, 12  # horizon; rows of validation and test
# Shares.  RMSprop makes steps of 30 out of the smallest gradients, which f32 rounds; slices meet within a tolerance.
FAR, FAR_SMALL, FAR_SLICES, FAR_BF16 = 5e-5, 2e-3, 2e-3, 1e-2
EXAMPLE = os.path.join(peers.ROOT, "examples", "airline-passengers.csv")

CASES = [  # (what it is, further options, differences from DEFAULTS below)
    ("lstm, adam", [], {}),
    ("two layers, both ways, sgd, clip, cosine, warm-up", [], dict(layers=2, both=True, optim="sgd", lr=.1, clip=.05,
                                                                   schedule="cosine", warmup=3)),
    ("gru, both ways, adamw, linear", [], dict(cell="gru", both=True, optim="adamw", schedule="linear")),
    ("projection, both ways, rmsprop, step", [], dict(layers=2, both=True, projection=3, optim="rmsprop", lr=.003,
                                                       schedule="step", far=FAR_SMALL)),
    ("missing cells, adagrad", [], dict(missing=True, optim="adagrad", lr=.05)),
    ("missing cells, four parts", ["--batch", "72", "--accumulate", "4"], dict(missing=True)),
    ("missing cells, weight decay", [], dict(missing=True, optim="adamw", decay=.2)),
    ("gru, layer norm", [], dict(cell="gru", norm=True)),
    ("one unit, mae", [], dict(loss="mae", hidden=1, optim="sgd", lr=.05)),
    ("one step", [], dict(context=12, segment=12)),
    ("three ranks, two parts, missing cells", ["--batch", "72", "--accumulate", "2", "--ranks", "3", "--threads", "2"],
     dict(missing=True, layers=2, both=True)),
    ("4 slices of time", ["--parallel", "time:4"], dict(segment=1, far=FAR_SLICES)),
    ("5 slices of unlike lengths, both ways", ["--parallel", "time:5"], dict(segment=1, context=37, both=True, layers=2, hidden=9,
                                                                           far=FAR_SLICES)),
    ("5 slices, projection, both ways, made anew", ["--parallel", "time:5", "--recompute"],
     dict(segment=1, context=37, both=True, projection=4, hidden=9, optim="sgd", lr=.1)),
    ("3 slices, foreseen, gru", ["--parallel", "time:3", "--slice-rank", "2", "--recompute"],
     dict(cell="gru", segment=1, hidden=9, optim="sgd", lr=.1)),
    ("bf16", ["--precision", "bf16"], dict(optim="sgd", lr=.1, hidden=17, far=FAR_BF16)),
]
DEFAULTS = dict(cell="lstm", layers=1, both=False, projection=0, optim="adam", lr=.01, decay=0, clip=0, schedule="constant",
                warmup=0, loss="mse", norm=False, missing=False, segment=3, context=36, hidden=8, far=FAR)


def options(c):
    words = ["--horizon", H, "--context", c["context"], "--segment", c["segment"], "--cell", c["cell"], "--layers", c["layers"],
             "--hidden", c["hidden"], "--projection", c["projection"], "--optim", c["optim"], "--weight-decay", c["decay"],
             "--clip", c["clip"], "--schedule", c["schedule"], "--warmup", c["warmup"], "--loss", c["loss"],
             "--validation", HELD - H, "--test", H, "--preset", "none", "--base", "none", "--scale", "series",
             "--decoder", "direct", "--calendar", "no", "--batch", 1000, "--validate-every", 1000, "--members", 1, "--no-guard", "--quiet"]
    return [str(w) for w in words] + ["--bidirectional"] * c["both"] + ["--norm"] * c["norm"] + ["--gaps", "mask"] * c["missing"]


def trained(program, folder, data, words):
    """(tensors by name, what the file says of itself); None where this machine lacks what is asked for"""
    path = os.path.join(folder, "m.model")
    words = ["--target", "Passengers", *words, "-o", path]
    done = subprocess.run([program, "train", data, *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return print("  " + done.stderr.strip().splitlines()[0])
    with open(path, "rb") as f:
        raw = f.read()
    n = struct.unpack("<Q", raw[:8])[0]
    head, body = json.loads(raw[8:8 + n]), raw[8 + n:]
    about = json.loads(head.pop("__metadata__")["stretto.forecast"])
    of = {}
    for name, t in head.items():
        part = bytearray(body[t["data_offsets"][0]:t["data_offsets"][1]])
        kind = torch.float32 if t["dtype"] == "F32" else torch.float64
        of[name] = torch.frombuffer(part, dtype=kind).reshape(t["shape"]).double()
    return of, about


def windows(data, about, c):
    """x [T][B][I], y [B][H], which of y are there"""
    with open(data, encoding="utf-8") as f:
        v = torch.tensor([float(r[1]) if r[1] else math.nan for r in list(csv.reader(f))[1:]]).double()
    z = (v - about["columns"][0]["mean"]) / about["columns"][0]["dev"]
    x, y = [], []
    for o in range(c["context"], len(z) - HELD - H + 1):
        past = torch.cat([torch.full((-c["context"] % c["segment"],), math.nan).double(), z[o - c["context"]:o]])
        parts = [past.nan_to_num()] + [(~past.isnan()).double()] * about["shape.mask"]
        x.append(torch.cat([part.reshape(-1, c["segment"]) for part in parts], -1))
        y.append(z[o:o + H])
    y = torch.stack(y)
    return torch.stack(x, 1), y.nan_to_num(), ~y.isnan()


def twin(first, about, data, c):
    """The weights after the same steps, by the names of the file."""
    x, y, there = windows(data, about, c)
    kind = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[c["cell"]]
    net = kind(x.shape[-1], c["hidden"], c["layers"], bidirectional=c["both"],
               **({"proj_size": c["projection"]} if c["projection"] else {})).double()
    net.load_state_dict({k.split(".", 1)[1]: v for k, v in first.items() if k.startswith(c["cell"] + ".")})
    theta = {c["cell"] + "." + k: p for k, p in net.named_parameters()}
    theta |= {k: first[k].clone().requires_grad_() for k in first if k.startswith(("head.", "norm."))}
    moves = [p for k, p in theta.items() if c["cell"] == "gru" or ".bias_hh" not in k]  # one bias where PyTorch adds two
    make = {"sgd": lambda: torch.optim.SGD(moves, c["lr"], .9, weight_decay=c["decay"]),
            "adam": lambda: torch.optim.Adam(moves, c["lr"], weight_decay=c["decay"]),
            "adamw": lambda: torch.optim.AdamW(moves, c["lr"], weight_decay=c["decay"]),
            "rmsprop": lambda: torch.optim.RMSprop(moves, c["lr"], .999, weight_decay=c["decay"]),
            "adagrad": lambda: torch.optim.Adagrad(moves, c["lr"], weight_decay=c["decay"], eps=1e-8)}
    optim, width = make[c["optim"]](), c["projection"] or c["hidden"]
    for step in range(STEPS):
        done = max(0, step - c["warmup"]) / (STEPS - c["warmup"])
        course = {"constant": 1, "cosine": (1 + math.cos(math.pi * done)) / 2, "linear": 1 - done,
                  "step": 1 if done < .5 else .1 if done < .75 else .01}[c["schedule"]]
        optim.param_groups[0]["lr"] = c["lr"] * ((step + 1) / c["warmup"] if step < c["warmup"] else course)
        optim.zero_grad()
        out, _ = net(x)
        h = torch.cat([out[-1, :, :width], out[0, :, width:]], -1) if c["both"] else out[-1]
        if c["norm"]:
            h = torch.nn.functional.layer_norm(h, h.shape[-1:], theta["norm.weight"], theta["norm.bias"])
        e = h @ theta["head.weight"].T + theta["head.bias"] - y
        ((e * e if c["loss"] == "mse" else e.abs()) * there).sum().div(there.sum()).backward()
        for k, p in theta.items():
            if c["cell"] == "gru" and ".bias_hh" in k:
                p.grad[:2 * c["hidden"]] = 0
        if c["clip"]:
            torch.nn.utils.clip_grad_norm_(moves, c["clip"])
        optim.step()
    return theta


def main():
    program, bad = os.path.abspath(sys.argv[1]), 0
    with tempfile.TemporaryDirectory() as folder:
        holes, rng = os.path.join(folder, "holes.csv"), random.Random(3)
        with open(EXAMPLE, encoding="utf-8") as f, open(holes, "w", encoding="utf-8") as out:
            for i, line in enumerate(f):
                out.write(line.split(",")[0] + ",\n" if i > 4 and rng.random() < .15 else line)
        for what, more, other in CASES:
            c = DEFAULTS | other
            data, words = holes if c["missing"] else EXAMPLE, options(c) + more
            first = trained(program, folder, data, words + ["--steps", "1", "--lr", "0"])
            last = first and trained(program, folder, data, words + ["--steps", str(STEPS), "--lr", str(c["lr"])])
            if not last:
                print(f"{what}: not run")
                continue
            want = {k: p.detach() for k, p in twin(first[0], first[1], data, c).items()}
            went = max((last[0][k] - first[0][k]).abs().max().item() for k in want)
            apart = max((last[0][k] - want[k]).abs().max().item() for k in want)
            wrong = not (went > 1e-4 and apart <= c["far"] * went)
            bad += wrong
            print(f"{what}: weights went {went:.2g}, {apart:.1g} apart{'   WRONG' if wrong else ''}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    peers.enter()
    import torch
    sys.exit(main())
