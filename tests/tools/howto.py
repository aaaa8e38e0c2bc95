#!/usr/bin/env python3
"""howto.py FOLDER: runs the recipes of docs/HOWTO-ADD.md in a copy of the tree kept in FOLDER.

    ```c PATH               a new file                      ```def PATH                 lines at the end of a file
    ```sh                   commands, one build later       ```def PATH before TEXT     lines before the line that begins with TEXT

All recipes are applied at once and built once; then the commands of each run in an empty folder, with `stretto` on the path, $AIR the
airline series and $BUILD the build folder."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def recipes():
    text = open(os.path.join(ROOT, "docs", "HOWTO-ADD.md"), encoding="utf-8").read()
    title = ""
    for match in re.finditer(r"^## ([^\n]*)$|^```(c|def|sh)([^\n]*)\n(.*?)^```$", text, flags=re.M | re.S):
        if match.group(1):
            title = match.group(1)
        else:
            yield title, match.group(2), match.group(3).strip(), match.group(4)


def write(path, text):
    """Writes only what changed, so that the build of the copy starts where the last one was."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    old = open(path, "rb").read() if os.path.exists(path) else None
    if old != text:
        with open(path, "wb") as out:
            out.write(text)


def tree():
    """Every file of the tree, as path -> bytes: what git knows or would take."""
    listing = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True, check=True)
    files = {}
    for name in listing.stdout.decode().split("\0"):
        path = os.path.join(ROOT, name)
        if name and os.path.isfile(path):
            files[name] = (open(path, "rb").read(), os.stat(path).st_mode)
    return files


def apply(files, kind, argument, text):
    path, _, marker = argument.partition(" before ")
    old, mode = files.get(path, (b"", 0o644))
    if kind == "c":
        if old:
            sys.exit(f"howto: {path} is there already")
        files[path] = (text.encode(), mode)
        return
    if not old:
        sys.exit(f"howto: there is no {path}")
    lines = old.decode().splitlines(True)
    at = next((i for i, line in enumerate(lines) if marker and line.startswith(marker)), None)
    if marker and at is None:
        sys.exit(f"howto: no line of {path} begins with {marker}")
    lines.insert(len(lines) if at is None else at, text)
    files[path] = ("".join(lines).encode(), mode)


def run(command, title, **more):
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if result.returncode:
        sys.exit(f"howto: {title} failed (status {result.returncode})\n{result.stdout[-6000:]}")


def main():
    folder = os.path.abspath(sys.argv[1])
    copy, build = os.path.join(folder, "tree"), os.path.join(folder, "build")
    steps, files = list(recipes()), tree()
    for _, kind, argument, text in steps:
        if kind != "sh":
            apply(files, kind, argument, text)
    for stale in [os.path.join(d, f) for d, _, names in os.walk(copy) for f in names]:
        if os.path.relpath(stale, copy) not in files:
            os.remove(stale)
    for name, (text, mode) in files.items():
        write(os.path.join(copy, name), text)
        os.chmod(os.path.join(copy, name), mode)
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    run(["cmake", "-S", copy, "-B", build, *generator, "-DCMAKE_BUILD_TYPE=Release", "-DSTRETTO_LIBRARY=OFF"], "configuring")
    run(["cmake", "--build", build, "-j", str(os.cpu_count() or 1), "--target", "stretto"], "building")
    env = dict(os.environ, BUILD=build, AIR=os.path.join(copy, "examples", "airline-passengers.csv"), NO_COLOR="1",
               PATH=os.path.join(build, "cli") + os.pathsep + os.environ["PATH"])
    done = 0
    for title, kind, _, text in steps:
        if kind == "sh":
            with tempfile.TemporaryDirectory(prefix="stretto_howto_") as work:
                run(["sh", "-exc", text], title, cwd=work, env=env)
            print(f"ok  {title}")
            done += 1
    print(f"howto: {done} recipes")


if __name__ == "__main__":
    main()
