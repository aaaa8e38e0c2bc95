. "$DATA/rows.sh"
command -v gzip >/dev/null || { echo 'no gzip here'; exit 77; }
rows 200 | gzip | head -c 300 >a.csv.gz
stretto check a.csv.gz
