# A title above the header: nearly every line is longer than the first.
(echo 'Sales of the year'; echo 'day,units'; for i in 1 2 3 4 5 6 7 8 9; do echo "2024-01-0$i,$i"; done) >t.csv
stretto check t.csv
