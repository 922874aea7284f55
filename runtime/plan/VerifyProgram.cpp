// SPDX-License-Identifier: Apache-2.0
//
// Verifies the tables of a program. VerifySteps.cpp verifies its steps.
#include "runtime/plan/Check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace mtrun {

using namespace ::mt::plan;

bool bufferBytes(const Plan &plan, const Buffer &buffer, uint32_t shards, uint64_t &bytes) {
  uint64_t rows;
  return multiplyAdd(shards, plan.shard_rows(), 0, rows) &&
         multiplyAdd(buffer.row_bytes(), rows, buffer.fixed_bytes(), bytes) && bytes <= maxBlockBytes;
}

Status checkInside(const std::string &place, uint64_t offset, uint64_t bytes, uint64_t limit, const char *block) {
  if (inside(offset, bytes, limit))
    return {};
  return differs(place, std::string("bytes inside the ") + block + "'s " + std::to_string(limit) + " bytes",
                 std::to_string(bytes) + " bytes at offset " + std::to_string(offset));
}

namespace {

// Verifies a program part by part; each part relies on the parts before it.
class ProgramVerifier {
public:
  ProgramVerifier(const Plan &plan, const Program &program, std::string place)
      : plan_(plan), program_(program), place_(std::move(place)) {}

  Status verify() {
    for (Status (ProgramVerifier::*part)() : {&ProgramVerifier::variants, &ProgramVerifier::signature,
                                              &ProgramVerifier::buffers, &ProgramVerifier::metrics})
      if (Status status = (this->*part)(); !status.ok())
        return status;
    return verifySteps(plan_, program_, place_);
  }

private:
  std::string at(const char *what, uint32_t index) const { return place_ + " " + what + " " + std::to_string(index); }

  Status variants() {
    uint32_t expected = static_cast<uint32_t>(std::countr_zero(plan_.shards())) + 1;
    if (count(program_.variants()) != expected)
      return differs(place_, std::to_string(expected) + " variants", count(program_.variants()));
    for (uint32_t v = 0; v < expected; ++v) {
      const Variant &variant = *program_.variants()->Get(v);
      if (variant.shards() != 1u << v)
        return differs(at("variant", v), std::to_string(1u << v) + " shards", variant.shards());
      if (variant.arena_bytes() > maxBlockBytes)
        return differs(at("variant", v), "an arena of at most 2^46 bytes", variant.arena_bytes());
    }
    if (program_.shared_bytes() > maxBlockBytes)
      return differs(place_, "at most 2^46 shared bytes", program_.shared_bytes());
    if (const auto *parts = program_.parts(); parts && (parts->unit() < 1 || parts->unit() > maxCount))
      return differs(place_, "parts of 1 to 2^40 rows", parts->unit());
    return {};
  }

  Status signature() {
    std::set<std::string_view> names;
    uint64_t batchBytes = 0; // sum over all entries
    if (program_.name()->string_view() == "init" && count(program_.signature()))
      return differs(place_, "no signature", std::to_string(count(program_.signature())) + " entries");
    for (uint32_t i = 0; i < count(program_.signature()); ++i) {
      const SignatureEntry &entry = *program_.signature()->Get(i);
      std::string place = at("signature entry", i);
      if (Status status = checkName(entry.name(), place, &names); !status.ok())
        return status;
      if (entry.role() < Role::MIN || entry.role() > Role::MAX)
        return differs(place, "a role", static_cast<uint64_t>(static_cast<uint8_t>(entry.role())));
      if (entry.optional() && entry.role() != Role::SampleWeight)
        return differs(place, "only sample weights to be optional", EnumNameRole(entry.role()));
      if (count(entry.shape()) == 0 || entry.shape()->Get(0) != -1)
        return differs(place, "-1 as first dimension",
                       count(entry.shape()) ? std::to_string(entry.shape()->Get(0)) : "none");
      uint64_t bytes;
      if (Status status = tensorBytes(entry.shape(), 1, entry.dtype(), place, bytes); !status.ok())
        return status;
      if (entry.row_bytes() != bytes)
        return differs(place, std::to_string(bytes) + " bytes per row", entry.row_bytes());
      if (!multiplyAdd(bytes, plan_.batch(), batchBytes, batchBytes) || batchBytes > maxBlockBytes)
        return differs(place, "a batch of at most 2^46 bytes", "a larger one");
    }
    return {};
  }

  Status arenaBuffer(const Buffer &buffer, const std::string &place, uint64_t alignment) const {
    uint32_t variants = count(program_.variants());
    if (count(buffer.offset()) != variants)
      return differs(place, std::to_string(variants) + " offsets", count(buffer.offset()));
    for (uint32_t v = 0; v < variants; ++v) {
      uint64_t bytes, offset = buffer.offset()->Get(v);
      if (!bufferBytes(plan_, buffer, 1u << v, bytes))
        return differs(place, "at most 2^46 bytes", "more");
      if (offset % alignment)
        return differs(place, "an offset that is a multiple of its elements' " + std::to_string(alignment) + " bytes",
                       offset);
      if (Status status = checkInside(place, offset, bytes, program_.variants()->Get(v)->arena_bytes(), "arena");
          !status.ok())
        return status;
    }
    return {};
  }

