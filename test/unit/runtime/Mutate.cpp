// SPDX-License-Identifier: Apache-2.0
#include "Mutate.h"

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace mtrun::test {

namespace fb = ::mt::plan;

namespace {

using Random = std::mt19937;

// Collects a change for every field of the tables, one call of a chooser each; change() runs one.
class Fields {
public:
  explicit Fields(Random &random) : random_(random) {}

  void change() {
    if (!changes_.empty())
      changes_[random_() % changes_.size()]();
  }

  template <typename... T> void add(T &...fields) { (one(fields), ...); }

private:
  template <typename T> static constexpr bool isNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;

  void one(std::string &text) {
    changes_.push_back([this, &text] {
      switch (random_() % 4) {
      case 0:
        text.clear();
        break;
      case 1:
        text.resize(random_() % 2000, 'a');
        break;
      default:
        text.insert(random_() % (text.size() + 1), 1, static_cast<char>(random_()));
      }
    });
  }

  template <typename T>
    requires isNumber<T>
  void one(T &number) {
    changes_.push_back([this, &number] { number = other(number); });
  }

  template <typename T> void one(std::unique_ptr<T> &table) {
    if (!table)
      return;
    changes_.push_back([&table] { table.reset(); });
    fields(*table);
  }

  template <typename T> void one(std::vector<T> &list) {
    changes_.push_back([this, &list] { resize(list); });
    // Of long lists a few elements: all fields of the tables have about the same chance.
    constexpr size_t most = 40;
    for (size_t i = 0; i < std::min(list.size(), most); ++i)
      element(list[list.size() <= most ? i : random_() % list.size()]);
  }
  template <typename T> void element(T &number) { one(number); }
  void element(std::vector<bool>::reference) {}
  template <typename T> void element(std::unique_ptr<T> &table) { fields(*table); }

  template <typename T> static T copy(const T &value) { return value; }
  template <typename T> static std::unique_ptr<T> copy(const std::unique_ptr<T> &table) {
    return std::make_unique<T>(*table);
  }

  template <typename T> void resize(std::vector<T> &list) {
    size_t at = list.empty() ? 0 : random_() % list.size();
    if (list.empty())
      return;
    switch (random_() % 5) {
    case 0:
      list.clear();
      break;
    case 1:
      list.pop_back();
      break;
    case 2:
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 3:
      list.push_back(copy(list[at]));
      break;
    default:
      std::swap(list[at], list[random_() % list.size()]);
    }
  }

  // A number near the old one, or one at which arithmetic goes wrong.
  template <typename T> T other(T number) {
    if constexpr (std::is_same_v<T, bool>) {
      return !number;
    } else if constexpr (std::is_floating_point_v<T>) {
      constexpr T values[] = {0, -1, 1e300, std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()};
      return values[random_() % 5];
    } else {
      auto bits = static_cast<uint64_t>(number);
      switch (random_() % 9) {
      case 0:
        return static_cast<T>(0);
      case 1:
        return static_cast<T>(-1);
      case 2:
        return static_cast<T>(bits + 1);
      case 3:
        return static_cast<T>(bits - 1);
      case 4:
        return static_cast<T>(bits * 2);
      case 5:
        return static_cast<T>(bits / 2);
      case 6:
        return static_cast<T>(uint64_t{1} << random_() % 64);
      case 7:
        return static_cast<T>((uint64_t{1} << random_() % 64) - 1);
      default:
        return static_cast<T>(random_() % 256);
      }
    }
  }

  void fields(fb::GpuUsageT &t) { add(t.registers, t.shared_bytes, t.stack_bytes, t.spill_bytes); }
  void fields(fb::TargetT &t) { add(t.name, t.features, t.section, t.device, t.usage); }
  void fields(fb::CallAxis &) {}
  void fields(fb::LibraryCallT &t) {
    add(t.kind, t.math, t.epilogue, t.left, t.right, t.result, t.bias, t.lines, t.depth, t.columns, t.transposed,
        t.channels, t.filters, t.groups);
  }
  void fields(fb::GpuGridT &t) {
    add(t.threads, t.rows_per_tile, t.inner_tiles, t.elements_per_tile, t.shared_bytes, t.partial_bytes, t.call);
  }
  void fields(fb::KernelArgumentT &t) { add(t.row_bytes, t.fixed_bytes, t.element_bytes, t.written); }
  void fields(fb::KernelT &t) {
    add(t.name, t.kind, t.rows_per_tile, t.inner_tiles, t.elements_per_tile, t.uses_rows, t.flops_per_row,
        t.flops_fixed, t.bytes_per_row, t.bytes_fixed, t.random, t.arguments, t.scratch_bytes, t.gpu);
  }
  void fields(fb::VariableT &t) { add(t.name, t.dtype, t.shape, t.kind, t.offset, t.size, t.initial, t.average); }
  void fields(fb::ArchivePieceT &t) { add(t.kind, t.size, t.begin, t.variable); }
  void fields(fb::ArchiveT &t) { add(t.suffix, t.section, t.pieces); }
  void fields(fb::SignatureEntryT &t) { add(t.name, t.role, t.dtype, t.shape, t.row_bytes, t.optional, t.limit); }
  void fields(fb::MetricT &t) { add(t.name, t.is_loss, t.value, t.weight, t.finalizer, t.shape, t.better); }
  void fields(fb::BufferT &t) { add(t.name, t.space, t.dtype, t.fixed_bytes, t.row_bytes, t.offset, t.index); }
  void fields(fb::SegmentT &t) { add(t.buffers, t.count); }
  void fields(fb::StepT &t) {
    add(t.wait, t.kernel, t.segments, t.share, t.collective, t.partial_offset, t.result_offset, t.partial_bytes,
        t.layer);
  }
  void fields(fb::CompactTablesT &t) { add(t.words, t.numbers); }
  void fields(fb::VariantT &t) { add(t.shards, t.arena_bytes, t.bound_bytes); }
  void fields(fb::ProgramT &t) {
    add(t.name, t.signature, t.metrics, t.buffers, t.variants, t.shared_bytes, t.steps, t.learning_rate);
  }
  void fields(fb::LengthT &t) { add(t.length, t.train_step, t.eval_step, t.predict); }
  void fields(fb::FixedBatchT &t) { add(t.rows); }
  void fields(fb::InputScalingT &t) { add(t.input, t.scale, t.offset, t.per_channel); }

  Random &random_;
  std::vector<std::function<void()>> changes_;
};

} // namespace

void mutateTables(fb::PlanT &plan, Random &random) {
  for (size_t i = 0, changes = 1 + random() % 3; i < changes; ++i) {
    Fields all(random); // anew: a change may have taken tables away
    all.add(plan.producer, plan.model, plan.batch, plan.shards, plan.shard_rows, plan.fast, plan.seed,
            plan.variables_bytes, plan.variables, plan.kernels, plan.sum_kernel, plan.targets, plan.constants,
            plan.programs, plan.learning_rate, plan.iteration, plan.min_devices, plan.initial_values, plan.archive,
            plan.call_workspace, plan.layers, plan.precision, plan.input_scaling, plan.class_names, plan.vocabulary,
            plan.micro_batches, plan.lengths, plan.length_input, plan.fixed_batch, plan.compact);
    all.change();
  }
}

} // namespace mtrun::test
