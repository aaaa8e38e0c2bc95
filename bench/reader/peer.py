"""One measurement of a peer: peer.py pandas|pyarrow THREADS FILE -> seconds, cpu seconds, peak resident bytes, checksum."""
import resource
import sys
import time

which, threads, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
with open(path) as f:
    has_time = f.readline().startswith("time")


def cpu():
    r = resource.getrusage(resource.RUSAGE_SELF)
    return r.ru_utime + r.ru_stime


if which == "pandas":  # best settings: the C engine, types given so that nothing is guessed twice, the file mapped
    import pandas as pd
    types = {"a": "float64", "b": "float64"} if has_time else "float64"
    options = dict(engine="c", memory_map=True, low_memory=False, dtype=types)
    if has_time:  # the same work as ours: times, not words
        options |= dict(parse_dates=["time"], date_format="%Y-%m-%d %H:%M:%S")
    begin, used = time.perf_counter(), cpu()
    t = pd.read_csv(path, **options)
    seconds, used = time.perf_counter() - begin, cpu() - used
    total = sum(float(t[c].to_numpy()[::1001].sum()) for c in t.columns if c != "time")
else:
    import pyarrow as pa
    import pyarrow.csv as pc
    pa.set_cpu_count(threads)
    pa.set_io_thread_count(threads)
    begin, used = time.perf_counter(), cpu()
    t = pc.read_csv(path, read_options=pc.ReadOptions(use_threads=threads > 1))
    seconds, used = time.perf_counter() - begin, cpu() - used
    total = sum(float(t[c].to_numpy()[::1001].sum()) for c in t.column_names if c != "time")
print(f"{seconds:.4f} {used:.4f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024} {total:.9g}")
