. "$DATA/rows.sh"
bytes 'time,y\n2020-01-01,1\n2020-01-02,caf\351\n' >a.csv
stretto check a.csv
