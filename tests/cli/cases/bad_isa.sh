. "$DATA/rows.sh"
rows 60 >a.csv
STRETTO_ISA=avx9 stretto train a.csv $small -o m
