#!/bin/sh
# first.sh COMMAND ..: runs it before other programs of the machine: by nice, and where sessions have a share of their own by theirs.
# SCHED_RR would not do: a service thread that wakes up on the core of its computing worker would wait for the end of its slice.
echo -15 2>/dev/null >/proc/self/autogroup
exec nice -n -15 "$@"
