#!/usr/bin/env python3
"""times.py PROGRAM [FORM ...]: 335 files in 67 forms of time, each with what `stretto check` must read, or must refuse.

A form is a function of a variant 0..4. It returns the text of a file, options, and the expected reading: start, name of the step,
time columns. `refused` is the code of the error that comes first; its remedy is pasted, a command into a shell or an option into
the command line, until the file is read; that reading is compared. Every eighth file trains too. The last check is of size: a file
with 100,000 columns takes no more than ten times as long per cell as one with 1,000."""
import datetime as dt
import os
import re
import subprocess
import sys
import tempfile
import time

FORMS = []
UTC = dt.timezone.utc
DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)
STARTS = [dt.datetime(2021, 3, 1), dt.datetime(1999, 12, 20), dt.datetime(2016, 2, 25), dt.datetime(2023, 10, 2), dt.datetime(2004, 7, 30)]
SEPS = [",", ";", "\t", "|", ","]
NAMES = ["date", "time", "timestamp", "Date", "datetime"]


def form(f):
    FORMS.append(f)
    return f


class File:
    def __init__(self, text, start, step, columns, options="", refused=None, target="--target y", warned=False):
        self.warned = warned
        self.text, self.start, self.step, self.columns = text, start, step, sorted(columns)
        self.options, self.refused, self.target = options, refused, target


def value(i):
    return 10 + i % 7 + (i * 37 % 11) / 4


def label(t, step):
    if step == "yearly":
        return t.strftime("%Y")
    if step in ("monthly", "quarterly", "6month"):
        return t.strftime("%Y-%m")
    if step in ("daily", "weekly"):
        return t.strftime("%Y-%m-%d")
    return t.strftime("%Y-%m-%d %H:%M")


STEPS = {"hourly": HOUR, "daily": DAY, "weekly": 7 * DAY, "15min": HOUR / 4, "6h": 6 * HOUR, "minutely": HOUR / 60}


