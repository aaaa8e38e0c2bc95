. "$DATA/rows.sh"
rows 60 >a.csv
case $(uname -m) in aarch64 | arm64) other=avx2 ;; *) other=neon ;; esac
STRETTO_ISA=$other stretto train a.csv $small -o m
