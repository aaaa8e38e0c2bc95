#!/usr/bin/env python3
"""floors.py [ROOT]: checks that includes go down the floors of tools/floors.txt, and that third-party headers stay behind their file.

Also reads the stretto_floor(... USES ...) lines of the build: a library links only what its folder may include."""
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def read_law(path):
    law, system = {}, {}
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.split("#")[0].split()
        if not line:
            continue
        if line[0] == "system":
            system.setdefault(line[1], set()).update(line[2:])
            continue
        folder, floor, rest = line[0], int(line[1]), line[2:]
        headers = dict(entry.split(":") for entry in rest if ":" in entry)
        may = {entry for entry in rest if ":" not in entry and entry != "-"}
        law[folder] = {"floor": floor, "may": may, "headers": headers, "line": number}
    for folder, rule in law.items():
        for below in rule["may"]:
            if below in law and law[below]["floor"] >= rule["floor"]:
                sys.exit(f"{path}:{rule['line']}: {folder} (floor {rule['floor']}) may not include {below} "
                         f"(floor {law[below]['floor']}): includes go down")
    return law, system


def owner(root, path):
    """The folder of the law that a file belongs to, or None."""
    parts = os.path.relpath(path, root).split(os.sep)
    return parts[1] if parts[0] == "src" and len(parts) > 2 else parts[0]


def check_file(root, path, law, system):
    folder = owner(root, path)
    shown = os.path.relpath(path, root)
    if folder not in law:
        return [f"{shown}: the folder {folder} is not in tools/floors.txt"]
    rule, found = law[folder], []
    for number, line in enumerate(open(path, encoding="utf-8", errors="replace"), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, name = match.groups()
        top = name.split("/")[0] if "/" in name else None
        if quote == '"' or top == "stretto":
            if top is None:
                fine = os.path.exists(os.path.join(os.path.dirname(path), name)) and folder in ("cli", "examples")
                reason = "write the folder too: \"folder/file.h\""
            else:
                fine = top == folder or top in rule["may"]
                reason = f"{folder} may include {', '.join(sorted(rule['may'])) or 'nothing'}"
        else:
            keeper = rule["headers"].get(name)
            fine = name in system.get("*", ()) or name in system.get(folder, ()) or keeper == os.path.basename(path)
            reason = f"only {keeper} may" if keeper else "no line of tools/floors.txt allows it"
        if not fine:
            found.append(f"{shown}:{number}: {folder} includes {name}: {reason}")
    return found


def check_build(root, law):
    found = []
    for folder in law:
        path = os.path.join(root, "src", folder, "CMakeLists.txt")
        if not os.path.exists(path):
            continue
        text = re.sub(r"#.*", "", open(path, encoding="utf-8").read())
        for match in re.finditer(r"stretto_floor\(([^)]*)\)", text):
            words, uses = match.group(1).split(), []
            if "USES" in words:
                for word in words[words.index("USES") + 1:]:
                    if word.isupper():
                        break
                    uses.append(word)
            for use in uses:
                if use in law and use != folder and use not in law[folder]["may"]:
                    found.append(f"src/{folder}/CMakeLists.txt: st_{words[0]} links st_{use}, which tools/floors.txt does not allow")
    return found


def main():
    root = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    law, system = read_law(os.path.join(root, "tools", "floors.txt"))
    found, files = check_build(root, law), 0
    for top in ("src", "cli", "include", "examples"):
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h", ".def", ".cu", ".cuh")):
                    files += 1
                    found += check_file(root, os.path.join(folder, name), law, system)
    for line in found:
        print(line)
    print(f"floors: {files} files, {len(found)} includes against the law")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
