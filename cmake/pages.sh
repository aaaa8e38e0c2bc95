#!/bin/sh
# pages.sh PROGRAM FOLDER: manual page and completions, as the program prints them from its tables.
set -eu
mkdir -p "$2"
"$1" help --man >"$2/stretto.1"
"$1" help --completion bash >"$2/stretto.bash"
"$1" help --completion zsh >"$2/_stretto"
"$1" help --completion fish >"$2/stretto.fish"
