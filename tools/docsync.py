#!/usr/bin/env python3
"""docsync.py [--write] [ROOT]: documentation that follows the tables.

Makes docs/OPTIONS.md, docs/ERRORS.md, docs/PARTS.md and docs/API.md from options.def, verbs.def, presets.def, errors.def, warnings.def,
the plug-in lists and stretto.h; without --write it only checks that they are current.  Also checks that README.md names every verb,
docs/TOUR.md every folder, that every public function has a comment and is called by a test or an example, and that every error code
is raised somewhere and provoked by a test."""
import os
import re
import sys

GENERATED = "Generated from the tables by `tools/docsync.py --write`: edit the tables.\n"
PLUGINS = [  # list, macro, folder of the sources, heading
    ("src/model/cell/cells.def", "CELL", "src/model/cell", "Cells (`--cell`)"),
    ("src/model/layer/layers.def", "LAYER", "src/model/layer", "Layers"),
    ("src/model/loss/losses.def", "LOSS", "src/model/loss", "Losses (`--loss`)"),
    ("src/model/optim/optims.def", "OPTIM", "src/model/optim", "Optimisers (`--optim`)"),
    ("src/step/strategy/strategies.def", "STRATEGY", "src/step/strategy", "Strategies (`--parallel`)"),
    ("src/exec/policy/policies.def", "POLICY", "src/exec/policy", "Message policies (`--pipeline`)"),
    ("src/exec/codec/codecs.def", "CODEC", "src/exec/codec", "Codecs of the plan's messages"),
    ("src/store/policies.def", "STORE", "src/store/policy", "Store policies (`--store`)"),
    ("src/codec/wires.def", "WIRE", "src/codec", "Wire codecs (`--codec`)"),
    ("src/place/methods.def", "PLACE", "src/place/method", "Placement methods"),
    ("src/topo/devices.def", "DEVICE", "src/dev", "Device types"),
    ("src/data/readers.def", "READER", "src/data", "Readers"),
    ("src/launch/launchers.def", "LAUNCHER", "src/launch", "Launchers (`submit --on`)"),
    ("src/learn/forecast/head/heads.def", "HEAD", "src/learn/forecast/head", "Heads (`--decoder`)"),
    ("src/learn/learners.def", "LEARNER", "src/learn", "Learners (`--task`)"),
]
GROUPS = [("VERB", "Options of single verbs"), ("DATA", "Data"), ("MODEL", "Model"), ("TASK", "Other tasks"),
          ("TRAINING", "Training"), ("MACHINE", "Machine"), ("OUTPUT", "Output")]


