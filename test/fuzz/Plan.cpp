// SPDX-License-Identifier: Apache-2.0
//
// Any bytes: the plan loader says no or gives a plan that can be walked. Random bytes never get past the hashes, so
// each input is also tried with its hashes made right again, which puts the mutated tables before the verifier, half of
// them with some fields changed besides. What the verifier lets through trains, on devices that run no code.
#include "runtime/plan/Plan.h"
#include "test/fuzz/harness.h"
#include "test/unit/runtime/Exercise.h"
#include "test/unit/runtime/Mutate.h"

#include <cstring>

using namespace mtrun;

namespace {

constexpr size_t headerSize = 64;

// Walks what a host would: a verified plan must not lie about any index or range.
uint64_t walk(const Plan &plan) {
  uint64_t sum = plan.constants().size() + plan.shards() + plan.batch() + plan.shardRows();
  const mt::plan::Plan &tables = plan.tables();
  for (uint32_t i = 0; tables.targets() && i < tables.targets()->size(); ++i)
    readAll(plan.section(tables.targets()->Get(i)->section()));
  for (uint32_t i = 0; tables.programs() && i < tables.programs()->size(); ++i) {
    const mt::plan::Program &program = *tables.programs()->Get(i);
    sum += plan.program(program.name()->string_view()) == &program;
    for (uint32_t s = 0; program.steps() && s < program.steps()->size(); ++s) {
      const mt::plan::Step &step = *program.steps()->Get(s);
      for (uint32_t g = 0; step.segments() && g < step.segments()->size(); ++g)
        if (const auto *buffers = step.segments()->Get(g)->buffers())
          for (uint32_t b : *buffers)
            sum += program.buffers()->Get(b)->fixed_bytes();
    }
  }
  return sum;
}

void load(const void *data, size_t size) {
  if (test::exercise(data, size, 2, size % 2) == test::Exercised::Refused)
    return; // with a message
  std::unique_ptr<Plan> plan;
  Status status = Plan::loadMemory(data, size, plan);
  if (!status.ok() || !plan)
    __builtin_trap();
  volatile uint64_t sum = walk(*plan);
  (void)sum;
}

// The tables of `data` as they are, written anew with right sizes and hashes.
void loadRepaired(const uint8_t *data, size_t size) {
  mt_plan_header header;
  if (size < headerSize + 8)
    return;
  std::memcpy(&header, data, sizeof(header));
  size_t tablesSize = std::min<uint64_t>(header.tables_size, size - headerSize);
  if (tablesSize < 8)
    tablesSize = size - headerSize;
  std::vector<uint64_t> aligned((tablesSize + 7) / 8); // FlatBuffers reads 8-byte aligned
  std::memcpy(aligned.data(), data + headerSize, tablesSize);
  const mt::plan::Plan *tables =
      mtrun::wellFormedTables({reinterpret_cast<const uint8_t *>(aligned.data()), tablesSize});
  if (!tables)
    return;
  std::unique_ptr<mt::plan::PlanT> plan(tables->UnPack());
  std::vector<SectionBytes> sections;
  for (const auto &section : plan->sections) {
    size_t begin = std::min<uint64_t>(section->offset, size);
    size_t length = std::min<uint64_t>(section->size, size - begin);
    sections.push_back({section->name, {data + begin, length}});
  }
  // Every other input has a few fields changed besides, which bytes of a FlatBuffer seldom hit.
  if (uint64_t draw = hash128({data, size}).low; draw % 2) {
    std::mt19937 random(static_cast<uint32_t>(draw >> 1));
    test::mutateTables(*plan, random);
  }
  std::vector<uint8_t> file = writePlanFile(*plan, sections);
  load(file.data(), file.size());
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  load(data, size);
  loadRepaired(data, size);
  return 0;
}
