// SPDX-License-Identifier: Apache-2.0
//
// Verifies the steps of a program: launches and all-reduces.
#include "runtime/plan/Calls.h"
#include "runtime/plan/Check.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace mtrun {

using namespace ::mt::plan;

namespace {

struct Range {
  uint64_t begin, end;
};

class StepVerifier {
public:
  StepVerifier(const Plan &plan, const Program &program, const std::string &place)
      : plan_(plan), program_(program), place_(place) {}

  Status verify() {
    if (Status status = steps(); !status.ok())
      return status;
    return sharedBuffers();
  }

private:
  std::string at(const char *what, uint32_t index) const { return place_ + " " + what + " " + std::to_string(index); }

  // Verifies that the buffer has all bytes that the kernel accesses, in each variant. Both sizes are linear in the
  // number of rows, so it is enough to check the first and the last variant.
  Status argument(const KernelArgument &argument, const Buffer &buffer, uint64_t elements,
                  const std::string &place) const {
    bool rows = buffer.space() == Space::Signature; // only the valid rows of the caller's tensor exist
    if (rows && (argument.fixed_bytes() || argument.element_bytes() || argument.row_bytes() > buffer.row_bytes()))
      return differs(place,
                     "at most " + std::to_string(buffer.row_bytes()) + " bytes per row of a tensor of the caller",
                     std::to_string(argument.row_bytes()) + " per row and " + std::to_string(argument.fixed_bytes()) +
                         " other bytes");
    for (uint32_t shards : {uint32_t{1}, plan_.shards()}) {
      uint64_t needed = 0, held = 0;
      bool fits = multiplyAdd(argument.element_bytes(), elements, argument.fixed_bytes(), needed) &&
                  multiplyAdd(argument.row_bytes(), shards * plan_.shard_rows(), needed, needed) &&
                  bufferBytes(plan_, buffer, shards, held);
      if (!fits || (needed > held && !rows))
        return differs(place,
                       "a buffer of at least " + (fits ? std::to_string(needed) : "2^46") + " bytes for " +
                           std::to_string(shards) + " shards",
                       buffer.name()->str() + " of " + std::to_string(held));
    }
    bool output = rows && program_.signature()->Get(buffer.index())->role() == Role::Output;
    if (argument.written() && (buffer.space() == Space::Constant || (rows && !output)))
      return differs(place, "a buffer that may be written",
                     buffer.name()->str() + " in " + EnumNameSpace(buffer.space()));
    return {};
  }

  Status arguments(const Kernel &kernel, const Segment &segment, const std::string &place) const {
    if (count(segment.buffers()) != count(kernel.arguments()))
      return differs(place,
                     std::to_string(count(kernel.arguments())) + " buffers for the kernel " + kernel.name()->str(),
                     count(segment.buffers()));
    for (uint32_t b = 0; b < count(segment.buffers()); ++b) {
      uint32_t index = segment.buffers()->Get(b);
      if (index >= count(program_.buffers()))
        return differs(place, "buffers below " + std::to_string(count(program_.buffers())), index);
      if (Status status = argument(*kernel.arguments()->Get(b), *program_.buffers()->Get(index), segment.count(),
                                   place + " argument " + std::to_string(b) + " of " + kernel.name()->str());
          !status.ok())
        return status;
    }
    return {};
  }

  // Verifies that a GPU can launch the grid and that its partial sums are not larger than a block.
  Status gpuGrid(const Kernel &kernel, const Step &step, const std::string &place) const {
    const GpuGrid &grid = *kernel.gpu();
    uint64_t segments = count(step.segments()), tiles = grid.inner_tiles(), rows = plan_.shards() * plan_.shard_rows();
    if (grid.rows_per_tile())
      tiles *= (rows + grid.rows_per_tile() - 1) / grid.rows_per_tile(); // below 2^40, verified with the kernel
    for (uint32_t s = 0; kernel.kind() == KernelKind::Elementwise && s < segments; ++s)
      tiles = std::max(s ? tiles : 0,
                       (step.segments()->Get(s)->count() + grid.elements_per_tile() - 1) / grid.elements_per_tile());
    if (tiles > maxGpuTiles || segments > maxGpuSegments)
      return differs(place,
                     "a grid of at most " + std::to_string(maxGpuTiles) + " x " + std::to_string(maxGpuSegments) +
                         " blocks of a GPU",
                     std::to_string(tiles) + " x " + std::to_string(segments));
    if (segments * grid.partial_bytes() > maxBlockBytes) // the product is below 2^62
      return differs(place, "at most 2^46 bytes of partial sums", segments * grid.partial_bytes());
    return {};
  }

