// SPDX-License-Identifier: Apache-2.0
//
// What Keras computed with a model: the .safetensors beside NAME.keras, which make.py or random_models.py wrote.
// MTC_KERAS_DATA names another folder of such models than test/keras/data.
#ifndef TEST_KERAS_EXPECTED_H
#define TEST_KERAS_EXPECTED_H

#include "runtime/support/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace kerastest {

// How far an element may lie from Keras' float64 value b: near (|b| + largest |b| of its tensor), and `rounding` times
// the distance that Keras' own float32 has somewhere in the tensor, and `least` of the largest element of all tensors
// of its kind (outputs, slots, variables), since what is 0 exactly has no scale of its own.
struct Nearness {
  double near, rounding, least;
};

class Expected {
public:
  static std::string folder() {
    const char *folder = std::getenv("MTC_KERAS_DATA");
    return folder ? folder : MTC_SOURCE_DIR "/test/keras/data";
  }

  static std::vector<std::string> modelNames() {
    std::vector<std::string> names;
    for (const auto &entry : std::filesystem::directory_iterator(folder()))
      if (entry.path().extension() == ".keras")
        names.push_back(entry.path().stem());
    std::sort(names.begin(), names.end());
    return names;
  }

  mtrun::Status load(const std::string &stem) {
    mtrun::Status status = mtrun::readWholeFile(stem + ".safetensors", file);
    return status.ok() ? mtrun::parseSafetensors(file, stem, tensors) : std::move(status);
  }

  bool has(const std::string &name) const {
    return std::any_of(tensors.begin(), tensors.end(), [&](const auto &tensor) { return tensor.name == name; });
  }

  const mtrun::SafeTensor &find(const std::string &name) const {
    for (const mtrun::SafeTensor &tensor : tensors)
      if (tensor.name == name)
        return tensor;
    throw std::runtime_error("expected " + name + " among Keras' tensors, found none");
  }

  const std::vector<mtrun::SafeTensor> &all() const { return tensors; }

  // Of the batch: rows of the first input.
  int64_t rows() const {
    for (const mtrun::SafeTensor &tensor : tensors)
      if (tensor.name.starts_with("input/"))
        return tensor.shape.at(0);
    return 0;
  }

  int64_t countOf(const std::string &prefix) const {
    return std::count_if(tensors.begin(), tensors.end(), [&](auto &tensor) { return tensor.name.starts_with(prefix); });
  }

  // Files with float64 values have their rounding beside them.
  bool isExact() const { return has("rounding/loss"); }

  template <typename T> static std::vector<T> values(const mtrun::SafeTensor &tensor) {
    std::vector<T> values(tensor.bytes.size() / sizeof(T));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }

  // `name` is the expected tensor's. Other files have Keras' float32: elements differ by 1e-5 of the value or of 1.
  template <typename T>
  void compare(const std::string &name, const std::vector<T> &found, const Nearness &nearness) const {
    std::vector<float> wanted = values<float>(find(name));
    ASSERT_EQ(found.size(), wanted.size()) << name;
    double slack = 0;
    if (isExact())
      slack = nearness.near * largest(find(name)) + nearness.rounding * values<float>(find("rounding/" + name)).at(0) +
              nearness.least * largestLike(name);
    for (size_t i = 0; i < found.size(); ++i) {
      double size = std::fabs(double(wanted[i]));
      ASSERT_NEAR(found[i], wanted[i], isExact() ? nearness.near * size + slack : 1e-5 * std::max(1.0, size))
          << name << " element " << i << " of a tensor whose largest is " << largest(find(name));
    }
  }

private:
  static double largest(const mtrun::SafeTensor &tensor) {
    double most = 0;
    for (float value : values<float>(tensor))
      most = std::max(most, std::fabs(double(value)));
    return most;
  }
  static std::string kindOf(const std::string &name) {
    for (const char *kind : {"momentum", "output/", "rounding/", "input/", "target/", "loss"})
      if (name.find(kind) != std::string::npos)
        return kind;
    return "after/";
  }
  double largestLike(const std::string &name) const {
    double most = 0;
    for (const mtrun::SafeTensor &tensor : tensors)
      if (tensor.dtype == MT_F32 && !tensor.name.starts_with("rounding/") && kindOf(tensor.name) == kindOf(name))
        most = std::max(most, largest(tensor));
    return most;
  }

  std::vector<std::byte> file;
  std::vector<mtrun::SafeTensor> tensors;
};

} // namespace kerastest

#endif
