# local time with summer time: an hour comes twice in autumn, and is absent in spring
printf 'time,y\n2024-10-27 00:00,1\n2024-10-27 01:00,2\n2024-10-27 02:00,3\n2024-10-27 02:00,4\n2024-10-27 03:00,5\n' >a.csv
printf 'time,y\n2024-10-27 01:30,1\n2024-10-27 02:00,2\n2024-10-27 02:30,3\n2024-10-27 02:00,4\n2024-10-27 02:30,5\n2024-10-27 03:00,6\n' >b.csv
printf 'time,y\n2024-03-31 00:00,1\n2024-03-31 01:00,2\n2024-03-31 03:00,3\n2024-03-31 04:00,4\n' >c.csv
printf 'time,y\n2024-06-02 00:00,1\n2024-06-02 01:00,2\n2024-06-02 03:00,3\n2024-06-02 04:00,4\n' >d.csv
for f in a b c d; do stretto check $f.csv; done
