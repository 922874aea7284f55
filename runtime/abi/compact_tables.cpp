// SPDX-License-Identifier: Apache-2.0
#include "runtime/abi/compact_tables.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace mtrun {
namespace {

namespace fb = mt::plan;
using Numbers = std::vector<uint64_t>;

// A number's value as two differences of columns see it: modulo 2^64.
template <typename T> uint64_t toNumber(T value) { return static_cast<uint64_t>(static_cast<int64_t>(value)); }

// Sets a field; false if its type does not have the number.
template <typename T> bool fromNumber(uint64_t number, T &field) {
  field = static_cast<T>(number);
  return toNumber(field) == number;
}

// The bytes that the expanded tables of a plan may still take.
struct Budget {
  uint64_t left = maxExpandedBytes;

  bool spend(uint64_t count, uint64_t each) {
    if (count > left / each)
      return false;
    left -= count * each;
    return true;
  }
};

// A name is a word that many buffers share, and a number at its end.
struct Name {
  uint64_t word = 0;
  uint64_t number = 0; // plus 1; 0: there is none
};

// Writes columns to the bytes of compact tables.
class Writer {
public:
  static constexpr bool reads = false;
  Writer(fb::CompactTablesT &compact, Budget &budget) : words(compact.words), bytes(compact.numbers), budget(budget) {}

  bool spend(uint64_t count, uint64_t each) { return budget.spend(count, each); }
  bool number(uint64_t &value) { return append(value), true; }

  bool split(const std::string &text, Name &name) {
    constexpr size_t mostDigits = 9;
    size_t begin = text.size(), least = begin - std::min(begin, mostDigits);
    while (begin > least && text[begin - 1] >= '0' && text[begin - 1] <= '9')
      --begin;
    while (begin + 1 < text.size() && text[begin] == '0') // a number begins with no zero
      ++begin;
    auto [found, isNew] = wordIndices.try_emplace(text.substr(0, begin), words.size());
    if (isNew)
      words.push_back(found->first);
    name = {found->second, begin < text.size() ? std::stoull(text.substr(begin)) + 1 : 0};
    return spend(text.size(), 1);
  }

  // Each run of the column is some numbers as differences from the number before, then the longest repetition that
  // begins after them.
  bool column(Numbers &values) {
    size_t written = 0;
    for (size_t at = 0; at < values.size();) {
      auto [period, length] = longestRepetition(values, at);
      if (length < shortest) {
        ++at;
        continue;
      }
      differences(values, written, at);
      append(period);
      append(length);
      written = at += length;
    }
    if (written < values.size())
      differences(values, written, values.size());
    return true;
  }

private:
  static constexpr size_t longestPeriod = 256; // bounds the time of the search
  static constexpr size_t shortest = 4;        // a repetition takes up to four bytes itself

  static std::pair<size_t, size_t> longestRepetition(const Numbers &values, size_t begin) {
    size_t best = 0, length = 0;
    for (size_t period = 1; period <= std::min(longestPeriod, begin / 2) && begin + length < values.size(); ++period) {
      size_t at = begin;
      while (at < values.size() && values[at] == 2 * values[at - period] - values[at - 2 * period])
        ++at;
      if (at - begin > length) {
        length = at - begin;
        best = period;
      }
    }
    return {best, length};
  }

  void differences(const Numbers &values, size_t begin, size_t end) {
    append(end - begin);
    for (size_t i = begin; i < end; ++i) {
      uint64_t difference = values[i] - (i ? values[i - 1] : 0);
      append(difference << 1 ^ (0 - (difference >> 63))); // numbers near 0 are small, whatever their sign
    }
  }

  // Seven bits per byte, the low ones first; the high bit says that another byte follows.
  void append(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      bytes.push_back(static_cast<uint8_t>(value | 0x80));
    bytes.push_back(static_cast<uint8_t>(value));
  }

  std::vector<std::string> &words;
  std::unordered_map<std::string, uint64_t> wordIndices;
  std::vector<uint8_t> &bytes;
  Budget &budget;
};

// Reads what Writer wrote. A function that returns false has set `fault`.
class Reader {
public:
  static constexpr bool reads = true;
  Reader(fb::CompactTablesT &compact, Budget &budget) : words(compact.words), bytes(compact.numbers), budget(budget) {}

  std::string fault;
  bool atEnd() const { return next == bytes.size(); }

  bool number(uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; next < bytes.size() && shift < 64; shift += 7) {
      uint64_t byte = bytes[next++], bits = byte & 0x7f;
      if (bits << shift >> shift != bits)
        return fail("a number of 64 bits", "more bits");
      value |= bits << shift;
      if (byte < 0x80)
        return true;
    }
    return fail("a number of 64 bits", next < bytes.size() ? "more bits" : "the end of the bytes");
  }

