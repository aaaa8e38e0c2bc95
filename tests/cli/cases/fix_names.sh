# A fix that is pasted empties no file: the name it writes to comes from the input, and is none that is there.
fix() { stretto check "$@" | sed -n 's/^  fix: //p'; }
mkdir data
printf 'time,y\n2024-01-01,1\n2024-01-03,3\n2024-01-02,2\n' >sales.csv
cp sales.csv data/sales.day.csv
cp sales.csv "the sales.csv"
cp sales.csv "it's.csv"
cp sales.csv sales
gzip -c sales.csv >packed.csv.gz
for f in sales.csv data/sales.day.csv "the sales.csv" "it's.csv" sales packed.csv.gz; do fix "$f"; done
echo mine >sales-sorted.csv
fix sales.csv
cp sales-sorted.csv sales-sorted-2.csv
fix sales.csv
fix sales.csv >fix.sh && sh fix.sh && cat sales-sorted.csv sales-sorted-3.csv
fix "it's.csv" >fix.sh && sh fix.sh && cat "it's-sorted.csv"
stretto check /dev/stdin <sales.csv | sed -n 's/^  fix: //p'
