"""children.py - processes of a task: none outlives the Python worker that started it.  Pickled by value, as ranks.py."""
import collections
import json
import subprocess
import sys
import threading

TAIL = 100  # lines of the log in an error

# Runs a command and ends all of its descendants when this end of the pipe closes: when the worker of Spark dies, however it dies.
GUARD = r"""
import os, signal, subprocess, sys, threading, time
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
def parents():
    for name in os.listdir("/proc"):
        try:
            if name.isdigit():
                with open("/proc/%s/stat" % name) as f:
                    yield int(name), int(f.read().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError, ValueError):
            pass
def end():
    while os.read(0, 1):
        pass
    family = {child.pid}
    for _ in range(20):
        pairs = list(parents())
        before = 0
        while before != len(family):
            before = len(family)
            family |= {pid for pid, parent in pairs if parent in family}
        for pid in family:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        if not any(pid in family for pid, parent in parents() if pid != child.pid):
            break
        time.sleep(0.05)
    os._exit(137)
threading.Thread(target=end, daemon=True).start()
status = child.wait()
os._exit(status if status >= 0 else 128 - status)
"""


class Child:
    """A process under a guard; its last lines are kept, all lines go to the log of the executor."""

    def __init__(self, argv, env=None, head=None):
        self.tail, self.out = collections.deque(maxlen=TAIL), []
        self.process = subprocess.Popen([sys.executable, "-c", GUARD] + argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, env=env, text=True, errors="replace", start_new_session=True)
        self.lines = head(self.process.stdout) if head else []
        self.threads = [threading.Thread(target=self.read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.out), (self.process.stderr, self.tail))]
        for thread in self.threads:
            thread.start()

    def read(self, stream, to):
        for line in stream:
            to.append(line.rstrip("\n"))
            if to is self.tail:
                print(line, end="", file=sys.stderr, flush=True)

    def status(self):
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def end(self):
        """Ends the process and its descendants."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.finish()

    def finish(self):
        for thread, stream in zip(self.threads, (self.process.stdout, self.process.stderr)):
            thread.join(5)
            if not thread.is_alive():
                stream.close()


def launch_lines(stream):
    """Reads the launch lines of MPICH's mpiexec."""
    lines = []
    for line in stream:
        if line.startswith("HYDRA_LAUNCH:"):
            lines.append(line.split(":", 1)[1].strip())
        elif line.startswith("HYDRA_LAUNCH_END"):
            break
    return lines


def readable(line):
    """An error of `stretto --json` as the program prints it without."""
    try:
        e = json.loads(line)
        place = e["where"] + ": " if e["where"] else ""
        fixes = "".join("\n  fix: " + fix for fix in e["fix"].split("\n") if fix)
        return "error[%s] %s%s%s" % (e["error"], place, e["text"], fixes)
    except (ValueError, KeyError, TypeError):
        return line


def tail_of(children):
    """The last lines of the log; several ranks may say the same."""
    lines = []
    for line in (readable(line) for c in children for line in c.tail):
        if line not in lines[-1:]:
            lines.append(line)
    return "\n".join(lines[-TAIL:])
