stretto predict m.model a.csv --target OT -o f.csv
