# SPDX-License-Identifier: Apache-2.0
"""report.py RUN EPOCHS [STATE]: report.html of a run's folder has the numbers of its files, a curve for each metric and
what each epoch took; its state begins with STATE. Prints the command that goes on."""
import csv
import html.parser
import pathlib
import sys

run, epochs = pathlib.Path(sys.argv[1]), int(sys.argv[2])


class Report(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tables, self.charts, self.command, self.state, self.points = [], [], "", "", []
        self.inside = []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in ("meta", "br"):
            self.inside.append((tag, attributes.get("class")))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("th", "td"):
            self.tables[-1][-1].append("")
        elif tag == "div" and attributes.get("class") == "t":
            self.charts.append("")
        elif tag == "polyline":
            self.points.append(len(attributes["points"].split()))

    def handle_endtag(self, tag):
        if tag not in ("meta", "br"):
            assert self.inside.pop()[0] == tag, tag

    def handle_data(self, data):
        if self.inside and self.inside[-1][0] in ("th", "td"):
            self.tables[-1][-1][-1] += data
        elif [tag for tag, _ in self.inside[-2:]] == ["div", "b"] and self.inside[-2][1] == "t":
            self.charts[-1] += data
        elif self.inside and self.inside[-1][0] == "pre":
            self.command += data
        elif self.inside and self.inside[-1][0] == "p":
            self.state += data


report = Report()
report.feed((run / "report.html").read_text(encoding="utf-8"))
report.close()
assert not report.inside, report.inside
assert report.state.startswith(sys.argv[3] if len(sys.argv) > 3 else ""), report.state

history = list(csv.reader((run / "history.csv").open(newline="")))
timing = list(csv.reader((run / "timing.csv").open(newline="")))
assert [row[0] for row in timing[1:]] == [str(e + 1) for e in range(epochs)], timing
metrics = [name for name in history[0][1:] if name != "learning_rate" and not name.startswith("val_")]
validated = [name for name in history[0][1:] if name.startswith("val_")]
expected = metrics + (["learning rate"] if "learning_rate" in history[0] else [])
assert report.charts == expected + ["throughput", "waits for data", "time of an epoch"], report.charts
assert report.points == [epochs] * (len(report.charts) + len(validated)), report.points

numbers = report.tables[0]
assert numbers[0][:len(history[0])] == history[0], numbers[0]
assert len(numbers) == len(history) == epochs + 1, (len(numbers), len(history))
for shown, row, time in zip(numbers[1:], history[1:], timing[1:]):
    for a, b in zip(shown, row):
        assert abs(float(a) - float(b)) <= 1e-5 * max(1, abs(float(b))), (shown, row)
    seconds, training = float(time[4]), float(time[5])
    assert 0 < training <= seconds and 0 <= float(time[6]) <= training, time
    rate = int(time[3]) / training
    assert abs(float(shown[len(row)].replace(",", "")) - rate) <= 0.51 + 1e-3 * rate, (shown, rate)
rows = {row[0]: row[1] for table in report.tables[1:] for row in table}
assert "MiB" in rows["promised for the devices"] and "MiB" in rows["taken by the process"], rows
assert {"plan", "devices", "data", "seed", "version", "host", "command"} <= set(rows), rows
print(report.command)
