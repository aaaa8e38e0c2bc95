#!/bin/sh
# needs.sh - says which packages are missing and gets them where it can: Debian and Ubuntu, as root or with sudo that asks nothing.
# usage: . tools/needs.sh; need "why" package...
need() {
    why=$1; shift
    missing=
    for p in "$@"; do
        dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
    done
    [ -n "$missing" ] || return 0
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "stretto: packages for $why cannot be checked here (no apt-get); on this system, install what these Debian packages hold:$missing" >&2
        return 0
    fi
    if [ "$(id -u)" = 0 ]; then as=; elif sudo -n true 2>/dev/null; then as=sudo; else
        echo "stretto: missing packages for $why:$missing" >&2
        echo "  get them: sudo apt-get install$missing" >&2
        return 1
    fi
    echo "stretto: getting packages for $why:$missing" >&2
    log=$(mktemp)
    $as apt-get update -q >"$log" 2>&1 || true
    if ! DEBIAN_FRONTEND=noninteractive $as apt-get install -y -q --no-install-recommends $missing >>"$log" 2>&1; then
        tail -5 "$log" >&2
        echo "stretto: could not install:$missing (see the lines above)" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}
BUILD_PACKAGES="gcc libc6-dev cmake ninja-build pkg-config libjansson-dev libyaml-dev libzstd-dev zlib1g-dev libhwloc-dev librandom123-dev"
ARM_PACKAGES="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
TEST_PACKAGES="g++ clang libcmocka-dev python3 python3-numpy chromium"
# Where these cannot be had, the tests that want them say so and are skipped.
DEVICE_PACKAGES="pocl-opencl-icd ocl-icd-libopencl1 opencl-headers oclgrind"
CLUSTER_PACKAGES="openmpi-bin libopenmpi-dev mpich libmpich-dev slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge procps"
HADOOP_PACKAGES="openjdk-17-jre-headless maven libcurl4 mpich libmpich-dev procps"
# The sanitizers' runtime of the clang that is, or will be, installed.
clang_runtime() {
    v=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\).*/\1/p' | head -1)
    echo "libclang-rt-${v:-14}-dev"
}
