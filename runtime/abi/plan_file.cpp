// SPDX-License-Identifier: Apache-2.0
#include "runtime/abi/plan_file.h"
#include "runtime/abi/compact_tables.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace mtrun {
namespace {

constexpr size_t headerHashSpan = offsetof(mt_plan_header, header_hash);
// The verifier of flatbuffers 2.0.8 asserts on buffers of 2^31 bytes and more, so the size is checked first.
constexpr uint64_t maxTablesSize = (uint64_t{1} << 31) - 1;
constexpr int maxTableDepth = 64;
constexpr int maxTables = 1000000;
constexpr uint64_t minCompactSize = 1 << 16; // smaller tables gain little, and older readers read them

constexpr uint64_t alignSection(uint64_t offset) {
  return (offset + MT_PLAN_ALIGNMENT - 1) & ~uint64_t{MT_PLAN_ALIGNMENT - 1};
}

flatbuffers::DetachedBuffer packTables(const mt::plan::PlanT &plan) {
  flatbuffers::FlatBufferBuilder builder;
  // Stores every scalar, so that the size of the tables does not depend on the offsets and hashes in them.
  builder.ForceDefaults(true);
  mt::plan::FinishPlanBuffer(builder, mt::plan::CreatePlan(builder, &plan));
  return builder.Release();
}

PlanFileView fault(PlanFileFault kind, std::string message) {
  PlanFileView view;
  view.fault = kind;
  view.message = std::move(message);
  return view;
}

PlanFileView corrupt(std::string message) { return fault(PlanFileFault::Corrupt, std::move(message)); }

// Returns "" if the sections have the offsets that writePlanFile() assigns and the bytes match their hashes.
std::string checkSections(const mt::plan::Plan &plan, std::span<const uint8_t> file, uint64_t tablesEnd) {
  uint64_t end = tablesEnd;
  const auto *sections = plan.sections();
  for (uint32_t i = 0; sections && i < sections->size(); ++i) {
    const mt::plan::Section &section = *sections->Get(i);
    std::string label = "section " + std::to_string(i);
    uint64_t expected = alignSection(end);
    if (section.offset() != expected)
      return label + ": expected offset " + std::to_string(expected) + ", found " + std::to_string(section.offset());
    if (expected > file.size() || section.size() > file.size() - expected)
      return label + ": " + std::to_string(section.size()) + " bytes at offset " + std::to_string(expected) +
             " reach past the end of the file, which has " + std::to_string(file.size()) + " bytes";
    auto padding = file.subspan(end, expected - end);
    if (std::any_of(padding.begin(), padding.end(), [](uint8_t byte) { return byte != 0; }))
      return label + ": expected zeros before it, found other bytes";
    Hash128 hash = hash128(file.subspan(section.offset(), section.size()));
    if (hash != Hash128{section.hash_low(), section.hash_high()})
      return label + ": its bytes do not match their hash";
    end = expected + section.size();
  }
  if (end != file.size())
    return "expected the file to end at byte " + std::to_string(end) + ", found " + std::to_string(file.size()) +
           " bytes";
  return {};
}

} // namespace

