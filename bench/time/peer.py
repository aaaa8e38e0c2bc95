"""peer.py - PyTorch's full training step over a whole series, as a process that runs commands from a pipe.

    case DIR T I H LAYERS fp32|bf16   ->  ok N      nn.LSTM, Linear at every step, mean square, Adam (fused, rate 0)
    step N K                          ->  ok ms ..
    grads DIR DIR2 T I H LAYERS       ->  ok 1.2e-07     gradients in DIR2 against this module in float64: largest relative L2 distance
    info                              ->  ok 2.15

usage: peer.py THREADS.  In its favour: denormals are flushed, memory is kept (run.py sets the malloc variables), gradients are set to None."""
import contextlib
import sys
import time

import numpy
import torch


class Net(torch.nn.Module):
    def __init__(self, I, H, layers):
        super().__init__()
        self.lstm, self.head = torch.nn.LSTM(I, H, layers), torch.nn.Linear(H, 1)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


def raw(folder, name, *shape):
    count = int(numpy.prod(shape))
    return torch.from_numpy(numpy.fromfile(f"{folder}/{name}.f32", dtype=numpy.float32, count=count).reshape(shape).copy())


def load(folder, T, I, H, layers):
    net = Net(I, H, layers)
    with torch.no_grad():
        for name, p in net.named_parameters():
            p.copy_(raw(folder, name, *p.shape))
    return net, raw(folder, "x", T, 1, I), raw(folder, "y", T, 1, 1)


def stepper(folder, size, prec):
    net, x, y = load(folder, *size)
    optim = torch.optim.Adam(net.parameters(), lr=0.0, fused=True)

    def step():
        optim.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16) if prec == "bf16" else contextlib.nullcontext():
            loss = torch.nn.functional.mse_loss(net(x), y)
        loss.backward()
        optim.step()
    return step


def truth(folder, size):
    """{name: gradient} in float64.  Ours has one bias, the sum of PyTorch's two."""
    net, x, y = load(folder, *size)
    net = net.double()
    torch.nn.functional.mse_loss(net(x.double()), y.double()).backward()
    return {name: p.grad for name, p in net.named_parameters() if "bias_hh" not in name}


def grads(folder, ours, size):
    true = truth(folder, size)
    return max(float((raw(ours, name, *g.shape).double() - g).norm() / g.norm()) for name, g in true.items())


def main():
    torch.set_num_threads(int(sys.argv[1]))
    torch.set_flush_denormal(True)
    steps = []
    for line in sys.stdin:
        order, *words = line.split()
        try:
            if order == "quit":
                break
            if order == "case":
                steps.append(stepper(words[0], list(map(int, words[1:5])), words[5]))
                answer = str(len(steps) - 1)
            elif order == "step":
                taken = []
                for _ in range(int(words[1])):
                    t = time.perf_counter()
                    steps[int(words[0])]()
                    taken.append(f"{1e3 * (time.perf_counter() - t):.3f}")
                answer = " ".join(taken)
            elif order == "grads":
                answer = f"{grads(words[0], words[1], list(map(int, words[2:]))):.3e}"
            elif order == "drop":
                steps, answer = [], ""
            elif order == "info":
                answer = torch.__version__
            else:
                raise ValueError(f"not an order: {order}")
            print("ok", answer, flush=True)
        except Exception as e:  # run.py shows it
            print("error", type(e).__name__, " ".join(str(e).split())[:300], flush=True)


if __name__ == "__main__":
    main()
