. "$DATA/rows.sh"
rows 200 >a.csv
# folders of outputs are not made in silence, nor missed after the work is done
for flags in "-o nowhere/m" "-o m --log nowhere/l.csv" "-o m --plot nowhere/else/p.svg"; do
    stretto train a.csv $small $flags || echo "exit $?"
done
stretto predict absent.model a.csv -o nowhere/f.csv || echo "exit $?"
stretto sample tides -o nowhere/t.csv || echo "exit $?"
ls
