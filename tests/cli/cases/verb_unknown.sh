stretto trian a.csv
