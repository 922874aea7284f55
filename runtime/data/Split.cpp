// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/Split.h"
#include "runtime/data/Order.h"
#include "runtime/support/hash_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace mtrun {
namespace {

// An epoch number for draws that are independent of epochs (below 2^61), pictures (bit 62) and shuffle windows (bit
// 63).
constexpr int64_t splitEpoch = int64_t(1) << 61;

struct ClassShare {
  int64_t samples = 0, held = 0;
  uint64_t rest = 0; // remainder of the division that gives `held`
};
using Classes = std::map<int64_t, ClassShare>;

} // namespace

// Returns the class of every sample from the first target with labels; empty if no target has labels.
static std::vector<int64_t> classesOf(const mtrun_dataset &data) {
  std::vector<int64_t> classes;
  for (const Column &column : data.columns) {
    if (column.role != MTRUN_TARGET || column.made() || data.source)
      continue;
    classes.clear();
    for (int64_t i = 0; i < data.size; ++i) {
      std::optional<int64_t> label = column.classOf(data.sample(i));
      if (!label)
        break;
      classes.push_back(*label);
    }
    if (static_cast<int64_t>(classes.size()) == data.size)
      return classes;
  }
  return {};
}

// Distributes `held` samples over the classes in proportion to their sizes. Remaining samples go to the classes with
// the largest remainders; if remainders are equal, to the smaller label.
static void shareOut(Classes &classes, int64_t held, int64_t size) {
  int64_t left = held;
  std::vector<ClassShare *> order;
  for (auto &[label, share] : classes) {
    auto product = static_cast<unsigned __int128>(held) * static_cast<uint64_t>(share.samples);
    share.held = static_cast<int64_t>(product / static_cast<uint64_t>(size));
    share.rest = static_cast<uint64_t>(product % static_cast<uint64_t>(size));
    left -= share.held;
    order.push_back(&share);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const ClassShare *a, const ClassShare *b) { return a->rest > b->rest; });
  for (int64_t i = 0; i < left; ++i)
    ++order[static_cast<size_t>(i)]->held;
}

// Chooses the samples that are held out: the first samples of each class in a permutation by the seed.
static std::vector<bool> draw(const std::vector<int64_t> &labels, int64_t held, int64_t size, int64_t seed) {
  Classes classes;
  auto labelOf = [&](int64_t i) { return labels.empty() ? 0 : labels[static_cast<size_t>(i)]; };
  for (int64_t i = 0; i < size; ++i)
    ++classes[labelOf(i)].samples;
  shareOut(classes, held, size);
  std::vector<int64_t> order(static_cast<size_t>(size));
  epochOrder(seed, splitEpoch, size, order.data());
  std::vector<bool> chosen(static_cast<size_t>(size));
  for (int64_t i : order)
    if (int64_t &left = classes[labelOf(i)].held; left > 0) {
      chosen[static_cast<size_t>(i)] = true;
      --left;
    }
  return chosen;
}

// Returns a message about classes without samples in a part of the data; "" if there are none.
static std::string lacking(const mtrun_dataset &data, const std::set<int64_t> &all, const std::set<int64_t> &here,
                           const std::string &part) {
  constexpr size_t maxNamed = 5;
  std::string names;
  size_t count = 0;
  for (int64_t label : all)
    if (!here.count(label) && ++count <= maxNamed)
      names += (names.empty() ? "" : ", ") + (label < static_cast<int64_t>(data.classNames.size())
                                                  ? data.classNames[static_cast<size_t>(label)]
                                                  : std::to_string(label));
  if (count == 0)
    return "";
  return part + ": expected samples of each of the " + std::to_string(all.size()) + " classes, found none of " +
         std::to_string(count) + ": " + names + (count > maxNamed ? ", ..." : "");
}

// Returns the number of following samples that overlap with a sample, for overlapping windows of tokens.
static int64_t overlap(const mtrun_dataset &data) {
  uint64_t most = 0;
  for (const Column &column : data.columns) {
    uint64_t bytes = column.made() ? 0 : column.field.elements() * storedSize(column.field.type);
    if (uint64_t stride = column.field.stride; stride > 0 && bytes > stride)
      most = std::max(most, (bytes - 1) / stride);
  }
  return static_cast<int64_t>(std::min(most, static_cast<uint64_t>(std::max<int64_t>(data.size, 0))));
}

