// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Facts.h"
#include "compiler/inspect/Inspect.h"
#include "compiler/inspect/Tables.h"

#include "llvm/Support/JSON.h"

namespace mtc {

namespace fb = ::mt::plan;
using llvm::json::OStream;

namespace {

class JsonPrinter {
public:
  JsonPrinter(const mtrun::PlanFileView &view, OStream &json) : view(view), plan(*view.tables), json(json) {}

  void print() {
    json.object([&] {
      json.attribute("schema", 1);
      json.attribute("format_version", plan.version());
      json.attribute("producer", name(plan.producer()));
      json.attribute("model", name(plan.model()));
      json.attribute("file_bytes", view.file.size());
      json.attribute("batch", plan.batch());
      json.attribute("shards", plan.shards());
      json.attribute("shard_rows", plan.shard_rows());
      json.attribute("mode", plan.fast() ? "fast" : "exact");
      json.attribute("precision", plan.precision() ? plan.precision()->str() : "f32");
      json.attribute("seed", plan.seed());
      json.attribute("min_devices", plan.min_devices());
      json.attribute("micro_batches", plan.micro_batches());
      json.attribute("variables_bytes", plan.variables_bytes());
      json.attribute("constants_bytes", plan.constants() < 0 ? 0 : plan.sections()->Get(plan.constants())->size());
      strings("class_names", plan.class_names());
      strings("vocabulary", plan.vocabulary());
      if (plan.columns())
        json.attribute("columns", name(plan.columns()));
      if (plan.fixed_batch())
        json.attribute("fixed_batch", plan.fixed_batch()->rows());
      array("lengths", lengths());
      if (plan.length_input())
        json.attribute("length_input", name(plan.length_input()));
      array("input_scaling", inputScaling());
      json.attribute("scratch_bytes", mtrun::deviceMemory(plan, 0).scratch);
      array("devices", memoryTable(plan));
      array("sharded_optimizer", optimizerTable(plan));
      array("targets", targetTable(plan));
      array("variables", variableTable(plan));
      array("kernels", kernelTable(plan));
      json.attributeArray("programs", [&] {
        for (const fb::Program *each : mtc::each(plan.programs()))
          program(factsOf(*each));
      });
    });
  }

private:
  // Names of a plan may have any bytes; JSON strings must be UTF-8.
  static std::string name(const flatbuffers::String *string) { return llvm::json::fixUTF8(text(string)); }

  void array(llvm::StringRef key, const Table &table) {
    json.attributeArray(key, [&] { table.printJson(json); });
  }

  void strings(llvm::StringRef key, const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *list) {
    json.attributeBegin(key);
    listOf(list).json(json);
    json.attributeEnd();
  }

  // With the names of each one's programs.
  Table lengths() {
    Table table("length; train_step; eval_step; predict");
    auto program = [&](int32_t index) {
      return index < 0 ? Cell() : Cell(text(plan.programs()->Get(static_cast<uint32_t>(index))->name()));
    };
    for (const fb::Length *length : each(plan.lengths()))
      table.add(
          {length->length(), program(length->train_step()), program(length->eval_step()), program(length->predict())});
    return table;
  }

  Table inputScaling() {
    Table table("input; scale; offset; per_channel");
    for (const fb::InputScaling *scaling : each(plan.input_scaling()))
      table.add({text(scaling->input()), scaling->scale(), scaling->offset(), scaling->per_channel()});
    return table;
  }

  void program(const ProgramFacts &facts) {
    const fb::Program &program = *facts.program;
    Table variants("shards; arena_bytes; bound_bytes");
    for (const fb::Variant *variant : each(program.variants()))
      variants.add({variant->shards(), variant->arena_bytes(), variant->bound_bytes()});
    json.object([&] {
      json.attribute("name", name(program.name()));
      array("signature", signatureTable(program));
      array("metrics", metricTable(program));
      json.attribute("shared_bytes", program.shared_bytes());
      array("variants", variants);
      array("buffers", buffers(facts));
      array("steps", stepTable(plan, facts));
      array("collectives", collectiveTable(plan, facts));
    });
  }

  static Table buffers(const ProgramFacts &facts) {
    Table table("name; space; dtype; fixed_bytes; row_bytes; offsets; index; collective; first_step; last_step; "
                "first_phase; last_phase");
    for (size_t i = 0; i < facts.lifetimes.size(); ++i) {
      const fb::Buffer &buffer = *facts.program->buffers()->Get(static_cast<uint32_t>(i));
      const Lifetime &life = facts.lifetimes[i];
      bool indexed = buffer.space() == fb::Space::Variable || buffer.space() == fb::Space::Signature;
      auto where = [&](int64_t number) { return life.used() ? Cell(number) : Cell(); };
      table.add({text(buffer.name()), mtrun::enumName(EnumNameSpace(buffer.space())),
                 mtrun::enumName(EnumNameDType(buffer.dtype())), buffer.fixed_bytes(), buffer.row_bytes(),
                 listOf(buffer.offset()), indexed ? Cell(buffer.index()) : Cell(),
                 facts.collectives[i] >= 0 ? Cell(facts.collectives[i]) : Cell(), where(life.firstStep),
                 where(life.lastStep), where(life.firstPhase), where(life.lastPhase)});
    }
    return table;
  }

  const mtrun::PlanFileView &view;
  const fb::Plan &plan;
  OStream &json;
};

} // namespace

std::string inspectJson(const mtrun::PlanFileView &view) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  OStream json(stream, 2);
  JsonPrinter(view, json).print();
  stream << "\n";
  return result;
}

} // namespace mtc
