"""cases.py - the measured cases: one Row per table line, with its target ratio (bar) and the implementations to compare.

An implementation is one process (ours; kept: PyTorch with a malloc that keeps memory; stock: default PyTorch) and the words of its case."""
import dataclasses

SHAPES = {"S1": (100, 32, 8, 64), "S2": (100, 64, 16, 128), "S3": (168, 64, 32, 256), "S4": (512, 1, 8, 128), "S5": (50, 256, 64, 512),
          "tutorial": (50, 32, 1, 50)}
TINY = (7, 6, 3, 20)
FIVE = ["S1", "S2", "S3", "S4", "S5"]

GROUPS = {
    "lstm": "LSTM, fp32",
    "gru": "GRU, fp32",
    "rnn": "RNN (tanh), fp32",
    "bidir": "Bidirectional LSTM, fp32",
    "ragged": "Ragged batch (lengths spread evenly over 1..T), LSTM, fp32",
    "decoder": "Decoder: a loop of LSTMCell with teacher forcing, fp32",
    "proj": "LSTM with projection (proj_size = H / 2), fp32",
    "layer": "LSTM as a layer of a model, fp32",
    "bf16": "LSTM, bf16",
    "avx2": "LSTM on AVX2 alone, fp32",
    "step": "Full training step: LSTM + linear head + MSE + Adam, fp32",
}
NOTES = {
    "lstm": "Forward, backward and weight gradients of a batch. At (512,1,8,128) two threads share the units of each step.",
    "ragged": "PyTorch: `pack_padded_sequence`, packed before the clock starts, outputs left packed. Work counts live steps only.",
    "decoder": "PyTorch: `LSTMCell` step by step, outputs stacked. Ours `step by step`: forward one call a step, as where the next input must wait; "
               "`whole`: the same numbers in one call, which teacher forcing allows.",
    "proj": "Ours is the layer of a model (grains and all), made of several kernels; PyTorch's is no oneDNN primitive either.",
    "layer": "The same work through `src/model`, where sums of weight gradients are cut into grains so that bits do not depend on threads: what that costs.",
    "bf16": "PyTorch: autocast to bf16. `fp32` columns: the same step in fp32, interleaved in the same minutes. Bars over PyTorch are for AMX; with AVX512_BF16 "
            "alone the bar is 1.6 times our own fp32. At (512,1,8,128) the bar is for the better of our two precisions over PyTorch's better.",
    "avx2": "`STRETTO_ISA=avx2`; the share is of the AVX2 multiply-add rate.",
    "step": "PyTorch eager; `kept` with the fused Adam, `stock` with the Adam one gets. Ours through plan and executor.",
}


@dataclasses.dataclass
class Row:
    group: str
    shape: str
    threads: int
    layers: int
    variant: str = ""
    words: str = ""                                # of the case, without shape
    ours: str = ""                                 # more words for ours alone
    bar: float = 0                                 # over PyTorch's best setting
    peak: float = 0                                # % of the multiply-add rate
    over_fp32: float = 0                           # bf16 on AMX: over PyTorch's fp32
    own: float = 0                                 # bf16 by AVX512_BF16 without AMX: over our own fp32
    size: tuple = ()
    implementations: dict = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        self.size = SHAPES[self.shape]

    @property
    def key(self):
        return "/".join(filter(None, [self.group, self.variant, self.shape, f"{self.layers}L", f"{self.threads}t"]))

    def data(self):
        """Words that determine the input: rows with equal words share files and reference."""
        T, B, I, H = self.size
        return f"T={T} B={B} I={I} H={H} layers={self.layers} {self.words}".strip()

    def finish(self):
        """Implementations: name -> (process, words)."""
        base = self.data()
        team = " team=1" if self.size[1] < self.threads and "step=1" not in base else ""
        mine = f"{base} {self.ours}{team}".strip()
        self.implementations = {"ours": ("ours", mine)}
        if self.group == "avx2":
            return self
        peer = base + (" stepped=1" if self.group == "decoder" else "")
        self.implementations["kept"] = ("kept", peer)
        self.implementations["stock"] = ("stock", peer)
        if self.group == "bf16":
            self.implementations["ours fp32"] = ("ours", mine.replace("prec=bf16", "prec=fp32"))
            self.implementations["kept fp32"] = ("kept", peer.replace("prec=bf16", "prec=fp32"))
        return self