  bool spend(uint64_t count, uint64_t each) {
    return budget.spend(count, each) ||
           fail("at most " + std::to_string(maxExpandedBytes) + " bytes of expanded tables", "more");
  }

  bool check(const Name &name) {
    if (name.word >= words.size())
      return fail("the index of one of " + std::to_string(words.size()) + " words", std::to_string(name.word));
    return spend(text(name).size(), 1);
  }
  std::string text(const Name &name) const {
    return words[name.word] + (name.number ? std::to_string(name.number - 1) : "");
  }

  bool column(Numbers &values) {
    uint64_t previous = 0;
    for (size_t at = 0; at < values.size();) {
      uint64_t differences, period, length;
      if (!number(differences) || !atMost(differences, values.size() - at, "differences"))
        return false;
      for (; differences; --differences) {
        uint64_t difference;
        if (!number(difference))
          return false;
        values[at++] = previous += difference >> 1 ^ (0 - (difference & 1));
      }
      if (at == values.size())
        return true;
      if (!number(period) || !number(length) || !atMost(length, values.size() - at, "repeated numbers") ||
          !atMost(period, at / 2, "numbers as the period"))
        return false;
      if (period == 0 || length == 0)
        return fail("a period and a length of 1 or more", std::to_string(period) + " and " + std::to_string(length));
      for (; length; --length, ++at)
        values[at] = 2 * values[at - period] - values[at - 2 * period];
      previous = values[at - 1];
    }
    return true;
  }

  bool fail(const std::string &expected, const std::string &found) {
    fault = "expected " + expected + ", found " + found;
    return false;
  }

private:
  bool atMost(uint64_t value, uint64_t limit, const char *what) {
    return value <= limit || fail("at most " + std::to_string(limit) + ' ' + what, std::to_string(value));
  }

  const std::vector<std::string> &words;
  const std::vector<uint8_t> &bytes;
  Budget &budget;
  size_t next = 0;
};

// The functions below describe the tables once for both directions: a Writer reads them, a Reader fills them.

// A column with one number of each row. `get` returns it; `set` returns false if the row cannot have it.
template <typename Columns, typename Row, typename Get, typename Set>
bool column(Columns &columns, const std::vector<Row *> &rows, Get get, Set set) {
  Numbers values(rows.size());
  if constexpr (!Columns::reads)
    std::transform(rows.begin(), rows.end(), values.begin(), [&](Row *row) { return get(*row); });
  if (!columns.column(values))
    return false;
  if constexpr (Columns::reads)
    for (size_t i = 0; i < rows.size(); ++i)
      if (!set(*rows[i], values[i]))
        return columns.fault.empty() ? columns.fail("a number of the field's type", std::to_string(values[i])) : false;
  return true;
}

template <typename Columns, typename Row, typename... Members>
bool fields(Columns &columns, const std::vector<Row *> &rows, Members... members) {
  auto field = [&](auto member) {
    return column(
        columns, rows, [&](Row &row) { return toNumber(row.*member); },
        [&](Row &row, uint64_t number) { return fromNumber(number, row.*member); });
  };
  return (field(members) && ...);
}

// A column with the size of each row's list. A Reader resizes the lists.
template <typename Columns, typename Row, typename T>
bool sizes(Columns &columns, const std::vector<Row *> &rows, std::vector<T> Row::*list, uint64_t elementBytes) {
  if constexpr (!Columns::reads)
    for (Row *row : rows)
      if (!columns.spend((row->*list).size(), elementBytes))
        return false;
  return column(
      columns, rows, [&](Row &row) { return (row.*list).size(); },
      [&](Row &row, uint64_t size) {
        if (!columns.spend(size, elementBytes))
          return false;
        (row.*list).resize(size);
        return true;
      });
}

// The lists of numbers of all rows: a column of their sizes, then one of all elements.
template <typename Columns, typename Row, typename T>
bool lists(Columns &columns, const std::vector<Row *> &rows, std::vector<T> Row::*list) {
  if (!sizes(columns, rows, list, numberBytes))
    return false;
  std::vector<T *> elements;
  for (Row *row : rows)
    for (T &element : row->*list)
      elements.push_back(&element);
  return column(
      columns, elements, [](T &element) { return toNumber(element); },
      [](T &element, uint64_t number) { return fromNumber(number, element); });
}

template <typename T> void append(std::vector<T *> &pointers, std::vector<std::unique_ptr<T>> &tables) {
  for (auto &table : tables) {
    if (!table)
      table = std::make_unique<T>();
    pointers.push_back(table.get());
  }
}

