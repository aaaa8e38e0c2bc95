# Inputs and categories are found by their names too; eval says what the bands hold.
. "$DATA/rows.sh"
rows 400 | awk -F, -v OFS=, 'NR==1 {print $0, "w", "k"; next} {print $0, NR % 3 ? "dry" : "wet", NR % 2}' >a.csv
awk -F, -v OFS=, '{print $5, $4, $3, $1, $2}' a.csv >b.csv
stretto train a.csv $small --past z,k --cat w -o m >table
stretto eval m a.csv >one 2>note && stretto eval m b.csv -q >two && cmp one two && echo same scores
cat note
stretto eval m a.csv --json | tr '{' '\n' | grep from
