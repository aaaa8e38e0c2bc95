#!/usr/bin/env python3
"""oclgrind.py TEST..: runs tests of kernels on Oclgrind, an emulator of an OpenCL device that checks every access of every work item.

    reported: an access outside of the heap or of shared memory, two items of which one writes the same place without a barrier between
    them, a barrier that not all items of a group reach, a wrong call of OpenCL.  A report fails the test, as does a wrong result.

Not asked for: reads of memory that nobody has written (--uninitialized).  A heap is zeroed when it is opened, so there are none; and Oclgrind
21.10 takes what the host copies for unwritten and does not know an instruction of the compiler (freeze).
Exit status 77: Oclgrind is not installed (Debian and Ubuntu: package oclgrind).  STRETTO_OCLGRIND: its file liboclgrind-rt-icd.so."""
import glob
import os
import re
import subprocess
import sys
import tempfile

PLACES = ["/usr/lib/oclgrind", "/usr/lib/*/oclgrind", "/usr/lib/*", "/usr/local/lib", "/usr/local/lib/oclgrind"]
SHARED_MEMORY = 64 << 10  # bytes of a group: a product of large tiles takes more than the 32 KiB of the emulator


def library():
    named = os.environ.get("STRETTO_OCLGRIND")
    found = [named] if named else [f for place in PLACES for f in glob.glob(place + "/liboclgrind-rt-icd.so*")]
    return next((f for f in found if os.path.isfile(f)), None)


def reports(text):
    """The paragraphs of the log, without those on kernels that are left out on the cores of a host (gpu.h: gpu_on_host)."""
    return [p for p in re.split(r"\n\s*\n", text) if p.strip() and "CL_INVALID_KERNEL_NAME" not in p and not re.match(r"\s*Kernel '\w+' not found", p)]


def run(test, at, icd):
    log = os.path.join(at, "log")
    env = dict(os.environ, OCL_ICD_VENDORS=icd, STRETTO_CUDA="none", STRETTO_CACHE="off", STRETTO_TEST_FEW="emulated", OCLGRIND_LOG=log,
               OCLGRIND_CHECK_API="1", OCLGRIND_DATA_RACES="1", OCLGRIND_MAX_ERRORS="50", OCLGRIND_NUM_THREADS="1",
               OCLGRIND_LOCAL_MEM_SIZE=str(SHARED_MEMORY), STRETTO_DEADLINE="600")
    env.pop("STRETTO_OPENCL", None)
    done = subprocess.run([test], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = done.stdout.decode(errors="replace")
    logged = open(log, encoding="utf-8", errors="replace").read() if os.path.exists(log) else ""
    found = reports(logged)
    print("%s: exit status %d, %d tests passed, %d reports" % (os.path.basename(test), done.returncode, said.count("[       OK ]"), len(found)))
    if "Oclgrind" not in said:
        print("the test did not run on Oclgrind\n" + said)
        return False
    if done.returncode != 0:
        print(said)
    print("\n\n".join(found[:20]))
    return done.returncode == 0 and not found


def main():
    path = library()
    if not path:
        print("skipped: Oclgrind is not installed (Debian and Ubuntu: package oclgrind)")
        return 77
    with tempfile.TemporaryDirectory() as at:
        icd = os.path.join(at, "icd")
        os.mkdir(icd)
        with open(os.path.join(icd, "oclgrind.icd"), "w", encoding="utf-8") as f:
            f.write(path + "\n")
        return 0 if all([run(test, at, icd) for test in sys.argv[1:]]) else 1


if __name__ == "__main__":
    sys.exit(main())
