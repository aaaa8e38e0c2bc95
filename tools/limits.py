#!/usr/bin/env python3
"""limits.py [--soft] [ROOT]: sizes of files and functions, parameters, nesting, columns, banned calls, unfinished work.

The numbers and the exceptions are in tools/limits.txt.  --soft also lists functions over the soft limit."""
import bisect
import fnmatch
import os
import re
import subprocess
import sys

LIBRARY = ("src/",)
BANNED = {  # call: (reason, only in the library)
    "strcpy": "no bound; snprintf or struct str", "strcat": "no bound; struct str", "sprintf": "no bound; snprintf",
    "vsprintf": "no bound; vsnprintf", "gets": "no bound", "atoi": "no errors; str_to_i64", "atol": "no errors; str_to_i64",
    "atof": "no errors; str_to_f64", "strtok": "hidden state; strcspn", "alloca": "the stack has no errors",
    "strtod": "follows the locale; str_to_f64", "setlocale": "a library does not change the process",
}
BANNED_IN_LIBRARY = {
    "malloc": "mem_alloc", "calloc": "mem_alloc", "realloc": "mem_realloc", "free": "mem_free", "strdup": "mem_strdup",
    "printf": "the library never prints", "puts": "the library never prints", "putchar": "the library never prints",
    "perror": "the library never prints", "exit": "the library never exits", "abort": "the library never exits",
    "_exit": "the library never exits",
}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
CONTROL = {"if", "for", "while", "switch", "else", "do"}
TOKEN = re.compile(r"[A-Za-z_]\w*|[{}()\[\];=,:]|[^\s\w]|\d[\w.]*")


def read_rules(path):
    limits, allowed, forbidden = {}, [], []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "limit":
            limits[words[1]] = int(words[2])
        elif words[0] == "allow" and len(words) > 3:
            allowed.append([words[1], words[2], number, False])
        elif words[0] == "forbid" and len(words) > 2:
            forbidden.append((re.compile(words[1]), " ".join(words[2:])))
        else:
            sys.exit(f"{path}:{number}: not understood; an exception needs a reason")
    return limits, allowed, forbidden


