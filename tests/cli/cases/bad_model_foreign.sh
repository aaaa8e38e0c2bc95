. "$DATA/rows.sh"
rows 60 >a.csv
h='{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}    '
bytes '\140\000\000\000\000\000\000\000' >f.model
printf '%-96s' "$h" >>f.model
bytes '\000\000\000\000' >>f.model
stretto predict f.model a.csv
