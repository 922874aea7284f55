// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/ReportPage.h"

#include "runtime/support/html.h"
#include "tools/mtrun/Chart.h"

#include <algorithm>
#include <cmath>

namespace mtrun_tool {

using mtrun::append;
using mtrun::htmlText;

constexpr size_t tableRows = 200; // history.csv has all rows

static constexpr const char *chartStyle =
    "svg "
    "text{font-size:13px}.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(360px,100%),1fr));gap:"
    "14px}"
    ".chart{border:1px solid var(--line);border-radius:6px;padding:8px 10px;min-width:0}.t{font-size:13px;"
    "min-height:42px;overflow-wrap:anywhere}.t>b{font-size:15px}.l{display:inline-block;margin-left:12px}"
    ".l::before{content:\"\\25cf  \"}span.a::before{color:var(--a)}span.b::before{color:var(--b)}"
    "polyline{fill:none;stroke-width:1.6;stroke-linejoin:round}polyline.a{stroke:var(--a)}polyline.b{stroke:var(--b)}"
    "circle.a{fill:var(--a)}circle.b{fill:var(--b)}.g{stroke:var(--line)}.s{stroke:var(--muted);stroke-dasharray:3 "
    "3}\n";

namespace {

// Returns a column of times, in the order of the epochs that have metrics.
std::vector<double> timesOf(const ReportFacts &facts, double (*value)(const EpochTime &)) {
  std::vector<double> values(facts.metrics.epochs(), NAN);
  for (const EpochTime &time : facts.times)
    if (int64_t at = time.epoch - facts.metrics.first; at >= 0 && at < static_cast<int64_t>(values.size()))
      values[static_cast<size_t>(at)] = value(time);
  return values;
}

double throughput(const EpochTime &time) {
  return time.training > 0 ? static_cast<double>(time.samples) / time.training : NAN;
}
double waited(const EpochTime &time) { return time.training > 0 ? 100 * time.waited / time.training : NAN; }
double seconds(const EpochTime &time) { return time.seconds; }

void drawCharts(std::string &html, const ReportFacts &facts) {
  const Metrics &metrics = facts.metrics;
  std::vector<int64_t> starts; // first epochs of the processes after a resume
  for (size_t i = 1; i < facts.times.size(); ++i)
    if (facts.times[i].began != facts.times[i - 1].began)
      starts.push_back(facts.times[i].epoch);
  auto draw = [&](const Chart &chart) { html += drawChart(chart, metrics.first, starts); };
  auto find = [&](const std::string &name) {
    return static_cast<size_t>(std::find(metrics.names.begin(), metrics.names.end(), name) - metrics.names.begin());
  };
  html += "<div class=\"charts\">\n";
  for (size_t i = 0; i < metrics.names.size(); ++i) {
    const std::string &name = metrics.names[i];
    if (name == "learning_rate" || (name.starts_with("val_") && find(name.substr(4)) < i))
      continue;
    size_t held = find("val_" + name);
    Chart chart = {name, "", {{held < metrics.names.size() ? "training" : "", metrics.columns[i], facts.better[i]}}};
    if (held < metrics.names.size())
      chart.curves.push_back({"validation", metrics.columns[held], facts.better[i]});
    draw(chart);
  }
  if (size_t rate = find("learning_rate"); rate < metrics.names.size())
    draw({"learning rate", "at the end of an epoch", {{"", metrics.columns[rate]}}});
  if (!facts.times.empty()) {
    draw({"throughput", "samples per second of training", {{"", timesOf(facts, throughput)}}, true});
    draw({"waits for data", "% of the training time", {{"", timesOf(facts, waited)}}, true});
    draw({"time of an epoch", "seconds, with validation", {{"", timesOf(facts, seconds)}}, true});
  }
  html += "</div>\n<p class=\"muted\">";
  if (!starts.empty())
    html += "A dashed line is where the run was resumed. ";
  html += "Point at a dot to read its value.</p>\n";
}

void drawTable(std::string &html, const ReportFacts &facts) {
  const Metrics &metrics = facts.metrics;
  size_t count = metrics.epochs(), begin = count > tableRows ? count - tableRows : 0;
  append(html, "<details><summary>All numbers%s</summary><div class=\"wide\"><table><tr><th class=\"n\">epoch</th>",
         begin ? " of the last 200 epochs; history.csv and timing.csv have the others" : "");
  for (const std::string &name : metrics.names)
    html += "<th class=\"n\">" + htmlText(name) + "</th>";
  html += "<th class=\"n\">samples/s</th><th class=\"n\">waits, %</th><th class=\"n\">seconds</th></tr>\n";
  const std::vector<double> times[] = {timesOf(facts, throughput), timesOf(facts, waited), timesOf(facts, seconds)};
  for (size_t e = begin; e < count; ++e) {
    append(html, "<tr><td class=\"n\">%lld</td>", static_cast<long long>(metrics.first) + static_cast<long long>(e));
    for (const std::vector<double> &column : metrics.columns)
      append(html, "<td class=\"n\">%.6g</td>", column[e]);
    for (const std::vector<double> &column : times)
      html += "<td class=\"n\">" + (std::isfinite(column[e]) ? shownNumber(column[e]) : "") + "</td>";
    html += "</tr>\n";
  }
  html += "</table></div></details>\n";
}

void drawRows(std::string &html, const char *title, const ReportFacts::Rows &rows) {
  append(html, "<h2>%s</h2>\n<table>\n", title);
  for (const auto &[what, value] : rows)
    if (!value.empty())
      html += "<tr><th>" + htmlText(what) + "</th><td>" + htmlText(value) + "</td></tr>\n";
  html += "</table>\n";
}

} // namespace

std::string reportPage(const ReportFacts &facts) {
  std::string html = mtrun::pageHead(facts.model, chartStyle);
  html += "<h1>" + htmlText(facts.model) + "</h1>\n<p" + (facts.failed ? " class=\"bad\"" : "") + ">" +
          htmlText(facts.state) + "</p>\n<div class=\"tiles\">";
  for (const auto &[what, value] : facts.tiles)
    html += "<div class=\"tile\"><b>" + htmlText(value) + "</b>" + htmlText(what) + "</div>";
  html += "</div>\n";
  if (facts.metrics.epochs() > 0) {
    drawCharts(html, facts);
    drawTable(html, facts);
  }
  html += "<h2>To continue</h2>\n<pre>" + htmlText(facts.resume) + "</pre>\n";
  drawRows(html, "Memory", facts.memory);
  drawRows(html, "Configuration", facts.configuration);
  return html + mtrun::pageEnd;
}

} // namespace mtrun_tool
