#!/usr/bin/env python3
"""cuda_kernels.py [--text FILE] [ARCH..]: compiles the kernels of devices for NVIDIA GPUs without a GPU, prints what they use.

The text and the options are those of the driver cuda: the files that src/gpu/CMakeLists.txt embeds, the options of cuda_api.c.
NVRTC is $STRETTO_NVRTC, that of a Python environment (PyTorch brings it), or a wheel that pip installs into build/nvrtc.
Exit status: 1 = a kernel spills registers or is not compiled, 77 = skipped, there is no NVRTC."""
import argparse
import ctypes
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WHEEL = "nvidia-cuda-nvrtc==13.0.88"
ARCHS = ["sm_80", "sm_90", "sm_100"]
# What a multiprocessor has: threads, blocks, KiB of shared memory.  CUDA C++ programming guide, technical specifications.
LIMITS = {"75": (1024, 16, 64), "80": (2048, 32, 164), "86": (1536, 16, 100), "89": (1536, 24, 100), "90": (2048, 32, 228),
          "100": (2048, 32, 228), "120": (1536, 24, 100)}
REGISTERS, PER_WARP, RESERVED = 65536, 256, 1024  # of a multiprocessor, granule of a warp, bytes a block loses (sm_80 and later)
ITEMS = 256  # threads of a block, src/gpu/table.c: GROUP_ITEMS; other numbers by kernel:
ITEMS_OF = {f"{cell}_steps_{way}_{size}": 2 * size for cell in ("lstm", "gru", "rnn") for way in ("fwd", "bwd")
            for size in (32, 64, 96, 128)}  # sequence.cl: two items a unit


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def kernel_text():
    """The files in the order of src/gpu/CMakeLists.txt."""
    names = re.search(r"foreach\(name ([^)]*)\)", read("src/gpu/CMakeLists.txt")).group(1).split()
    return "\n".join(read("src/gpu/text/" + name) for name in ["dialect.h", "args.h"] + [name + ".cl" for name in names])


def options():
    return re.search(r'cuda_options\(void\) \{ return "([^"]*)"', read("src/gpu/cuda_api.c")).group(1).split()


def kernel_names():
    return re.findall(r"^GPU_KERNEL\((\w+),", read("src/gpu/kernels.def"), re.M)


def installed(folders):
    for folder in folders:
        found = glob.glob(os.path.join(folder, "nvidia", "**", "libnvrtc.so*"), recursive=True)
        if found:
            return sorted(found)[-1]
    return None


def find_nvrtc():
    """(path, None) or (None, why there is none)."""
    wish, own = os.environ.get("STRETTO_NVRTC"), os.path.join(ROOT, "build", "nvrtc")
    if wish:
        return wish, None
    path = installed([folder for folder in sys.path if folder] + [own])
    if path:
        return path, None
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", "--retries", "1", "--target", own]
    try:
        done = subprocess.run(command + [WHEEL], capture_output=True, text=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as e:
        return None, f"no NVRTC here, and pip did not get one: {e}"
    path = installed([own])
    lines = done.stderr.strip().splitlines() or ["it gave no reason"]
    return path, None if path else f"no NVRTC here, and pip did not get one: {lines[-1]}"


def open_nvrtc(path):
    """NVRTC opens a second library by its bare name: it finds the one that is open."""
    for builtins in glob.glob(os.path.join(os.path.dirname(path), "libnvrtc-builtins.so*")):
        ctypes.CDLL(builtins)
    return ctypes.CDLL(path)


def compile_for(nvrtc, text, arch):
    """(NVRTC's status, its log)."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    wanted = [f"--gpu-architecture={arch}", "--ptxas-options=-v"] + options()
    given = (ctypes.c_char_p * len(wanted))(*[option.encode() for option in wanted])
    status = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"stretto.cu", 0, None, None)
    if status != 0:
        return status, "nvrtcCreateProgram"
    status = nvrtc.nvrtcCompileProgram(program, len(wanted), given)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return status, log.value.decode(errors="replace")


def usage(log):
    """kernel -> (registers, spilled bytes, shared bytes), from the report of ptxas."""
    out = {}
    for part in re.split(r"Compiling entry function '", log)[1:]:
        def number(pattern):
            found = re.search(pattern, part)
            return int(found.group(1)) if found else 0
        spilled = number(r"(\d+) bytes spill stores") + number(r"(\d+) bytes spill loads")
        out[part.split("'")[0]] = (number(r"Used (\d+) registers"), spilled, number(r"(\d+) bytes smem"))
    return out


def occupancy(arch, items, registers, shared):
    """Threads that a multiprocessor holds at once, and their largest number."""
    threads, blocks, kib = LIMITS[arch.removeprefix("sm_")]
    warps = -(-items // 32)
    by_registers = REGISTERS // PER_WARP // max(1, -(-registers * 32 // PER_WARP)) // warps
    by_shared = kib * 1024 // (shared + (0 if arch == "sm_75" else RESERVED))
    return min(threads // (warps * 32), blocks, by_registers, by_shared) * items, threads


def report(nvrtc, text, arch, names):
    """Prints the table of an architecture; True = all is well."""
    status, log = compile_for(nvrtc, text, arch)
    if status != 0:
        print(f"{arch}: not compiled (NVRTC status {status})\n{log.strip()[:4000]}")
        return False
    used, well = usage(log), True
    for name in names or sorted(used):
        if name not in used:
            print(f"{name:<16} {arch:<7} absent from the program")
            well = False
            continue
        registers, spilled, shared = used[name]
        line = f"{name:<16} {arch:<7} {registers:>9} {spilled:>8} {shared:>7}"
        if arch.removeprefix("sm_") in LIMITS:
            live, most = occupancy(arch, ITEMS_OF.get(name, ITEMS), registers, shared)
            line += f" {live:>8} of {most} ({100 * live // most} %)"
        print(line + ("   SPILLS" if spilled else ""))
        well = well and spilled == 0
    return well


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", help="a file with the text of the kernels, in place of that of src/gpu")
    parser.add_argument("archs", nargs="*", metavar="ARCH", help="sm_80 and so on")
    wish = parser.parse_args()
    path, why = find_nvrtc()
    if path is None:
        print(f"skipped: {why}")
        return 77
    try:
        nvrtc = open_nvrtc(path)
    except OSError as e:
        print(f"skipped: {e}")
        return 77
    text = open(wish.text, encoding="utf-8").read() if wish.text else kernel_text()
    print(f"{path}\n{'kernel':<16} {'arch':<7} registers  spilled  shared  threads of a multiprocessor")
    results = [report(nvrtc, text, arch, [] if wish.text else kernel_names()) for arch in wish.archs or ARCHS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
