// SPDX-License-Identifier: Apache-2.0
//
// The plan dialect: where and when. One to one with runtime/abi/plan.fbs, which says what each field means.
#ifndef PLAN_OPS_TD
#define PLAN_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::mlir::plan";
  let summary = "where and when a plan's kernels run";
  let description = [{
    Made by `mt-allocate`, completed by `plan-codegen`, written by the plan stage. Parameters are in the module's
    `mt.compilation`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;
class Plan_I32Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::plan";
  let genSpecializedAttr = 0;
}

def Plan_Space : Plan_I32Enum<"Space", "where a buffer lives", [
  I32EnumAttrCase<"arena", 0>, I32EnumAttrCase<"shared", 1>, I32EnumAttrCase<"variable", 2>,
  I32EnumAttrCase<"signature", 3>,
  I32EnumAttrCase<"constant", 4>]>;
def Plan_SpaceAttr : EnumAttr<Plan_Dialect, Plan_Space, "space"> { let assemblyFormat = "$value"; }
def Plan_Wait : Plan_I32Enum<"Wait", "what must have finished before a step starts", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"device", 1>, I32EnumAttrCase<"all", 2>]>;
def Plan_Finalizer : Plan_I32Enum<"Finalizer", "what a metric is of its sums over steps", [
  I32EnumAttrCase<"mean", 0>, I32EnumAttrCase<"root_mean", 1>, I32EnumAttrCase<"roc", 2>,
  I32EnumAttrCase<"precision_recall", 3>,
  I32EnumAttrCase<"f1_macro", 4>, I32EnumAttrCase<"f1_weighted", 5>]>;
def Plan_FinalizerAttr : EnumAttr<Plan_Dialect, Plan_Finalizer, "finalizer"> { let assemblyFormat = "$value"; }
def Plan_Better : Plan_I32Enum<"Better", "which of two values of a metric is the better one", [
  I32EnumAttrCase<"lower", 0>, I32EnumAttrCase<"higher", 1>]>;
def Plan_BetterAttr : EnumAttr<Plan_Dialect, Plan_Better, "better"> { let assemblyFormat = "$value"; }
def Plan_Role : Plan_I32Enum<"Role", "what an entry of a signature is; numbers as in plan.fbs", [
  I32EnumAttrCase<"input", 0>, I32EnumAttrCase<"target", 1>, I32EnumAttrCase<"sample_weight", 2>,
  I32EnumAttrCase<"output", 3>]>;
def Plan_RoleAttr : EnumAttr<Plan_Dialect, Plan_Role, "role"> { let assemblyFormat = "$value"; }
// Enums of the dialect mt, which has defined them.
class Plan_MtEnum<string name, string summary> : Attr<CPred<"::llvm::isa<::mlir::mt::" # name # "Attr>($_self)">,
                                                      summary> {
  let storageType = "::mlir::mt::" # name # "Attr";
  let returnType = "::mlir::mt::" # name;
  let convertFromStorage = "$_self.getValue()";
}
def Plan_KernelKind : Plan_MtEnum<"KernelKind", "an mt.kernel_kind">;
def Plan_VariableKind : Plan_MtEnum<"VariableKind", "an mt.variable_kind">;
def Plan_VariableRole : Plan_MtEnum<"VariableRole", "an mt.variable_role">;
def Plan_WaitAttr : EnumAttr<Plan_Dialect, Plan_Wait, "wait"> { let assemblyFormat = "$value"; }

// What a library's call computes of a kernel; numbers of the enums as in plan.fbs, which describes them.
def Plan_CallKind : Plan_I32Enum<"CallKind", "what a library's call computes", [
  I32EnumAttrCase<"product", 0>, I32EnumAttrCase<"product_tree", 1>, I32EnumAttrCase<"convolution", 2>,
  I32EnumAttrCase<"convolution_input", 3>, I32EnumAttrCase<"convolution_tree", 4>]>;
def Plan_CallMath : Plan_I32Enum<"CallMath", "what a library may round the operands of products to", [
  I32EnumAttrCase<"f32", 0>, I32EnumAttrCase<"tf32", 1>]>;
def Plan_CallEpilogue : Plan_I32Enum<"CallEpilogue", "what a library does to each element of its result", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"relu", 1>, I32EnumAttrCase<"bias", 2>,
  I32EnumAttrCase<"bias_relu", 3>]>;