Hash128 hash128(std::span<const uint8_t> bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

void setStepsHash(mt::plan::PlanT &plan, std::span<const uint8_t> constants, std::string_view kernels) {
  plan.steps_hash_low = plan.steps_hash_high = 0;
  flatbuffers::DetachedBuffer tables = packTables(plan);
  const Hash128 parts[] = {hash128({tables.data(), tables.size()}), hash128(constants),
                           hash128({reinterpret_cast<const uint8_t *>(kernels.data()), kernels.size()})};
  Hash128 hash = hash128({reinterpret_cast<const uint8_t *>(parts), sizeof parts});
  plan.steps_hash_low = hash.low;
  plan.steps_hash_high = hash.high;
}

// Undoes what the compiler adds after setStepsHash().
std::vector<uint8_t> stepsTables(const mt::plan::Plan &tables) {
  const mt::plan::PlanT none;
  mt::plan::PlanT plan;
  tables.UnPackTo(&plan);
  plan.version = none.version;
  plan.steps_hash_low = plan.steps_hash_high = 0;
  plan.targets.clear();
  plan.sections.clear();
  plan.archive.reset();
  plan.constants = none.constants;
  plan.initial_values = none.initial_values;
  plan.micro_batches = none.micro_batches;
  for (auto &variable : plan.variables)
    variable->initial = mt::plan::VariableT().initial;
  for (auto &kernel : plan.kernels)
    kernel->scratch_bytes = 0;
  flatbuffers::DetachedBuffer packed = packTables(plan);
  return {packed.data(), packed.data() + packed.size()};
}

// The lowest version that has all of the plan: readers of an older one would pass over what they do not know.
static uint32_t versionOf(const mt::plan::PlanT &plan) {
  auto hasParameters = [](const auto &program) {
    return std::any_of(program->metrics.begin(), program->metrics.end(),
                       [](const auto &metric) { return !metric->parameters.empty(); });
  };
  auto hasGrid = [](const auto &kernel) { return kernel->gpu != nullptr; };
  auto hasParts = [](const auto &program) { return program->parts != nullptr; };
  constexpr uint32_t ofColumns = 9, ofDoubles = 10, ofParts = 13;
  if (std::any_of(plan.programs.begin(), plan.programs.end(), hasParts))
    return ofParts;
  if (plan.compact)
    return MT_PLAN_COMPACT_VERSION;
  if (std::any_of(plan.kernels.begin(), plan.kernels.end(), hasGrid))
    return MT_PLAN_GPU_VERSION;
  if (plan.precision == "f64" || plan.fixed_batch)
    return ofDoubles;
  bool later = !plan.columns.empty() || std::any_of(plan.programs.begin(), plan.programs.end(), hasParameters);
  return later ? ofColumns : MT_PLAN_VERSION;
}

std::vector<uint8_t> writePlanFile(mt::plan::PlanT &plan, std::span<const SectionBytes> sections) {
  plan.sections.clear();
  for (const SectionBytes &section : sections) {
    auto entry = std::make_unique<mt::plan::SectionT>();
    entry->name = section.name;
    entry->size = section.bytes.size();
    Hash128 hash = hash128(section.bytes);
    entry->hash_low = hash.low;
    entry->hash_high = hash.high;
    plan.sections.push_back(std::move(entry));
  }
  if (packTables(plan).size() >= minCompactSize)
    compactTables(plan);
  plan.version = versionOf(plan);
  uint64_t end = sizeof(mt_plan_header) + packTables(plan).size();
  for (auto &entry : plan.sections) {
    entry->offset = alignSection(end);
    end = entry->offset + entry->size;
  }
  flatbuffers::DetachedBuffer tables = packTables(plan);

  mt_plan_header header = {};
  std::memcpy(header.magic, MT_PLAN_MAGIC, sizeof(header.magic));
  header.version = plan.version;
  header.header_size = sizeof(header);
  header.file_size = end;
  header.tables_offset = sizeof(header);
  header.tables_size = tables.size();
  Hash128 hash = hash128({tables.data(), tables.size()});
  header.tables_hash_low = hash.low;
  header.tables_hash_high = hash.high;
  header.header_hash = XXH3_64bits(&header, headerHashSpan);

  std::vector<uint8_t> file(end);
  std::memcpy(file.data(), &header, sizeof(header));
  std::memcpy(file.data() + sizeof(header), tables.data(), tables.size());
  for (size_t i = 0; i < sections.size(); ++i)
    std::copy(sections[i].bytes.begin(), sections[i].bytes.end(),
              file.begin() + static_cast<std::ptrdiff_t>(plan.sections[i]->offset));
  return file;
}

std::span<const uint8_t> PlanFileView::section(uint32_t index) const {
  const mt::plan::Section &entry = *tables->sections()->Get(index);
  return file.subspan(entry.offset(), entry.size());
}

// FlatBuffers 2.0 checks the alignment of a vector's length, but not of its elements. test/style/aligned.py checks that
// this file covers every vector of 8-byte elements in plan.fbs.
template <typename T> static bool aligned(const flatbuffers::Vector<T> *vector) {
  return !vector || reinterpret_cast<uintptr_t>(vector->Data()) % sizeof(T) == 0;
}

template <typename T, typename Check>
static bool all(const flatbuffers::Vector<flatbuffers::Offset<T>> *tables, Check check) {
  return !tables || std::all_of(tables->begin(), tables->end(), check);
}

static bool aligned(const mt::plan::Program &program) {
  return all(program.signature(), [](const mt::plan::SignatureEntry *entry) { return aligned(entry->shape()); }) &&
         all(program.metrics(),
             [](const mt::plan::Metric *metric) {
               return aligned(metric->shape()) && aligned(metric->parameters());
             }) &&
         all(program.buffers(),
             [](const mt::plan::Buffer *buffer) { return aligned(buffer->offset()) && aligned(buffer->shape()); }) &&
         all(program.steps(), [](const mt::plan::Step *step) { return aligned(step->partial_offset()); });
}

const mt::plan::Plan *wellFormedTables(std::span<const uint8_t> bytes) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), maxTableDepth, maxTables);
  if (bytes.size() < 8 || !mt::plan::VerifyPlanBuffer(verifier))
    return nullptr;
  const mt::plan::Plan *plan = mt::plan::GetPlan(bytes.data());
  bool wellFormed =
      all(plan->variables(), [](const mt::plan::Variable *variable) { return aligned(variable->shape()); }) &&
      all(plan->programs(), [](const mt::plan::Program *program) { return aligned(*program); });
  return wellFormed ? plan : nullptr;
}