template <typename Columns> bool names(Columns &columns, const std::vector<fb::BufferT *> &buffers) {
  std::vector<Name> all(buffers.size());
  std::vector<Name *> rows;
  for (Name &name : all)
    rows.push_back(&name);
  if constexpr (!Columns::reads)
    for (size_t i = 0; i < all.size(); ++i)
      if (!columns.split(buffers[i]->name, all[i]))
        return false;
  if (!fields(columns, rows, &Name::word, &Name::number))
    return false;
  if constexpr (Columns::reads) {
    if (!std::all_of(all.begin(), all.end(), [&](const Name &name) { return columns.check(name); }))
      return false;
    for (size_t i = 0; i < all.size(); ++i)
      buffers[i]->name = columns.text(all[i]);
  }
  return true;
}

template <typename Columns, typename T>
bool tables(Columns &columns, std::vector<std::unique_ptr<T>> &list, std::vector<T *> &rows) {
  uint64_t size = list.size();
  if (!columns.number(size) || !columns.spend(size, tableBytes))
    return false;
  list.resize(size);
  append(rows, list);
  return true;
}

// The tables of all rows' lists: a column of their numbers, then the tables are the rows of other columns.
template <typename Columns, typename Row, typename T>
bool tables(Columns &columns, const std::vector<Row *> &rows, std::vector<std::unique_ptr<T>> Row::*list,
            std::vector<T *> &inner) {
  if (!sizes(columns, rows, list, tableBytes))
    return false;
  for (Row *row : rows)
    append(inner, row->*list);
  return true;
}

template <typename Columns> bool codeKernels(Columns &columns, fb::PlanT &plan) {
  std::vector<fb::KernelT *> kernels;
  std::vector<fb::KernelArgumentT *> arguments;
  append(kernels, plan.kernels);
  return tables(columns, kernels, &fb::KernelT::arguments, arguments) &&
         fields(columns, arguments, &fb::KernelArgumentT::row_bytes, &fb::KernelArgumentT::fixed_bytes,
                &fb::KernelArgumentT::element_bytes, &fb::KernelArgumentT::written);
}

template <typename Columns> bool codeBuffers(Columns &columns, fb::ProgramT &program) {
  std::vector<fb::BufferT *> buffers;
  return tables(columns, program.buffers, buffers) && names(columns, buffers) &&
         fields(columns, buffers, &fb::BufferT::space, &fb::BufferT::dtype, &fb::BufferT::fixed_bytes,
                &fb::BufferT::row_bytes, &fb::BufferT::index) &&
         lists(columns, buffers, &fb::BufferT::offset) && lists(columns, buffers, &fb::BufferT::shape);
}

template <typename Columns> bool codeSteps(Columns &columns, fb::ProgramT &program) {
  std::vector<fb::StepT *> steps;
  std::vector<fb::SegmentT *> segments;
  return tables(columns, program.steps, steps) &&
         fields(columns, steps, &fb::StepT::wait, &fb::StepT::kernel, &fb::StepT::share, &fb::StepT::collective,
                &fb::StepT::result_offset, &fb::StepT::partial_bytes, &fb::StepT::layer, &fb::StepT::tail) &&
         lists(columns, steps, &fb::StepT::partial_offset) && tables(columns, steps, &fb::StepT::segments, segments) &&
         fields(columns, segments, &fb::SegmentT::count) && lists(columns, segments, &fb::SegmentT::buffers);
}

template <typename Columns> bool codePlan(Columns &columns, fb::PlanT &plan) {
  return codeKernels(columns, plan) && std::all_of(plan.programs.begin(), plan.programs.end(), [&](auto &program) {
           return codeBuffers(columns, *program) && codeSteps(columns, *program);
         });
}

} // namespace

void compactTables(fb::PlanT &plan) {
  auto compact = std::make_unique<fb::CompactTablesT>();
  Budget budget;
  Writer writer(*compact, budget);
  if (plan.compact || !codePlan(writer, plan))
    return;
  plan.compact = std::move(compact);
  for (auto &kernel : plan.kernels)
    kernel->arguments.clear();
  for (auto &program : plan.programs) {
    program->buffers.clear();
    program->steps.clear();
  }
}

std::string expandTables(fb::PlanT &plan) {
  if (!plan.compact)
    return {};
  auto plain = [](const auto &program) { return !program->buffers.empty() || !program->steps.empty(); };
  if (std::any_of(plan.programs.begin(), plan.programs.end(), plain) ||
      std::any_of(plan.kernels.begin(), plan.kernels.end(), [](auto &kernel) { return !kernel->arguments.empty(); }))
    return "expected no arguments, buffers and steps next to the compact ones, found some";
  Budget budget;
  Reader reader(*plan.compact, budget);
  if (!codePlan(reader, plan))
    return "compact tables: " + reader.fault;
  if (!reader.atEnd())
    return "compact tables: expected the end after the last column, found more bytes";
  plan.compact.reset();
  return {};
}

} // namespace mtrun
