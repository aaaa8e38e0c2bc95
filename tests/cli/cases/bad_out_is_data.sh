# nothing that is read is written over: not by the model, the forecasts, a log, a picture, nor by another name of the same file
printf 't,y\n1,2\n2,3\n3,4\n' >a.csv
ln a.csv b.csv
mkdir d
stretto train a.csv --target y -o a.csv
stretto train a.csv --target y --log b.csv
stretto predict a.csv a.csv -o a.csv
stretto cache a.csv -o a.csv
stretto train a.csv --target y -o d
cat b.csv >&2
