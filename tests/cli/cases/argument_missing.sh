stretto predict m.model -o f.csv