class Plan_Attr<string name, string attrMnemonic> : AttrDef<Plan_Dialect, name> { let mnemonic = attrMnemonic; }
def Plan_ProductSizesAttr : Plan_Attr<"ProductSizes", "product_sizes"> {
  let summary = "sizes of a product: [lines, depth] of a sample times [depth, columns], or, where it is transposed, "
                "times [columns, depth]";
  let parameters = (ins "int64_t":$lines, "int64_t":$depth, "int64_t":$columns,
                        DefaultValuedParameter<"bool", "false">:$transposed);
  let assemblyFormat = "`<` struct(params) `>`";
}
def Plan_AxisAttr : Plan_Attr<"Axis", "axis"> {
  let summary = "an axis of a convolution: output o at tap k reads input o * stride + k * dilation - low";
  let parameters = (ins "int64_t":$inputs, "int64_t":$outputs, "int64_t":$taps, "int64_t":$stride,
                        "int64_t":$dilation, "int64_t":$low, "int64_t":$high);
  let assemblyFormat = "`<` struct(params) `>`";
}
def Plan_ConvolutionSizesAttr : Plan_Attr<"ConvolutionSizes", "convolution_sizes"> {
  let summary = "sizes of a convolution";
  let parameters = (ins "::mlir::plan::AxisAttr":$down, "::mlir::plan::AxisAttr":$across, "int64_t":$channels,
                        "int64_t":$filters, "int64_t":$groups);
  let assemblyFormat = "`<` struct(params) `>`";
}
def Plan_LibraryCallAttr : Plan_Attr<"LibraryCall", "library_call"> {
  let summary = "the call of a GPU library that computes what a kernel does";
  let description = [{
    `left`, `right`, `bias` and `result` are numbers of the kernel's buffers: the arguments of its body, then its
    results. A call has the sizes of a `product` or of a `convolution`, as its kind says. `plan.kernel` verifies that
    its body's operands and result have these sizes.
  }];
  let parameters = (ins EnumParameter<Plan_CallKind>:$kind, EnumParameter<Plan_CallMath>:$math,
                        EnumParameter<Plan_CallEpilogue>:$epilogue, "int64_t":$left, "int64_t":$right,
                        "int64_t":$result, DefaultValuedParameter<"int64_t", "-1", "none">:$bias,
                        OptionalParameter<"::mlir::plan::ProductSizesAttr">:$product,
                        OptionalParameter<"::mlir::plan::ConvolutionSizesAttr">:$convolution);
  let assemblyFormat = "`<` $kind `,` struct($math, $epilogue, $left, $right, $result, $bias, $product, $convolution) "
                       "`>`";
}

def Plan_GpuGridAttr : Plan_Attr<"GpuGrid", "gpu_grid"> {
  let summary = "how a kernel's tiles are counted on a GPU, where a block computes one";
  let description = [{
    `threads` of a block; `rows_per_tile` and `inner_tiles`, or `elements_per_tile`, as in `plan.kernel`; bytes of
    workgroup memory (`shared_bytes`); bytes of partial sums in device memory, of a segment (`partial_bytes`).
  }];
  let parameters = (ins "int64_t":$threads, DefaultValuedParameter<"int64_t", "0">:$rows_per_tile,
                        DefaultValuedParameter<"int64_t", "1">:$inner_tiles,
                        DefaultValuedParameter<"int64_t", "0">:$elements_per_tile,
                        DefaultValuedParameter<"int64_t", "0">:$shared_bytes,
                        DefaultValuedParameter<"int64_t", "0">:$partial_bytes);
  let assemblyFormat = "`<` struct(params) `>`";
}

def BufferType : TypeDef<Plan_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "a place in memory: !plan.buffer<tensor<?x256xf32>>; `?` is the device's rows";
  let parameters = (ins "::mlir::RankedTensorType":$type);
  let assemblyFormat = "`<` $type `>`";
}

