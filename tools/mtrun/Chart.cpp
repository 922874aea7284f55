// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Chart.h"

#include "runtime/support/html.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace mtrun_tool {

using mtrun::append;
using mtrun::htmlText;

// The size and the margins of the drawing, in SVG units.
constexpr double width = 420, height = 220, left = 62, right = 12, top = 10, bottom = 38;
// maxDrawn: points per curve; maxDots: a curve with at most this number of points has a dot for each
constexpr size_t maxDrawn = 400, maxDots = 40;
constexpr double logarithmicRange = 100; // minimum ratio of values for a logarithmic axis

std::string shownNumber(double value) {
  char text[40];
  snprintf(text, sizeof text, std::fabs(value) >= 1000 && std::fabs(value) < 1e9 ? "%.0f" : "%.4g", value);
  std::string shown = text;
  if (shown.find_first_of(".einE") == std::string::npos)
    for (size_t at = shown.size(); at > (shown[0] == '-' ? 4u : 3u); at -= 3)
      shown.insert(at - 3, ",");
  return shown;
}

namespace {

// Returns 1, 2 or 5 times a power of ten, so that `span` has about `count` steps.
double niceStep(double span, int count) {
  double raw = span / count, power = std::pow(10, std::floor(std::log10(raw))), part = raw / power;
  return power * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

class Axes {
public:
  Axes(const Chart &chart, int64_t first, size_t epochs) : first_(first), epochs_(epochs) {
    bool any = false;
    for (const Curve &curve : chart.curves)
      for (double value : curve.values)
        if (std::isfinite(value)) {
          low_ = any ? std::min(low_, value) : value;
          high_ = any ? std::max(high_, value) : value;
          any = true;
        }
    if (chart.fromZero)
      low_ = std::min(low_, 0.0);
    log_ = !chart.fromZero && low_ > 0 && high_ / low_ >= logarithmicRange;
    if (log_) {
      low_ = std::floor(std::log10(low_));
      high_ = std::ceil(std::log10(high_));
    }
    constexpr double largest = 1e300, smallest = 1e-12; // limits within which differences are finite and nonzero
    low_ = std::max(low_, -largest);
    high_ = std::min(high_, largest);
    if (!(high_ - low_ > smallest * std::max(std::fabs(high_), std::fabs(low_)))) { // all values are equal
      double room = high_ != 0 ? std::fabs(high_) / 10 : 1;
      high_ += room;
      low_ -= chart.fromZero ? 0 : room;
    }
    step_ = log_ ? std::max(1.0, niceStep(high_ - low_, 4)) : niceStep(high_ - low_, 4);
    low_ = std::floor(low_ / step_ + 1e-9) * step_;
    high_ = std::ceil(high_ / step_ - 1e-9) * step_;
  }

  bool logarithmic() const { return log_; }
  double x(size_t epoch) const {
    double share = epochs_ > 1 ? static_cast<double>(epoch) / static_cast<double>(epochs_ - 1) : 0.5;
    return left + 6 + share * (width - left - right - 12);
  }
  double y(double value) const {
    double at = std::clamp(((log_ ? std::log10(value) : value) - low_) / (high_ - low_), 0.0, 1.0);
    return height - bottom - at * (height - top - bottom);
  }

  void draw(std::string &svg) const {
    auto ticks = static_cast<int>(std::round((high_ - low_) / step_));
    for (int tick = 0; tick <= ticks; ++tick) {
      double at = low_ + tick * step_,
             value = log_                          ? std::pow(10, at)
                     : std::fabs(at) < step_ / 1e6 ? 0
                                                   : at,
             down = y(value);
      append(svg, "<line class=\"g\" x1=\"%g\" y1=\"%.1f\" x2=\"%g\" y2=\"%.1f\"/>", left, down, width - right, down);
      append(svg, "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", left - 5, down + 4,
             shownNumber(value).c_str());
    }
    auto step = static_cast<int64_t>(epochs_ > 1 ? std::max(1.0, niceStep(static_cast<double>(epochs_ - 1), 6)) : 1);
    for (int64_t epoch = first_; epoch < first_ + static_cast<int64_t>(epochs_); ++epoch)
      if (epoch % step == 0 || epochs_ == 1)
        append(svg, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%s</text>\n",
               x(static_cast<size_t>(epoch - first_)), height - bottom + 15,
               shownNumber(static_cast<double>(epoch)).c_str());
    append(svg, "<text x=\"%g\" y=\"%g\" text-anchor=\"end\">epoch</text>\n", width - right, height - 4);
  }

private:
  double low_ = 0, high_ = 0, step_ = 1;
  bool log_ = false;
  int64_t first_;
  size_t epochs_;
};

// Returns the indices of the points to draw: all, or the minimum and the maximum of each part of a long curve.
std::vector<size_t> pointsOf(const std::vector<double> &values) {
  std::vector<size_t> finite, drawn;
  for (size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i]))
      finite.push_back(i);
  if (finite.size() <= maxDrawn)
    return finite;
  for (size_t part = 0; part < maxDrawn / 2; ++part) {
    auto begin = finite.begin() + static_cast<std::ptrdiff_t>(finite.size() * part / (maxDrawn / 2)),
         end = finite.begin() + static_cast<std::ptrdiff_t>(finite.size() * (part + 1) / (maxDrawn / 2));
    auto [least, most] = std::minmax_element(begin, end, [&](size_t a, size_t b) { return values[a] < values[b]; });
    drawn.push_back(std::min(*least, *most));
    if (*least != *most)
      drawn.push_back(std::max(*least, *most));
  }
  return drawn;
}

