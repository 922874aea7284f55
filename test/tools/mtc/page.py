# SPDX-License-Identifier: Apache-2.0
"""page.py PAGE NAME: the page is well formed, needs nothing from elsewhere, runs nothing, and shows NAME as text."""
import html.parser
import sys

VOID = {"meta", "br"}
ALLOWED = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "pre", "div", "b", "i", "code",
           "details", "summary", "table", "tr", "th", "td", "span", "svg", "g", "rect", "line", "polyline", "circle",
           "text", "br"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.counts, self.heading = [], {}, ""

    def handle_starttag(self, tag, attributes):
        assert tag in ALLOWED, tag
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in ((n, v or "") for n, v in attributes):
            assert not name.startswith("on") and name not in ("src", "href", "action"), (tag, name)
            assert name == "xmlns" or "//" not in value and "url(" not in value, (tag, name, value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "h1":
            self.heading += data
        if self.open and self.open[-1] == "style":
            assert "@import" not in data and "url(" not in data


page = Page()
with open(sys.argv[1], encoding="utf-8") as file:
    page.feed(file.read())
page.close()
assert not page.open, page.open
assert page.heading == sys.argv[2], page.heading
print(" ".join(f"{tag} {page.counts.get(tag, 0)}" for tag in ("svg", "rect", "line", "table")))
