"""peer.py - the baseline: LSTM layers in two stages under torch.distributed.pipelining, two processes of one thread, Gloo.

    peer.py gpipe|1f1b STEPS B T I LAYERS H HORIZON MICRO PORT       prints the median milliseconds of a step

Stage 0 has the first half of the layers, stage 1 the rest and the head on the last time step.  Tensors are [T][B][F], cut
along B.  Denormals are flushed, Adam is fused, as in bench/ranks/ddp.py.
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.distributed.pipelining.microbatch import TensorChunkSpec

SCHEDULES = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
STAGES = 2


class Layers(torch.nn.Module):
    """Consecutive layers; the last stage ends with the head."""

    def __init__(self, inputs, layers, hidden, out=None):
        super().__init__()
        self.lstm = torch.nn.LSTM(inputs, hidden, layers)
        self.head = torch.nn.Linear(hidden, out) if out else None

    def forward(self, x):
        y = self.lstm(x)[0]
        return self.head(y[-1]) if self.head else y


def stage_of(rank, b, t, i, layers, hidden, out):
    """The module of a stage and the shape of its input."""
    first = layers // STAGES
    if rank == 0:
        return Layers(i, first, hidden), (t, b, i)
    return Layers(hidden, layers - first, hidden, out), (t, b, hidden)


def step_ms(rank, name, steps, b, t, i, layers, hidden, out, micro, port):
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=STAGES)
    module, shape = stage_of(rank, b, t, i, layers, hidden, out)
    stage = PipelineStage(module, rank, STAGES, torch.device("cpu"))
    schedule = SCHEDULES[name](stage, micro, loss_fn=torch.nn.functional.mse_loss, args_chunk_spec=(TensorChunkSpec(1),))
    adam = torch.optim.Adam(module.parameters(), lr=1e-3, fused=True)
    x, y = torch.randn(shape), torch.randn(b, out)
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        adam.zero_grad(set_to_none=False)
        schedule.step(x) if rank == 0 else schedule.step(target=y)
        adam.step()
        times.append(1e3 * (time.perf_counter() - begin))
    if rank == 0:
        print("%.4f" % statistics.median(times[len(times) // 4:]), flush=True)
    dist.destroy_process_group()


def main():
    name, *sizes = sys.argv[1:11]
    mp.spawn(step_ms, args=(name, *map(int, sizes)), nprocs=STAGES)


if __name__ == "__main__":
    main()
