// SPDX-License-Identifier: Apache-2.0
//
// Verifies the tables of a plan, except for programs, before other code uses them.
#include "runtime/abi/plan_verify.h"
#include "runtime/plan/Calls.h"
#include "runtime/plan/Check.h"
#include "runtime/support/column_rules.h"
#include "runtime/support/device_spec.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

namespace mtrun {

namespace fb = ::mt::plan;

Status checkName(const flatbuffers::String *name, const std::string &place, std::set<std::string_view> *seen) {
  if (!name || name->size() == 0 || name->size() > maxNameBytes)
    return differs(place, "a name of 1 to 1024 bytes", std::to_string(name ? name->size() : 0) + " bytes");
  for (char c : name->string_view())
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      return differs(place, "a name without control characters",
                     "byte " + std::to_string(static_cast<unsigned char>(c)));
  if (!isUtf8(name->string_view())) // a checkpoint could not store the name in JSON
    return differs(place, "a name in UTF-8", "other bytes");
  if (seen && !seen->insert(name->string_view()).second)
    return differs(place, "names that differ", "a second " + name->str());
  return {};
}

Status tensorBytes(const flatbuffers::Vector<int64_t> *shape, uint32_t first, fb::DType dtype, const std::string &place,
                   uint64_t &bytes) {
  bytes = dtype < fb::DType::BF16 ? elementBytes(dtype) : 0;
  if (bytes == 0)
    return differs(place, "an element type", static_cast<uint64_t>(static_cast<uint8_t>(dtype)));
  if (count(shape) > maxRank)
    return differs(place, "a rank of at most 8", count(shape));
  for (uint32_t i = first; i < count(shape); ++i) {
    int64_t dim = shape->Get(i);
    if (dim < 0 || static_cast<uint64_t>(dim) > maxCount)
      return differs(place, "dimensions of 0 to 2^40", std::to_string(dim));
    if (!multiplyAdd(bytes, static_cast<uint64_t>(dim), 0, bytes) || bytes > maxBlockBytes)
      return differs(place, "a tensor of at most 2^46 bytes", "a larger one");
  }
  return {};
}

namespace {

Status verifyBatch(const fb::Plan &plan) {
  if (plan.batch() == 0 || plan.batch() > maxCount)
    return differs("batch", "1 to 2^40 samples", plan.batch());
  if (!std::has_single_bit(plan.shards()) || plan.shards() > maxShards)
    return differs("shards", "a power of two of at most 65536", plan.shards());
  if (plan.min_devices() == 0 || plan.min_devices() > plan.shards())
    return differs("min_devices", "1 to " + std::to_string(plan.shards()), plan.min_devices());
  if (!std::has_single_bit(plan.micro_batches()) || plan.micro_batches() > plan.shards())
    return differs("micro_batches", "a power of two of at most " + std::to_string(plan.shards()), plan.micro_batches());
  if (const auto *fixed = plan.fixed_batch(); fixed && (fixed->rows() < 1 || fixed->rows() > plan.batch()))
    return differs("fixed_batch", "1 to " + std::to_string(plan.batch()) + " samples", fixed->rows());
  uint64_t shardRows = (plan.batch() + plan.shards() - 1) / plan.shards();
  if (plan.shard_rows() != shardRows)
    return differs("shard_rows", std::to_string(shardRows), plan.shard_rows());
  return {};
}

// Returns the size of the section of initial values; 0 if there is none.
uint64_t initialBytes(const fb::Plan &plan) {
  int32_t section = plan.initial_values();
  return section >= 0 && uint32_t(section) < count(plan.sections()) ? plan.sections()->Get(uint32_t(section))->size()
                                                                    : 0;
}

Status verifyVariables(const fb::Plan &plan) {
  if (plan.variables_bytes() > maxBlockBytes)
    return differs("variables_bytes", "at most 2^46", plan.variables_bytes());
  std::set<std::string_view> names;
  std::vector<std::pair<uint64_t, uint64_t>> ranges; // begin, end
  for (uint32_t i = 0; i < count(plan.variables()); ++i) {
    const fb::Variable &variable = *plan.variables()->Get(i);
    std::string place = "variable " + std::to_string(i);
    if (Status status = checkName(variable.name(), place, &names); !status.ok())
      return status;
    uint64_t bytes;
    if (Status status = tensorBytes(variable.shape(), 0, variable.dtype(), place, bytes); !status.ok())
      return status;
    if (variable.size() != bytes)
      return differs(place, std::to_string(bytes) + " bytes for its shape", variable.size());
    if (variable.kind() < fb::VariableKind::MIN || variable.kind() > fb::VariableKind::MAX)
      return differs(place, "a kind of variable", static_cast<uint64_t>(static_cast<uint8_t>(variable.kind())));
    if (variable.offset() % 64 != 0)
      return differs(place, "an offset that is a multiple of 64", variable.offset());
    if (!inside(variable.offset(), bytes, plan.variables_bytes()))
      return differs(place, "bytes inside the variables' " + std::to_string(plan.variables_bytes()) + " bytes",
                     std::to_string(bytes) + " bytes at offset " + std::to_string(variable.offset()));
    if (variable.initial() < -1)
      return differs(place, "an initial value at -1 or more", std::to_string(variable.initial()));
    if (variable.initial() >= 0 && !inside(static_cast<uint64_t>(variable.initial()), bytes, initialBytes(plan)))
      return differs(place, "an initial value inside the section's " + std::to_string(initialBytes(plan)) + " bytes",
                     std::to_string(bytes) + " bytes at " + std::to_string(variable.initial()));
    if (bytes)
      ranges.emplace_back(variable.offset(), variable.offset() + bytes);
  }
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second)
      return differs("variables", "variables that do not overlap", "two at byte " + std::to_string(ranges[i].first));
  return {};
}

Status verifyAverages(const fb::Plan &plan) {
  for (uint32_t i = 0; i < count(plan.variables()); ++i) {
    const fb::Variable &variable = *plan.variables()->Get(i);
    int32_t average = variable.average();
    if (average < -1 || average >= static_cast<int64_t>(count(plan.variables())))
      return differs("variable " + std::to_string(i), "an average below " + std::to_string(count(plan.variables())),
                     std::to_string(average));
    if (average >= 0 && (plan.variables()->Get(uint32_t(average))->size() != variable.size() || plan.iteration() < 0))
      return differs("variable " + std::to_string(i), "an average of its size in a plan that counts steps", "another");
  }
  return {};
}

// Verifies that the pieces cover the whole section and make a file of at most 2^46 bytes, and that checksums do not
// cover other checksums.
Status verifyArchive(const fb::Plan &plan) {
  constexpr size_t maxChecksums = 64;
  if (!plan.archive())
    return {};
  const fb::Archive &archive = *plan.archive();
  if (Status status = checkName(archive.suffix(), "archive"); !status.ok())
    return status;
  if (archive.section() >= count(plan.sections()))
    return differs("archive", "a section below " + std::to_string(count(plan.sections())), archive.section());
  uint64_t sectionBytes = 0, at = 0;
  std::vector<uint64_t> checksums; // offsets of checksums
  for (uint32_t i = 0; i < count(archive.pieces()); ++i) {
    const fb::ArchivePiece &piece = *archive.pieces()->Get(i);
    std::string place = "archive piece " + std::to_string(i);
    if (piece.kind() < fb::PieceKind::MIN || piece.kind() > fb::PieceKind::MAX)
      return differs(place, "a kind of piece", static_cast<uint64_t>(static_cast<uint8_t>(piece.kind())));
    if (piece.kind() == fb::PieceKind::Variable && piece.variable() >= count(plan.variables()))
      return differs(place, "a variable below " + std::to_string(count(plan.variables())), piece.variable());
    if (piece.kind() == fb::PieceKind::Crc32)
      checksums.push_back(at);
    uint64_t bytes = archivePieceBytes(plan, piece);
    if (bytes > maxBlockBytes || at + bytes > maxBlockBytes)
      return differs(place, "an archive of at most 2^46 bytes", "a larger one");
    at += bytes;
    sectionBytes += piece.kind() == fb::PieceKind::Bytes ? bytes : 0;
  }
  if (uint64_t size = plan.sections()->Get(archive.section())->size(); sectionBytes != size)
    return differs("archive", "pieces of the section's " + std::to_string(size) + " bytes", sectionBytes);
  if (checksums.size() > maxChecksums)
    return differs("archive", "at most " + std::to_string(maxChecksums) + " checksums", checksums.size());
  for (uint32_t i = 0; i < count(archive.pieces()); ++i) {
    const fb::ArchivePiece &piece = *archive.pieces()->Get(i);
    if (piece.kind() != fb::PieceKind::Crc32)
      continue;
    bool good = inside(piece.begin(), piece.size(), at);
    for (uint64_t checksum : checksums)
      good &= checksum + 4 <= piece.begin() || checksum >= piece.begin() + piece.size();
    if (!good)
      return differs("archive piece " + std::to_string(i), "a checksum of bytes of the archive that are no checksums",
                     std::to_string(piece.size()) + " bytes at " + std::to_string(piece.begin()));
  }
  return {};
}

// fb::Kernel and fb::GpuGrid have the same fields for a grid.
template <typename Grid>
Status verifyGrid(const Grid &grid, const fb::Plan &plan, bool elementwise, const std::string &place) {
  if (grid.inner_tiles() == 0 || grid.inner_tiles() > maxCount)
    return differs(place, "1 to 2^40 inner tiles", grid.inner_tiles());
  if (grid.rows_per_tile() > maxCount)
    return differs(place, "at most 2^40 rows per tile", grid.rows_per_tile());
  if (elementwise && (grid.elements_per_tile() == 0 || grid.elements_per_tile() > maxCount))
    return differs(place, "1 to 2^40 elements per tile", grid.elements_per_tile());
  uint64_t tiles;
  if (grid.rows_per_tile() &&
      (!multiplyAdd(plan.batch() / grid.rows_per_tile() + 2, grid.inner_tiles(), 0, tiles) || tiles > maxCount))
    return differs(place, "a grid of at most 2^40 tiles", "a larger one");
  return {};
}

Status verifyGpuGrid(const fb::Kernel &kernel, const fb::Plan &plan, const std::string &place) {
  const fb::GpuGrid &grid = *kernel.gpu();
  if (grid.threads() == 0 || grid.threads() > maxGpuThreads)
    return differs(place, "1 to 1024 threads of a block", grid.threads());
  if (grid.shared_bytes() > maxGpuSharedBytes)
    return differs(place, "at most 48 KiB of workgroup memory", grid.shared_bytes());
  if (grid.partial_bytes() > maxBlockBytes)
    return differs(place, "at most 2^46 bytes of partial sums", grid.partial_bytes());
  CallSizes sizes;
  if (grid.call())
    if (Status status = callSizes(*grid.call(), place + ": library call", sizes); !status.ok())
      return status;
  return verifyGrid(grid, plan, kernel.kind() == fb::KernelKind::Elementwise, place + " on a GPU");
}

// The limit of scratch memory per thread, far above the needs of generated kernels.
constexpr uint64_t maxScratchBytes = uint64_t{1} << 30;

Status verifyArguments(const fb::Kernel &kernel, const std::string &place) {
  bool elementwise = kernel.kind() == fb::KernelKind::Elementwise;
  for (uint32_t i = 0; i < count(kernel.arguments()); ++i) {
    const fb::KernelArgument &argument = *kernel.arguments()->Get(i);
    std::string which = place + " argument " + std::to_string(i);
    if (std::max({argument.row_bytes(), argument.fixed_bytes(), argument.element_bytes()}) > maxBlockBytes)
      return differs(which, "at most 2^46 bytes", "more");
    if (elementwise ? argument.row_bytes() != 0 : argument.element_bytes() != 0)
      return differs(which,
                     elementwise ? "0 bytes per row of an Elementwise kernel"
                                 : "0 bytes per element of a kernel of another kind",
                     elementwise ? argument.row_bytes() : argument.element_bytes());
  }
  if (kernel.scratch_bytes() > maxScratchBytes || kernel.scratch_bytes() % 64 != 0)
    return differs(place, "at most 2^30 bytes of scratch, a multiple of 64", kernel.scratch_bytes());
  return {};
}

Status verifyKernels(const fb::Plan &plan) {
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < count(plan.kernels()); ++i) {
    const fb::Kernel &kernel = *plan.kernels()->Get(i);
    std::string place = "kernel " + std::to_string(i);
    if (Status status = checkName(kernel.name(), place, &names); !status.ok())
      return status;
    if (kernel.kind() < fb::KernelKind::MIN || kernel.kind() > fb::KernelKind::MAX)
      return differs(place, "a kind of kernel", static_cast<uint64_t>(static_cast<uint8_t>(kernel.kind())));
    if (Status status = verifyGrid(kernel, plan, kernel.kind() == fb::KernelKind::Elementwise, place); !status.ok())
      return status;
    if (Status status = verifyArguments(kernel, place); !status.ok())
      return status;
    if (kernel.gpu())
      if (Status status = verifyGpuGrid(kernel, plan, place); !status.ok())
        return status;
  }
  return {};
}

