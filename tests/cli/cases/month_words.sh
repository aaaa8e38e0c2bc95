# months as words, and advice for years of two digits
for dates in "1. März 2024|2. März 2024|3. März 2024" "Jan 2024|Feb 2024|Mar 2024" "\"March 1, 2024\"|\"March 2, 2024\"|\"March 3, 2024\""; do
    { echo "when,y"; printf '%s\n' "$dates" | tr '|' '\n' | awk '{ print $0 "," NR * NR }'; } >a.csv
    stretto check a.csv --target y | grep series
done
for dates in "30.12.23|31.12.23|01.01.24" "1/30/24|1/31/24|2/1/24" "1/2/24|2/2/24|3/2/24" "Jan-24|Feb-24|Mar-24"; do
    { echo "date,y"; printf '%s\n' "$dates" | tr '|' '\n' | awk '{ print $0 "," NR * NR }'; } >a.csv
    stretto train a.csv --target y -o m || echo "exit $?"
done
# the advice is taken as it stands
stretto check a.csv --target y --time-format '%b-%y' | grep series