  // Verifies a buffer in space Shared or Constant: a single offset into a block of `limit` bytes.
  Status blockBuffer(const Buffer &buffer, const std::string &place, uint64_t alignment, uint64_t limit,
                     const char *block) const {
    if (count(buffer.offset()) != 1)
      return differs(place, "1 offset", count(buffer.offset()));
    if (buffer.offset()->Get(0) % alignment)
      return differs(place, "an offset that is a multiple of its elements' " + std::to_string(alignment) + " bytes",
                     buffer.offset()->Get(0));
    return checkInside(place, buffer.offset()->Get(0), buffer.fixed_bytes(), limit, block);
  }

  Status signatureBuffer(const Buffer &buffer, const std::string &place) const {
    if (buffer.index() >= count(program_.signature()))
      return differs(place, "a signature entry below " + std::to_string(count(program_.signature())), buffer.index());
    const SignatureEntry &entry = *program_.signature()->Get(buffer.index());
    if (buffer.row_bytes() != entry.row_bytes() || buffer.fixed_bytes() != 0)
      return differs(place, std::to_string(entry.row_bytes()) + " bytes per row and 0 other bytes",
                     std::to_string(buffer.row_bytes()) + " and " + std::to_string(buffer.fixed_bytes()));
    return {};
  }

  Status variableBuffer(const Buffer &buffer, const std::string &place) const {
    if (buffer.index() >= count(plan_.variables()))
      return differs(place, "a variable below " + std::to_string(count(plan_.variables())), buffer.index());
    return checkInside(place, 0, buffer.fixed_bytes(), plan_.variables()->Get(buffer.index())->size(), "variable");
  }

  Status buffers() {
    uint64_t constants = plan_.constants() < 0 ? 0 : plan_.sections()->Get(uint32_t(plan_.constants()))->size();
    for (uint32_t i = 0; i < count(program_.buffers()); ++i) {
      const Buffer &buffer = *program_.buffers()->Get(i);
      std::string place = at("buffer", i);
      if (Status status = checkName(buffer.name(), place); !status.ok())
        return status;
      uint64_t alignment = elementBytes(buffer.dtype());
      if (alignment == 0)
        return differs(place, "an element type", static_cast<uint64_t>(static_cast<uint8_t>(buffer.dtype())));
      if (buffer.fixed_bytes() > maxBlockBytes || buffer.row_bytes() > maxBlockBytes)
        return differs(place, "at most 2^46 bytes", std::max(buffer.fixed_bytes(), buffer.row_bytes()));
      bool rows = buffer.space() == Space::Arena || buffer.space() == Space::Signature;
      if (!rows && buffer.row_bytes() != 0)
        return differs(place, "0 bytes per row", buffer.row_bytes());
      Status status;
      switch (buffer.space()) {
      case Space::Arena:
        status = arenaBuffer(buffer, place, alignment);
        break;
      case Space::Shared:
        status = blockBuffer(buffer, place, alignment, program_.shared_bytes(), "shared block");
        break;
      case Space::Constant:
        status = blockBuffer(buffer, place, alignment, constants, "constants section");
        break;
      case Space::Variable:
        status = variableBuffer(buffer, place);
        break;
      case Space::Signature:
        status = signatureBuffer(buffer, place);
        break;
      default:
        status = differs(place, "a space", static_cast<uint64_t>(static_cast<uint8_t>(buffer.space())));
      }
      if (!status.ok())
        return status;
    }
    return {};
  }

  Status metrics() {
    std::set<std::string_view> names;
    for (uint32_t i = 0; i < count(program_.metrics()); ++i) {
      const Metric &metric = *program_.metrics()->Get(i);
      if (Status status = checkName(metric.name(), at("metric", i), &names); !status.ok())
        return status;
      for (uint32_t index : {metric.value(), metric.weight()})
        if (Status status = number(index, at("metric", i)); !status.ok())
          return status;
      if (metric.better() < Better::MIN || metric.better() > Better::MAX)
        return differs(at("metric", i), "a direction that is better", static_cast<uint8_t>(metric.better()));
      if (Status status = sums(metric, at("metric", i)); !status.ok())
        return status;
    }
    if (program_.learning_rate() < -1)
      return differs("learning rate", "a buffer or -1", std::to_string(program_.learning_rate()));
    return program_.learning_rate() < 0 ? Status()
                                        : number(static_cast<uint32_t>(program_.learning_rate()), "learning rate");
  }

