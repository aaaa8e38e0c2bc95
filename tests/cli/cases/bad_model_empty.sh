. "$DATA/rows.sh"
rows 60 >a.csv
: >e.model
stretto predict e.model a.csv