Status verifyDevice(const fb::Plan &plan, const fb::Target &target, const std::string &place) {
  std::string_view device = target.device() ? target.device()->string_view() : "cpu";
  const DeviceKind *kind = deviceKind(device);
  if (!kind || !kind->hasCode)
    return differs(place, "a device " + deviceKindNames(/*withCode=*/true), std::string(device));
  if (count(target.usage()) != 0 && count(target.usage()) != count(plan.kernels()))
    return differs(place, "the usage of " + std::to_string(count(plan.kernels())) + " kernels", count(target.usage()));
  for (uint32_t i = 0; i < count(target.usage()); ++i)
    if (uint32_t bytes = target.usage()->Get(i)->dynamic_shared_bytes(); bytes > maxGpuDynamicBytes)
      return differs(place, "at most 227 KiB of workgroup memory", bytes);
  for (uint32_t i = 0; kind->gpu && i < count(plan.kernels()); ++i)
    if (!plan.kernels()->Get(i)->gpu())
      return differs(place, "a GPU grid of each kernel", "kernel " + std::to_string(i) + " without one");
  return {};
}

Status verifyTargets(const fb::Plan &plan) {
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < count(plan.targets()); ++i) {
    const fb::Target &target = *plan.targets()->Get(i);
    std::string place = "target " + std::to_string(i);
    if (Status status = checkName(target.name(), place, &names); !status.ok())
      return status;
    if (target.section() >= count(plan.sections()))
      return differs(place, "a section below " + std::to_string(count(plan.sections())), target.section());
    for (uint32_t f = 0; f < count(target.features()); ++f)
      if (Status status = checkName(target.features()->Get(f), place + " feature " + std::to_string(f)); !status.ok())
        return status;
    if (Status status = verifyDevice(plan, target, place); !status.ok())
      return status;
  }
  return {};
}

