// SPDX-License-Identifier: Apache-2.0
#include "compiler/inspect/Tables.h"

#include "compiler/inspect/Layers.h"
#include "runtime/support/optimizer_parts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

namespace mtc {

namespace fb = ::mt::plan;
using llvm::formatv;
using mtrun::enumName;

std::string text(const flatbuffers::String *name) { return name ? name->str() : ""; }

Cell listOf(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *names) {
  llvm::json::Array array;
  std::string words;
  for (const flatbuffers::String *name : each(names)) {
    array.push_back(llvm::json::fixUTF8(name->string_view()));
    words += (words.empty() ? "" : " ") + name->str();
  }
  Cell cell(llvm::json::Value(std::move(array)));
  cell.text = words;
  return cell;
}

Cell intensityCell(const LaunchCost &cost) {
  Cell cell(cost.bytes ? formatv("{0:f2}", static_cast<double>(cost.flops) / static_cast<double>(cost.bytes)).str()
                       : "");
  if (cell.text.empty())
    cell.text = "-";
  return cell;
}

static Cell usageOf(const fb::Target &target) {
  Table table("registers; shared_bytes; stack_bytes; spill_bytes; dynamic_shared_bytes");
  for (const fb::GpuUsage *usage : each(target.usage()))
    table.add({usage->registers(), usage->shared_bytes(), usage->stack_bytes(), usage->spill_bytes(),
               usage->dynamic_shared_bytes()});
  return target.usage() ? Cell(table) : Cell();
}

Table targetTable(const fb::Plan &plan) {
  Table table("name|target; code_bytes|bytes; features|needs; device; usage");
  for (const fb::Target *target : each(plan.targets()))
    table.add({text(target->name()), plan.sections()->Get(target->section())->size(), listOf(target->features()),
               target->device() ? text(target->device()) : "cpu", usageOf(*target)});
  return table;
}

Table memoryTable(const fb::Plan &plan) {
  Table table("shards|shards; peak_bytes|peak; bound_bytes|bound; |peak/bound");
  uint32_t variant = 0;
  for (uint32_t shards = 1; shards <= plan.shards(); shards *= 2, ++variant) {
    uint64_t peak = mtrun::deviceMemory(plan, variant).bytes(), bound = boundBytes(plan, variant);
    table.add({shards, peak, bound,
               bound ? formatv("{0:f4}", static_cast<double>(peak) / static_cast<double>(bound)).str() : "-"});
  }
  return table;
}

// Up to 8 devices each number has a row, then the powers of two. No rows: the optimizer cannot be divided.
Table optimizerTable(const fb::Plan &plan) {
  Table table("devices; variables_bytes");
  constexpr uint32_t all = 8;
  for (uint32_t n = 2; n <= plan.shards(); n = n < all ? n + 1 : 2 * n) {
    mtrun::OptimizerParts parts;
    if (!mtrun::divideOptimizer(plan, static_cast<int>(n), parts).ok())
      break;
    uint64_t most = 0;
    for (uint32_t device = 0; device < n; ++device)
      most = std::max(most, mtrun::placeVariables(plan, parts, static_cast<int>(device)).bytes);
    table.add({n, most});
  }
  return table;
}

// "f32[?, 784]".
static std::string typeText(fb::DType dtype, const flatbuffers::Vector<int64_t> *shape) {
  std::string text = enumName(EnumNameDType(dtype)) + "[";
  for (int64_t dimension : each(shape))
    text += (text.back() == '[' ? "" : ", ") + (dimension < 0 ? std::string("?") : std::to_string(dimension));
  return text + "]";
}

Table variableTable(const fb::Plan &plan) {
  Table table("name|name|name; dtype; shape|type|shape; kind|kind|kind; offset|offset; bytes|bytes|#bytes");
  for (const fb::Variable *variable : each(plan.variables())) {
    Cell shape = listOf(variable->shape());
    shape.text = typeText(variable->dtype(), variable->shape());
    shape.html = shapeOf(*variable);
    table.add({text(variable->name()), enumName(EnumNameDType(variable->dtype())), shape,
               enumName(EnumNameVariableKind(variable->kind())), variable->offset(), variable->size()});
  }
  return table;
}

std::string gridText(uint64_t rowsPerTile, uint64_t innerTiles, uint64_t elementsPerTile) {
  if (elementsPerTile)
    return "elements / " + std::to_string(elementsPerTile);
  if (!rowsPerTile)
    return std::to_string(innerTiles);
  return "rows / " + std::to_string(rowsPerTile) + (innerTiles == 1 ? "" : " x " + std::to_string(innerTiles));
}

static Cell gpuOf(const fb::GpuGrid *grid) {
  if (!grid)
    return {};
  Cell cell;
  cell.json = [grid](llvm::json::OStream &out) {
    Table table("threads; rows_per_tile; inner_tiles; elements_per_tile; shared_bytes; partial_bytes; library_call");
    const fb::LibraryCall *call = grid->call();
    table.add({grid->threads(), grid->rows_per_tile(), grid->inner_tiles(), grid->elements_per_tile(),
               grid->shared_bytes(), grid->partial_bytes(),
               call ? Cell(enumName(EnumNameCallKind(call->kind()))) : Cell()});
    table.printJson(out);
  };
  return cell;
}

Table kernelTable(const fb::Plan &plan) {
  Table table("name|name; kind|kind; |grid; rows_per_tile; inner_tiles; elements_per_tile; uses_rows; "
              "flops_per_row|FLOP/unit; flops_fixed|FLOP fixed; bytes_per_row|bytes/unit; bytes_fixed|bytes fixed; "
              "scratch_bytes; random; gpu");
  for (const fb::Kernel *kernel : each(plan.kernels()))
    table.add({text(kernel->name()), enumName(EnumNameKernelKind(kernel->kind())),
               gridText(kernel->rows_per_tile(), kernel->inner_tiles(), kernel->elements_per_tile()),
               kernel->rows_per_tile(), kernel->inner_tiles(), kernel->elements_per_tile(), kernel->uses_rows(),
               kernel->flops_per_row(), kernel->flops_fixed(), kernel->bytes_per_row(), kernel->bytes_fixed(),
               kernel->scratch_bytes(), kernel->random(), gpuOf(kernel->gpu())});
  return table;
}

Table signatureTable(const fb::Program &program) {
  Table table("name; role|takes and gives; |_; dtype; shape|_; row_bytes; optional");
  for (const fb::SignatureEntry *entry : each(program.signature())) {
    Cell shape = listOf(entry->shape());
    shape.text = typeText(entry->dtype(), entry->shape()) + (entry->optional() ? ", optional" : "");
    table.add({text(entry->name()), enumName(EnumNameRole(entry->role())), text(entry->name()),
               enumName(EnumNameDType(entry->dtype())), shape, entry->row_bytes(), entry->optional()});
  }
  return table;
}

Table metricTable(const fb::Program &program) {
  Table table("name; loss; value; weight; finalizer; better");
  for (const fb::Metric *metric : each(program.metrics()))
    table.add({text(metric->name()), metric->is_loss(), metric->value(), metric->weight(),
               enumName(EnumNameFinalizer(metric->finalizer())), enumName(EnumNameBetter(metric->better()))});
  return table;
}

static Cell segmentsOf(const fb::Step &step) {
  Table table("count; buffers");
  for (const fb::Segment *segment : each(step.segments()))
    table.add({segment->count(), listOf(segment->buffers())});
  return table;
}

Table stepTable(const fb::Plan &plan, const ProgramFacts &facts) {
  Table table("|step|#step; phase|phase|#phase; collective; kernel; wait|waits for|waits for; |what|what.k; "
              "||reads → writes.ops; share; layer||layer; flops|FLOP|#FLOP; bytes|bytes|#bytes; |FLOP/byte; segments");
  for (size_t i = 0; i < facts.phases.size(); ++i) {
    const fb::Step &step = *facts.program->steps()->Get(static_cast<uint32_t>(i));
    LaunchCost cost = costOf(plan, step, plan.batch());
    Cell what = launchCell(plan, step), operands = operandsCell(plan, *facts.program, step), flops(cost.flops);
    if (step.kernel() < 0) {
      Cell bytes(step.partial_bytes()), waits("all");
      flops.text = "-";
      flops.json = bytes.json = waits.json = nullptr;
      table.add({i, facts.phases[i], step.collective(), {}, waits, what, operands, {}, {}, flops, bytes, "-", {}});
      continue;
    }
    Cell waits(step.tail() ? "tail" : enumName(EnumNameWait(step.wait()))), layer(layerName(plan, step));
    waits.text += step.share() ? ", shared out" : "";
    if (size_t segments = each(step.segments()).size(); segments != 1)
      what.text += " (" + std::to_string(segments) + " segments)";
    if (step.layer() < 0)
      layer.json = nullptr;
    table.add({i,
               facts.phases[i],
               {},
               kernelName(plan, step),
               waits,
               what,
               operands,
               step.share(),
               layer,
               flops,
               cost.bytes,
               intensityCell(cost),
               segmentsOf(step)});
  }
  return table;
}

Table collectiveTable(const fb::Plan &plan, const ProgramFacts &facts) {
  std::string columns = "|order; step|step; bytes|bytes; partial_offsets; result_offset; moved";
  for (uint32_t devices : reportedDevices(plan.shards()))
    columns += "; |N = " + std::to_string(devices);
  Table table(columns);
  for (auto [order, index] : llvm::enumerate(facts.reduceSteps)) {
    const fb::Step &step = *facts.program->steps()->Get(index);
    Table moved("devices; total_bytes; device_bytes");
    std::vector<Cell> texts;
    for (uint32_t devices : reportedDevices(plan.shards())) {
      BytesMoved bytes = bytesMoved(plan, devices, step.partial_bytes(), plan.batch());
      uint64_t largest = *std::max_element(bytes.received.begin(), bytes.received.end());
      moved.add({devices, bytes.total(), largest});
      texts.push_back(std::to_string(bytes.total()) + " (" + std::to_string(largest) + ")");
    }
    std::vector<Cell> row = {order, index, step.partial_bytes(), listOf(step.partial_offset()), step.result_offset(),
                             moved};
    row.insert(row.end(), texts.begin(), texts.end());
    table.add(row);
  }
  return table;
}

} // namespace mtc
