. "$DATA/rows.sh"
rows 40 | sed '5s/,[^,]*,/,NA,/;6s/,[^,]*,/,,/;20s/,[^,]*,/,NA,/' >a.csv
stretto train a.csv $small -o m
