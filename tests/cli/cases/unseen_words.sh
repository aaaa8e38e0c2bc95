# words that come first after the training rows are said to be taken for missing
awk 'BEGIN {
    print "t,kind,y"
    for (i = 0; i < 300; i++) printf "%d,%s,%d\n", i, (i >= 280 ? "new" : (i % 2 ? "a" : "b")), 10 + i % 12 + (i % 2) * 3
}' >a.csv
stretto train a.csv --time-format row --target y --cat kind --horizon 6 --test 60 --validation 40 --steps 5 --members 1 --quiet -o m 2>&1 >/dev/null
head -290 a.csv | sed 's/,b,/,c,/' >b.csv
stretto predict m b.csv -o f.csv --quiet
stretto eval m b.csv --quiet >/dev/null
