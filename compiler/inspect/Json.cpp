// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Facts.h"
#include "compiler/inspect/Inspect.h"

#include "llvm/Support/JSON.h"

namespace mtc {

namespace fb = ::mt::plan;
using llvm::json::OStream;

namespace {

std::string lower(const char *name) { return llvm::StringRef(name).lower(); }
llvm::StringRef text(const flatbuffers::String *string) {
  return string ? llvm::StringRef(string->data(), string->size()) : llvm::StringRef();
}

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
      json.attributeArray("lengths", [&] { lengths(); });
      if (plan.length_input())
        json.attribute("length_input", name(plan.length_input()));
      json.attributeArray("input_scaling", [&] { inputScaling(); });
      json.attribute("scratch_bytes", mtrun::deviceMemory(plan, 0).scratch);
      json.attributeArray("devices", [&] { devices(); });
      json.attributeArray("targets", [&] { targets(); });
      json.attributeArray("variables", [&] { variables(); });
      json.attributeArray("kernels", [&] { kernels(); });
      json.attributeArray("programs", [&] {
        for (const fb::Program *each : mtc::each(plan.programs()))
          program(factsOf(*each));
      });
    });
  }

private:
  // Names of a plan may have any bytes; JSON strings must be UTF-8.
  static std::string name(const flatbuffers::String *string) { return llvm::json::fixUTF8(text(string)); }

  void shape(const flatbuffers::Vector<int64_t> *dimensions) {
    json.attributeArray("shape", [&] {
      for (int64_t dimension : each(dimensions))
        json.value(dimension);
    });
  }

  void strings(llvm::StringRef key, const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *list) {
    json.attributeArray(key, [&] {
      for (const flatbuffers::String *string : each(list))
        json.value(name(string));
    });
  }

  // Writes each length with the names of its programs.
  void lengths() {
    for (const fb::Length *length : each(plan.lengths()))
      json.object([&] {
        json.attribute("length", length->length());
        auto program = [&](llvm::StringRef key, int32_t index) {
          if (index >= 0)
            json.attribute(key, name(plan.programs()->Get(static_cast<uint32_t>(index))->name()));
        };
        program("train_step", length->train_step());
        program("eval_step", length->eval_step());
        program("predict", length->predict());
      });
  }

  void inputScaling() {
    for (const fb::InputScaling *scaling : each(plan.input_scaling()))
      json.object([&] {
        json.attribute("input", name(scaling->input()));
        json.attribute("scale", scaling->scale());
        json.attribute("offset", scaling->offset());
        json.attribute("per_channel", scaling->per_channel());
      });
  }

  void devices() {
    uint32_t variant = 0;
    for (uint32_t shards = 1; shards <= plan.shards(); shards *= 2, ++variant)
      json.object([&] {
        json.attribute("shards", shards);
        json.attribute("peak_bytes", mtrun::deviceMemory(plan, variant).bytes());
        json.attribute("bound_bytes", boundBytes(plan, variant));
      });
  }

  void targets() {
    for (const fb::Target *target : each(plan.targets()))
      json.object([&] {
        json.attribute("name", name(target->name()));
        json.attribute("code_bytes", plan.sections()->Get(target->section())->size());
        json.attributeArray("features", [&] {
          for (const flatbuffers::String *feature : each(target->features()))
            json.value(name(feature));
        });
        json.attribute("device", target->device() ? name(target->device()) : "cpu");
        if (target->usage())
          json.attributeArray("usage", [&] { usage(*target); });
      });
  }

  void usage(const fb::Target &target) {
    for (const fb::GpuUsage *usage : each(target.usage()))
      json.object([&] {
        json.attribute("registers", usage->registers());
        json.attribute("shared_bytes", usage->shared_bytes());
        json.attribute("stack_bytes", usage->stack_bytes());
        json.attribute("spill_bytes", usage->spill_bytes());
        json.attribute("dynamic_shared_bytes", usage->dynamic_shared_bytes());
      });
  }

  void variables() {
    for (const fb::Variable *variable : each(plan.variables()))
      json.object([&] {
        static constexpr const char *kinds[] = {"trainable", "non_trainable", "slot"};
        json.attribute("name", name(variable->name()));
        json.attribute("dtype", lower(EnumNameDType(variable->dtype())));
        shape(variable->shape());
        json.attribute("kind", kinds[static_cast<int>(variable->kind())]);
        json.attribute("offset", variable->offset());
        json.attribute("bytes", variable->size());
      });
  }

  void kernels() {
    for (const fb::Kernel *kernel : each(plan.kernels()))
      json.object([&] {
        json.attribute("name", name(kernel->name()));
        json.attribute("kind", lower(EnumNameKernelKind(kernel->kind())));
        json.attribute("rows_per_tile", kernel->rows_per_tile());
        json.attribute("inner_tiles", kernel->inner_tiles());
        json.attribute("elements_per_tile", kernel->elements_per_tile());
        json.attribute("uses_rows", kernel->uses_rows());
        json.attribute("flops_per_row", kernel->flops_per_row());
        json.attribute("flops_fixed", kernel->flops_fixed());
        json.attribute("bytes_per_row", kernel->bytes_per_row());
        json.attribute("bytes_fixed", kernel->bytes_fixed());
        json.attribute("scratch_bytes", kernel->scratch_bytes());
        json.attribute("random", kernel->random());
        if (const fb::GpuGrid *grid = kernel->gpu())
          json.attributeObject("gpu", [&] {
            json.attribute("threads", grid->threads());
            json.attribute("rows_per_tile", grid->rows_per_tile());
            json.attribute("inner_tiles", grid->inner_tiles());
            json.attribute("elements_per_tile", grid->elements_per_tile());
            json.attribute("shared_bytes", grid->shared_bytes());
            json.attribute("partial_bytes", grid->partial_bytes());
            if (grid->call())
              json.attribute("library_call", lower(EnumNameCallKind(grid->call()->kind())));
          });
      });
  }

  void program(const ProgramFacts &facts) {
    const fb::Program &program = *facts.program;
    json.object([&] {
      json.attribute("name", name(program.name()));
      json.attributeArray("signature", [&] { signature(program); });
      json.attributeArray("metrics", [&] { metrics(program); });
      json.attribute("shared_bytes", program.shared_bytes());
      json.attributeArray("variants", [&] {
        for (const fb::Variant *variant : each(program.variants()))
          json.object([&] {
            json.attribute("shards", variant->shards());
            json.attribute("arena_bytes", variant->arena_bytes());
            json.attribute("bound_bytes", variant->bound_bytes());
          });
      });
      json.attributeArray("buffers", [&] {
        for (size_t i = 0; i < facts.lifetimes.size(); ++i)
          buffer(facts, i);
      });
      json.attributeArray("steps", [&] {
        for (size_t i = 0; i < facts.phases.size(); ++i)
          step(facts, i);
      });
      json.attributeArray("collectives", [&] {
        for (uint32_t index : facts.reduceSteps)
          collective(*program.steps()->Get(index), index);
      });
    });
  }

  void signature(const fb::Program &program) {
    static constexpr const char *roles[] = {"input", "target", "sample_weight", "output"};
    for (const fb::SignatureEntry *entry : each(program.signature()))
      json.object([&] {
        json.attribute("name", name(entry->name()));
        json.attribute("role", roles[static_cast<int>(entry->role())]);
        json.attribute("dtype", lower(EnumNameDType(entry->dtype())));
        shape(entry->shape());
        json.attribute("row_bytes", entry->row_bytes());
        json.attribute("optional", entry->optional());
      });
  }

  void metrics(const fb::Program &program) {
    for (const fb::Metric *metric : each(program.metrics()))
      json.object([&] {
        json.attribute("name", name(metric->name()));
        json.attribute("loss", metric->is_loss());
        json.attribute("value", metric->value());
        json.attribute("weight", metric->weight());
        json.attribute("finalizer", lower(EnumNameFinalizer(metric->finalizer())));
        json.attribute("better", metric->better() == fb::Better::Higher ? "higher" : "lower");
      });
  }

  void buffer(const ProgramFacts &facts, size_t index) {
    const fb::Buffer &buffer = *facts.program->buffers()->Get(index);
    const Lifetime &life = facts.lifetimes[index];
    json.object([&] {
      json.attribute("name", name(buffer.name()));
      json.attribute("space", lower(EnumNameSpace(buffer.space())));
      json.attribute("dtype", lower(EnumNameDType(buffer.dtype())));
      json.attribute("fixed_bytes", buffer.fixed_bytes());
      json.attribute("row_bytes", buffer.row_bytes());
      json.attributeArray("offsets", [&] {
        for (uint64_t offset : each(buffer.offset()))
          json.value(offset);
      });
      if (buffer.space() == fb::Space::Variable || buffer.space() == fb::Space::Signature)
        json.attribute("index", buffer.index());
      if (facts.collectives[index] >= 0)
        json.attribute("collective", facts.collectives[index]);
      if (!life.used())
        return;
      json.attribute("first_step", life.firstStep);
      json.attribute("last_step", life.lastStep);
      json.attribute("first_phase", life.firstPhase);
      json.attribute("last_phase", life.lastPhase);
    });
  }

  void step(const ProgramFacts &facts, size_t index) {
    const fb::Step &step = *facts.program->steps()->Get(index);
    json.object([&] {
      json.attribute("phase", facts.phases[index]);
      if (step.kernel() < 0) {
        json.attribute("collective", step.collective());
        return;
      }
      LaunchCost cost = costOf(plan, step, plan.batch());
      json.attribute("kernel", name(plan.kernels()->Get(step.kernel())->name()));
      json.attribute("wait", lower(EnumNameWait(step.wait())));
      json.attribute("share", step.share());
      if (step.layer() >= 0)
        json.attribute("layer", name(plan.layers()->Get(step.layer())));
      json.attribute("flops", cost.flops);
      json.attribute("bytes", cost.bytes);
      json.attributeArray("segments", [&] {
        for (const fb::Segment *segment : each(step.segments()))
          json.object([&] {
            json.attribute("count", segment->count());
            json.attributeArray("buffers", [&] {
              for (uint32_t buffer : each(segment->buffers()))
                json.value(buffer);
            });
          });
      });
    });
  }

  void collective(const fb::Step &step, uint32_t index) {
    json.object([&] {
      json.attribute("step", index);
      json.attribute("bytes", step.partial_bytes());
      json.attributeArray("partial_offsets", [&] {
        for (uint64_t offset : each(step.partial_offset()))
          json.value(offset);
      });
      json.attribute("result_offset", step.result_offset());
      json.attributeArray("moved", [&] {
        for (uint32_t devices : reportedDevices(plan.shards())) {
          BytesMoved moved = bytesMoved(plan, devices, step.partial_bytes(), plan.batch());
          json.object([&] {
            json.attribute("devices", devices);
            json.attribute("total_bytes", moved.total());
            json.attribute("device_bytes", *std::max_element(moved.received.begin(), moved.received.end()));
          });
        }
      });
    });
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