Status splitDataset(const mtrun_dataset &data, const SplitOptions &options, std::unique_ptr<mtrun_dataset> &training,
                    std::unique_ptr<mtrun_dataset> &validation) {
  if (!(options.share > 0 && options.share < 1))
    return {MT_INVALID,
            "validation split: expected a share above 0 and below 1, found " + std::to_string(options.share)};
  if (data.size < 0)
    return {MT_INVALID, "validation split: expected data of known length, found a "
                        "source that tells its end only when it comes; give it validation data of its own"};
  auto trainingSize = static_cast<int64_t>(static_cast<double>(data.size) * (1 - options.share));
  int64_t held = data.size - trainingSize;
  if (trainingSize < 1 || held < 1) {
    char share[32];
    snprintf(share, sizeof share, "%g", options.share);
    return {MT_INVALID, "validation split: expected at least 1 sample to train on and 1 to validate on, found " +
                            std::to_string(trainingSize) + " and " + std::to_string(held) + ": the share is " + share +
                            " of " + std::to_string(data.size)};
  }
  int64_t shared = overlap(data);
  if (shared && !options.last)
    return {MT_INVALID, "validation split: expected samples that have nothing in common, found samples that overlap "
                        "with the next " +
                            std::to_string(shared) + ": hold out the last ones (:last)"};
  if (trainingSize <= shared)
    return {MT_INVALID, "validation split: expected at least 1 sample to train on, found " +
                            std::to_string(trainingSize) + ", and " + std::to_string(shared) +
                            " of them overlap with the samples to validate on"};
  std::vector<int64_t> labels = classesOf(data);
  std::vector<bool> out(static_cast<size_t>(data.size));
  if (options.last)
    std::fill(out.begin() + trainingSize, out.end(), true);
  else
    out = draw(labels, held, data.size, options.seed);
  std::set<int64_t> all(labels.begin(), labels.end());
  for (bool held : {false, true}) {
    std::unique_ptr<mtrun_dataset> &part = held ? validation : training;
    std::vector<int64_t> samples;
    std::set<int64_t> here;
    for (int64_t i = 0; i < data.size; ++i) {
      bool common = i >= trainingSize - shared && i < trainingSize; // overlaps with a held-out sample
      if (out[static_cast<size_t>(i)] == held && !common) {
        samples.push_back(data.sample(i));
        if (!labels.empty())
          here.insert(labels[static_cast<size_t>(i)]);
      }
    }
    part = std::make_unique<mtrun_dataset>(data);
    part->notes.clear();
    part->begin = 0;
    part->size = static_cast<int64_t>(samples.size());
    part->chosen = std::make_shared<const std::vector<int64_t>>(std::move(samples));
    std::string line = lacking(data, all, here,
                               "the " + std::to_string(part->size) +
                                   (held ? " samples held out to validate on" : " samples left to train on"));
    if (!line.empty())
      part->notes.push_back(line);
  }
  return {};
}

int64_t choiceHash(const mtrun_dataset &data) {
  if (!data.chosen)
    return 0;
  XXH64_hash_t hash = XXH3_64bits(data.chosen->data() + data.begin, static_cast<size_t>(data.size) * sizeof(int64_t));
  return static_cast<int64_t>(hash >> 1); // JSON readers support 63 bits
}

// The number of samples to hash. Decoding a picture takes milliseconds; a sample in memory takes almost no time.
constexpr int64_t looksAt = 16, looksAtMade = 2;

std::string contentHash(const mtrun_dataset &data) {
  if (data.source || data.size < 1)
    return "";
  std::vector<uint8_t> bytes(data.changes.begin(), data.changes.end());
  for (const Column &column : data.columns) {
    bytes.insert(bytes.end(), column.name.begin(), column.name.end());
    int64_t count = std::min(column.made() ? looksAtMade : looksAt, data.size);
    std::vector<uint8_t> row(column.rowBytes); // aligned for any type
    for (int64_t i = 0; i < count; ++i) {
      int64_t index = count == 1 ? 0 : static_cast<int64_t>(static_cast<double>(data.size - 1) * i / (count - 1));
      int64_t sample = data.sample(i == count - 1 ? data.size - 1 : index);
      if (!column.made())
        column.gather(&sample, 1, row.data());
      else if (!column.make(sample, Draw(), row.data()).ok())
        return "";
      bytes.insert(bytes.end(), row.begin(), row.end());
    }
  }
  return hashText(hash128(bytes));
}

} // namespace mtrun