Status verifyReferences(const fb::Plan &plan) {
  std::set<std::string_view> layers;
  for (uint32_t i = 0; i < count(plan.layers()); ++i)
    if (Status status = checkName(plan.layers()->Get(i), "layer " + std::to_string(i), &layers); !status.ok())
      return status;
  for (uint32_t i = 0; i < count(plan.sections()); ++i)
    if (Status status = checkName(plan.sections()->Get(i)->name(), "section " + std::to_string(i)); !status.ok())
      return status;
  auto isIndex = [](int32_t index, uint32_t limit) { return index >= -1 && (index < 0 || uint32_t(index) < limit); };
  if (!isIndex(plan.constants(), count(plan.sections())))
    return differs("constants", "a section below " + std::to_string(count(plan.sections())),
                   std::to_string(plan.constants()));
  if (!isIndex(plan.initial_values(), count(plan.sections())))
    return differs("initial_values", "a section below " + std::to_string(count(plan.sections())),
                   std::to_string(plan.initial_values()));
  // The runtime reads and writes these variables as a single number.
  auto verifyNumber = [&](const char *name, int32_t index, fb::DType dtype) -> Status {
    if (!isIndex(index, count(plan.variables())))
      return differs(name, "a variable below " + std::to_string(count(plan.variables())), std::to_string(index));
    const fb::Variable *variable = index < 0 ? nullptr : plan.variables()->Get(static_cast<uint32_t>(index));
    if (variable && (variable->dtype() != dtype || count(variable->shape()) != 0))
      return differs(name, std::string("a variable of one ") + EnumNameDType(dtype) + ", without axes",
                     variable->name()->str() + ", " + EnumNameDType(variable->dtype()) + " with " +
                         std::to_string(count(variable->shape())));
    return {};
  };
  bool isDouble = plan.precision() && plan.precision()->string_view() == "f64";
  fb::DType real = isDouble ? fb::DType::F64 : fb::DType::F32;
  if (Status status = verifyNumber("learning_rate", plan.learning_rate(), real); !status.ok())
    return status;
  return verifyNumber("iteration", plan.iteration(), fb::DType::I32);
}

