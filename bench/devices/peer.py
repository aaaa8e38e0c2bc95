"""peer.py DEVICE THREADS - training steps of PyTorch, on orders from run.py.

    case CELL T B I H LAYERS  ->  ok         prepares a network; the same words again select it
    sample SECONDS            ->  ok JSON    {variant: [ms a step that reads its loss, ms a step that does not]}, or {variant: "why not"}
    info                      ->  ok JSON    versions and the device
    quit

A step is that of bench_devices: inputs and targets from host memory (pinned where there is a GPU), recurrent layers, a linear head on every step of
time, mean squared error, backward, gradient norm clipped at 1, fused Adam.  Variants: `fp32` (TF32 off), `tf32` (TF32 allowed), `graph` and
`graph tf32`: the same from a captured CUDA graph, but for the copy of the inputs.  Off a GPU there is `fp32` alone.

A time is the median of SECONDS after some steps to warm up.  Reading the loss waits for the step, as a loop that logs its loss does; without it,
steps are queued in blocks, and the clock stops when a block has ended."""
import gc
import json
import statistics
import sys
import time

import torch

MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn": torch.nn.RNN}
WARM, LEAST, BLOCKS = 3, 5, 5


class Net(torch.nn.Module):
    def __init__(self, cell, inputs, hidden, layers):
        super().__init__()
        self.layer, self.head = MODULES[cell](inputs, hidden, layers), torch.nn.Linear(hidden, 1)

    def forward(self, x):
        return self.head(self.layer(x)[0])


def allow_tf32(on):
    torch.backends.cudnn.allow_tf32 = on
    torch.backends.cuda.matmul.allow_tf32 = on


class Step:
    """One variant of one case: step() queues a training step and returns its loss, a tensor of the device."""

    def __init__(self, device, case, tf32, graph):
        self.tf32, self.gpu = tf32, device == "cuda"
        cell, (T, B, I, H, layers) = case[0], map(int, case[1:])
        allow_tf32(tf32)
        torch.manual_seed(1)
        self.net = Net(cell, I, H, layers).to(device)
        host = [torch.rand(T, B, n) - 0.5 for n in (I, 1)]
        self.host = [v.pin_memory() for v in host] if self.gpu else host
        self.x, self.y = [torch.empty_like(v, device=device) for v in self.host]
        self.weights = list(self.net.parameters())
        self.optim = torch.optim.Adam(self.weights, lr=1e-3, fused=True, **({"capturable": True} if graph else {}))
        self.graph = None
        if graph:
            self.capture()

    def capture(self):
        self.upload()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM):
                self.compute()
        torch.cuda.current_stream().wait_stream(stream)
        self.optim.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.loss = self.compute()
        self.graph = graph

    def upload(self):
        for to, source in ((self.x, self.host[0]), (self.y, self.host[1])):
            to.copy_(source, non_blocking=True)

    def compute(self):
        self.optim.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(self.net(self.x), self.y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optim.step()
        return loss

    def step(self):
        self.upload()
        if not self.graph:
            return self.compute()
        self.graph.replay()
        return self.loss

    def wait(self):
        if self.gpu:
            torch.cuda.synchronize()

    def read(self, seconds):
        took, end = [], time.perf_counter() + seconds
        while len(took) < LEAST or time.perf_counter() < end:
            begin = time.perf_counter()
            loss = self.step().item()
            self.wait()
            took.append(time.perf_counter() - begin)
        if loss != loss:
            raise ValueError("the loss is not a number")
        return 1e3 * statistics.median(took)

    def queued(self, seconds, ms):
        """Blocks of steps; `ms`: what a step takes that reads its loss."""
        n, took = max(1, int(1e3 * seconds / BLOCKS / ms)), []
        for _ in range(BLOCKS):
            begin = time.perf_counter()
            for _ in range(n):
                self.step()
            self.wait()
            took.append((time.perf_counter() - begin) / n)
        return 1e3 * statistics.median(took)

    def sample(self, seconds):
        allow_tf32(self.tf32)
        for _ in range(WARM):
            self.step().item()
        ms = self.read(seconds)
        return [ms, self.queued(seconds, ms)]


class Case:
    def __init__(self, device, words):
        self.steps, self.why = {}, {}
        variants = {"fp32": (False, False)}
        if device == "cuda":
            variants |= {"tf32": (True, False), "graph": (False, True), "graph tf32": (True, True)}
        for name, (tf32, graph) in variants.items():
            try:
                self.steps[name] = Step(device, words, tf32, graph)
            except Exception as e:  # run.py shows it in the row
                self.why[name] = why(e)

    def sample(self, seconds):
        out = dict(self.why)
        for name, step in self.steps.items():
            try:
                out[name] = step.sample(seconds)
            except Exception as e:
                out[name] = why(e)
        return out


def why(e):
    return f"{type(e).__name__}: {' '.join(str(e).split())[:160]}"


def info(device):
    out = {"torch": torch.__version__, "threads": torch.get_num_threads()}
    if device == "cuda":
        out |= {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    return out


def main():
    device, threads, cases, at = sys.argv[1], int(sys.argv[2]), {}, None
    torch.set_num_threads(threads)
    gc.disable()
    for line in sys.stdin:
        order, *words = line.split()
        try:
            if order == "quit":
                break
            if order == "case":
                at = tuple(words)
                if at not in cases:
                    cases[at] = Case(device, words)
                answer = ""
            elif order == "sample":
                answer = json.dumps(cases[at].sample(float(words[0])))
            elif order == "info":
                answer = json.dumps(info(device))
            else:
                raise ValueError(f"not an order: {order}")
            print("ok", answer, flush=True)
        except Exception as e:
            print("error", why(e), flush=True)


if __name__ == "__main__":
    main()
