// SPDX-License-Identifier: Apache-2.0
//
// Checked arithmetic and name checks for numbers and names that come from a file.
#pragma once

#include "runtime/abi/plan_file.h"
#include "runtime/support/status.h"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace mtrun {

constexpr uint64_t maxBlockBytes = uint64_t{1} << 46;
constexpr uint64_t maxCount = uint64_t{1} << 40;
constexpr uint32_t maxShards = 65536;
constexpr size_t maxRank = 8;
constexpr uint32_t maxGpuThreads = 1024;
constexpr uint32_t maxGpuSharedBytes = 48 << 10;   // what a block has on every GPU without asking
constexpr uint32_t maxGpuDynamicBytes = 227 << 10; // what a block of any GPU has at most
constexpr uint64_t maxGpuTiles = INT32_MAX;        // of a launch: a grid's first axis
constexpr uint64_t maxGpuSegments = 65535;         // and its second one
constexpr size_t maxNameBytes = 1024;

// a * b + c, or false if it does not fit.
inline bool multiplyAdd(uint64_t a, uint64_t b, uint64_t c, uint64_t &result) {
  uint64_t product;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(product, c, &result);
}

// Whether [offset, offset + size) lies in [0, limit); sizes never wrap.
inline bool inside(uint64_t offset, uint64_t size, uint64_t limit) { return offset <= limit && size <= limit - offset; }

inline Status corrupt(std::string message) { return {MT_CORRUPT, std::move(message)}; }

inline Status differs(const std::string &place, const std::string &expected, const std::string &found) {
  return corrupt(place + ": expected " + expected + ", found " + found);
}

inline Status differs(const std::string &place, const std::string &expected, uint64_t found) {
  return differs(place, expected, std::to_string(found));
}

// Elements in a FlatBuffers vector; a missing vector has none.
template <typename Vector> uint32_t count(const Vector *vector) { return vector ? vector->size() : 0; }

// The same as a range.
template <typename Vector> struct Each {
  explicit Each(const Vector *vector) : vector(vector) {}
  auto begin() const { return vector ? vector->begin() : decltype(vector->begin())(); }
  auto end() const { return vector ? vector->end() : decltype(vector->end())(); }
  const Vector *vector;
};

// Bytes of an element; 0 for a number that is no type.
inline uint64_t elementBytes(mt::plan::DType dtype) {
  bool known = dtype >= mt::plan::DType::MIN && dtype <= mt::plan::DType::MAX;
  return known ? mt_dtype_size(static_cast<mt_dtype>(dtype)) : 0;
}

// Length and characters of a name and, with `seen`, that no name before it was equal.
Status checkName(const flatbuffers::String *name, const std::string &place, std::set<std::string_view> *seen = nullptr);

// Bytes of a tensor: product of dims [first, rank) times the element's size. MT_CORRUPT for bad types, ranks,
// dimensions.
Status tensorBytes(const flatbuffers::Vector<int64_t> *shape, uint32_t first, mt::plan::DType dtype,
                   const std::string &place, uint64_t &bytes);

// Bytes that a piece of the archive takes in the file; its variable is one of the plan's.
inline uint64_t archivePieceBytes(const mt::plan::Plan &plan, const mt::plan::ArchivePiece &piece) {
  if (piece.kind() == mt::plan::PieceKind::Variable)
    return plan.variables()->Get(piece.variable())->size();
  return piece.kind() == mt::plan::PieceKind::Crc32 ? 4 : piece.size();
}

// Bytes of a buffer where a device has `shards` shards; false if they exceed the limit.
bool bufferBytes(const mt::plan::Plan &plan, const mt::plan::Buffer &buffer, uint32_t shards, uint64_t &bytes);

// Whether bytes lie inside a block of `limit` bytes. MT_CORRUPT.
Status checkInside(const std::string &place, uint64_t offset, uint64_t bytes, uint64_t limit, const char *block);

// The programs' part of verifyPlan; the rest of the plan is verified.
Status verifyProgram(const mt::plan::Plan &plan, const mt::plan::Program &program, const std::string &place);
// The steps' part of verifyProgram; the rest of the program is verified.
Status verifySteps(const mt::plan::Plan &plan, const mt::plan::Program &program, const std::string &place);

// Which programs belong to which length of sequences; each is verified.
Status verifyLengths(const mt::plan::Plan &plan);

} // namespace mtrun