// Returns true for one UTF-8 character in its shortest encoding, except NUL and surrogates.
bool isCharacter(std::string_view text) {
  if (text.empty() || text.size() > 4)
    return false;
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (text.size() == 1)
    return byte(0) > 0 && byte(0) < 0x80;
  constexpr uint32_t least[] = {0x80, 0x800, 0x10000}, most = 0x10ffff;
  auto ones = static_cast<size_t>(std::countl_one(byte(0)));
  uint32_t code = byte(0) & (0x7fu >> text.size());
  for (size_t i = 1; i < text.size(); ++i) {
    if ((byte(i) & 0xc0) != 0x80)
      return false;
    code = code << 6 | (byte(i) & 0x3f);
  }
  return ones == text.size() && code >= least[text.size() - 2] && code <= most && (code < 0xd800 || code > 0xdfff);
}

Status verifyNames(const fb::Plan &plan) {
  if (plan.model() && plan.model()->size() > 0)
    if (Status status = checkName(plan.model(), "model"); !status.ok())
      return status;
  std::set<std::string_view> classes, characters;
  for (uint32_t i = 0; i < count(plan.class_names()); ++i)
    if (Status status = checkName(plan.class_names()->Get(i), "class " + std::to_string(i), &classes); !status.ok())
      return status;
  for (uint32_t i = 0; i < count(plan.vocabulary()); ++i) {
    std::string_view text = plan.vocabulary()->Get(i)->string_view();
    std::string place = "vocabulary " + std::to_string(i);
    if (!isCharacter(text))
      return differs(place, "one character of UTF-8", std::to_string(text.size()) + " bytes");
    if (!characters.insert(text).second)
      return differs(place, "characters that differ", "a second one of the same");
  }
  ColumnRules rules;
  if (plan.columns())
    if (Status status = parseColumnRules(plan.columns()->string_view(), rules); !status.ok())
      return corrupt("columns: " + status.message());
  return {};
}