def calls(text, macro):
    """The arguments of every MACRO(...) at the beginning of a line, strings joined and unquoted."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for match in re.finditer(rf"^{macro}\(", text, flags=re.M):
        i, depth, argument, arguments = match.end(), 1, "", []
        while depth:
            c = text[i]
            if c == '"':
                end = i + 1
                while text[end] != '"':
                    end += 2 if text[end] == "\\" else 1
                argument += text[i:end + 1]
                i = end + 1
                continue
            depth += {"(": 1, ")": -1}.get(c, 0)
            if depth == 0 or (c == "," and depth == 1):
                arguments.append(unquote(argument))
                argument = ""
            else:
                argument += c
            i += 1
        yield arguments


def unquote(argument):
    parts = re.findall(r'"((?:\\.|[^"\\])*)"', argument)
    if not parts:
        return argument.strip()
    return re.sub(r"\\(.)", lambda m: {"t": "\t", "n": "\n"}.get(m.group(1), m.group(1)), "".join(parts))


class Docs:
    def __init__(self, root):
        self.root, self.found = root, []

    def read(self, path):
        full = os.path.join(self.root, path)
        return open(full, encoding="utf-8").read() if os.path.exists(full) else ""

    def tree(self, *tops):
        """All C text below some folders."""
        for top in tops:
            for folder, _, names in os.walk(os.path.join(self.root, top)):
                for name in names:
                    path = os.path.join(folder, name)
                    if name.endswith((".c", ".h", ".sh", ".case", ".py")):
                        yield os.path.relpath(path, self.root), open(path, encoding="utf-8", errors="replace").read()

    def words(self, unit):
        """The words of a WORD option; @lists as their entries."""
        out = []
        for word in unit.split(" "):
            if word == "@presets":
                out += [p[0] for p in calls(self.read("src/opt/presets.def"), "PRESET")]
            elif word.startswith("@"):
                path, macro = next((p, m) for p, m, _, _ in PLUGINS if os.path.basename(p) == word[1:] + ".def")
                out += [entry[0] for entry in calls(self.read(path), macro)]
            else:
                out.append(word[:-2] if len(word) > 2 and word[-2] == "=" else word)
        return out

    def options(self):
        text = self.read("src/base/options.def")
        verbs = [v[0] for v in calls(self.read("src/opt/verbs.def"), "VERB")]
        sets = {"EVERY": set(verbs)}

        def value(expression):
            expression = re.sub(r"V\((\w+)\)", r"{'\1'}", expression)
            names = {name: members for name, members in sets.items()}
            return eval(expression.replace("& ~", "-"), {"__builtins__": {}}, names)  # the project's own table
        for name, expression in re.findall(r"^#define (\w+) (\(.*\))$", text, flags=re.M):
            if name not in ("V", "EVERY"):
                sets[name] = value(expression)
        for option in calls(text, "OPT"):
            type_, _, name, default, least, most, unit, group, _, mask, help_ = option
            yield {"type": {"LONG": "INT", "ENUM": "WORD"}.get(type_, type_), "name": name, "default": default, "least": least, "most": most, "unit": unit, "group": group,
                   "verbs": [v for v in verbs if v in value(mask)], "help": help_}

    def options_page(self):
        out = ["# Verbs, options, presets\n", GENERATED, "## Verbs\n", "| verb | arguments | does |", "|---|---|---|"]
        out += [f"| `{v[0]}` | {cell(v[3])} | {cell(v[4])} |" for v in calls(self.read("src/opt/verbs.def"), "VERB")]
        options = list(self.options())
        for group, title in GROUPS:
            out += [f"\n## {title}\n", "| option | values | default | help | verbs |", "|---|---|---|---|---|"]
            for o in options:
                if o["group"] != group:
                    continue
                values = {"BOOL": "yes, no", "INT": "whole number", "REAL": "number", "TIME": "time", "SIZE": "size",
                          "NUMS": "numbers"}.get(o["type"], o["unit"])
                if o["type"] == "WORD":
                    values = ", ".join(self.words(o["unit"]))
                if o["type"] in ("INT", "REAL", "NUMS"):
                    values += f" {o['least']} to {o['most']}"
                out.append(f"| `--{o['name']}` | {cell(values)} | {cell(o['default'])} | {cell(o['help'])} | {' '.join(o['verbs'])} |")
        out.append("\n## Presets\n")
        text = self.read("src/opt/presets.def")
        for name, when in calls(text, "PRESET"):
            values = ", ".join(f"`{s[1].replace('_', '-')}: {s[2]}`" for s in calls(text, "SET") if s[0] == name)
            out.append(f"**{name}** (chosen by `auto` for {when}): {values}\n")
        return "\n".join(out).rstrip() + "\n"

    def errors_page(self):
        out = ["# Errors and warnings\n", GENERATED, "`stretto explain CODE` prints the same text.\n",
               "| code | exit status | title | meaning |", "|---|---|---|---|"]
        out += [f"| E{int(e[0]):03d} | {e[1]} | {cell(e[2])} | {cell(e[3])} |" for e in calls(self.read("src/base/errors.def"), "E")]
        out += ["\n| warning | title | meaning |", "|---|---|---|"]
        out += [f"| W{int(w[0]):03d} | {cell(w[2])} | {cell(w[3])} |" for w in calls(self.read("src/base/warnings.def"), "W")]
        return "\n".join(out) + "\n"

    def parts_page(self):
        out = ["# Parts: everything that is one file and one line\n", GENERATED, "How to add one: `HOWTO-ADD.md`.\n"]
        for path, macro, folder, title in PLUGINS:
            entries = list(calls(self.read(path), macro))
            if not entries:
                continue
            out += [f"## {title}\n", f"List: `{path}`\n", "| name | what it is |", "|---|---|"]
            for entry in entries:
                source = next((s for s in (f"{folder}/{entry[0]}.c", f"{folder}/{entry[0]}/{entry[0]}.c") if self.read(s)), None)
                if not source:
                    self.found.append(f"{path}: {macro}({entry[0]}) has no source file in {folder}")
                    continue
                out.append(f"| `{entry[0]}` | {cell(first_sentence(self.read(source), source))} |")
            out.append("")
        return "\n".join(out).rstrip() + "\n"

    def functions(self):
        """(section, declaration, comment) of every public function of stretto.h."""
        text, section, comment = self.read("include/stretto/stretto.h"), "", ""
        pattern = re.compile(r"/\* --- (?P<section>.*?) --- \*/|(?P<comment>/\*.*?\*/)|^STRETTO_API (?P<declaration>.*?;)"
                             r"(?P<behind>[ ]*/\*.*?\*/)?", re.S | re.M)
        end = 0
        for match in pattern.finditer(text):
            gap = text[end:match.start()]
            end = match.end()
            if match.group("section"):
                section, comment = match.group("section"), ""
            elif match.group("comment"):
                comment = match.group("comment")
            else:
                behind = match.group("behind")
                before = comment if gap.strip() == "" and gap.count("\n") <= 1 else ""
                comment = ""  # of the function behind it alone
                yield section, re.sub(r"\s+", " ", match.group("declaration")), clean(behind or before)

    def api_page(self):
        out, last = ["# The C interface\n", GENERATED, "Conventions and types: `include/stretto/stretto.h`.\n"], None
        for section, declaration, comment in self.functions():
            if section != last:
                out += ["", f"## {section}\n", "| function | does |", "|---|---|"]
                last = section
            out.append(f"| `{cell(declaration)}` | {cell(comment)} |")
        return "\n".join(out) + "\n"

    def check_text(self):
        readme, tour = self.read("README.md"), self.read("docs/TOUR.md")
        for verb in calls(self.read("src/opt/verbs.def"), "VERB"):
            if not re.search(rf"`{verb[0]}`|`{verb[0]} |stretto {verb[0]}\b", readme):
                self.found.append(f"README.md does not mention the verb {verb[0]}")
        source = os.path.join(self.root, "src")
        for folder in sorted(os.listdir(source)) if os.path.isdir(source) else []:
            if os.path.isdir(os.path.join(source, folder)) and f"src/{folder}" not in tour and f"`{folder}`" not in tour:
                self.found.append(f"docs/TOUR.md does not mention src/{folder}")

    def check_symbols(self):
        used = "\n".join(text for _, text in self.tree("tests", "examples"))
        for _, declaration, comment in self.functions():
            name = re.search(r"(stretto_\w+)\(", declaration).group(1)
            if not comment and not name.endswith("_free"):
                self.found.append(f"include/stretto/stretto.h: {name} has no comment")
            if not re.search(rf"\b{name}\(", used):
                self.found.append(f"include/stretto/stretto.h: no test or example calls {name}")

    def check_codes(self):
        sources = "\n".join(text for _, text in self.tree("src", "cli"))
        tests = "\n".join(text for _, text in self.tree("tests"))
        for letter, path in (("E", "src/base/errors.def"), ("W", "src/base/warnings.def")):
            for entry in calls(self.read(path), letter):
                code = f"{letter}{int(entry[0]):03d}"
                short = f"{letter}{int(entry[0])}"
                if not re.search(rf"\b({code}|{short})\b", sources):
                    self.found.append(f"{path}: nothing raises {code}")
                if not re.search(rf"\b({code}|{short})\b", tests):
                    self.found.append(f"{path}: no test provokes {code}")

    def pages(self):
        return {"docs/OPTIONS.md": self.options_page(), "docs/ERRORS.md": self.errors_page(), "docs/PARTS.md": self.parts_page(),
                "docs/API.md": self.api_page()}

    def run(self, write):
        for path, text in self.pages().items():
            if self.read(path) == text:
                continue
            if write:
                with open(os.path.join(self.root, path), "w", encoding="utf-8") as out:
                    out.write(text)
                print(f"wrote {path}")
            else:
                self.found.append(f"{path} is not current: run tools/docsync.py --write")
        self.check_text()
        self.check_symbols()
        self.check_codes()
        for line in self.found:
            print(line)
        print(f"docsync: {len(self.found)} differences")
        return 1 if self.found else 0


def cell(text):
    return text.replace("|", "\\|").replace("\t", "tab").replace("\n", " ")


def clean(comment):
    return re.sub(r"\s*\n\s*\*?\s*", " ", comment.strip()[2:-2]).strip() if comment and comment.strip() else ""


def first_sentence(text, path):
    """What the opening comment says after "name.c - "."""
    comment = clean(re.match(r"\s*(/\*.*?\*/)", text, flags=re.S).group(1)) if text.lstrip().startswith("/*") else ""
    comment = re.sub(rf"^{re.escape(os.path.basename(path))}\s*-\s*", "", comment)
    return re.split(r"(?<=[.:;])\s", comment + " ")[0].rstrip(".:; ")


def main():
    arguments = [a for a in sys.argv[1:] if a != "--write"]
    root = os.path.abspath(arguments[0]) if arguments else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return Docs(root).run("--write" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
