#!/bin/sh
# arm_root.sh - the ARM builds of the libraries that Stretto and its tests link, unpacked into a folder of their own.  apt-get
# fetches them with lists and a cache in that folder, so the packages and architectures of this system stay as they are.
# usage: tools/arm_root.sh FOLDER        exit 1 and one line that says why when they cannot be had
set -eu
mkdir -p "$1"
cd "$1"
packages="libjansson-dev libjansson4 libyaml-dev libyaml-0-2 libzstd-dev libzstd1 zlib1g-dev zlib1g libhwloc-dev libhwloc15 libudev1
    librandom123-dev libcmocka-dev libcmocka0"
[ "$(cat have 2>/dev/null)" != "$packages" ] || exit 0
command -v apt-get >/dev/null 2>&1 && command -v dpkg-deb >/dev/null 2>&1 || {
    echo "no apt-get and dpkg-deb here"
    exit 1
}
root=$PWD
mkdir -p lists/partial cache/archives/partial debs
apt() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="$(id -un)" \
        -o Acquire::Languages=none \
        -o Dir::State::Lists="$root/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$root/cache" \
        -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false "$@" >>"$root/log" 2>&1
}
: >log
apt update || true # a source that has no arm64 is no reason to stop
# shellcheck disable=SC2086
(cd debs && apt download $packages) || { echo "no arm64 packages: $(grep -m1 '^E:' log || tail -1 log)"; exit 1; }
for deb in debs/*.deb; do dpkg-deb -x "$deb" .; done
find . -type l -lname '/*' | while read -r link; do ln -sf "$root$(readlink "$link")" "$link"; done
rm -rf lists cache debs
echo "$packages" >have
