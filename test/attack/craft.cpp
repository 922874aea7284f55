// SPDX-License-Identifier: Apache-2.0
//
// Files whose hashes are right and whose contents are wrong, as somebody who knows the formats would make them:
//   craft plan IN OUT CHANGE [TEXT]    a plan with one change of its tables
//   craft seal FILE                    a manifest or tuning file, with the hash of what stands before its last member
#include "runtime/abi/compact_tables.h"
#include "runtime/abi/plan_file.h"
#include "runtime/support/hash_text.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>

namespace fb = mt::plan;
using Change = std::function<void(fb::PlanT &, const std::string &)>;

// Of the first step of the training program that launches a kernel of a kind.
static fb::StepT *launch(fb::PlanT &plan, bool map) {
  for (auto &program : plan.programs)
    for (auto &step : program->steps)
      if (program->name == "train_step" && static_cast<size_t>(step->kernel) < plan.kernels.size() &&
          !step->segments.empty() && (plan.kernels[step->kernel]->kind == fb::KernelKind::Elementwise) == map)
        return step.get();
  return nullptr;
}

static fb::ProgramT &training(fb::PlanT &plan) {
  for (auto &program : plan.programs)
    if (program->name == "train_step")
      return *program;
  return *plan.programs.front();
}

static const std::map<std::string, Change> changes = {
    {"same", [](fb::PlanT &, const std::string &) {}},
    {"rate", [](fb::PlanT &p, const std::string &) { p.learning_rate = 0; }},
    {"metrics", [](fb::PlanT &p, const std::string &) { training(p).metrics.clear(); }},
    {"model", [](fb::PlanT &p, const std::string &text) { p.model = text; }},
    {"variable", [](fb::PlanT &p, const std::string &text) { p.variables[0]->name = text; }},
    {"mapcount",
     [](fb::PlanT &p, const std::string &) {
       if (fb::StepT *step = launch(p, true))
         step->segments[0]->count = uint64_t{1} << 33;
     }},
    {"fewbuffers",
     [](fb::PlanT &p, const std::string &) {
       if (fb::StepT *step = launch(p, false))
         step->segments[0]->buffers.resize(1);
     }},
    {"nobuffers",
     [](fb::PlanT &p, const std::string &) {
       if (fb::StepT *step = launch(p, false))
         step->segments[0]->buffers.clear();
     }},
    {"nocode",
     [](fb::PlanT &p, const std::string &) {
       for (auto &target : p.targets)
         p.sections[target->section]->size = std::min<uint64_t>(p.sections[target->section]->size, 64);
     }},
    {"compact", [](fb::PlanT &p, const std::string &) { mtrun::compactTables(p); }},
    {"smallvar",
     [](fb::PlanT &p, const std::string &) {
       for (auto &variable : p.variables) {
         uint64_t elements = 1;
         for (int64_t dim : variable->shape)
           elements *= static_cast<uint64_t>(dim);
         variable->size /= elements ? elements : 1;
         variable->shape.clear();
       }
     }},
};

static std::string readAll(const char *path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

static int craftPlan(const char *from, const char *to, const std::string &name, const std::string &text) {
  std::string bytes = readAll(from);
  mt_plan_header header;
  auto change = changes.find(name);
  if (bytes.size() < sizeof header || change == changes.end())
    return std::fprintf(stderr, "craft: expected a plan and a change, found %s and %s\n", from, name.c_str()), 2;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::string tables = bytes.substr(64, header.tables_size);
  fb::PlanT plan;
  fb::GetPlan(tables.data())->UnPackTo(&plan);
  if (std::string fault = mtrun::expandTables(plan); !fault.empty())
    return std::fprintf(stderr, "craft: %s: %s\n", from, fault.c_str()), 2;
  change->second(plan, text);
  std::vector<mtrun::SectionBytes> sections;
  for (const auto &section : plan.sections)
    sections.push_back(
        {section->name,
         {reinterpret_cast<const uint8_t *>(bytes.data()) + section->offset, static_cast<size_t>(section->size)}});
  std::vector<uint8_t> made = mtrun::writePlanFile(plan, sections);
  std::ofstream(to, std::ios::binary)
      .write(reinterpret_cast<const char *>(made.data()), static_cast<long>(made.size()));
  return 0;
}

int main(int argc, char **argv) {
  std::string command = argc > 1 ? argv[1] : "";
  if (command == "plan" && argc >= 5)
    return craftPlan(argv[2], argv[3], argv[4], argc > 5 ? argv[5] : "");
  if (command != "seal" || argc != 3)
    return std::fprintf(stderr, "usage: craft plan IN OUT CHANGE [TEXT] | craft seal FILE\n"), 2;
  std::string text = readAll(argv[2]);
  text.resize(text.size() - mtrun::sealBytes);
  text += "\n}";
  mtrun::seal(text);
  std::ofstream(argv[2], std::ios::binary) << text;
  return 0;
}