def blank(text):
    """The text with comments, strings and preprocessor lines replaced by spaces; lines and columns stay."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    text = re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", spaces, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", spaces, text, flags=re.M | re.S)


def functions(code):
    """Yields (name, first line, last line, parameters, nesting) of every function body."""
    tokens = [(match.group(0), match.start()) for match in TOKEN.finditer(code)]
    starts = [0] + [match.end() for match in re.finditer("\n", code)]

    def line(position):
        return bisect.bisect_right(starts, position)

    i = depth = 0
    while i < len(tokens):
        text, position = tokens[i]
        if text == "{" and depth == 0 and i > 0 and tokens[i - 1][0] == ")":
            opening = match_back(tokens, i - 1)
            name, first = (tokens[opening - 1] if opening > 0 else ("?", position))
            last, nesting = body(tokens, i)
            yield name, line(first), line(tokens[last][1]), parameters(tokens, opening, i - 1), nesting
            i = last + 1
            continue
        depth += {"{": 1, "}": -1}.get(text, 0)
        i += 1


def match_back(tokens, closing):
    depth = 0
    for i in range(closing, -1, -1):
        depth += {")": 1, "(": -1}.get(tokens[i][0], 0)
        if depth == 0:
            return i
    return 0


def parameters(tokens, opening, closing):
    inside = [text for text, _ in tokens[opening + 1:closing]]
    if inside in ([], ["void"]):
        return 0
    depth = count = 0
    for text in inside:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(text, 0)
        count += text == "," and depth == 0
    return count + 1


def body(tokens, opening):
    """The index of the closing brace, and the deepest block; braces of initialisers do not count."""
    blocks, nesting, deepest, i = [], 0, 0, opening
    while i < len(tokens):
        text = tokens[i][0]
        if text == "{":
            before = tokens[i - 1][0]
            if before == ")":
                start = match_back(tokens, i - 1)
                before_group = tokens[start - 1][0]
                block = before_group in CONTROL or (before_group.isidentifier() and before_group.isupper())
            else:
                block = before in CONTROL or before in ";{}:"
            blocks.append(i == opening or (block and blocks[-1]))
            nesting += blocks[-1]
            deepest = max(deepest, nesting)
        elif text == "}":
            nesting -= blocks.pop()
            if not blocks:
                return i, deepest - 1
        i += 1
    return len(tokens) - 1, deepest - 1


class Checker:
    def __init__(self, root, soft):
        self.root, self.soft = root, soft
        self.limits, self.allowed, self.forbidden = read_rules(os.path.join(root, "tools", "limits.txt"))
        self.found, self.softly, self.files = [], [], 0

    def report(self, rule, path, line, text, function=None):
        for entry in self.allowed:
            pattern, _, name = entry[1].partition(":")
            if entry[0] == rule and fnmatch.fnmatch(path, pattern) and (not name or name == function):
                entry[3] = True
                return
        self.found.append(f"{path}:{line}: {text}")

    def check(self, path):
        shown, text = os.path.relpath(path, self.root), open(path, encoding="utf-8").read()
        lines, limits = text.split("\n"), self.limits
        self.files += 1
        count = len(lines) - (lines[-1] == "")
        if count > limits["file-lines"]:
            self.report("file-lines", shown, count, f"{count} lines, the limit is {limits['file-lines']}")
        if not text.startswith("/*"):
            self.report("opening", shown, 1, "a file opens with a comment that says what it is")
        for number, line in enumerate(lines, 1):
            if len(line) > limits["columns"]:
                self.report("columns", shown, number, f"{len(line)} columns, the limit is {limits['columns']}")
            if "\t" in line or line != line.rstrip():
                self.report("blanks", shown, number, "a tab, or blanks at the end of the line")
            if UNFINISHED.search(line):
                self.report("unfinished", shown, number, "unfinished work does not go into the tree")
        if path.endswith((".c", ".h")):
            self.check_code(shown, blank(text))

    def check_code(self, shown, code):
        limits = self.limits
        for name, first, last, count, nesting in functions(code):
            size = last - first + 1
            if size > limits["function-lines"]:
                self.report("function-lines", shown, first, f"{name} has {size} lines, the limit is {limits['function-lines']}", name)
            elif size > limits["function-lines-soft"]:
                self.softly.append(f"{shown}:{first}: {name} has {size} lines (soft limit {limits['function-lines-soft']})")
            if count > limits["parameters"]:
                self.report("parameters", shown, first, f"{name} has {count} parameters, the limit is {limits['parameters']}", name)
            if nesting > limits["nesting"]:
                self.report("nesting", shown, first, f"{name} nests {nesting} deep, the limit is {limits['nesting']}", name)
        banned = dict(BANNED)
        if shown.startswith(LIBRARY):
            banned.update(BANNED_IN_LIBRARY)
        for match in re.finditer(r"(?<![\w.>])([A-Za-z_]\w*)\s*\(", code):
            if match.group(1) in banned and not shown.startswith(("tests/", "bench/")):
                line = code.count("\n", 0, match.start()) + 1
                self.report("banned:" + match.group(1), shown, line, f"{match.group(1)} is banned: {banned[match.group(1)]}")
        if shown.startswith(LIBRARY):
            for match in re.finditer(r"\b(stdout|stderr)\b", code):
                line = code.count("\n", 0, match.start()) + 1
                self.report("banned:" + match.group(1), shown, line, f"{match.group(1)}: the library writes where it is told")

    def check_words(self):
        """Words that no file may hold: paths of one machine, hosts of registries."""
        listing = subprocess.run(["git", "-C", self.root, "ls-files"], capture_output=True, text=True, check=False).stdout
        for shown in listing.split("\n"):
            path = os.path.join(self.root, shown)
            if not shown or not os.path.isfile(path):
                continue
            for number, line in enumerate(open(path, encoding="utf-8", errors="replace"), 1):
                for pattern, reason in self.forbidden:
                    if pattern.search(line):
                        self.report("forbidden", shown, number, f"{pattern.search(line).group(0)}: {reason}")

    def run(self):
        self.check_words()
        for top in ("src", "cli", "include", "examples", "tests", "bench"):
            for folder, _, names in os.walk(os.path.join(self.root, top)):
                for name in sorted(names):
                    if name.endswith((".c", ".h")):
                        self.check(os.path.join(folder, name))
        for line in self.found + (self.softly if self.soft else []):
            print(line)
        for rule, pattern, number, used in self.allowed:
            if not used and "*" not in pattern:
                print(f"tools/limits.txt:{number}: the exception {rule} {pattern} is no longer needed")
                self.found.append(rule)
        print(f"limits: {self.files} files, {len(self.found)} over a limit, {len(self.softly)} functions over the soft limit")
        return 1 if self.found else 0


def main():
    arguments = [a for a in sys.argv[1:] if a != "--soft"]
    root = os.path.abspath(arguments[0]) if arguments else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return Checker(root, "--soft" in sys.argv).run()


if __name__ == "__main__":
    sys.exit(main())
