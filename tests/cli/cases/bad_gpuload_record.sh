# A record with a unit in a number: line and column are named.
printf 'time,gpu,utilisation,memory\n0,0,3,1\n30,0,95%%,40\n' >day.csv
stretto gpuload --recorded day.csv --dry-run