def rows():
    out = []

    def add(group, shapes, threads, layers, bars=(), peaks=(), **more):
        for i, s in enumerate(shapes):
            out.append(Row(group, s, threads, layers, bar=bars[i] if bars else 0, peak=peaks[i] if peaks else 0, **more).finish())

    add("lstm", FIVE, 1, 1, (1.6, 1.5, 1.25, 1.7, 1.15), (78, 84, 87, 43, 90))
    add("lstm", FIVE, 2, 1, (2.2, 1.6, 1.3, 2.7, 1.15))
    add("lstm", FIVE, 1, 2, (1.5, 1.25, 1.15, 1.45, 1.1))
    add("lstm", ["S1", "S2", "S3", "S4"], 2, 2)
    add("gru", FIVE, 1, 1, (7, 3, 2.5, 25, 2), words="cell=gru")
    add("gru", FIVE, 2, 1, words="cell=gru")
    add("rnn", FIVE, 1, 1, words="cell=rnn")
    add("bidir", FIVE, 1, 1, words="dirs=2")
    add("bidir", ["S1", "S2", "S3"], 2, 1, words="dirs=2")
    add("bidir", ["S1", "S2"], 1, 2, words="dirs=2")
    add("ragged", ["S1", "S2", "S3", "S5"], 1, 1, (7, 7, 7, 0), words="ragged=1")
    add("ragged", ["S1", "S2", "S3"], 2, 1, words="ragged=1")
    add("decoder", ["S1", "S2", "S3"], 1, 1, (7, 2.5, 1.7), variant="step by step", ours="stepped=1")
    add("decoder", ["S1", "S2", "S3"], 1, 1, variant="whole")
    for s in ("S1", "S2", "S3"):
        add("proj", [s], 1, 1, words=f"proj={SHAPES[s][3] // 2}")
    add("layer", ["S1", "S2", "S3", "S5"], 1, 1, ours="layer=1")
    add("bf16", FIVE, 1, 1, (4, 2.8, 2.8, 1.9, 2.1), words="prec=bf16")
    add("bf16", FIVE, 2, 1, (8, 5, 3.2, 0, 2.2), words="prec=bf16")
    add("bf16", ["S1", "S2", "S3"], 1, 2, words="prec=bf16")
    add("bf16", ["S2", "S3"], 1, 1, variant="GRU", words="cell=gru prec=bf16")
    add("avx2", FIVE, 1, 1, (), (0, 0, 80, 0, 80), ours="isa=avx2")
    for layers in (1, 2):
        add("step", ["tutorial", "S1"], 1, layers, (2, 0) if layers == 1 else (), words="step=1")
        add("step", ["tutorial", "S1"], 2, layers, words="step=1")
    for row in out:
        if row.group == "bf16" and row.threads == 1 and row.layers == 1 and row.shape in ("S3", "S5") and not row.variant:
            row.over_fp32 = 8
        if row.group == "bf16" and row.layers == 1 and row.shape != "S4" and not row.variant:
            row.own = 1.6
    return out


def tiny():
    """The same variants at one tiny shape, threads 1 and 2: only checked (run.py --quick)."""
    out, seen = [], set()
    for row in rows():
        key = (row.words, row.ours, row.threads, row.layers)
        if key in seen or row.shape == "S4":
            continue
        seen.add(key)
        row.shape, row.size = "tiny", TINY
        row.words = "proj=10" if row.group == "proj" else row.words
        if ("proj", row.words) in seen:
            continue
        seen.add(("proj", row.words) if row.group == "proj" else key)
        out.append(row.finish())
    team = Row("lstm", "S4", 2, 1, variant="one row")
    team.size = (9, 1, 3, 40)
    return out + [team.finish()]
