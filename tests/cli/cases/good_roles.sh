# which columns are used as what, and which are not: in check and in train
awk 'BEGIN { print "date,units,price,holiday,region,note,booked"; for (i = 0; i < 31; i++)
    printf "2024-01-%02d,%d,%d,%d,%s,%d,2023-%02d-01\n", 1 + i, i % 7, i % 5, i % 2, i % 3 ? "n" : "s", i, 1 + i % 12 }' >a.csv
o="--target units --past price --known holiday --ignore note"
stretto check a.csv $o | grep ^columns
stretto train a.csv $o --cat region --no-correction --base last --horizon 2 -o m 2>&1 >/dev/null | grep ^columns
# without a target `info` and `check` say the same, but for the question
stretto info a.csv
stretto check a.csv
