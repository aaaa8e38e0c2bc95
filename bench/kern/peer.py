"""peer.py - PyTorch as a process that runs commands from a pipe, with the protocol of bench_step --serve (serve.c).

    case dir=DIR cell=lstm T=100 ...  ->  ok       weights and inputs from raw f32 files in DIR
    sample N WARM                     ->  ok ms,fma0,fma1,tile0,tile1,waited ...
    compare dir=DIR cell=...          ->  ok JSON  ours.*.f32 in DIR against this module in float64
    use K                             ->  ok       selects the case for the commands above; initially 0
    info, drop, quit

usage: peer.py CALIB_MODULE THREADS BEST         BEST 1: the fused Adam as well, where an optimiser is measured

The input needs no gradient, the weights do; gradients are set to None between steps, as a training loop does.  In PyTorch's favor:
ragged batches are packed before the clock starts and their outputs stay packed."""
import contextlib
import ctypes
import gc
import json
import sys
import time

import numpy
import torch

from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}
CELLS = {"lstm": torch.nn.LSTMCell, "gru": torch.nn.GRUCell, "rnn": torch.nn.RNNCell}
LOSSES = 10  # of a full step: the losses that are compared


class Net(torch.nn.Module):
    """Recurrent layers and a linear head on the last step."""

    def __init__(self, lstm, H):
        super().__init__()
        self.lstm, self.head = lstm, torch.nn.Linear(H, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0][-1])


def parse(words):
    case = {"cell": "lstm", "prec": "fp32", "layers": "1", "dirs": "1", "ragged": "0", "stepped": "0", "step": "0", "proj": "0"}
    case.update(word.split("=", 1) for word in words.split())
    return {k: v if k in ("cell", "prec", "dir", "isa") else int(v) for k, v in case.items()}


def raw(case, name, *shape):
    return torch.from_numpy(numpy.fromfile(f"{case['dir']}/{name}.f32", dtype=numpy.float32).reshape(shape).copy())


