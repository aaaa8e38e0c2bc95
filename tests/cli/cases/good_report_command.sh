# The command in the report can be pasted: switches without a word, words quoted.
. "$DATA/rows.sh"
rows 200 | sed '1s/y/the load/' >'my data.csv'
stretto train 'my data.csv' --target 'the load' --horizon 6 --members 1 --steps 5 --quiet --no-correction -o m >table
sed -n 's/.*>\(stretto train[^<]*\)<.*/\1/p' m.run/report.html | head -n 1