void drawCurve(std::string &svg, const Curve &curve, const Axes &axes, int64_t first, char color) {
  std::vector<size_t> points = pointsOf(curve.values);
  append(svg, "<polyline class=\"%c\" points=\"", color);
  for (size_t i : points)
    append(svg, "%.1f,%.1f ", axes.x(i), axes.y(curve.values[i]));
  svg += "\"/>\n";
  if (points.size() > maxDots)
    return;
  for (size_t i : points)
    append(svg, "<circle class=\"%c\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"><title>%s, epoch %lld: %.6g</title></circle>\n",
           color, axes.x(i), axes.y(curve.values[i]), htmlText(curve.name).c_str(),
           static_cast<long long>(first + static_cast<int64_t>(i)), curve.values[i]);
}

// Draws the name, the last value, and the best value with its epoch.
void drawLegend(std::string &html, const Curve &curve, int64_t first, char color) {
  size_t last = curve.values.size(), best = last, missing = 0;
  for (size_t i = 0; i < curve.values.size(); ++i) {
    double value = curve.values[i];
    missing += !std::isfinite(value);
    if (!std::isfinite(value))
      continue;
    last = i;
    if (best == curve.values.size() || (curve.better > 0 ? value > curve.values[best] : value < curve.values[best]))
      best = i;
  }
  append(html, "<span class=\"l %c\">%s", color, htmlText(curve.name).c_str());
  if (last < curve.values.size())
    append(html, " <b>%s</b>", shownNumber(curve.values[last]).c_str());
  if (curve.better != 0 && best != last)
    append(html, ", best %s in epoch %lld", shownNumber(curve.values[best]).c_str(),
           static_cast<long long>(first + static_cast<int64_t>(best)));
  if (missing)
    append(html, ", none in %zu epoch%s", missing, missing == 1 ? "" : "s");
  html += "</span>";
}

} // namespace

std::string drawChart(const Chart &chart, int64_t first, const std::vector<int64_t> &starts) {
  size_t epochs = 0;
  for (const Curve &curve : chart.curves)
    epochs = std::max(epochs, curve.values.size());
  Axes axes(chart, first, epochs);
  std::string html = "<div class=\"chart\"><div class=\"t\"><b>" + htmlText(chart.title) + "</b>";
  if (!chart.unit.empty() || axes.logarithmic())
    html += " <span class=\"muted\">" + htmlText(chart.unit) + (axes.logarithmic() ? " (logarithmic)" : "") + "</span>";
  char color = 'a';
  for (const Curve &curve : chart.curves)
    drawLegend(html, curve, first, color++);
  append(html, "</div>\n<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" role=\"img\">\n", width,
         height);
  axes.draw(html);
  for (int64_t start : starts)
    if (start > first && start < first + static_cast<int64_t>(epochs)) {
      double x = (axes.x(static_cast<size_t>(start - first)) + axes.x(static_cast<size_t>(start - first) - 1)) / 2;
      append(html,
             "<line class=\"s\" x1=\"%.1f\" y1=\"%g\" x2=\"%.1f\" y2=\"%g\"><title>started again</title></line>\n", x,
             top, x, height - bottom);
    }
  color = 'a';
  for (const Curve &curve : chart.curves)
    drawCurve(html, curve, axes, first, color++);
  return html + "</svg></div>\n";
}

} // namespace mtrun_tool