def KernelOp : Plan_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "a kernel's meaning, as mt ops (the body of the mt.kernel it was outlined from, ending in mt.yield), "
                "its kind and grid";
  let description = [{
    An elementwise kernel's body is written for one of its launches' shapes; its code takes the count at run time. The
    grid attributes (`rows_per_tile`, `inner_tiles`, `elements_per_tile`) are set by codegen; costs by mt-allocate.
    `gpu_grid` is there if a GPU is a target. `library_call`, set by `plan-library-calls`: a GPU library may compute the
    kernel in place of its code.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_KernelKind:$kind, I64Attr:$flops_per_row, I64Attr:$flops_fixed,
                   I64Attr:$bytes_per_row, I64Attr:$bytes_fixed,
                       OptionalAttr<I64Attr>:$rows_per_tile, OptionalAttr<I64Attr>:$inner_tiles,
                       OptionalAttr<I64Attr>:$elements_per_tile,
                       OptionalAttr<Plan_GpuGridAttr>:$gpu_grid,
                       OptionalAttr<Plan_LibraryCallAttr>:$library_call);
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}
def VariableOp : Plan_Op<"variable", [Symbol]> {
  let summary = "a variable: its place in the variables block";
  let description = "`role`: the optimizer's learning rate, its step counter, or the average of the variable `of`.";
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_VariableKind:$kind, TypeAttr:$type, I64Attr:$offset,
                   I64Attr:$bytes, OptionalAttr<Plan_VariableRole>:$role,
                       OptionalAttr<StrAttr>:$of);
  let assemblyFormat = "$sym_name $type `at` $offset attr-dict";
}
def ProgramOp : Plan_Op<"program", [Symbol, SingleBlock, NoTerminator, IsolatedFromAbove]> {
  let summary = "buffers, then steps in order";
  let description = "`variant_arena` and `variant_bound`: bytes of the arena and of the liveness bound for 1, 2, 4 ... "
                    "R shards; `shared_bytes`.";
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$variant_arena, DenseI64ArrayAttr:$variant_bound,
                   I64Attr:$shared_bytes);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}
def SignatureOp : Plan_Op<"signature"> {
  let summary = "the next entry of the program's signature";
  let arguments = (ins StrAttr:$name, Plan_RoleAttr:$role, TypeAttr:$type, OptionalAttr<I64Attr>:$limit);
  let assemblyFormat = "`` $role $name $type (`limit` `=` $limit^)? attr-dict";
}
def BufferOp : Plan_Op<"buffer"> {
  let summary = "a place: arena offsets for each variant; shared or constant: one offset; variable or signature: "
                "`ref`, its name";
  let arguments = (ins StrAttr:$name, Plan_SpaceAttr:$space, DenseI64ArrayAttr:$offsets, OptionalAttr<StrAttr>:$ref,
                   OptionalAttr<ElementsAttr>:$value);
  let results = (outs BufferType:$result);
  let assemblyFormat = "$name `` $space $offsets (`of` $ref^)? (`=` $value^)? attr-dict `:` type($result)";
}
def LaunchOp : Plan_Op<"launch", [AttrSizedOperandSegments]> {
  let summary = "runs a kernel: reads, then writes. Elementwise kernels: several segments, `counts` elements each, "
                "buffers segment after segment";
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<BufferType>:$reads, Variadic<BufferType>:$writes,
                   DenseI64ArrayAttr:$counts,
                       Plan_WaitAttr:$wait, UnitAttr:$share);
  let assemblyFormat = "$kernel `wait` `` $wait (`share` $share^)? `reads` `(` ($reads^ `:` type($reads))? `)` "
                       "`writes` `(` ($writes^ `:` type($writes))? `)` `counts` $counts attr-dict";
}
def AllReduceOp : Plan_Op<"all_reduce", [AttrSizedOperandSegments]> {
  let summary = "a bucket: partial sums, contiguous in the arena in this order, to results, contiguous in shared in "
                "the same order";
  let description = "It waits for all devices before and after. `order` is its place in the one total order of the "
                    "program's collectives.";
  let arguments = (ins I64Attr:$order, Variadic<BufferType>:$partials, Variadic<BufferType>:$results, I64Attr:$bytes);
  let assemblyFormat = "$order `bytes` $bytes `partials` `(` ($partials^ `:` type($partials))? `)` `results` `(` "
                       "($results^ `:` type($results))? `)` attr-dict";
}
def ResultOp : Plan_Op<"result"> {
  let summary = "a loss or metric: buffers of its value, or of its sums, and weight";
  let arguments = (ins StrAttr:$name, BufferType:$value, BufferType:$weight, UnitAttr:$loss,
                       DefaultValuedAttr<Plan_FinalizerAttr, "::mlir::plan::Finalizer::mean">:$finalizer,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$shape,
                       DefaultValuedAttr<Plan_BetterAttr, "::mlir::plan::Better::lower">:$better);
  let assemblyFormat = [{$name `,` $value `,` $weight (`loss` $loss^)? (`finalizer` `` $finalizer^)? (`shape` $shape^)?
    (`better` `` $better^)? attr-dict `:` type($value) `,` type($weight)}];
}
def RateOp : Plan_Op<"rate"> {
  let summary = "the buffer that holds the learning rate of this step, where a schedule computes it";
  let arguments = (ins BufferType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}
#endif
