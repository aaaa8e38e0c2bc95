#!/usr/bin/env python3
"""commits.py [--since COMMIT] [ROOT]: checks the subjects of commits since the one where this rule began.

    area: imperative summary            at most 60 columns; area: a folder or topic, or several with commas between them

The verb is checked by its ending: "adds", "added", "adding" are refused, but for words that end so by themselves.  Merges are
exempt.  In a shallow clone, or where there is no git, nothing is checked and the output says so."""
import os
import re
import subprocess
import sys

FIRST = "2488254"  # commits after this one
COLUMNS = 60
LATE = {"efb9525": "on main before this check was"}
FORM = re.compile(r"^[a-z][\w./*-]*(?:, [a-z][\w./*-]*)*: (\S.*)$")
BASE_FORMS = set("""pass process address express discuss press compress guess cross access miss focus bias need feed embed seed speed exceed
    proceed bring ring string sling cling bed shed wed led canvas bus gas alias dress assess bypass stress embarrass""".split())


def git(root, *arguments):
    return subprocess.run(["git", "-C", root, *arguments], capture_output=True, text=True, check=False)


def mistake(subject):
    """What is wrong with a subject, or None."""
    if len(subject) > COLUMNS:
        return f"{len(subject)} columns, the limit is {COLUMNS}"
    match = FORM.match(subject)
    if not match:
        return "not of the form \"area: imperative summary\""
    summary = match.group(1)
    verb = re.match(r"[A-Za-z]*", summary).group(0)
    if not verb or not verb.islower():
        return "the summary begins with a verb in small letters"
    if verb not in BASE_FORMS and re.search(r"(ed|ing|[^s]s)$", verb):
        return f"\"{verb}\" is not imperative"
    return "a full stop at the end" if summary.endswith(".") else None


def main():
    arguments = sys.argv[1:]
    first = arguments[1] if arguments[:1] == ["--since"] else FIRST
    rest = arguments[2:] if arguments[:1] == ["--since"] else arguments
    root = os.path.abspath(rest[0]) if rest else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if git(root, "rev-parse", "--is-shallow-repository").stdout.strip() != "false" or git(
            root, "merge-base", "--is-ancestor", first, "HEAD").returncode:
        print(f"commits: skipped, the history does not reach back to {first}")
        return 0
    wrong, count = 0, 0
    for line in git(root, "log", "--no-merges", "--format=%h %s", "--abbrev=7", f"{first}..HEAD").stdout.splitlines():
        name, _, subject = line.partition(" ")
        count += 1
        found = None if name[:7] in LATE else mistake(subject)
        if found:
            wrong += 1
            print(f"{name}: {subject}\n    {found}")
    print(f"commits: {count} subjects, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