  Status launch(const Step &step, const std::string &place) const {
    if (uint32_t(step.kernel()) >= count(plan_.kernels()))
      return differs(place, "a kernel below " + std::to_string(count(plan_.kernels())), std::to_string(step.kernel()));
    const Kernel &kernel = *plan_.kernels()->Get(uint32_t(step.kernel()));
    if (step.collective() != -1)
      return differs(place, "a launch without a collective", std::to_string(step.collective()));
    bool elementwise = kernel.kind() == KernelKind::Elementwise;
    bool called = kernel.gpu() && kernel.gpu()->call();
    if (count(step.segments()) == 0 || (called && count(step.segments()) != 1))
      return differs(place, called ? "1 segment of a kernel that a library may compute" : "1 segment or more",
                     count(step.segments()));
    uint64_t tiles = 0;
    for (uint32_t s = 0; s < step.segments()->size(); ++s) {
      const Segment &segment = *step.segments()->Get(s);
      if (segment.count() > maxCount)
        return differs(place, "segments of at most 2^40 elements", segment.count());
      if (elementwise)
        tiles +=
            segment.count() / kernel.elements_per_tile() + 1; // no overflow: fewer than 2^31 segments, each below 2^41
      if (Status status = arguments(kernel, segment, place); !status.ok())
        return status;
      if (called)
        if (Status status = checkCall(*kernel.gpu()->call(), program_, segment, place + ": library call"); !status.ok())
          return status;
    }
    if (tiles > maxCount)
      return differs(place, "a grid of at most 2^40 tiles", tiles);
    return kernel.gpu() ? gpuGrid(kernel, step, place) : Status();
  }

  // Verifies that a tail follows its head, whose blocks count each other, or another tail, of a convolution or a
  // product. Each has one segment. Single numbers follow any element-wise launch or sum over the batch.
  Status tail(uint32_t index, const std::string &place) const {
    auto at = [&](uint32_t back) { return back > index ? nullptr : program_.steps()->Get(index - back); };
    auto kernel = [&](const Step &step) { return plan_.kernels()->Get(uint32_t(step.kernel())); };
    auto isOne = [&](const Step *each) {
      return each && each->kernel() >= 0 && count(each->segments()) == 1 && !each->share();
    };
    const Step *head = at(1);
    if (at(0)->kernel() >= 0 && kernel(*at(0))->kind() == KernelKind::Single) {
      bool follows = head && head->kernel() >= 0 && !head->tail() && count(at(0)->segments()) == 1;
      KernelKind before = follows ? kernel(*head)->kind() : KernelKind::Single;
      return before == KernelKind::Elementwise || before == KernelKind::Reduce
                 ? Status()
                 : differs(place, "a tail of one segment after an Elementwise or Reduce launch", "another step");
    }
    uint32_t back = 1; // to the head
    if (isOne(head) && head->tail())
      back = 2;
    bool good = isOne(at(0)) && isOne(at(back)) && !at(back)->tail();
    for (uint32_t i = 0; good && i < back; ++i) {
      KernelKind own = kernel(*at(i))->kind(), before = kernel(*at(i + 1))->kind();
      good = (own == KernelKind::Reduce && before == KernelKind::Rows) ||
             (own == KernelKind::Rows && (before == KernelKind::Conv || before == KernelKind::Matmul));
    }
    const GpuGrid *grid = good ? kernel(*at(back))->gpu() : nullptr;
    if (!good || (grid && grid->partial_bytes() == 0))
      return differs(place, "a tail after a launch of one segment that has memory for partial sums", "another step");
    return {};
  }

  // Verifies the kernel that adds two partial sums, out[i] = a[i] + b[i]. Any thread may run it, without scratch
  // memory.
  Status sumKernel(const Step &step, const std::string &place) const {
    if (plan_.sum_kernel() >= count(plan_.kernels()) ||
        plan_.kernels()->Get(plan_.sum_kernel())->kind() != KernelKind::Elementwise)
      return differs(place, "an Elementwise kernel as the plan's sum_kernel", plan_.sum_kernel());
    const Kernel &kernel = *plan_.kernels()->Get(plan_.sum_kernel());
    bool good = count(kernel.arguments()) == 3 && kernel.scratch_bytes() == 0;
    for (uint32_t i = 0; good && i < 3; ++i) {
      const KernelArgument &argument = *kernel.arguments()->Get(i);
      good = argument.fixed_bytes() == 0 && argument.element_bytes() <= sizeof(float) && argument.written() == (i == 2);
    }
    if (!good)
      return differs(place, "a sum_kernel of two operands and a result, 4 bytes per element, and no scratch",
                     kernel.name()->str());
    uint64_t perTile = kernel.gpu() ? kernel.gpu()->elements_per_tile() : 0;
    if (perTile && step.partial_bytes() / sizeof(float) / perTile >= maxGpuTiles)
      return differs(place, "partial sums that at most " + std::to_string(maxGpuTiles) + " blocks of a GPU add",
                     std::to_string(step.partial_bytes()) + " bytes");
    return {};
  }

