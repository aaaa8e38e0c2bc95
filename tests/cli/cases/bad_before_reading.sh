# what is wrong whatever the data are is said before they are read: there are none here
echo '(plan of mine' >p.plan
for flag in "--plan absent.plan" "--plan p.plan" "--parallel time:4 --deterministic" "--parallel ring:3" "--kernel nothing" \
    "--pipeline delay1 --accumulate 4"; do
    stretto train absent.csv --target y $flag -o m || echo "exit $?"
done
stretto backtest absent.csv --target y --parallel time:4 --deterministic || echo "exit $?"
