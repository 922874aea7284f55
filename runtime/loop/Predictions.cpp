// SPDX-License-Identifier: Apache-2.0
#include "runtime/loop/Predictions.h"
#include "runtime/data/Npy.h"
#include "runtime/data/NpzWriter.h"
#include "runtime/support/atomic_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

namespace mtrun {
namespace {

class NpyPredictions : public Predictions {
public:
  Status open(const std::string &path, const std::vector<Predicted> &outputs, const PredictedSamples &) override {
    rowBytes_ = outputs[0].rowBytes;
    if (Status s = file_.open(path); !s.ok())
      return s;
    std::string header = npyHeader(outputs[0].dtype, outputs[0].shape);
    return file_.write(header.data(), header.size());
  }
  Status add(const std::vector<const std::byte *> &rows, int64_t count) override {
    return file_.write(rows[0], rowBytes_ * static_cast<uint64_t>(count));
  }
  Status commit() override { return file_.commit(); }

private:
  uint64_t rowBytes_ = 0;
  AtomicFile file_;
};

class NpzPredictions : public Predictions {
public:
  Status open(const std::string &path, const std::vector<Predicted> &outputs, const PredictedSamples &samples) override;
  Status add(const std::vector<const std::byte *> &rows, int64_t count) override {
    Status status;
    for (size_t i = 0; i < rows.size() && status.ok(); ++i)
      status = file_.write(i, rows[i], rowBytes_[i] * static_cast<uint64_t>(count));
    return status;
  }
  Status commit() override { return file_.commit(); }

private:
  std::vector<uint64_t> rowBytes_;
  NpzWriter file_;
};

class CsvPredictions : public Predictions {
public:
  Status open(const std::string &path, const std::vector<Predicted> &outputs, const PredictedSamples &samples) override;
  Status add(const std::vector<const std::byte *> &rows, int64_t count) override;
  Status commit() override { return file_.commit(); }

private:
  std::vector<Predicted> outputs_;
  PredictedSamples samples_;
  int64_t written_ = 0;
  std::string text_;
  AtomicFile file_;
};

} // namespace

Status NpzPredictions::open(const std::string &path, const std::vector<Predicted> &outputs,
                            const PredictedSamples &samples) {
  for (const Predicted &output : outputs) {
    file_.add(output.name, npyHeader(output.dtype, output.shape),
              output.rowBytes * static_cast<uint64_t>(samples.count));
    rowBytes_.push_back(output.rowBytes);
  }
  uint64_t width = 1, classWidth = 1;
  for (int64_t i = 0; samples.file && i < samples.count; ++i)
    width = std::max(width, textWidth(samples.file(i)));
  for (const std::string &name : samples.classNames)
    classWidth = std::max(classWidth, textWidth(name));
  auto count = static_cast<uint64_t>(samples.count);
  file_.add("names",
            samples.file ? npyTextHeader(width, samples.count) : npyHeader(MT_I64, std::span(&samples.count, 1)),
            count * (samples.file ? 4 * width : sizeof(int64_t)));
  if (!samples.classNames.empty())
    file_.add("classes", npyTextHeader(classWidth, static_cast<int64_t>(samples.classNames.size())),
              samples.classNames.size() * 4 * classWidth);
  if (Status s = file_.open(path); !s.ok())
    return s;
  Status status;
  for (int64_t i = 0; i < samples.count && status.ok(); ++i) {
    int64_t number = samples.number(i);
    std::string text = samples.file ? npyText(samples.file(i), width)
                                    : std::string(reinterpret_cast<const char *>(&number), sizeof number);
    status = file_.write(outputs.size(), text.data(), text.size());
  }
  for (const std::string &name : samples.classNames)
    if (std::string text = npyText(name, classWidth); status.ok())
      status = file_.write(outputs.size() + 1, text.data(), text.size());
  return status;
}

// Returns a CSV cell, with quotes if necessary.
static std::string cell(const std::string &text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos)
    return text;
  std::string quoted = "\"";
  for (char c : text)
    quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

static double valueAt(const std::byte *row, mt_dtype dtype, uint64_t i) {
  auto load = [&]<typename T>(T value) {
    memcpy(&value, row + i * sizeof value, sizeof value);
    return value;
  };
  switch (dtype) {
  case MT_F32:
    return static_cast<double>(load(float()));
  case MT_F64:
    return load(double());
  case MT_I32:
    return load(int32_t());
  case MT_I64:
    return static_cast<double>(load(int64_t()));
  default:
    return load(uint8_t());
  }
}

// Appends the shortest text that reads back as the same value.
static void append(std::string &out, const std::byte *row, mt_dtype dtype, uint64_t i) {
  char text[40];
  double value = valueAt(row, dtype, i);
  int64_t whole = 0;
  if (dtype == MT_I64)
    memcpy(&whole, row + i * sizeof whole, sizeof whole);
  char *end = dtype == MT_I64   ? std::to_chars(text, text + sizeof text, whole).ptr
              : dtype == MT_F32 ? std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr
                                : std::to_chars(text, text + sizeof text, value).ptr;
  out += std::isnan(value) ? std::string_view("nan") : std::string_view(text, end);
}

// Returns the indices of element `i` of a row, with colons between axes: "1:2".
static std::string place(const Predicted &output, uint64_t i) {
  std::string text;
  for (size_t axis = output.shape.size(); axis-- > 1;) {
    auto size = static_cast<uint64_t>(output.shape[axis]);
    text = std::to_string(i % size) + (text.empty() ? "" : ":" + text);
    i /= size;
  }
  return text;
}

// Writes a header such as "file,class,cat,dog". With several outputs, the output's name precedes each column.
Status CsvPredictions::open(const std::string &path, const std::vector<Predicted> &outputs,
                            const PredictedSamples &samples) {
  outputs_ = outputs;
  samples_ = samples;
  text_ = samples.file ? "file" : "sample";
  for (const Predicted &output : outputs) {
    uint64_t count = output.rowBytes / mt_dtype_size(output.dtype);
    std::string prefix = outputs.size() > 1 ? output.name + ":" : "";
    if (!output.classes.empty())
      text_ += "," + cell(prefix + "class");
    for (uint64_t i = 0; i < count; ++i)
      text_ += "," + cell(count == 1               ? output.name
                          : output.classes.empty() ? prefix + place(output, i)
                                                   : prefix + output.classes[i]);
  }
  text_ += "\n";
  return file_.open(path);
}

Status CsvPredictions::add(const std::vector<const std::byte *> &rows, int64_t count) {
  for (int64_t row = 0; row < count; ++row, ++written_) {
    text_ += samples_.file ? cell(samples_.file(written_)) : std::to_string(samples_.number(written_));
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const Predicted &output = outputs_[o];
      const std::byte *from = rows[o] + static_cast<uint64_t>(row) * output.rowBytes;
      uint64_t values = output.rowBytes / mt_dtype_size(output.dtype), best = 0;
      for (uint64_t i = 1; i < values; ++i)
        best = valueAt(from, output.dtype, i) > valueAt(from, output.dtype, best) ? i : best;
      if (!output.classes.empty())
        text_ += "," + (std::isnan(valueAt(from, output.dtype, best)) ? "" : cell(output.classes[best]));
      for (uint64_t i = 0; i < values; ++i) {
        text_ += ',';
        append(text_, from, output.dtype, i);
      }
    }
    text_ += '\n';
  }
  Status status = file_.write(text_.data(), text_.size());
  text_.clear();
  return status;
}

Status makePredictions(const std::string &path, std::unique_ptr<Predictions> &predictions) {
  if (path.ends_with(".npy"))
    predictions = std::make_unique<NpyPredictions>();
  else if (path.ends_with(".npz"))
    predictions = std::make_unique<NpzPredictions>();
  else if (path.ends_with(".csv"))
    predictions = std::make_unique<CsvPredictions>();
  else
    return {MT_INVALID, "predict: expected a file .csv, .npz or .npy, found " + path};
  return {};
}

} // namespace mtrun
