[ -f "$SHARED/data/beijing_pm25/pollution.csv" ] || { echo "the shared file beijing_pm25/pollution.csv is not here"; exit 77; }
cp "$SHARED/data/beijing_pm25/pollution.csv" .
stretto train pollution.csv --time year,month,day,hour --target pm2.5 --cat cbwd --ignore No --horizon 24 -o pm.model