  Status allReduce(const Step &step, const std::string &place) {
    if (step.kernel() != -1)
      return differs(place, "a kernel or -1", std::to_string(step.kernel()));
    if (step.collective() != int32_t(results_.size()))
      return differs(place, "all-reduce " + std::to_string(results_.size()), std::to_string(step.collective()));
    if (Status status = sumKernel(step, place); !status.ok())
      return status;
    if (step.partial_bytes() == 0 || step.partial_bytes() % sizeof(float) || step.partial_bytes() > maxBlockBytes)
      return differs(place, "a partial sum of F32 elements", std::to_string(step.partial_bytes()) + " bytes");
    uint32_t variants = count(program_.variants());
    if (count(step.partial_offset()) != variants)
      return differs(place, std::to_string(variants) + " partial sum offsets", count(step.partial_offset()));
    for (uint32_t v = 0; v < variants; ++v) {
      uint64_t offset = step.partial_offset()->Get(v);
      if (offset % sizeof(float))
        return differs(place, "a partial sum offset that is a multiple of 4", offset);
      if (Status status = checkInside(place + " partial sum", offset, step.partial_bytes(),
                                      program_.variants()->Get(v)->arena_bytes(), "arena");
          !status.ok())
        return status;
    }
    if (step.result_offset() % sizeof(float))
      return differs(place, "a result offset that is a multiple of 4", step.result_offset());
    if (Status status = checkInside(place + " result", step.result_offset(), step.partial_bytes(),
                                    program_.shared_bytes(), "shared block");
        !status.ok())
      return status;
    results_.push_back({step.result_offset(), step.result_offset() + step.partial_bytes()});
    return {};
  }

  Status steps() {
    for (uint32_t i = 0; i < count(program_.steps()); ++i) {
      const Step &step = *program_.steps()->Get(i);
      std::string place = at("step", i);
      if (step.wait() < Wait::MIN || step.wait() > Wait::MAX)
        return differs(place, "a kind of wait", static_cast<uint64_t>(static_cast<uint8_t>(step.wait())));
      int64_t layers = step.kernel() >= 0 ? count(plan_.layers()) : 0;
      if (step.layer() < -1 || step.layer() >= layers)
        return differs(place, "-1 or a layer below " + std::to_string(layers), std::to_string(step.layer()));
      if (Status status = step.kernel() >= 0 ? launch(step, place) : allReduce(step, place); !status.ok())
        return status;
      if (step.tail())
        if (Status status = tail(i, place); !status.ok())
          return status;
    }
    std::sort(results_.begin(), results_.end(), [](Range a, Range b) { return a.begin < b.begin; });
    for (size_t i = 1; i < results_.size(); ++i)
      if (results_[i].begin < results_[i - 1].end)
        return differs(place_, "results of all-reduces that do not overlap",
                       "two at shared byte " + std::to_string(results_[i].begin));
    return {};
  }

  // Verifies that each Shared buffer is either inside one partial sum or outside all of them, because it is bound as a
  // whole.
  Status sharedBuffers() {
    for (uint32_t i = 0; i < count(program_.buffers()); ++i) {
      const Buffer &buffer = *program_.buffers()->Get(i);
      if (buffer.space() != Space::Shared)
        continue;
      uint64_t begin = buffer.offset()->Get(0), end = begin + buffer.fixed_bytes();
      auto next = std::partition_point(results_.begin(), results_.end(), [&](Range r) { return r.end <= begin; });
      if (next != results_.end() && next->begin < end && (begin < next->begin || end > next->end))
        return differs(at("buffer", i), "bytes inside one all-reduce's result or outside all results",
                       std::to_string(end - begin) + " bytes at shared offset " + std::to_string(begin));
    }
    return {};
  }

  const Plan &plan_;
  const Program &program_;
  const std::string &place_;
  std::vector<Range> results_; // results of all-reduces, sorted after all steps are verified
};

} // namespace

Status verifySteps(const Plan &plan, const Program &program, const std::string &place) {
  return StepVerifier(plan, program, place).verify();
}

} // namespace mtrun
