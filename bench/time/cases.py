"""cases.py - the cases of run.py: one long series, with or without P slices; weights with three memory lengths.

A net forgets where it began after w steps.  w follows from the weights alone: PyTorch's initial weights, the recurrent ones times `spread`
and the forget gate's bias raised by `forget`; the pairs below were found by trying, and w is measured anew at every run."""
import dataclasses

import numpy

T, I, H = 65536, 8, 128
SLICES = (8, 16, 24, 32, 48, 64, 128)


@dataclasses.dataclass
class Memory:
    """Weights, and the share of T that their w is about."""
    name: str
    share: int
    spread: float
    forget: float


MEMORIES = [Memory("T/256", 256, 0.5, 1.9), Memory("T/64", 64, 0.5, 2.75), Memory("T/16", 16, 0.5, 3.2)]
QUICK = [Memory("short", 0, 1.0, 0.0), Memory("longer", 0, 0.5, 2.0)]


@dataclasses.dataclass
class Row:
    """An implementation: P slices (1 = one after another, 0 = PyTorch), threads, precision."""
    P: int
    threads: int
    prec: str

    @property
    def key(self):
        how = "torch" if self.P == 0 else "serial" if self.P == 1 else f"P={self.P}"
        return f"{how} {self.prec} {self.threads}t"


def precisions(isa):
    """AVX2 has no products in bf16, neither ours nor oneDNN's."""
    return ("fp32",) if isa == "avx2" else ("fp32", "bf16")


def rows(cores, slices=SLICES, isa=""):
    """Ours, all of them; one after another first, fp32 and one thread the very first: what the others are checked against."""
    return [Row(P, threads, prec) for P in (1, *slices) for prec in precisions(isa) for threads in (1, 2)
            if threads <= cores and not (P == 1 and prec == "bf16" and threads == 2)]


def peers(cores, isa=""):
    """PyTorch's settings."""
    return [Row(0, threads, prec) for prec in precisions(isa) for threads in (1, 2) if threads <= cores]


def put(folder, name, values):
    numpy.ascontiguousarray(values, dtype=numpy.float32).tofile(folder / f"{name}.f32")


def weights(folder, I, H, layers=1, spread=1.0, forget=0.0, seed=1):
    """PyTorch's initial weights, changed as said, as files with its names."""
    rng, a = numpy.random.default_rng([seed, I, H, layers]), H ** -0.5
    for k in range(layers):
        put(folder, f"lstm.weight_ih_l{k}", rng.uniform(-a, a, (4 * H, I if k == 0 else H)))
        put(folder, f"lstm.weight_hh_l{k}", spread * rng.uniform(-a, a, (4 * H, H)))
        bias = rng.uniform(-a, a, 4 * H)
        bias[H:2 * H] += forget
        put(folder, f"lstm.bias_ih_l{k}", bias)
        put(folder, f"lstm.bias_hh_l{k}", rng.uniform(-a, a, 4 * H))
    put(folder, "head.weight", rng.uniform(-a, a, (1, H)))
    put(folder, "head.bias", rng.uniform(-a, a, 1))


def series(folder, T, I, seed=2):
    """Noise, and a target that is a level, a slow wave and some of the noise.  Without the level the gradient is close to zero by chance, and
    what is relative to it means little."""
    x = 0.5 * numpy.random.default_rng(seed).standard_normal((T, I))
    put(folder, "x", x)
    put(folder, "y", 0.3 + 0.7 * numpy.sin(0.02 * numpy.arange(T)) + 0.3 * x[:, 0])
