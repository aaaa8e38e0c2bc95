. "$DATA/rows.sh"
rows 60 >a.csv
h='{"__metadata__":{"format":"pt","stretto.schema":"99"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
bytes '\200\000\000\000\000\000\000\000' >f.model
printf '%-128s' "$h" >>f.model
bytes '\000\000\000\000' >>f.model
stretto predict f.model a.csv
