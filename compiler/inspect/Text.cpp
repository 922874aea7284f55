// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Alive.h"
#include "compiler/inspect/Inspect.h"
#include "compiler/inspect/Layers.h"
#include "compiler/inspect/Tables.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace mtc {

namespace fb = ::mt::plan;

namespace {

class TextPrinter {
public:
  TextPrinter(const mtrun::PlanFileView &view, llvm::raw_ostream &out) : view(view), plan(*view.tables), out(out) {}

  void print() {
    out << "plan of " << (plan.model() ? plan.model()->str() : "") << ": batch " << plan.batch() << ", "
        << plan.shards() << " shards of " << plan.shard_rows() << " rows, mode " << (plan.fast() ? "fast" : "exact")
        << ", precision " << (plan.precision() ? plan.precision()->str() : "f32") << ", seed " << plan.seed() << "\n"
        << "format " << plan.version() << ", made by " << (plan.producer() ? plan.producer()->str() : "") << ", "
        << bytesText(view.file.size()) << "\n";
    if (const auto *fixed = plan.fixed_batch())
      out << "every step has " << fixed->rows() << " samples, from which numbers of the model follow\n";
    if (std::string lengths = lengthsText(plan); !lengths.empty())
      out << "programs for sequences of lengths " << lengths << "; "
          << (plan.length_input() ? "the input " + plan.length_input()->str() + " says" : std::string("all inputs say"))
          << " how long a sample is\n";
    print("code", targetTable(plan));
    memory();
    layers();
    print("variables", variableTable(plan));
    print("kernels (a unit is a row, or an element of an elementwise kernel)", kernelTable(plan));
    gpuKernels();
    libraryCalls();
    for (const fb::Program *program : each(plan.programs()))
      this->program(factsOf(*program));
  }

private:
  void title(const std::string &text) { out << "\n" << text << "\n"; }

  void print(const std::string &heading, const Table &table) {
    title(heading);
    table.printText(out);
  }

  void memory() {
    title("memory of a device, bytes: variables " + std::to_string(plan.variables_bytes()) +
          ", constants, the largest shared block and arena of all programs, staging of all-reduces, a CPU thread's "
          "scratch");
    memoryTable(plan).printText(out);
    if (uint64_t scratch = mtrun::deviceMemory(plan, 0).scratch)
      out << "  with " << scratch << " bytes of scratch for each CPU thread\n";
    if (plan.micro_batches() > 1)
      out << "  with " << plan.micro_batches() << " micro-batches; a device computes one at a time\n";
    if (plan.min_devices() > 1)
      out << "  made for " << plan.min_devices() << " devices or more\n";
  }

  // Prints the layers of the main program: forward pass, backward pass and update in one sum.
  void layers() {
    const fb::Program *program = mainProgram(plan);
    if (!program)
      return;
    title("layers in " + program->name()->str() + ", at batch " + std::to_string(plan.batch()) + " on one device");
    Table table("|layer; |result; |parameters; |launches; |FLOP; |bytes");
    for (const LayerFacts &layer : layersOf(plan, *program))
      table.add({layer.name.empty() ? "(of no single layer)" : layer.name, layer.shape.empty() ? "-" : layer.shape,
                 layer.parameters ? std::to_string(layer.parameters) : "-", std::to_string(layer.steps.size()),
                 std::to_string(layer.cost.flops), std::to_string(layer.cost.bytes)});
    table.printText(out);
  }

  // Prints the grids of kernels on a GPU, and the registers and spilled bytes for each assembled target.
  void gpuKernels() {
    if (llvm::none_of(each(plan.kernels()), [](const fb::Kernel *kernel) { return kernel->gpu(); }))
      return;
    title("kernels on a GPU (registers/spilled bytes of a thread for each target)");
    std::string head = "|name; |grid; |threads; |shared bytes";
    std::vector<const fb::Target *> targets;
    for (const fb::Target *target : each(plan.targets()))
      if (target->usage() && target->usage()->size() == plan.kernels()->size()) {
        targets.push_back(target);
        head += "; |" + target->name()->str();
      }
    Table table(head);
    for (uint32_t i = 0; i < plan.kernels()->size(); ++i) {
      const fb::Kernel *kernel = plan.kernels()->Get(i);
      if (!kernel->gpu())
        continue;
      std::vector<Cell> line{
          kernel->name()->str(),
          gridText(kernel->gpu()->rows_per_tile(), kernel->gpu()->inner_tiles(), kernel->gpu()->elements_per_tile()),
          std::to_string(kernel->gpu()->threads()), std::to_string(kernel->gpu()->shared_bytes())};
      for (const fb::Target *target : targets) {
        const fb::GpuUsage *usage = target->usage()->Get(i);
        line.push_back(std::to_string(usage->registers()) + "/" + std::to_string(usage->spill_bytes()));
      }
      table.add(line);
    }
    table.printText(out);
  }

