# messages of a step that is made of several batches
awk 'BEGIN {
    print "t,shop,y"
    for (i = 0; i < 4000; i++) printf "%d,s%d,%d\n", i, i % 1500, 10 + i % 12
}' >a.csv
for parts in 1 4; do
    stretto plan a.csv --time-format row --target y --cat shop --horizon 6 --context 8 --batch 16 --accumulate $parts \
        --machine 'host*2(cpu)' --parallel data_sync:2 | grep -v predicted
done
