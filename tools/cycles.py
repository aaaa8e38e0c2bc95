#!/usr/bin/env python3
"""cycles.py [--edges FLOOR] [ROOT]: finds call cycles between the .c files of a floor, and compares them with tools/cycles.txt.

File a.c depends on b.c where a.c calls a function that b.c defines, directly or through a macro or an inline function of a header.
Files that call each other in a circle are one file, or need a third that both call.  --edges prints who calls whom, by which name."""
import os
import re
import sys

from limits import CONTROL, TOKEN, blank, body, match_back


def starts_static(tokens, name):
    """Looks back from the name of a definition to the end of what stands before it."""
    for i in range(name - 1, -1, -1):
        if tokens[i][0] in (";", "}"):
            return False
        if tokens[i][0] == "static":
            return True
    return False


def scan(code):
    """(global functions, static functions, calls) of a file; calls: name -> the function in which it is called, None = outside."""
    tokens = [(match.group(0), match.start()) for match in TOKEN.finditer(code)]
    defined, static, calls, i, depth, inside, end = set(), set(), {}, 0, 0, None, -1
    while i < len(tokens):
        text = tokens[i][0]
        if text == "{" and depth == 0 and i > 0 and tokens[i - 1][0] == ")":
            name = match_back(tokens, i - 1) - 1
            inside, end = tokens[name][0], body(tokens, i)[0]
            (static if starts_static(tokens, name) else defined).add(inside)
        elif text.isidentifier() and text not in CONTROL and inside and i + 1 < len(tokens) and tokens[i + 1][0] == "(":
            if not (tokens[i - 1][0] == "." or (tokens[i - 1][0] == ">" and tokens[i - 2][0] == "-")):
                calls.setdefault(text, set()).add(inside)
        depth += {"{": 1, "}": -1}.get(text, 0)
        if i == end:
            inside = None
        i += 1
    return defined, static, calls


def aliases_of(text):
    """name -> names that its use calls: function-like macros and inline functions of a header."""
    found = {}
    bare = re.sub(r"/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", " ", text, flags=re.S)
    for match in re.finditer(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(((?:[^\n\\]|\\.|\\\n)*)", bare, flags=re.M):
        found.setdefault(match.group(1), set()).update(re.findall(r"\b([A-Za-z_]\w*)\s*\(", match.group(2)))
    for name, users in scan(blank(text))[2].items():
        for user in users:
            found.setdefault(user, set()).add(name)
    return found


def expand(name, aliases, seen):
    if name in seen:
        return set()
    seen.add(name)
    found = {name}
    for inner in aliases.get(name, ()):
        found |= expand(inner, aliases, seen)
    return found


def edges_of(root, folder):
    """{file: {file that it calls: name of a function}} of a floor."""
    sources, aliases = {}, {}
    for top, _, names in os.walk(os.path.join(root, folder)):
        for name in sorted(names):
            path = os.path.join(top, name)
            if name.endswith((".c", ".h")):
                text = open(path, encoding="utf-8").read()
            if name.endswith(".c"):
                sources[os.path.relpath(path, os.path.join(root, folder))] = scan(blank(text))
            elif name.endswith(".h"):
                for alias, called in aliases_of(text).items():
                    aliases.setdefault(alias, set()).update(called)
    owner = {}
    for file, (defined, _, _) in sources.items():
        for name in defined:
            owner.setdefault(name, set()).add(file)
    edges = {}
    for file, (defined, static, calls) in sources.items():
        edges[file] = {}
        for call in sorted(calls):
            for name in sorted(expand(call, aliases, set())):
                if name in static or name in defined:
                    continue
                for other in sorted(owner.get(name, ())):
                    edges[file].setdefault(other, name)
    return edges


def cycles_of(edges):
    """Sets of files that reach each other (strongly connected components of more than one file)."""
    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for other in edges[todo.pop()]:
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return seen
    below = {file: reach(file) for file in edges}
    groups = {frozenset(other for other in below[file] if file in below[other]) for file in edges if file in below[file]}
    return sorted((group for group in groups if len(group) > 1), key=sorted)


def read_permitted(path):
    """[(floor, files, line, reason)] of the lines `FLOOR: a.c b.c - reason`."""
    permitted = []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"([\w/]+): ((?:[\w/]+\.c )+)- (\S.*)", line)
        if not match:
            sys.exit(f"{path}:{number}: not understood: FLOOR: a.c b.c - reason")
        permitted.append((match.group(1), frozenset(match.group(2).split()), number, match.group(3)))
    return permitted


def floors_of(root):
    src = os.path.join(root, "src")
    found = sorted("src/" + name for name in os.listdir(src) if os.path.isdir(os.path.join(src, name))) if os.path.isdir(src) else []
    return found + ["cli"] if os.path.isdir(os.path.join(root, "cli")) else found


def main():
    arguments = sys.argv[1:]
    show = arguments[1] if arguments[:1] == ["--edges"] else None
    rest = arguments[2:] if show else arguments
    root = os.path.abspath(rest[0]) if rest else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    permitted, wrong, count = read_permitted(os.path.join(root, "tools", "cycles.txt")), [], 0
    found = {}
    for floor in floors_of(root):
        edges = edges_of(root, floor)
        count += len(edges)
        found[floor] = cycles_of(edges)
        for file in sorted(edges) if show == floor else ():
            for other, name in sorted(edges[file].items()):
                print(f"{file} -> {other}  ({name})")
        for group in found[floor]:
            if any(floor == where and group == files for where, files, _, _ in permitted):
                continue
            calls = [f"{a} calls {b}: {edges[a][b]}" for a in sorted(group) for b in sorted(group) if b in edges[a]]
            wrong.append(f"{floor}: {len(group)} files call each other in a circle: {' '.join(sorted(group))}\n    " + "\n    ".join(calls))
    for floor, files, number, _ in permitted:
        if files not in found.get(floor, ()):
            wrong.append(f"tools/cycles.txt:{number}: this is no cycle any more, or another one: delete the line or correct it")
    print("\n".join(wrong + [f"cycles: {count} files, {len(permitted)} permitted cycles, {len(wrong)} differences"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
