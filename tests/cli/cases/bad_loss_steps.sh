. "$DATA/rows.sh"
rows 60 >a.csv
for flag in --bidirectional "--projection 4" "--decoder parallel" "--segment 4" "--scale last" "--base mix"; do
    stretto train a.csv $small --loss-steps all $flag -o m || echo "exit $?"
done