def steps(start, step, n=60):
    if step in STEPS:
        return [start + i * STEPS[step] for i in range(n)]
    months = {"monthly": 1, "quarterly": 3, "6month": 6, "yearly": 12}[step]
    first = start.replace(day=1, month=(start.month - 1) // months * months + 1)
    whole = [first.year * 12 + first.month - 1 + i * months for i in range(n)]
    return [dt.datetime(m // 12, m % 12 + 1, 1) for m in whole]


def table(k, heads, rows, quote=False):
    """A file with the separator of variant k. Cells with a comma are quoted."""
    sep = SEPS[k]
    cell = lambda s: f'"{s}"' if sep in s or quote else s
    return "\n".join(sep.join(cell(str(c)) for c in row) for row in [heads] + rows) + "\n"


def one_column(k, write, step, name=None, n=60, more=None, **keys):
    """A time column written by `write`, first or second in the file, and a target."""
    times = steps(STARTS[k], step, n)
    name = NAMES[k] if name is None else name
    order = (lambda t, y: [t, y]) if k % 2 == 0 else (lambda t, y: [y, t])
    rows = [order(write(t), value(i)) for i, t in enumerate(times)]
    return File(table(k, order(name, "y"), rows), label(times[0], step), step, [name or "column1"], **keys)


def simple(title, layout, step, **keys):
    """Adds a form with a strftime layout."""
    def make(k):
        given = {a: (b(k) if callable(b) else b) for a, b in keys.items()}
        return one_column(k, lambda t: t.strftime(layout), step, **given)
    make.__name__ = title
    FORMS.append(make)


def unpadded(s):
    return re.sub(r"\b0(\d)", r"\1", s)


# ---- dates and clock times in one column
simple("iso_day", "%Y-%m-%d", "daily")
simple("iso_minute", "%Y-%m-%d %H:%M", "hourly")
simple("iso_second", "%Y-%m-%d %H:%M:%S", "15min")
simple("iso_t_utc", "%Y-%m-%dT%H:%M:%S", "6h")
simple("slashes", "%Y/%m/%d", "daily")
simple("iso_month", "%Y-%m", "monthly")
simple("german", "%d.%m.%Y %H:%M", "hourly")
simple("day_first", "%d/%m/%Y", "daily")
simple("month_first", "%m/%d/%Y %I:%M %p", "hourly")
simple("words_day", "%d %b %Y", "daily")
simple("words_comma", "%B %d, %Y", "daily")
simple("compact_month", "%Y%m", "monthly", name=lambda k: ["month", "yyyymm", "period", "date", "ym"][k])
simple("compact_day", "%Y%m%d", "daily", name=lambda k: ["date", "day", "yyyymmdd", "index", "t"][k])
simple("compact_hour", "%Y%m%d%H", "hourly", name=lambda k: ["date", "time", "k", "ts", "stamp"][k])
simple("compact_second", "%Y%m%d%H%M%S", "minutely", name=lambda k: ["date", "time", "k", "ts", "when"][k])
simple("compact_t", "%Y%m%dT%H%M%S", "hourly")
simple("iso_week_day", "%G-W%V-%u", "daily")
simple("month_letter", "%YM%m", "monthly")
simple("year", "%Y", "yearly", name=lambda k: ["year", "Year", "date", "season", "index"][k])
simple("two_digits", "%d.%m.%y", "daily", refused="E205")
simple("month_two_digits", "%b-%y", "monthly", refused="E205")
simple("year_day", "%Y-%j", "daily", refused="E205")


@form
def iso_week(k):
    monday = STARTS[k] - STARTS[k].weekday() * DAY
    rows = [[f"{t.isocalendar()[0]}{'-' * (k % 2)}W{t.isocalendar()[1]:02d}", value(i)] for i, t in enumerate(steps(monday, "weekly", 120))]
    return File(table(k, ["week", "y"], rows), label(monday, "weekly"), "weekly", ["week"])


@form
def quarters(k):
    mark = ["-Q", "Q", " Q", "-q", "q"][k]
    return one_column(k, lambda t: f"{t.year}{mark}{(t.month + 2) // 3}", "quarterly", name=["quarter", "date", "period", "Q", "x"][k])


@form
def quarters_in_front(k):
    mark = [" ", "-", "/", " ", "-"][k]
    return one_column(k, lambda t: f"Q{(t.month + 2) // 3}{mark}{t.year}", "quarterly", name=["quarter", "x", "x", "Q", "date"][k])


@form
def halves(k):
    write = [lambda y, h: f"H{h} {y}", lambda y, h: f"{y}-H{h}", lambda y, h: f"H{h}-{y}", lambda y, h: f"{y}H{h}", lambda y, h: f"H{h}/{y}"][k]
    return one_column(k, lambda t: write(t.year, (t.month + 5) // 6), "6month", name="x")


def epoch(name, factor, step, names):
    def make(k):
        return one_column(k, lambda t: int(t.replace(tzinfo=UTC).timestamp()) * factor, step, name=names[k])
    make.__name__ = name
    FORMS.append(make)


epoch("epoch_seconds", 1, "hourly", ["ts", "time", "unix", "epoch", "x"])
epoch("epoch_milliseconds", 1000, "15min", ["ts", "timestamp", "unix_ms", "time", "x"])
epoch("epoch_nanoseconds", 10**9, "minutely", ["ts", "timestamp", "unix_ns", "time", "x"])


@form
def ambiguous(k):
    """The first days of months: as the first month of each year, either answer ascends. The first answer is taken."""
    times = steps(STARTS[k].replace(month=1), "monthly", 12)
    return File(table(k, ["date", "y"], [[t.strftime("%d/%m/%Y"), value(i)] for i, t in enumerate(times)]), label(times[0], "monthly"),
                "monthly", ["date"], refused="E205")


# ---- several columns
@form
def parts_to_the_hour(k):
    heads = [["year", "month", "day", "hour"], ["Year", "Month", "Day", "Hour"], ["yr", "mon", "dd", "hr"], ["YYYY", "MM", "DD", "HH"],
             ["year", "mnth", "day", "hour"]][k]
    times = steps(STARTS[k], "hourly")
    rows = [[i + 1, t.year, t.month, t.day, t.hour, value(i)] for i, t in enumerate(times)]
    return File(table(k, ["No"] + heads + ["y"], rows), label(times[0], "hourly"), "hourly", heads)


@form
def parts_to_the_day(k):
    times = steps(STARTS[k], "daily")
    if k % 2:
        return File(table(k, ["y", "day", "month", "year"], [[value(i), t.day, t.month, t.year] for i, t in enumerate(times)]),
                    label(times[0], "daily"), "daily", ["year", "month", "day"])
    return File(table(k, ["year", "month", "day", "y"], [[t.year, t.month, t.day, value(i)] for i, t in enumerate(times)]),
                label(times[0], "daily"), "daily", ["year", "month", "day"])


@form
def parts_of_the_year(k):
    unit, step = [("month", "monthly"), ("quarter", "quarterly"), ("month", "monthly"), ("doy", "daily"), ("mon", "monthly")][k]
    times = steps(STARTS[k], step)
    part = {"quarter": lambda t: (t.month + 2) // 3, "doy": lambda t: t.timetuple().tm_yday}.get(unit, lambda t: t.month)
    if k == 2:
        part = lambda t: t.strftime("%b")
    return File(table(k, ["year", unit, "y"], [[t.year, part(t), value(i)] for i, t in enumerate(times)]), label(times[0], step), step,
                ["year", unit])


@form
def date_and_clock(k):
    step = ["hourly", "15min", "6h", "hourly", "minutely"][k]
    times = steps(STARTS[k], step, 120)
    clock, layout = [("hour", "%H"), ("time", "%H:%M"), ("clock", "%H:%M:%S"), ("hr", "%H"), ("at", "%I:%M %p")][k]
    day = ["%Y-%m-%d", "%d.%m.%Y", "%Y%m%d", "%Y%m%d", "%Y/%m/%d"][k]
    rows = [[t.strftime(day), unpadded(t.strftime(layout)) if layout == "%H" else t.strftime(layout), value(i)] for i, t in enumerate(times)]
    return File(table(k, ["date", clock, "y"], rows), label(times[0], step), step, ["date", clock])


# ---- what nobody named: it is found, or refused, but not left out in silence
@form
def stamps_of_logs(k):
    layout = ["%d/%b/%Y:%H:%M:%S +0000", "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S -0500", "%Y%m%d_%H%M%S", "%d/%b/%Y:%H"][k]
    f = one_column(k, lambda t: t.strftime(layout), "hourly", name=["t", "received", "sent", "file", "x"][k], refused="E205")
    f.start += {0: "Z", 2: "-05:00"}.get(k, "")
    return f


@form
def text_around(k):
    layout, step = [("%Y-%m-%d %H:%M CET", "hourly"), ("%Y-%m-%d %H:%M:%S Europe/Berlin", "hourly"), ("%d.%m.%Y %H:%M Uhr", "15min"),
                    ("Week of %d %b %Y", "weekly"), ("day %Y/%m/%d (local)", "daily")][k]
    f = one_column(k, lambda t: t.strftime(layout), step, name="k", refused="E205" if k else None)
    f.start += {0: "+01:00"}.get(k, "")
    return f


@form
def days_in_full(k):
    layout, step = [("%A, %B %d, %Y", "daily"), ("%m/%d/%y %I:%M %p", "hourly"), ("%a %d %b %Y", "daily"), ("%Y/Q", "quarterly"),
                    ("%YT", "quarterly")][k]
    part = lambda t: str((t.month + 2) // 3) if step == "quarterly" else ""
    write = lambda t: (unpadded(t.strftime(layout)) if k == 1 else t.strftime(layout)) + part(t)
    return one_column(k, write, step, name="k", refused="E205", n=80)


@form
def weeks_by_number(k):
    monday = STARTS[k] - STARTS[k].weekday() * DAY
    times = [(t, t.isocalendar()) for t in steps(monday, "weekly", 120)]
    if k == 4:
        rows = [[w[0], f"W{w[1]:02d}", value(i)] for i, (_, w) in enumerate(times)]
        return File(table(k, ["year", "week", "y"], rows), label(monday, "weekly"), "weekly", ["year", "week"])
    text = [lambda w: f"{w[0]}-{w[1]:02d}", lambda w: f"W{w[1]:02d}/{w[0]}", lambda w: f"{w[0]}{w[1]:02d}", lambda w: f"KW {w[1]}/{w[0]}"][k]
    name = ["week", "week", "yearweek", "x"][k]
    rows = [[text(w), value(i)] for i, (_, w) in enumerate(times)]
    return File(table(k, [name, "y"], rows), label(monday, "weekly"), "weekly", [name], refused="E205")


@form
def parts_in_other_words(k):
    step = ["hourly", "daily", "monthly", "quarterly", "15min"][k]
    times = steps(STARTS[k], step, 120)
    heads = [["Jahr", "Monat", "Tag", "Stunde"], ["année", "mois", "jour"], ["año", "mes"], ["year", "quarter"], ["date", "time"]][k]
    parts = [lambda t: [t.year, t.month, t.day, t.hour], lambda t: [t.year, t.month, t.day], lambda t: [t.year, t.month],
             lambda t: [t.year, f"Q{(t.month + 2) // 3}"], lambda t: [t.strftime("%Y%m%d"), t.strftime("%H%M")]][k]
    rows = [[*parts(t), value(i)] for i, t in enumerate(times)]
    return File(table(k, heads + ["y"], rows), label(times[0], step), step, heads)


@form
def numbers_of_no_calendar(k):
    """Decimal years, counters: the rows are the time, once somebody says so."""
    name, number = [("date", lambda i: 3 + i * i), ("time", lambda i: f"{1990 + i / 12:.3f}"), ("Date", lambda i: f"{7.5 + i / 24:.4f}"),
                    ("timestamp", lambda i: 7 + i * i), ("datetime", lambda i: 5000 + 3 * i)][k]
    return File(table(k, [name, "y"], [[number(i), value(i)] for i in range(60)]), "row 0", "no time", [], refused="E205")


@form
def counted_days(k):
    """Days as spreadsheets and astronomers count them: named as a date, they are refused with the layout that reads them."""
    name, first, step, digits = [("date", 25569, "daily", 0), ("Date", 25569, "hourly", 4), ("order_date", 25569, "weekly", 0),
                                 ("date", 2440587.5, "daily", 1), ("timestamp", 2440587.5, "hourly", 6)][k]
    days = lambda t: first + (t.replace(tzinfo=UTC).timestamp() / 86400)
    return one_column(k, lambda t: f"{days(t):.{digits}f}", step, name=name, refused="E205")


@form
def hundreds_of_nanoseconds(k):
    """Ticks of .NET and of Windows: far from every other number, so they need no name."""
    since, step, name = [(dt.datetime(1, 1, 1), "hourly", "ticks"), (dt.datetime(1, 1, 1), "15min", "x"), (dt.datetime(1601, 1, 1), "hourly", "x"),
                         (dt.datetime(1601, 1, 1), "daily", "filetime"), (dt.datetime(1, 1, 1), "daily", "time")][k]
    return one_column(k, lambda t: (t - since) // dt.timedelta(microseconds=1) * 10, step, name=name)


epoch("epoch_microseconds", 10**6, "hourly", ["ts", "timestamp", "unix_us", "time", "x"])


@form
def dates_of_json(k):
    """Milliseconds in the brackets of .NET's JSON, and behind another mark."""
    write = [lambda s: f"/Date({s}000)/", lambda s: f"/Date({s}000+0100)/", lambda s: f"Date({s}000)", lambda s: f"/Date({s}000)/",
             lambda s: f"/Date({s})/"][k]
    return one_column(k, lambda t: write(int(t.replace(tzinfo=UTC).timestamp())), ["hourly", "daily"][k % 2], name="x", refused="E205")


# ---- words of other languages, marks of quarters, zones
MONTHS = {"es": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre".split(),
          "fr": "janvier février mars avril mai juin juillet août septembre octobre novembre décembre".split(),
          "pl": "stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia".split(),
          "it": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre".split(),
          "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro".split(),
          "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split()}
SHORT = {"es": "ene feb mar abr may jun jul ago sep oct nov dic".split(), "fr": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.".split(),
         "pl": "sty lut mar kwi maj cze lip sie wrz paź lis gru".split(), "it": "gen feb mar apr mag giu lug ago set ott nov dic".split(),
         "pt": "jan fev mar abr mai jun jul ago set out nov dez".split(), "de": "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez".split()}


@form
def months_of_languages(k):
    language = ["es", "fr", "pl", "it", "pt"][k]
    write = [lambda t, m: f"{t.day} de {m} de {t.year}", lambda t, m: f"{t.day}{'er' if t.day == 1 else ''} {m.upper()} {t.year}",
             lambda t, m: f"{t.day} {m} {t.year} {t.hour}:00", lambda t, m: f"{t.day} {m.title()} {t.year}", lambda t, m: f"{t.day} de {m}, {t.year}"][k]
    return one_column(k, lambda t: write(t, MONTHS[language][t.month - 1]), ["daily", "daily", "6h", "weekly", "daily"][k], name="x")


@form
def short_months_of_languages(k):
    language = ["es", "fr", "pl", "it", "de"][k]
    write = [lambda t, m: f"{m} {t.year}", lambda t, m: f"{m} {t.year}", lambda t, m: f"{m}-{t.year % 100:02d}", lambda t, m: f"{m}-{t.year}",
             lambda t, m: f"{m} {t.year % 100:02d}"][k]
    return one_column(k, lambda t: write(t, SHORT[language][t.month - 1]), "monthly", name="x", refused="E205" if k in (2, 4) else None)


@form
def quarters_in_other_marks(k):
    write = [lambda y, q: f"{q}Q{y % 100:02d}", lambda y, q: f"Q{q}-{y % 100:02d}", lambda y, q: f"{y}_Q{q}", lambda y, q: f"{q}T{y}",
             lambda y, q: f"T{q} {y}"][k]
    return one_column(k, lambda t: write(t.year, (t.month + 2) // 3), "quarterly", name=["x", "stamp1", "col", "periode", "x"][k], refused="E205")


@form
def fiscal_years(k):
    step = ["yearly", "quarterly", "quarterly", "quarterly", "yearly"][k]
    write = [lambda y, q: f"FY{y}", lambda y, q: f"FY{y % 100:02d}-Q{q}", lambda y, q: f"FY{y}Q{q}", lambda y, q: f"Q{q} FY{y}",
             lambda y, q: f"FY {y % 100:02d}"][k]
    return one_column(k, lambda t: write(t.year, (t.month + 2) // 3), step, name="x", refused="E205", n=40)


@form
def clocks_with_h(k):
    layout = ["%Y-%m-%d %Hh%M", "%d/%m/%Y %Hh%M", "%Y%m%d %Hh%M", "%d %b %Y %Hh%M", "%Y-%m-%d %Hh"][k]
    return one_column(k, lambda t: t.strftime(layout), "hourly", name="col", refused="E205" if k == 4 else None)


@form
def zones_by_name(k):
    layout, zone = [("%Y-%m-%d %H:%M UTC", "Z"), ("%Y-%m-%dT%H:%M:%S EST", "-05:00"), ("%a %b %d %H:%M:%S UTC %Y", ""), ("%d.%m.%Y %H:%M MEZ", "+01:00"),
                    ("%Y-%m-%d %H:%M GMT", "Z")][k]
    f = one_column(k, lambda t: t.strftime(layout), "hourly", name="x", refused="E205" if k == 2 else None)
    f.start += zone
    return f


@form
def zones_of_summer(k):
    """CET and CEST in turn: an hour is an hour, counted in the first zone."""
    utc = [dt.datetime(2021, 3, 26, 23) + i * HOUR for i in range(72)] if k % 2 == 0 else [dt.datetime(2021, 10, 29, 22) + i * HOUR for i in range(72)]
    change = dt.datetime(2021, 3, 28, 1) if k % 2 == 0 else dt.datetime(2021, 10, 31, 1)
    rows = []
    for i, t in enumerate(utc):
        summer = (t >= change) == (k % 2 == 0)
        rows.append([(t + (2 if summer else 1) * HOUR).strftime("%Y-%m-%d %H:%M ") + (["CEST", "CET"] if k < 3 else ["MESZ", "MEZ"])[not summer], value(i)])
    return File(table(k, ["stamp", "y"], rows), ["2021-03-27 00:00+01:00", "2021-10-30 00:00+02:00"][k % 2], "hourly", ["stamp"])


# ---- the periods of statistical offices
@form
def periods_of_years(k):
    """M13 is the average of a year: the remedy leaves it out."""
    letter, step, n = [("M", "monthly", 60), ("Q", "quarterly", 40), ("S", "6month", 40), ("A", "yearly", 40), ("M", "monthly", 60)][k]
    rows = []
    for i, t in enumerate(steps(dt.datetime(1990, 1, 1), step, n)):
        months = {"M": 1, "Q": 3, "S": 6, "A": 12}[letter]
        rows.append(["CUUR0000SA0", t.year, f"{letter}{(t.month - 1) // months + 1:02d}", value(i), ""])
        if k == 4 and t.month == 12:
            rows.append(["CUUR0000SA0", t.year, "M13", 11.5, ""])
    return File(table(k, ["series_id", "year", "period", "y", "footnote_codes"], rows), "1990" if step == "yearly" else "1990-01", step, ["year", "period"],
                refused="E205" if k == 4 else None)


@form
def periods_of_a_panel(k):
    """series_id tells the series apart; the remedy says so."""
    letter, step, months = [("M", "monthly", 1), ("Q", "quarterly", 3), ("M", "monthly", 1), ("S", "6month", 6), ("Q", "quarterly", 3)][k]
    rows = [[s, t.year, f"{letter}{(t.month - 1) // months + 1:02d}", value(i + j)] for j, s in enumerate(["CU1", "CU2", "CU3"])
            for i, t in enumerate(steps(dt.datetime(1990, 1, 1), step, 48))]
    return File(table(k, ["series_id", "year", "period", "y"], rows), "1990-01", step, ["year", "period"], refused="E209")


@form
def ids_above_dates(k):
    """Columns named by ids that count up as years do: the dates in the first column say that a column is a series."""
    ids = [1001 + j for j in range(3 + k)]
    times = steps(STARTS[k], "daily")
    rows = [[t.strftime("%Y-%m-%d")] + [value(i + j) for j in range(len(ids))] for i, t in enumerate(times)]
    return File(table(k, ["date"] + ids, rows), label(times[0], "daily"), "daily", ["date"], target="--target 1002")


@form
def strange_times(k):
    """No reader knows them: the column is left out with a warning."""
    roman = ["I", "II", "III", "IV"]
    write, name = [(lambda t: f"{roman[(t.month - 1) // 3]} kw. {t.year}", "x"), (lambda t: f"{t.year}/{roman[(t.month - 1) // 3]}", "okres"),
                   (lambda t: f"{t.month}. kuu {t.year}", "aika"), (lambda t: f"{t.year} м{t.month}", "x"), (lambda t: f"{t.year}~{t.month}", "col")][k]
    f = one_column(k, write, "quarterly" if k < 2 else "monthly", name=name, warned=True)
    f.start, f.step, f.columns = "row 0", "no time", []
    return f


@form
def numbers_like_times(k):
    """Numbers that nobody named and that could be times: left out with a warning."""
    write, step = [(lambda t: f"{t.year}.{t.month:02d}", "monthly"), (lambda t: f"{t.year + (t.month - 0.5) / 12:.3f}", "monthly"),
                   (lambda t: t.strftime("%d%m%Y"), "daily"), (lambda t: t.strftime("%m%d%Y"), "daily"), (lambda t: f"{t.year + (t.month - 1) / 12:.2f}", "quarterly")][k]
    f = one_column(k, write, step, name="x", warned=True)
    f.start, f.step, f.columns = "row 0", "no time", []
    return f


@form
def days_in_other_order(k):
    """Two digits of a year, last: the dates are daily only as day, month, year. A fifth form has blanks."""
    layout = ["%d-%m-%y", "%d-%m-%y %H:%M", "%d. %m. %Y", "%Y. %m. %d.", "%Y%m%d-%H"][k]
    return one_column(k, lambda t: t.strftime(layout), ["daily", "hourly", "daily", "daily", "hourly"][k], name="x", refused="E205")


@form
def no_times(k):
    """Words with digits that are none: titles, codes, versions, addresses."""
    word = [lambda i: f"{'abcdefghij'[i % 10]}{'klmnopqrst'[i // 10]} story ({1950 + i})", lambda i: f"INV-2020-{i:05d}", lambda i: f"v1.2.{i}",
            lambda i: f"{i * 7} Main St", lambda i: f"item {i}"][k]
    return File(table(k, ["x", "y"], [[word(i), value(i)] for i in range(60)]), "row 0", "no time", [])


@form
def rows_of_short_dates(k):
    layout, step = [("%m/%d/%y", "daily"), ("%d.%m.%y", "daily"), ("%b-%y", "monthly"), ("%y-%m-%d", "weekly"), ("%d/%m/%y", "daily")][k]
    times = steps(STARTS[k], step)
    more = [[], ["region"], [], ["Lat", "Long"], ["region", "Lat"]][k]
    rows = [[s, *(("north" if m == "region" else 1.5 + j) for m in more)] + [value(i + 3 * j) for i in range(len(times))]
            for j, s in enumerate(["y", "b", "c"])]
    name = "/".join(["y", *(("north" if m == "region" else "1.5") for m in more)])
    return File(table(k, ["store", *more] + [t.strftime(layout) for t in times], rows), label(times[0], step), step, ["store"], refused="E214",
                target="--target " + name)


@form
def counted(k):
    """Numbers with one step are the rows: no time, and nothing to ask."""
    first, step = [(0, 1), (1, 1), (100, 5), (737850, 1), (0, 0.5)][k]
    name = ["t", "step", "day", "day", "time"][k]
    return File(table(k, [name, "y"], [[first + i * step, value(i)] for i in range(60)]), "row 0", "no time", [])


# ---- mixed, headers, rows, zones, steps
@form
def mixed(k):
    other = ["%d.%m.%Y", "%d/%m/%Y", "%Y/%m/%d", "%d %b %Y", "%m/%d/%Y"][k]
    odd = [lambda i: i % 2, lambda i: i % 3 == 1, lambda i: i > 55, lambda i: i < 20, lambda i: i == 41][k]
    times = steps(STARTS[k], "daily")
    rows = [[t.strftime(other if odd(i) else "%Y-%m-%d"), value(i)] for i, t in enumerate(times)]
    return File(table(k, ["date", "y"], rows), label(times[0], "daily"), "daily", ["date"], refused=None if k == 2 else "E205")


@form
def header_of_numbers(k):
    ids = [773869, 767541, 767542, 717447][:2 + k % 3]
    first = ["", "time", "0", "", "time"][k]
    times = steps(STARTS[k], "15min")
    rows = [[t.strftime("%Y-%m-%d %H:%M:%S")] + [round(value(i + j) * 1.37, 3) for j in range(len(ids))] for i, t in enumerate(times)]
    return File(table(k, [first] + ids, rows), label(times[0], "15min"), "15min", [first or "column1"], target="--target 767541")


@form
def header_of_numbers_alone(k):
    ids = [773869, 767541, 767542, 717447][:2 + k % 3]
    rows = [[round(value(i * 3 + j) * 1.37, 3) for j in range(len(ids))] for i in range(60)]
    return File(table(k, ids, rows), "row 0", "no time", [], refused="E105", target="--target 773869")


@form
def series_in_rows(k):
    step = ["daily", "monthly", "yearly", "monthly", "weekly"][k]
    layout = ["%Y-%m-%d", "%Y-%m", "%Y", "%b %Y", "%d.%m.%Y"][k]
    times = steps(STARTS[k], step)
    rows = [[s] + [value(i + 3 * j) for i in range(len(times))] for j, s in enumerate(["y", "b", "c"])]
    return File(table(k, ["store"] + [t.strftime(layout) for t in times], rows), label(times[0], step), step, ["store"], refused="E214")


@form
def other_step(k):
    own, given = [("hourly", "15min"), ("daily", "1h"), ("monthly", "1d"), ("15min", "1h"), ("daily", "1month")][k]
    f = one_column(k, lambda t: t.strftime("%Y-%m-%d %H:%M"), own)
    f.options, f.refused = f"--freq {given} --gaps mask", "E210"
    return f


@form
def offsets(k):
    """A constant offset: the clock stays as written, with its zone."""
    text, hours = [("+02:00", 2), ("-05:00", -5), ("+05:30", 5.5), ("Z", 0), ("+0900", 9)][k]
    f = one_column(k, lambda t: t.strftime("%Y-%m-%dT%H:%M:%S") + text, "hourly")
    f.start += {"Z": "Z", "+0900": "+09:00"}.get(text, text)
    return f


@form
def offsets_of_summer(k):
    """Offsets that change with daylight saving time: an hour is an hour, counted in the first offset."""
    start = [dt.datetime(2021, 3, 27), dt.datetime(2021, 10, 30), dt.datetime(2023, 3, 25), dt.datetime(2023, 10, 28), dt.datetime(2019, 3, 30)][k]
    spring = start.month == 3
    rows = []
    for i in range(72):
        utc = start + i * HOUR - (HOUR if spring else 2 * HOUR)
        after = utc >= (start + DAY + HOUR)
        offset = (2 if after else 1) if spring else (1 if after else 2)
        rows.append([(utc + offset * HOUR).strftime("%Y-%m-%d %H:%M") + f"+0{offset}:00", value(i)])
    return File(table(k, ["time", "y"], rows), label(start, "hourly") + ("+01:00" if spring else "+02:00"), "hourly", ["time"])


# ---- the run
def run(program, folder, words):
    p = subprocess.run([program] + words, cwd=folder, capture_output=True, text=True, env=dict(os.environ, NO_COLOR="1", STRETTO_WISDOM="off"))
    return p.returncode, p.stdout + p.stderr


def reading(text):
    columns = re.search(r"^columns: .*?; time (.*?)(?:;|$)", text, re.M)
    series = re.search(r"^series: (.*?), (.*?)\.\.", text, re.M)
    return (sorted(columns.group(1).split(", ")) if columns else [], series.group(1) if series else "?", series.group(2) if series else "?")


def paste(folder, path, options, fix):
    """The first remedy: an option joins the others, a command makes another file."""
    fix = re.split(r"   or   |\n", fix)[0]
    fix = re.sub(r"   \(.*", "", fix).strip()
    if fix.startswith("--"):
        name, rest = fix.split(" ", 1)
        return path, re.sub(rf"{name} (?:'[^']*'|\S+)", "", options).strip() + " " + fix
    subprocess.run(["bash", "-c", fix], cwd=folder, check=True)
    return fix.split(">")[-1].strip(), options


def words_of(options):
    return [a or b for a, b in re.findall(r"'([^']*)'|(\S+)", options)]


def check(program, folder, f, name):
    path, options = name, f.options
    open(os.path.join(folder, name), "w").write(f.text)
    for turn in range(4):
        code, text = run(program, folder, ["check", path] + words_of(f.target) + words_of(options))
        error = re.search(r"error\[(E\d+)\]", text)
        if not error:
            break
        if turn == 0 and f.refused != error.group(1):
            return f"refused with {error.group(1)}, expected {f.refused}\n{text}", path, options
        fix = re.search(r"^  fix: (.*)$", text, re.M)
        if not fix:
            return f"refused without a remedy\n{text}", path, options
        path, options = paste(folder, path, options, fix.group(1))
    if error:
        return f"still refused after {options}\n{text}", path, options
    if f.refused and turn == 0:
        return f"read, expected {f.refused}\n{text}", path, options
    if f.warned != ("warning[W038]" in text):
        return f"warned: {not f.warned}, expected {f.warned}\n{text}", path, options
    want = (f.columns, f.step, f.start)
    got = reading(text)
    return ("" if got == want else f"got {got}, expected {want}\n{text}"), path, options


def train(program, folder, path, f, options):
    words = ["train", path] + words_of(f.target) + words_of(options) + ["--steps", "2", "--horizon", "3", "--members", "1", "-q", "-o", path + ".model"]
    code, text = run(program, folder, words)
    if code:
        return f"train: exit {code}\n{text}"
    code, text = run(program, folder, ["predict", path + ".model", path])
    return "" if code == 0 else f"predict: exit {code}\n{text}"


def seconds_per_cell(program, folder, columns, rows):
    path = os.path.join(folder, f"wide{columns}.csv")
    line = ",".join(f"{value(i)}" for i in range(columns))
    with open(path, "w") as out:
        out.write(",".join(f"s{i}" for i in range(columns)) + "\n" + (line + "\n" + line[::-1].replace(".", "1") + "\n") * (rows // 2))
    start = time.time()
    run(program, folder, ["check", path, "--target", "all"])
    return (time.time() - start) / columns / rows


def main():
    program, only = os.path.abspath(sys.argv[1]), sys.argv[2:]
    bad = files = 0
    with tempfile.TemporaryDirectory() as folder:
        for make in FORMS:
            for k in range(5):
                if only and make.__name__ not in only:
                    continue
                f = make(k)
                why, path, options = check(program, folder, f, f"{make.__name__}{k}.csv")
                if not why and files % 8 == 0 and f.step != "no time":
                    why = train(program, folder, path, f, options)
                files += 1
                bad += bool(why)
                if why:
                    print(f"{make.__name__} {k}: {why}\n{f.text[:160]}\n")
        if not only:
            few, many = seconds_per_cell(program, folder, 1000, 1000), seconds_per_cell(program, folder, 100000, 10)
            print(f"a cell of 1,000 columns {few * 1e9:.0f} ns, of 100,000 {many * 1e9:.0f} ns")
            bad += many > 10 * few
    print(f"{files} files in {len(only) or len(FORMS)} forms, {bad} wrong")
    return 1 if bad else 0


sys.exit(main())