  // Prints the kernels that may run as library calls, and what each call computes.
  void libraryCalls() {
    if (!plan.call_workspace())
      return;
    title("library calls, with at most " + bytesText(plan.call_workspace()) + " of workspace");
    Table table("|kernel; |call; |left; |right; |epilogue");
    for (const fb::Kernel *kernel : each(plan.kernels())) {
      const fb::LibraryCall *call = kernel->gpu() ? kernel->gpu()->call() : nullptr;
      if (!call)
        continue;
      auto sizes = [](std::initializer_list<uint64_t> numbers) {
        std::string text;
        for (uint64_t number : numbers)
          text += (text.empty() ? "" : " x ") + std::to_string(number);
        return text;
      };
      std::string left, right;
      if (const fb::CallAxis *down = call->down(), *across = call->across(); down && across) {
        std::string kernelSizes =
            sizes({down->taps(), across->taps(), call->channels() / call->groups(), call->filters()});
        std::string images = sizes({down->inputs(), across->inputs(), call->channels()});
        std::string outputs = sizes({down->outputs(), across->outputs(), call->filters()});
        left = call->kind() == fb::CallKind::ConvolutionInput ? outputs : images;
        right = call->kind() == fb::CallKind::ConvolutionTree ? outputs : kernelSizes;
      } else {
        left = sizes({call->lines(), call->depth()});
        right = call->kind() == fb::CallKind::ProductTree ? sizes({call->lines(), call->columns()})
                : call->transposed()                      ? sizes({call->columns(), call->depth()})
                                                          : sizes({call->depth(), call->columns()});
      }
      table.add({kernel->name()->str(), mtrun::enumName(EnumNameCallKind(call->kind())), left, right,
                 mtrun::enumName(EnumNameCallEpilogue(call->epilogue()))});
    }
    table.printText(out);
  }

  void program(const ProgramFacts &facts) {
    const fb::Program &program = *facts.program;
    title("program " + program.name()->str());
    signature(program);
    steps(facts);
    memoryMap(facts);
  }

  void signature(const fb::Program &program) {
    Table table = signatureTable(program);
    for (const fb::Metric *metric : each(program.metrics()))
      table.add({{}, metric->is_loss() ? "loss" : "metric", text(metric->name()), {}, "f32[]", {}, {}});
    if (program.signature() || program.metrics())
      table.printText(out);
  }

  // Prints the steps with their costs on one device that computes the whole batch.
  void steps(const ProgramFacts &facts) {
    LaunchCost total;
    for (const fb::Step *step : each(facts.program->steps())) {
      LaunchCost cost = costOf(plan, *step, plan.batch()); // none of all-reduces
      total.flops += cost.flops;
      total.bytes += cost.bytes;
    }
    print(" steps, at batch " + std::to_string(plan.batch()) + ": " + flopsText(total.flops) + ", " +
              bytesText(total.bytes),
          stepTable(plan, facts));
    if (!facts.reduceSteps.empty())
      print(" all-reduces, in order; bytes received by all devices in sum (by the device that receives most), if "
            "each has its own variables",
            collectiveTable(plan, facts));
  }

  void memoryMap(const ProgramFacts &facts) {
    const fb::Program &program = *facts.program;
    title(" memory, offset + bytes by the shards of a device; alive from the first to the last step");
    std::string head = "|buffer; |where; |alive";
    for (const fb::Variant *variant : each(program.variants()))
      head += "; |" + std::to_string(variant->shards()) + (variant->shards() == 1 ? " shard" : " shards");
    Table table(head);
    for (size_t i = 0; i < facts.lifetimes.size(); ++i)
      bufferRow(facts, i, table);
    for (bool bound : {false, true}) {
      std::vector<Cell> row = {bound ? "liveness bound" : "arena", "", ""};
      for (const fb::Variant *variant : each(program.variants()))
        row.push_back(std::to_string(bound ? variant->bound_bytes() : variant->arena_bytes()));
      table.add(row);
    }
    table.add({"shared block", "", "", std::to_string(program.shared_bytes())});
    table.printText(out);
    alive(facts);
  }

  // Prints the largest values of the phase with the most live bytes.
  void alive(const ProgramFacts &facts) {
    constexpr size_t shown = 10;
    AliveFacts alive = aliveOf(plan, facts);
    if (alive.values.empty())
      return;
    title(" alive at the peak of a device with " + std::to_string(uint64_t{1} << alive.variant) + " shards, phase " +
          std::to_string(alive.peak) + ": " + std::to_string(alive.bytes[static_cast<size_t>(alive.peak)]) + " bytes");
    Table table("|value; |shape; |bytes; |alive");
    for (const AliveValue &value : llvm::ArrayRef(alive.values).take_front(shown))
      table.add({value.name, value.shape.empty() ? "-" : value.shape, std::to_string(value.bytes),
                 std::to_string(value.firstStep) + "-" + std::to_string(value.lastStep)});
    table.printText(out);
    if (alive.values.size() > shown)
      out << "  and " << alive.values.size() - shown << " others\n";
  }

  void bufferRow(const ProgramFacts &facts, size_t index, Table &table) {
    const fb::Buffer &buffer = *facts.program->buffers()->Get(index);
    if (buffer.space() != fb::Space::Arena && buffer.space() != fb::Space::Shared)
      return;
    const Lifetime &life = facts.lifetimes[index];
    std::string where = mtrun::enumName(EnumNameSpace(buffer.space()));
    if (facts.collectives[index] >= 0)
      where += (buffer.space() == fb::Space::Arena ? ", partial sum of " : ", sum of ") +
               std::to_string(facts.collectives[index]);
    std::vector<Cell> row = {buffer.name()->str(), where,
                             life.used() ? std::to_string(life.firstStep) + "-" + std::to_string(life.lastStep) : "-"};
    size_t variant = 0;
    for (uint64_t offset : each(buffer.offset())) {
      uint64_t rows = plan.shard_rows() << variant++;
      row.push_back(std::to_string(offset) + " + " + std::to_string(buffer.fixed_bytes() + buffer.row_bytes() * rows));
    }
    table.add(row);
  }

  const mtrun::PlanFileView &view;
  const fb::Plan &plan;
  llvm::raw_ostream &out;
};

} // namespace

std::string inspectText(const mtrun::PlanFileView &view) {
  std::string result;
  llvm::raw_string_ostream stream(result);
  TextPrinter(view, stream).print();
  return result;
}

} // namespace mtc
