// SPDX-License-Identifier: Apache-2.0
#include "runtime/receipt/Compare.h"

#include <cstdio>
#include <cstring>
#include <map>

namespace mtrun {
namespace {

// The bits of an element, and a number whose differences are distances in units of the last place.
struct Element {
  uint64_t bits = 0;
  int64_t rank = 0;
};

Element elementAt(const SafeTensor &tensor, uint64_t index) {
  size_t size = mt_dtype_size(tensor.dtype);
  Element element;
  memcpy(&element.bits, tensor.bytes.data() + index * size, size); // little endian
  uint64_t sign = uint64_t{1} << (8 * size - 1), below = element.bits & (sign - 1);
  bool real = tensor.dtype == MT_F32 || tensor.dtype == MT_F64 || tensor.dtype == MT_F16 || tensor.dtype == MT_BF16;
  bool hasSign = real || tensor.dtype == MT_I32 || tensor.dtype == MT_I64;
  if (real)
    element.rank = (element.bits & sign) ? -static_cast<int64_t>(below) : static_cast<int64_t>(below);
  else if (hasSign && (element.bits & sign)) // two's complement
    element.rank = static_cast<int64_t>(element.bits | ~(2 * sign - 1));
  else
    element.rank = static_cast<int64_t>(element.bits);
  return element;
}

// At most 2^64 - 1, as the ranks of 64 bits are 2^63 - 1 and -2^63 at most.
uint64_t distance(const Element &a, const Element &b) {
  auto first = static_cast<uint64_t>(a.rank), second = static_cast<uint64_t>(b.rank);
  return a.rank > b.rank ? first - second : second - first;
}

std::string valueText(const SafeTensor &tensor, const Element &element) {
  char text[64];
  if (tensor.dtype == MT_F32) {
    float value;
    memcpy(&value, &element.bits, sizeof value);
    snprintf(text, sizeof text, "%.9g", static_cast<double>(value));
  } else if (tensor.dtype == MT_F64) {
    double value;
    memcpy(&value, &element.bits, sizeof value);
    snprintf(text, sizeof text, "%.17g", value);
  } else if (tensor.dtype == MT_F16 || tensor.dtype == MT_BF16) {
    snprintf(text, sizeof text, "0x%04llx", static_cast<unsigned long long>(element.bits));
  } else {
    return std::to_string(element.rank);
  }
  return text;
}

std::string indexText(const SafeTensor &tensor, uint64_t index) {
  std::string text;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    auto size = static_cast<uint64_t>(tensor.shape[d]);
    text = std::to_string(index % size) + (text.empty() ? "" : ", ") + text;
    index /= size;
  }
  return "[" + text + "]";
}

std::string typeText(const SafeTensor &tensor) {
  std::string text = std::string(mt_dtype_name(tensor.dtype)) + " [";
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += (i ? ", " : "") + std::to_string(tensor.shape[i]);
  return text + "]";
}

std::string ulps(uint64_t count) { return std::to_string(count) + (count == 1 ? " ulp" : " ulps"); }

// Describes the difference of two tensors; "" if they are equal.
std::string difference(const SafeTensor &first, const SafeTensor &second) {
  if (first.dtype != second.dtype || first.shape != second.shape)
    return first.name + ": " + typeText(first) + " and " + typeText(second);
  uint64_t elements = first.bytes.size() / mt_dtype_size(first.dtype), count = 0, firstIndex = 0, mostIndex = 0;
  uint64_t most = 0;
  for (uint64_t i = 0; i < elements; ++i) {
    Element a = elementAt(first, i), b = elementAt(second, i);
    if (a.bits == b.bits)
      continue;
    if (count++ == 0)
      firstIndex = mostIndex = i;
    if (distance(a, b) > most) {
      most = distance(a, b);
      mostIndex = i;
    }
  }
  if (count == 0)
    return "";
  Element a = elementAt(first, firstIndex), b = elementAt(second, firstIndex);
  return first.name + " " + indexText(first, firstIndex) + ": " + valueText(first, a) + " and " + valueText(second, b) +
         ", a distance of " + ulps(distance(a, b)) + "; " + std::to_string(count) + " of " + std::to_string(elements) +
         " values differ, the most by " + ulps(most) + " at " + indexText(first, mostIndex);
}

} // namespace

void compareTensors(const std::vector<SafeTensor> &first, const std::vector<SafeTensor> &second,
                    std::vector<std::string> &lines) {
  std::map<std::string, const SafeTensor *> others;
  for (const SafeTensor &tensor : second)
    others.emplace(tensor.name, &tensor);
  size_t count = 0, all = first.size();
  std::string shown;
  auto add = [&](const std::string &text) {
    if (!text.empty() && count++ == 0)
      shown = text;
  };
  for (const SafeTensor &tensor : first) {
    auto other = others.find(tensor.name);
    add(other == others.end() ? tensor.name + ": in the first file only" : difference(tensor, *other->second));
    if (other != others.end())
      others.erase(other);
  }
  all += others.size();
  for (const SafeTensor &tensor : second)
    if (others.count(tensor.name))
      add(tensor.name + ": in the second file only");
  if (count == 0)
    return;
  lines.push_back(shown);
  lines.push_back(std::to_string(count) + " of " + std::to_string(all) + " tensors differ");
}

} // namespace mtrun
