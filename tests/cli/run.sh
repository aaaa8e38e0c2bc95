#!/bin/sh
# run.sh BINARY [--update] [CASE...]: golden tests of the command line.
#
# A case is cases/NAME.case: a script, run by sh in an empty folder with `stretto` on the path, then what is expected of it:
#     ==== exit 2                                exit status, 0 without this line
#     ==== stdout exact or ==== stdout glob      nothing on stdout without this section
#     ==== stderr exact or ==== stderr glob      nothing on stderr without this section
# In a glob section every line is a pattern with * for any text; a line "..." stands for any number of lines.
# $EXAMPLES is the folder examples, $DATA is tests/cli/data, $SHARED the shared data; a case that exits with 77 is skipped.
# --update writes what came out as the new expectation (glob sections that still match stay as they are).
set -u
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
update=no
[ "${1:-}" = --update ] && { update=yes; shift; }
[ -x "$binary" ] || { echo "run.sh: $binary is no program"; exit 2; }
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" && ln -s "$binary" "$work/bin/stretto"
DATA=$here/data
SHARED=${STRETTO_SHARED:-$here/../../../shared}
EXAMPLES=$(cd "$here/../../examples" 2>/dev/null && pwd)
STRETTO_WISDOM=off # cases leave the wisdom of whoever runs them alone
export DATA SHARED EXAMPLES STRETTO_WISDOM

# matches PATTERNS FILE: every line fits its pattern.
matches() {
    awk -v patterns="$1" '
    function fits(line, glob,   regex) {
        regex = glob
        gsub(/[][\\.^$(){}|+?]/, "\\\\&", regex)
        gsub(/\*/, ".*", regex)
        return line ~ ("^" regex "$")
    }
    function rest(i, j) {                       # pattern i on against line j on
        for (; i <= np; i++) {
            if (pattern[i] == "...") {
                for (; j <= n + 1; j++) if (rest(i + 1, j)) return 1
                return 0
            }
            if (j > n || !fits(text[j], pattern[i])) { if (j > far) far = j; return 0 }
            j++
        }
        return j > n
    }
    BEGIN { while ((getline line < patterns) > 0) pattern[++np] = line }
    { text[++n] = $0 }
    END { exit !rest(1, 1) }' "$2"
}

# split CASE: its parts as files in $work/case: script, exit, stdout.exact, ..
split() {
    rm -rf "$work/case" && mkdir "$work/case" && echo 0 >"$work/case/exit"
    awk -v to="$work/case/" '
    BEGIN { part = to "script"; printf "" >part }
    /^==== / {
        if ($2 == "exit") { print $3 >(to "exit"); part = "" }
        else if ($0 ~ /^==== std(out|err) (exact|glob)$/) { part = to $2 "." $3; printf "" >part }
        else { print FILENAME ":" FNR ": no such section: " $0; exit 1 }
        next
    }
    part != "" { print >part }
    part == "" { print FILENAME ":" FNR ": text after the exit status"; exit 1 }' "$1"
}

# join: the parts as the text of a case.
join() {
    cat "$work/case/script"
    status_text=$(cat "$work/case/exit")
    [ "$status_text" = 0 ] || echo "==== exit $status_text"
    for part in stdout.exact stdout.glob stderr.exact stderr.glob; do
        [ -f "$work/case/$part" ] && { echo "==== ${part%.*} ${part#*.}"; cat "$work/case/$part"; }
    done
    return 0
}

# compare NAME STREAM: 0 when the stream is as expected; says how it is not.
compare() {
    got=$work/$2
    for kind in exact glob; do
        want=$work/case/$2.$kind
        [ -f "$want" ] || continue
        if [ $kind = exact ]; then cmp -s "$want" "$got" && return 0; else matches "$want" "$got" && return 0; fi
        [ $update = yes ] && { cp "$got" "$want"; echo "updated $1: $2 $kind"; return 0; }
        echo "--- $1: $2 is not as in its section $2 $kind"
        diff "$want" "$got" | head -40
        return 1
    done
    [ -s "$got" ] || return 0
    [ $update = yes ] && { cp "$got" "$work/case/$2.exact"; echo "wrote $1: $2 exact"; return 0; }
    echo "--- $1: nothing expected on $2, got"
    head -40 "$got"
    return 1
}

failed=0 passed=0 skipped=0
[ $# -gt 0 ] || set -- $(cd "$here/cases" && ls *.case | sed 's/\.case$//')
for name in "$@"; do
    rm -rf "$work/run" && mkdir "$work/run"
    split "$here/cases/$name.case" || { failed=$((failed + 1)); continue; }
    (cd "$work/run" && PATH=$work/bin:$PATH NO_COLOR=1 LC_ALL=C sh "$work/case/script" >"$work/stdout" 2>"$work/stderr" </dev/null)
    status=$?
    if [ $status = 77 ]; then skipped=$((skipped + 1)); echo "skipped $name: $(head -1 "$work/stdout")"; continue; fi
    good=yes
    want=$(cat "$work/case/exit")
    if [ "$status" != "$want" ]; then
        if [ $update = yes ]; then echo "$status" >"$work/case/exit"; echo "updated $name: exit"
        else echo "--- $name: exit status $status, expected $want"; good=no; fi
    fi
    compare "$name" stdout || good=no
    compare "$name" stderr || good=no
    [ $update = no ] || join >"$here/cases/$name.case"
    if [ $good = yes ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "cli: $passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ] || exit 1
[ $passed != 0 ] || exit 77
