# a list given again goes on
. "$DATA/rows.sh"
rows 40 | sed '5s/,[^,]*,/,absent,/;20s/,[^,]*,/,void,/' >a.csv
stretto check a.csv --target y --na absent --na void --gaps mask
