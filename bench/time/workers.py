"""workers.py - the processes that run.py and rounds.py control: bench_slices, and PyTorch (peer.py)."""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(1, str(HERE.parent))
from peers import KEEP, NARROW, Failed, Process, pinned  # noqa: E402, F401


class Worker(Process):
    def ask(self, line, seconds=300):
        """One order; the words of its answer."""
        return self.order(line, seconds).split()


def ours(build, realtime=False, isa=""):
    return Worker([str(build / "bench_slices")], NARROW[isa], realtime)


def peer(threads, realtime=False, isa=""):
    return Worker([sys.executable, str(HERE / "peer.py"), str(threads)], KEEP | pinned(threads) | NARROW[isa], realtime)