def lengths(case):
    T, B = case["T"], case["B"]
    return torch.tensor([T - (T - 1) * b // (B - 1) if B > 1 else T for b in range(B)])


def module(case):
    layer = MODULES[case["cell"]](case["I"], case["H"], case["layers"], bidirectional=case["dirs"] == 2,
                                  **({"proj_size": case["proj"]} if case["proj"] else {}))
    net = Net(layer, case["H"]) if case["step"] else layer
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(raw(case, name, *p.shape))
    return net


def as_cell(case, layer):
    cell = CELLS[case["cell"]](case["I"], case["H"])
    with torch.no_grad():
        for name, p in cell.named_parameters():
            p.copy_(getattr(layer, name + "_l0"))
    return cell


def cast(case):
    return torch.autocast("cpu", dtype=torch.bfloat16) if case["prec"] == "bf16" else contextlib.nullcontext()


def train_step(case, net, best):
    """Full step: forward, loss, backward, Adam."""
    x, target = raw(case, "x", case["T"], case["B"], case["I"]), raw(case, "target", case["B"], 1)
    x, target = x.to(net.head.weight.dtype), target.to(net.head.weight.dtype)
    optim = torch.optim.Adam(net.parameters(), lr=1e-3, **({"fused": True} if best else {}))

    def step():
        optim.zero_grad(set_to_none=True)
        with cast(case):
            loss = torch.nn.functional.mse_loss(net(x), target)
        loss.backward()
        optim.step()
        return loss
    return step


def stepper(case, net, best):
    """A function that runs one step, forward and backward, and returns y."""
    if case["step"]:
        return train_step(case, net, best)
    T, B, I, H = (case[k] for k in "TBIH")
    x, dy = raw(case, "x", T, B, I), raw(case, "dy", T, B, case["dirs"] * (case["proj"] or H))
    dtype = next(net.parameters()).dtype
    x, dy = x.to(dtype), dy.to(dtype)
    if case["ragged"]:
        x, dy = (pack_padded_sequence(v, lengths(case)) for v in (x, dy))
    cell = as_cell(case, net) if case["stepped"] else None
    weights = list((cell or net).parameters())

    def run():
        if not cell:
            return net(x)[0]
        h, c, ys = torch.zeros(B, H), torch.zeros(B, H), []
        for t in range(T):
            if case["cell"] == "lstm":
                h, c = cell(x[t], (h, c))
            else:
                h = cell(x[t], h)
            ys.append(h)
        return torch.stack(ys)

    def step():
        for w in weights:
            w.grad = None
        with cast(case):
            y = run()
        if case["ragged"]:
            y.data.backward(dy.data.to(y.data.dtype))
        else:
            y.backward(dy if y.dtype == dy.dtype else dy.to(y.dtype))
        return y
    return step


# ---------------------------------------------------------------------- reference results

references = {}


def reference(case):
    """y (or the first losses) and the gradients in float64."""
    key = " ".join(f"{k}={case[k]}" for k in sorted(case) if k not in ("prec", "isa", "stepped", "team", "how", "slice"))
    if key not in references:
        plain = {**case, "stepped": 0, "prec": "fp32"}
        net = module(plain).double()
        if case["step"]:  # ours has one bias, the sum of PyTorch's two: Adam would move it twice
            for name, p in net.named_parameters():
                p.requires_grad_("bias_hh" not in name)
        step = stepper(plain, net, False)
        y = step()
        out = {name: p.grad.clone() for name, p in net.named_parameters() if p.grad is not None}
        if case["step"]:
            out["y"] = torch.stack([y.detach()] + [step().detach() for _ in range(LOSSES - 1)])
        elif case["ragged"]:
            out["y"] = pad_packed_sequence(y, total_length=case["T"])[0].detach()
        else:
            out["y"] = y.detach()
        references[key] = out
    return references[key]


def compare(case):
    """The worst tensor: largest difference over the largest entry, relative L2 norm, cosine."""
    worst, l2, cosine, where = 0.0, 0.0, 1.0, ""
    for name, want in reference(case).items():
        got = raw(case, "ours." + name, *want.shape).double()
        if "bias_hh" in name:  # ours is the sum of both biases, but for the last gate of gru
            if case["cell"] != "gru":
                continue
            got, want = got[2 * case["H"]:], want[2 * case["H"]:]
        if not torch.isfinite(got).all():
            return {"largest": 1e30, "l2": 1e30, "cosine": 0.0, "where": name}
        norm = float(want.norm()) + 1e-300
        error = float((got - want).abs().max()) / (float(want.abs().max()) + 1e-300)
        l2 = max(l2, float((got - want).norm()) / norm)
        cosine = min(cosine, float((got * want).sum()) / (norm * float(got.norm()) + 1e-300))
        if error > worst:
            worst, where = error, name
    return {"largest": worst, "l2": l2, "cosine": cosine, "where": where}


# ---------------------------------------------------------------------- commands

class Calib:
    """The loops of calib.c, run on this process's own OpenMP threads: on every core that PyTorch uses."""

    def __init__(self, path, threads):
        self.lib, self.threads = ctypes.CDLL(path), threads
        for name in ("bench_calib_take", "bench_calib_waited"):
            getattr(self.lib, name).restype = ctypes.c_double
        self.lib.bench_calib_init(None)
        self.data = ctypes.create_string_buffer(self.lib.bench_calib_size() + 64)
        self.burst = ctypes.cast(self.lib.bench_calib_burst, ctypes.c_void_p)
        self.tile = ctypes.c_double()
        try:  # libgomp, which PyTorch has loaded for everybody
            self.parallel = ctypes.CDLL(None).GOMP_parallel if threads > 1 else None
        except AttributeError:
            self.parallel = None

    def tiles(self, on):
        self.lib.bench_calib_tiles(self.data, int(on))

    def rates(self):
        if self.parallel:
            self.parallel(self.burst, self.data, ctypes.c_uint(self.threads), ctypes.c_uint(0))
        else:
            self.lib.bench_calib_burst(self.data)
        return self.lib.bench_calib_take(self.data, ctypes.byref(self.tile)), self.tile.value

    def waited(self):
        return self.lib.bench_calib_waited()


def sample(step, calib, n, warm):
    for _ in range(warm):
        step()
    out, before = [], calib.rates()
    for _ in range(n):
        waited = calib.waited()
        t = time.perf_counter()
        step()
        ms = (time.perf_counter() - t) * 1e3
        wait = (calib.waited() - waited) * 1e3
        after = calib.rates()
        out.append(f"{ms:.6f},{before[0]:.1f},{after[0]:.1f},{before[1]:.0f},{after[1]:.0f},{wait:.4f}")
        before = after
    return " ".join(out)


def main():
    threads, best = int(sys.argv[2]), sys.argv[3] == "1"
    torch.set_num_threads(threads)
    calib, steps, at = Calib(sys.argv[1], threads), {}, "0"
    gc.disable()
    for line in sys.stdin:
        order, _, words = line.strip().partition(" ")
        try:
            if order == "quit":
                break
            if order == "case":
                case = parse(words)
                steps.pop(at, None)
                gc.collect()
                steps[at] = (stepper(case, module(case), best), case["prec"] == "bf16")
                answer = ""
            elif order == "use":
                at, answer = words, ""
            elif order == "sample":
                calib.tiles(steps[at][1])
                answer = sample(steps[at][0], calib, *map(int, words.split()))
            elif order == "compare":
                answer = json.dumps(compare(parse(words)))
            elif order == "drop":
                steps, at, answer = {}, "0", ""
            elif order == "info":
                answer = json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(), "calibrated": bool(calib.parallel) or threads == 1,
                                     "onednn": next((x.strip(" -") for x in torch.__config__.show().split("\n") if "MKL-DNN" in x), "none"),
                                     "cpu": torch.backends.cpu.get_cpu_capability()})
            else:
                raise ValueError(f"not an order: {order}")
            print("ok", answer, flush=True)
        except Exception as e:  # the harness shows it beside the row
            print("error", type(e).__name__, " ".join(str(e).split())[:300], flush=True)


main()
