# JSON, a line for each row or one list, and a zipped table: what they are, and a command that makes a table of them.
printf '{"day": "2021-01-01", "kwh": 3}\n{"day": "2021-01-02", "kwh": 4, "note": "x"}\n' >lines.jsonl
printf '[\n  {"day": "2021-01-01", "kwh": 3},\n  {"day": "2021-01-02", "kwh": 4}\n]\n' >list.json
printf 'PK\003\004...' >table.zip
for f in lines.jsonl list.json table.zip; do stretto check $f 2>&1; done
for f in lines.jsonl list.json; do stretto check $f 2>&1 | sed -n 's/^  fix: //p' >fix.sh && sh fix.sh; done
tr -d '\r' <lines-table.csv
tr -d '\r' <list-table.csv