// Verifies that each entry names a different input, and that scales and offsets are finite.
Status verifyInputScaling(const fb::Plan &plan) {
  std::set<std::string_view> seen;
  for (uint32_t i = 0; i < count(plan.input_scaling()); ++i) {
    const fb::InputScaling &scaling = *plan.input_scaling()->Get(i);
    std::string place = "input_scaling " + std::to_string(i);
    if (Status status = checkName(scaling.input(), place, &seen); !status.ok())
      return status;
    if (!std::isfinite(scaling.scale()) || !std::isfinite(scaling.offset()))
      return differs(place, "a scale and an offset that are finite",
                     std::to_string(scaling.scale()) + " and " + std::to_string(scaling.offset()));
    bool isInput = false;
    for (uint32_t p = 0; p < count(plan.programs()); ++p)
      for (uint32_t e = 0; e < count(plan.programs()->Get(p)->signature()); ++e) {
        const fb::SignatureEntry &entry = *plan.programs()->Get(p)->signature()->Get(e);
        isInput |= entry.role() == fb::Role::Input && entry.name()->string_view() == scaling.input()->string_view();
      }
    if (!isInput)
      return differs(place, "the name of an input", scaling.input()->str());
  }
  return {};
}

} // namespace

Status verifyPlan(const fb::Plan &plan) {
  for (Status (*part)(const fb::Plan &) : {verifyBatch, verifyVariables, verifyKernels, verifyTargets, verifyReferences,
                                           verifyAverages, verifyArchive, verifyNames})
    if (Status status = part(plan); !status.ok())
      return status;
  if (plan.call_workspace() > maxBlockBytes)
    return differs("call_workspace", "at most 2^46 bytes", plan.call_workspace());
  std::set<std::string_view> names;
  for (uint32_t i = 0; i < count(plan.programs()); ++i) {
    std::string place = "program " + std::to_string(i);
    if (Status status = checkName(plan.programs()->Get(i)->name(), place, &names); !status.ok())
      return status;
    if (Status status = verifyProgram(plan, *plan.programs()->Get(i), place); !status.ok())
      return status;
  }
  if (Status status = verifyLengths(plan); !status.ok())
    return status;
  return verifyInputScaling(plan); // the signatures have been verified above
}

} // namespace mtrun
