"""Loads models written by t_torch.c into torch.nn.LSTM, GRU, RNN and compares the outputs: at most 1e-5 apart.  Exit 77: no torch."""
import json
import struct
import sys

try:
    import torch
except ImportError:
    sys.exit(77)


def load(path):
    """Tensors and metadata of a safetensors file of f32 tensors, with nothing but the standard library."""
    raw = open(path, "rb").read()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8 : 8 + n])
    meta = header.pop("__metadata__", {})
    tensors = {}
    for name, e in header.items():
        begin, end = (8 + n + k for k in e["data_offsets"])
        values = struct.unpack("<%df" % ((end - begin) // 4), raw[begin:end])
        tensors[name] = torch.tensor(values).reshape(e["shape"])
    return tensors, meta


def check(path):
    tensors, meta = load(path)
    T, B, I, H, N, depth, both, P = map(int, meta["shape"].split())
    cell = getattr(torch.nn, meta["cell"].upper())(I, H, depth, bidirectional=bool(both), **({"proj_size": P} if P else {}))
    head = torch.nn.Linear((P or H) * (1 + both), N)
    model = torch.nn.ModuleDict({meta["cell"]: cell, "head": head})
    x, y = tensors.pop("test.x").reshape(T, B, I), tensors.pop("test.y").reshape(T, B, N)
    model.load_state_dict(tensors, strict=True)
    with torch.no_grad():
        off = (head(cell(x)[0]) - y).abs().max().item()
    print("%s%s%s: %d tensors, largest difference %.1e" % (meta["cell"], " both ways" if both else "", ", projected" if P else "", len(tensors), off))
    return off <= 1e-5


sys.exit(0 if all([check(path) for path in sys.argv[1:]]) else 1)