// Replaces the view's tables if they are compact. Returns what is wrong, or "".
static std::string expand(PlanFileView &view) {
  if (!view.tables->compact())
    return {};
  if (view.tables->version() < MT_PLAN_COMPACT_VERSION)
    return "expected no compact tables in a plan of version " + std::to_string(view.tables->version()) + ", found some";
  mt::plan::PlanT plan;
  view.tables->UnPackTo(&plan);
  if (std::string message = expandTables(plan); !message.empty())
    return message;
  flatbuffers::DetachedBuffer tables = packTables(plan);
  auto bytes = std::make_shared<const std::vector<uint8_t>>(tables.data(), tables.data() + tables.size());
  view.tables = tables.size() > maxTablesSize ? nullptr : wellFormedTables(*bytes);
  view.expanded = std::move(bytes);
  return view.tables ? "" : "the expanded tables are too large";
}

PlanFileView openPlanFile(std::span<const uint8_t> file) {
  mt_plan_header header;
  if (file.size() < sizeof(header))
    return corrupt("expected a plan file of 64 bytes or more, found " + std::to_string(file.size()) + " bytes");
  std::memcpy(&header, file.data(), sizeof(header));
  if (std::memcmp(header.magic, MT_PLAN_MAGIC, sizeof(header.magic)) != 0)
    return corrupt("expected a plan file, found other bytes at its start");
  // The version is checked before the header's hash, because another version may store the hash at another offset.
  if (header.version < MT_PLAN_VERSION || header.version > MT_PLAN_NEWEST_VERSION)
    return fault(PlanFileFault::Version, "expected plan format version " + std::to_string(MT_PLAN_VERSION) + " to " +
                                             std::to_string(MT_PLAN_NEWEST_VERSION) + ", found version " +
                                             std::to_string(header.version));
  if (header.header_hash != XXH3_64bits(&header, headerHashSpan))
    return corrupt("the header's bytes do not match their hash");
  if (header.header_size != sizeof(header) || header.tables_offset != sizeof(header))
    return corrupt("expected a header of 64 bytes followed by the tables, found a header of " +
                   std::to_string(header.header_size) + " bytes and tables at byte " +
                   std::to_string(header.tables_offset));
  if (header.file_size != file.size())
    return corrupt("expected a file of " + std::to_string(header.file_size) + " bytes, found " +
                   std::to_string(file.size()) + " bytes");
  if (header.tables_size > maxTablesSize || header.tables_size > file.size() - sizeof(header))
    return corrupt("expected tables of at most " +
                   std::to_string(std::min<uint64_t>(maxTablesSize, file.size() - sizeof(header))) + " bytes, found " +
                   std::to_string(header.tables_size) + " bytes");
  auto tables = file.subspan(sizeof(header), header.tables_size);
  if (hash128(tables) != Hash128{header.tables_hash_low, header.tables_hash_high})
    return corrupt("the tables' bytes do not match their hash");

  PlanFileView view;
  view.tables = wellFormedTables(tables);
  if (!view.tables)
    return corrupt("the tables are not a well-formed FlatBuffer of a plan");
  view.file = file;
  if (view.tables->version() != header.version)
    return corrupt("expected tables of version " + std::to_string(header.version) + ", found version " +
                   std::to_string(view.tables->version()));
  if (std::string message = checkSections(*view.tables, file, sizeof(header) + header.tables_size); !message.empty())
    return corrupt(std::move(message));
  if (std::string message = expand(view); !message.empty())
    return corrupt(std::move(message));
  return view;
}

} // namespace mtrun
