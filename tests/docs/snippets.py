"""snippets.py - runs every snippet of a page of the documentation, in order, in an empty folder.

    snippets.py PROGRAM PAGE.md

    ```sh                       lines of a shell, `stretto` is the program; a command that fails ends the test
    ```python                   one interpreter for the page
    ```c name=x.c               a file; so is ```yaml name=x.yaml
    ```sh not-run="a cluster"   left out, for the reason that it gives
    ```text, ```                what a program prints: not compared; a command in such a block is an error

A page of files.py finds the files that it names, and its commands are made small (quick.py).
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback

import files

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
FENCE = re.compile(r"^```(\w*)[ \t]*([^\n]*)\n(.*?)^```[ \t]*$", re.M | re.S)
ATTRIBUTE = re.compile(r'([\w-]+)=(?:"([^"]*)"|(\S+))')
NEEDS = ("numpy", "pandas", "matplotlib")
COMMAND = re.compile(r"^(\w+=\S+ )*(stretto|mpirun|mpiexec|python3|pip) \S", re.M)
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def blocks(page):
    """(line, language, attributes, text) of every fenced block."""
    with open(page, encoding="utf-8") as f:
        text = f.read()
    for m in FENCE.finditer(text):
        attributes = {name: quoted or plain for name, quoted, plain in ATTRIBUTE.findall(m.group(2))}
        yield text.count("\n", 0, m.start()) + 1, m.group(1), attributes, m.group(3)


def shell(text):
    done = subprocess.run(["sh", "-eu", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    if done.returncode:
        print(done.stdout)
    return done.returncode == 0


def python(text, names, place):
    try:
        exec(compile("\n" * place[1] + text, place[0], "exec"), names)  # pylint: disable=exec-used
    except BaseException:
        traceback.print_exc()
        return False
    return True


def run(page):
    """The number of snippets that ran, and of those that failed."""
    ran = failed = 0
    names = {"__name__": "__main__"}
    for line, language, attributes, text in blocks(page):
        if "not-run" in attributes:
            assert len(attributes["not-run"]) > 3, "%s:%d: not-run says no reason" % (page, line)
            print("%s:%d: not run: %s" % (os.path.basename(page), line, attributes["not-run"]))
        elif "name" in attributes:
            with open(attributes["name"], "w", encoding="utf-8") as f:
                f.write(text)
        elif language in ("sh", "python"):
            good = shell(text) if language == "sh" else python(text, names, (page, line))
            ran += 1
            failed += not good
            if not good:
                print("%s:%d: this snippet failed" % (page, line))
        elif language in ("", "text") and COMMAND.search(text):
            print("%s:%d: a command that no test runs: write ```sh, or ```sh not-run=\"why\"" % (page, line))
            failed += 1
    return ran, failed


def needs_python(page):
    return any((language == "python" or "python3 " in text) and "not-run" not in more for _, language, more, text in blocks(page))


def can_import():
    try:
        for name in NEEDS:
            __import__(name)
    except ImportError as e:
        print("skipped: this page has snippets in Python, and there is no %s (tools/python_venv.sh)" % e.name)
        return False
    __import__("matplotlib").use("Agg")
    return True


def put_programs(folder, program, small):
    """`stretto` in folder/bin; where there is no MPI, an mpirun that starts one process."""
    where = os.path.join(folder, "bin")
    os.makedirs(where)
    script = {"stretto": 'PROGRAM="%s" exec "%s" "%s/quick.py" "$@"' % (program, sys.executable, HERE) if small else 'exec "%s" "$@"' % program}
    script["python3"] = 'exec "%s" "$@"' % sys.executable
    if not shutil.which("mpirun"):
        script["mpirun"] = 'while [ "$1" != stretto ]; do shift; done; exec "$@"'
        print("mpirun is not here: its commands run as one process")
    for name, text in script.items():
        with open(os.path.join(where, name), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n%s\n" % text)
        os.chmod(os.path.join(where, name), 0o755)


def main():
    program, page = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    library, key = os.path.dirname(os.path.dirname(program)), os.path.relpath(page, os.path.join(ROOT, "docs")).replace("../", "")
    sys.path.insert(0, os.path.join(ROOT, "bindings", "python"))
    with tempfile.TemporaryDirectory(prefix="stretto-docs-") as folder:
        put_programs(folder, program, key in files.FILES)
        os.environ.update(MPI, PATH=os.path.join(folder, "bin") + os.pathsep + os.environ["PATH"], STRETTO_LIBRARY=library, STRETTO_ROOT=ROOT,
                          STRETTO_WISDOM=os.path.join(folder, "wisdom"), HOME=folder, BROWSER="true",
                          NO_COLOR="1")
        if needs_python(page) and not can_import():
            return 77
        os.makedirs(os.path.join(folder, "work"))
        os.chdir(os.path.join(folder, "work"))
        os.symlink(os.path.join(ROOT, "examples"), "examples")
        files.make(key)
        ran, failed = run(page)
        os.chdir(ROOT)
    print("%s: %d snippets ran, %d failed" % (os.path.basename(page), ran, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
