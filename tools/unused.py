#!/usr/bin/env python3
"""unused.py [ROOT]: finds functions of src/ and cli/ that nothing in src/, cli/ and include/ uses, and names their users in tests.

What nobody calls is deleted; what only tests call moves to tests.  Exempt: functions of the public header, names that a macro puts
together (cmd_##name), and the lines of tools/unused.txt.  A function counts as used where its name stands anywhere but in its
definition and prototypes, so a field of the same name hides one."""
import collections
import os
import re
import sys

from cycles import scan
from limits import blank

WORD = re.compile(r"[A-Za-z_]\w*")


def read(root, *tops):
    """{path: code without comments and strings}"""
    found = {}
    for top in tops:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                path = os.path.join(folder, name)
                if name.endswith((".c", ".h", ".def")):
                    text = open(path, encoding="utf-8").read()
                    found[os.path.relpath(path, root)] = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.S)
    return found


def declarations(code):
    """How often each name stands in a definition or prototype at the beginning of a line."""
    count = collections.Counter()
    for match in re.finditer(r"^(?![ \t}#])[^\n;{}=#()]*?\b([A-Za-z_]\w*)[ \t]*\((?=[^;{}]*\)[^;{}]*[;{])", code, flags=re.M):
        count[match.group(1)] += 1
    return count


def permitted(path):
    """{name: line} of the lines `NAME reason`."""
    found = {}
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        words = line.split("#")[0].split()
        if len(words) == 1:
            sys.exit(f"{path}:{number}: an exception needs a reason")
        if words:
            found[words[0]] = number
    return found


def main():
    root = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    product, tests = read(root, "src", "cli", "include"), read(root, "tests", "bench", "examples")
    allowed, used, defined = permitted(os.path.join(root, "tools", "unused.txt")), collections.Counter(), {}
    prefixes = {prefix for code in product.values() for prefix in re.findall(r"\b([A-Za-z]\w*_)##", code)}
    listed = {name for path, code in product.items() if path.endswith(".def") for name in re.findall(r"^[A-Z]\w*\((\w+)", code, flags=re.M)}
    pasted = {prefix + name for prefix in prefixes for name in listed}
    public = {name for path, code in product.items() if path.startswith("include/") for name in WORD.findall(code)}
    for path, code in product.items():
        used.update(WORD.findall(code))
        used.subtract(declarations(code))
        if path.endswith(".c"):
            for name in filter(str.isidentifier, scan(blank(code))[0]):
                defined[name] = path
    wrong, stale = [], dict(allowed)
    for name, path in sorted(defined.items(), key=lambda item: (item[1], item[0])):
        if used[name] > 0 or name in public or name == "main" or name in pasted:
            continue
        if name in allowed:
            stale.pop(name, None)
            continue
        users = sorted(test for test, code in tests.items() if re.search(rf"\b{re.escape(name)}\b", code))
        wrong.append(f"{path}: {name} is used by {'tests only: ' + ' '.join(users) if users else 'nobody'}")
    wrong += [f"tools/unused.txt:{number}: {name} is used, or there is none" for name, number in stale.items()]
    print("\n".join(wrong + [f"unused: {len(defined)} functions, {len(allowed)} permitted, {len(wrong)} differences"]))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
