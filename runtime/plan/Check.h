// SPDX-License-Identifier: Apache-2.0
//
// Checked arithmetic and checks of names, for data from files.
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
constexpr uint32_t maxGpuSharedBytes = 48 << 10;   // limit of static workgroup memory on every GPU
constexpr uint32_t maxGpuDynamicBytes = 227 << 10; // limit of dynamic workgroup memory on any GPU
constexpr uint64_t maxGpuTiles = INT32_MAX;        // limit of the first axis of a launch's grid
constexpr uint64_t maxGpuSegments = 65535;         // limit of the second axis
constexpr size_t maxNameBytes = 1024;

// Computes a * b + c; false if the result overflows.
inline bool multiplyAdd(uint64_t a, uint64_t b, uint64_t c, uint64_t &result) {
  uint64_t product;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(product, c, &result);
}

// Returns true if [offset, offset + size) is inside [0, limit). Does not overflow.
inline bool inside(uint64_t offset, uint64_t size, uint64_t limit) { return offset <= limit && size <= limit - offset; }

inline Status corrupt(std::string message) { return {MT_CORRUPT, std::move(message)}; }

inline Status differs(const std::string &place, const std::string &expected, const std::string &found) {
  return corrupt(place + ": expected " + expected + ", found " + found);
}

inline Status differs(const std::string &place, const std::string &expected, uint64_t found) {
  return differs(place, expected, std::to_string(found));
}

// Returns the size of a FlatBuffers vector; 0 if the vector is missing.
template <typename Vector> uint32_t count(const Vector *vector) { return vector ? vector->size() : 0; }

// A range over a FlatBuffers vector; empty if the vector is missing.
template <typename Vector> struct Each {
  explicit Each(const Vector *vector) : vector(vector) {}
  auto begin() const { return vector ? vector->begin() : decltype(vector->begin())(); }
  auto end() const { return vector ? vector->end() : decltype(vector->end())(); }
  const Vector *vector;
};

// Returns the bytes of an element; 0 if the number is not a type.
inline uint64_t elementBytes(mt::plan::DType dtype) {
  bool known = dtype >= mt::plan::DType::MIN && dtype <= mt::plan::DType::MAX;
  return known ? mt_dtype_size(static_cast<mt_dtype>(dtype)) : 0;
}

// Checks the length and the characters of a name and, with `seen`, that the name is unique.
Status checkName(const flatbuffers::String *name, const std::string &place, std::set<std::string_view> *seen = nullptr);

// Computes the bytes of a tensor: the product of dimensions [first, rank) times the size of an element. MT_CORRUPT:
// invalid type, rank or dimension.
Status tensorBytes(const flatbuffers::Vector<int64_t> *shape, uint32_t first, mt::plan::DType dtype,
                   const std::string &place, uint64_t &bytes);

// Returns the bytes of an archive's piece in the file. The piece's variable must exist in the plan.
inline uint64_t archivePieceBytes(const mt::plan::Plan &plan, const mt::plan::ArchivePiece &piece) {
  if (piece.kind() == mt::plan::PieceKind::Variable)
    return plan.variables()->Get(piece.variable())->size();
  return piece.kind() == mt::plan::PieceKind::Crc32 ? 4 : piece.size();
}

// Computes the bytes of a buffer for a device with `shards` shards; false if they exceed the limit.
bool bufferBytes(const mt::plan::Plan &plan, const mt::plan::Buffer &buffer, uint32_t shards, uint64_t &bytes);

// Checks that a range is inside a block of `limit` bytes. MT_CORRUPT.
Status checkInside(const std::string &place, uint64_t offset, uint64_t bytes, uint64_t limit, const char *block);

// Verifies a program; the other tables of the plan have been verified.
Status verifyProgram(const mt::plan::Plan &plan, const mt::plan::Program &program, const std::string &place);
// Verifies the steps of a program; the other tables of the program have been verified.
Status verifySteps(const mt::plan::Plan &plan, const mt::plan::Program &program, const std::string &place);

// Verifies the table of sequence lengths; each program has been verified.
Status verifyLengths(const mt::plan::Plan &plan);

} // namespace mtrun
