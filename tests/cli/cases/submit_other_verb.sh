stretto submit -- predict m d.csv