  // Bytes of a number of a buffer that the session reads: F32 or F64.
  static uint64_t bytesOfReal(const Buffer &buffer) {
    return buffer.dtype() == DType::F64 ? sizeof(double) : sizeof(float);
  }

  // Verifies a buffer that the session reads after each step.
  Status number(uint32_t index, const std::string &place) const {
    if (index >= count(program_.buffers()))
      return differs(place, "a buffer below " + std::to_string(count(program_.buffers())), index);
    const Buffer &buffer = *program_.buffers()->Get(index);
    bool real = buffer.dtype() == DType::F32 || buffer.dtype() == DType::F64;
    if (buffer.space() != Space::Shared || !real || buffer.fixed_bytes() < bytesOfReal(buffer))
      return differs(place, "one F32 or F64 in Shared",
                     std::string(EnumNameDType(buffer.dtype())) + " in " + EnumNameSpace(buffer.space()));
    return {};
  }

  // Verifies that the shape fits the finalizer and that the buffer has as many elements.
  Status sums(const Metric &metric, const std::string &place) const {
    if (metric.finalizer() < Finalizer::MIN || metric.finalizer() > Finalizer::MAX)
      return differs(place, "a finalizer", static_cast<uint64_t>(static_cast<uint8_t>(metric.finalizer())));
    uint32_t rank = count(metric.shape());
    auto size = [&](uint32_t fromEnd) { return rank < fromEnd ? 0 : metric.shape()->Get(rank - fromEnd); };
    auto fits = [&] {
      switch (metric.finalizer()) {
      case Finalizer::Mean:
      case Finalizer::RootMean:
      case Finalizer::Sum:
        return rank == 0;
      case Finalizer::Roc:
      case Finalizer::PrecisionRecall:
      case Finalizer::PrecisionRecallGain:
        return rank >= 2 && size(2) == 2 && size(1) >= 2;
      case Finalizer::F1Macro:
      case Finalizer::F1Weighted:
        return rank == 2 && size(2) == 3;
      case Finalizer::Iou:
        return rank == 2 && size(1) == size(2);
      case Finalizer::R2:
        return rank == 2 && size(2) == 4;
      default:
        return rank == 2 && size(2) == 2 && size(1) >= 2;
      }
    };
    if (!fits())
      return differs(place, "sums that fit the finalizer " + std::string(EnumNameFinalizer(metric.finalizer())), rank);
    constexpr uint64_t most = 1u << 24;
    uint64_t elements = 1;
    for (uint32_t d = 0; d < rank; ++d) {
      if (metric.shape()->Get(d) < 1 || static_cast<uint64_t>(metric.shape()->Get(d)) > most / elements)
        return differs(place, "1 to 2^24 sums",
                       std::to_string(metric.shape()->Get(d)) + " in axis " + std::to_string(d));
      elements *= static_cast<uint64_t>(metric.shape()->Get(d));
    }
    if (!parametersFit(metric, elements))
      return differs(place, "parameters that fit the finalizer " + std::string(EnumNameFinalizer(metric.finalizer())),
                     count(metric.parameters()));
    const Buffer &value = *program_.buffers()->Get(metric.value());
    if (value.fixed_bytes() < elements * bytesOfReal(value))
      return differs(place, "a buffer of " + std::to_string(elements) + " " + EnumNameDType(value.dtype()),
                     std::to_string(value.fixed_bytes()) + " bytes");
    return {};
  }

  // Whether the finalizer has these parameters, for so many sums of a shape that fits it.
  static bool parametersFit(const Metric &metric, uint64_t elements) {
    uint32_t given = count(metric.parameters()), rank = count(metric.shape());
    for (uint32_t i = 0; i < given; ++i)
      if (!std::isfinite(metric.parameters()->Get(i)))
        return false;
    auto last = rank ? static_cast<uint64_t>(metric.shape()->Get(rank - 1)) : 1;
    switch (metric.finalizer()) {
    case Finalizer::Mean:
    case Finalizer::RootMean:
    case Finalizer::Sum:
      return given == 0;
    case Finalizer::Roc:
    case Finalizer::PrecisionRecall:
    case Finalizer::PrecisionRecallGain:
      return given < 2 || given - 1 == elements / (2 * last);
    case Finalizer::F1Macro:
    case Finalizer::F1Weighted:
      return given < 2;
    case Finalizer::Iou:
      for (uint32_t i = 0; i < given; ++i)
        if (double id = metric.parameters()->Get(i); id < 0 || id >= static_cast<double>(last) || id != std::floor(id))
          return false;
      return given > 0;
    case Finalizer::R2:
      return given == 3;
    default:
      return given == 1;
    }
  }

  const Plan &plan_;
  const Program &program_;
  std::string place_;
};

} // namespace

Status verifyProgram(const Plan &plan, const Program &program, const std::string &place) {
  return ProgramVerifier(plan, program, place + " (" + program.name()->str() + ")").verify();
}

} // namespace mtrun
