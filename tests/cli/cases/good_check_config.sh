. "$DATA/rows.sh"
printf 'Tag;y\n01.02.2020;1,5\n02.02.2020;2,5\n03.02.2020;3,5\n04.02.2020;1,0\n' >a.csv
stretto check a.csv --decimal comma --sep semicolon --time-format '%d.%m.%Y' --write-config c.yaml >report && cat c.yaml && stretto check a.csv --config c.yaml | head -3
