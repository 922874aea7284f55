// SPDX-License-Identifier: Apache-2.0
#include "tools/mtrun/Progress.h"

#include "runtime/support/json_text.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <vector>

namespace mtrun_tool {

constexpr int64_t barWidth = 20;
constexpr double redrawSeconds = 0.05;

__attribute__((format(printf, 1, 2))) static std::string format(const char *pattern, ...) {
  char text[128];
  va_list arguments;
  va_start(arguments, pattern);
  vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

std::string formatStepTime(double seconds) {
  if (seconds >= 1 || seconds == 0)
    return format(" %.0fs/step", seconds);
  if (seconds >= 1e-3)
    return format(" %.0fms/step", seconds * 1e3);
  return format(" %.0fus/step", seconds * 1e6);
}

static std::string formatValue(double value) {
  if (std::isnan(value))
    return "nan"; // the sign of a NaN has no meaning
  return std::fabs(value) > 1e-3 ? format("%.4f", value) : format("%.4e", value);
}

// Returns the indices of the metrics in the order of the output.
static std::vector<int32_t> shownOrder(const mtrun_progress &progress) {
  std::vector<int32_t> order(static_cast<size_t>(progress.metrics));
  for (int32_t i = 0; i < progress.metrics; ++i)
    order[static_cast<size_t>(i)] = i;
  auto rank = [&](int32_t i) { return progress.validation && strncmp(progress.names[i], "val_", 4) == 0; };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return rank(a) != rank(b) ? rank(b) : strcmp(progress.names[a], progress.names[b]) < 0;
  });
  return order;
}

std::string formatMetrics(const mtrun_progress &progress) {
  std::string text;
  for (int32_t i : shownOrder(progress))
    text += std::string(" - ") + progress.names[i] + ": " + formatValue(progress.values[i]);
  return text;
}

using mtrun::jsonNumber;
using mtrun::jsonString;

std::string formatJson(const mtrun_progress &progress) {
  std::string text = format(
      "{\"epoch\": %lld, \"epochs\": %lld, \"steps\": %lld, \"seconds\": ", static_cast<long long>(progress.epoch + 1),
      static_cast<long long>(progress.epochs), static_cast<long long>(progress.steps));
  text += jsonNumber(progress.seconds);
  if (progress.step_values) // training
    text += ", \"seconds_waited\": " + jsonNumber(progress.input_wait);
  if (progress.step_values || progress.validation)
    text += ", \"learning_rate\": " + jsonNumber(progress.learning_rate);
  for (int32_t i : shownOrder(progress))
    text += ", " + jsonString(progress.names[i]) + ": " + jsonNumber(progress.values[i]);
  return text + "}\n";
}

std::string formatJsonStep(const mtrun_progress &progress) {
  std::string text = format("{\"epoch\": %lld, \"step\": %lld, \"total_step\": %lld, \"seconds\": ",
                            static_cast<long long>(progress.epoch + 1), static_cast<long long>(progress.step),
                            static_cast<long long>(progress.total_step)) +
                     jsonNumber(progress.seconds) + ", \"learning_rate\": " + jsonNumber(progress.learning_rate);
  for (int32_t i : shownOrder(progress))
    text += ", " + jsonString(progress.names[i]) + ": " + jsonNumber(progress.step_values[i]);
  return text + "}\n";
}

static std::string remaining(double seconds) {
  auto s = static_cast<long long>(seconds);
  if (seconds > 3600)
    return format("%lld:%02lld:%02lld", s / 3600, s % 3600 / 60, s % 60);
  return seconds > 60 ? format("%lld:%02lld", s / 60, s % 60) : format("%llds", s);
}

std::string Progress::bar(const mtrun_progress &progress, double stepSeconds) {
  auto width = static_cast<int>(std::to_string(progress.steps).size());
  std::string count =
      format("%*lld/%lld", width, static_cast<long long>(progress.step), static_cast<long long>(progress.steps));
  int64_t done = barWidth * progress.step / progress.steps;
  std::string blocks;
  auto draw = [&](const char *color, int64_t n) {
    blocks += color;
    for (int64_t i = 0; i < n; ++i)
      blocks += "━";
    blocks += "\x1b[0m";
  };
  if (done > 0)
    draw("\x1b[32m", done);
  draw("\x1b[37m", barWidth - done);
  std::string time = progress.epoch_end ? format("%.0fs", progress.seconds)
                                        : remaining(stepSeconds * static_cast<double>(progress.steps - progress.step));
  std::string info = formatStepTime(stepSeconds) + formatMetrics(progress);
  std::string text = "\r\x1b[1m" + count + "\x1b[0m " + blocks + " \x1b[1m" + time + "\x1b[0m" + info;
  auto shown = static_cast<int64_t>(count.size() + 2 + time.size() + info.size()) + barWidth;
  if (lastWidth_ > shown) // overwrites the rest of a longer line
    text.append(static_cast<size_t>(lastWidth_ - shown), ' ');
  lastWidth_ = shown;
  return progress.epoch_end ? text + "\n" : text;
}

std::string Progress::update(const mtrun_progress &progress) {
  if (style_ == ProgressStyle::Json) {
    bool step = progress.step_values && progress.step != jsonStep_;
    jsonStep_ = progress.epoch_end ? 0 : progress.step;
    return (step ? formatJsonStep(progress) : "") + (progress.epoch_end ? formatJson(progress) : "");
  }
  std::string text;
  if (progress.epoch != epoch_) {
    epoch_ = progress.epoch;
    firstStep_ = progress.step;
    afterFirstStep_ = progress.seconds;
    lastDrawn_ = -1;
    lastWidth_ = 0;
    if (progress.epochs > 1)
      text = format("Epoch %lld/%lld\n", static_cast<long long>(progress.epoch + 1),
                    static_cast<long long>(progress.epochs));
  }
  // The first step is slower than the others, so the estimate excludes it.
  int64_t steps = progress.step - firstStep_;
  double stepSeconds = steps > 0 ? (progress.seconds - afterFirstStep_) / static_cast<double>(steps) : progress.seconds;
  if (style_ == ProgressStyle::Bar) {
    if (!progress.epoch_end && progress.seconds - lastDrawn_ < redrawSeconds)
      return text;
    lastDrawn_ = progress.seconds;
    return text + bar(progress, stepSeconds);
  }
  if (!progress.epoch_end)
    return text;
  return text +
         format("%lld/%lld - %.0fs -", static_cast<long long>(progress.step), static_cast<long long>(progress.steps),
                progress.seconds) +
         formatStepTime(stepSeconds) + formatMetrics(progress) + "\n";
}

} // namespace mtrun_tool
