// SPDX-License-Identifier: Apache-2.0
//
// The plan dialect: where values are stored and when kernels run. It corresponds one to one to runtime/abi/plan.fbs,
// which defines each field.
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
  let summary = "buffers and launches of a plan";
  let description = [{
    `mt-allocate` creates the ops, `plan-codegen` adds grids, and the stage `plan` writes the file. The parameters of
    the compilation are in the module's `mt.compilation`.
  }];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

class Plan_Op<string mnemonic, list<Trait> traits = []> : Op<Plan_Dialect, mnemonic, traits>;
class Plan_I32Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::plan";
  let genSpecializedAttr = 0;
}

def Plan_Space : Plan_I32Enum<"Space", "memory space of a buffer", [
  I32EnumAttrCase<"arena", 0>, I32EnumAttrCase<"shared", 1>, I32EnumAttrCase<"variable", 2>,
  I32EnumAttrCase<"signature", 3>,
  I32EnumAttrCase<"constant", 4>]>;
def Plan_SpaceAttr : EnumAttr<Plan_Dialect, Plan_Space, "space"> { let assemblyFormat = "$value"; }
def Plan_Wait : Plan_I32Enum<"Wait", "barrier before a launch", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"device", 1>, I32EnumAttrCase<"all", 2>]>;
def Plan_Finalizer : Plan_I32Enum<"Finalizer", "function of a metric's sums over steps", [
  I32EnumAttrCase<"mean", 0>, I32EnumAttrCase<"root_mean", 1>, I32EnumAttrCase<"roc", 2>,
  I32EnumAttrCase<"precision_recall", 3>,
  I32EnumAttrCase<"f1_macro", 4>, I32EnumAttrCase<"f1_weighted", 5>, I32EnumAttrCase<"sum", 6>,
  I32EnumAttrCase<"precision_recall_gain", 7>, I32EnumAttrCase<"sensitivity_at_specificity", 8>,
  I32EnumAttrCase<"specificity_at_sensitivity", 9>, I32EnumAttrCase<"precision_at_recall", 10>,
  I32EnumAttrCase<"recall_at_precision", 11>, I32EnumAttrCase<"iou", 12>, I32EnumAttrCase<"r2", 13>]>;
def Plan_FinalizerAttr : EnumAttr<Plan_Dialect, Plan_Finalizer, "finalizer"> { let assemblyFormat = "$value"; }
def Plan_Better : Plan_I32Enum<"Better", "whether a lower or a higher value of a metric is better", [
  I32EnumAttrCase<"lower", 0>, I32EnumAttrCase<"higher", 1>]>;
def Plan_BetterAttr : EnumAttr<Plan_Dialect, Plan_Better, "better"> { let assemblyFormat = "$value"; }
def Plan_Role : Plan_I32Enum<"Role", "role of a value of the signature; numbers as in plan.fbs", [
  I32EnumAttrCase<"input", 0>, I32EnumAttrCase<"target", 1>, I32EnumAttrCase<"sample_weight", 2>,
  I32EnumAttrCase<"output", 3>]>;
def Plan_RoleAttr : EnumAttr<Plan_Dialect, Plan_Role, "role"> { let assemblyFormat = "$value"; }
// Attributes of enums that the dialect mt defines.
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

// Calls of GPU libraries. The enums have the numbers of plan.fbs, which describes the values.
def Plan_CallKind : Plan_I32Enum<"CallKind", "kind of a library call", [
  I32EnumAttrCase<"product", 0>, I32EnumAttrCase<"product_tree", 1>, I32EnumAttrCase<"convolution", 2>,
  I32EnumAttrCase<"convolution_input", 3>, I32EnumAttrCase<"convolution_tree", 4>]>;
def Plan_CallMath : Plan_I32Enum<"CallMath", "precision to which a library may round the operands of a product", [
  I32EnumAttrCase<"f32", 0>, I32EnumAttrCase<"tf32", 1>]>;
def Plan_CallEpilogue : Plan_I32Enum<"CallEpilogue", "operation that a library applies to each element of its result", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"relu", 1>, I32EnumAttrCase<"bias", 2>,
  I32EnumAttrCase<"bias_relu", 3>]>;
class Plan_Attr<string name, string attrMnemonic> : AttrDef<Plan_Dialect, name> { let mnemonic = attrMnemonic; }
def Plan_ProductSizesAttr : Plan_Attr<"ProductSizes", "product_sizes"> {
  let summary = "sizes of a product of [lines, depth] per sample and [depth, columns], or [columns, depth] if "
                "transposed";
  let parameters = (ins "int64_t":$lines, "int64_t":$depth, "int64_t":$columns,
                        DefaultValuedParameter<"bool", "false">:$transposed);
  let assemblyFormat = "`<` struct(params) `>`";
}
def Plan_AxisAttr : Plan_Attr<"Axis", "axis"> {
  let summary = "geometry of one axis of a convolution: output o at tap k reads input o * stride + k * dilation - low";
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
  let summary = "a call of a GPU library that computes a kernel";
  let description = [{
    `left`, `right`, `bias` and `result` are indices of the kernel's buffers: the arguments of its body, then its
    results. The attribute has the sizes of a `product` or of a `convolution`, as its kind requires. The verifier of
    `plan.kernel` checks that the operands and the result of its body have these sizes.
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
  let summary = "grid of a kernel on a GPU, where one block computes one tile";
  let description = [{
    `threads`: threads of a block. `rows_per_tile` and `inner_tiles`, or `elements_per_tile`: as in `plan.kernel`.
    `shared_bytes`: workgroup memory of a block. `partial_bytes`: device memory for the partial sums of a segment.
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
  let summary = "a buffer in memory: !plan.buffer<tensor<?x256xf32>>; `?` is the number of rows of the device";
  let parameters = (ins "::mlir::RankedTensorType":$type);
  let assemblyFormat = "`<` $type `>`";
}

def KernelOp : Plan_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "a kernel: its body in mt ops, its kind, costs and grid";
  let description = [{
    The body is the body of the mt.kernel from which `mt-allocate` outlined the kernel. An elementwise kernel may have
    launches of several shapes: the body has the shape of one of them, and the code takes the number of elements at run
    time.

    `mt-allocate` sets the costs. `plan-codegen` sets the grid of CPUs (`rows_per_tile`, `inner_tiles`,
    `elements_per_tile`) and, if a GPU is a target, `gpu_grid`. `plan-library-calls` sets `library_call`: a GPU library
    may compute the kernel instead of the generated code. A kernel that `continues` sums over the batch, and can go on
    with the sums of its last launch (`mt_kernel_params.continues`).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_KernelKind:$kind, I64Attr:$flops_per_row, I64Attr:$flops_fixed,
                   I64Attr:$bytes_per_row, I64Attr:$bytes_fixed,
                       OptionalAttr<I64Attr>:$rows_per_tile, OptionalAttr<I64Attr>:$inner_tiles,
                       OptionalAttr<I64Attr>:$elements_per_tile,
                       OptionalAttr<Plan_GpuGridAttr>:$gpu_grid,
                       OptionalAttr<Plan_LibraryCallAttr>:$library_call, UnitAttr:$continues);
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}
def VariableOp : Plan_Op<"variable", [Symbol]> {
  let summary = "a variable, with its offset in the variables block in bytes";
  let description = "`role` marks the optimizer's learning rate, its step counter, or the average of the variable "
                    "`of`.";
  let arguments = (ins SymbolNameAttr:$sym_name, Plan_VariableKind:$kind, TypeAttr:$type, I64Attr:$offset,
                   I64Attr:$bytes, OptionalAttr<Plan_VariableRole>:$role,
                       OptionalAttr<StrAttr>:$of);
  let assemblyFormat = "$sym_name $type `at` $offset attr-dict";
}
def ProgramOp : Plan_Op<"program", [Symbol, SingleBlock, NoTerminator, IsolatedFromAbove]> {
  let summary = "a program of the plan: signature, buffers, then launches and all-reduces in order";
  let description = "`variant_arena` and `variant_bound` are the bytes of the arena, and of the largest sum of live "
                    "buffers (a lower bound), for 1, 2, 4 ... R shards on a device. `shared_bytes` is the size of the "
                    "space `shared`. With `parts`, kernels that sum over the batch continue, and their sums stay in "
                    "the arena, so a device may compute a shard in parts, one after the other.";
  let arguments = (ins SymbolNameAttr:$sym_name, DenseI64ArrayAttr:$variant_arena, DenseI64ArrayAttr:$variant_bound,
                   I64Attr:$shared_bytes, UnitAttr:$parts);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}
def SignatureOp : Plan_Op<"signature"> {
  let summary = "the next value of the program's signature";
  let description = "Values of an integer with a `limit` are indices 0 .. limit - 1, of rows or of classes.";
  let arguments = (ins StrAttr:$name, Plan_RoleAttr:$role, TypeAttr:$type, OptionalAttr<I64Attr>:$limit);
  let assemblyFormat = "`` $role $name $type (`limit` `=` $limit^)? attr-dict";
}
def BufferOp : Plan_Op<"buffer"> {
  let summary = "a buffer of a program";
  let description = "A buffer in the arena has one offset in bytes per variant. A buffer in `shared` or `constant` has "
                    "one offset. A buffer in `variable` or `signature` has the name `ref` of its variable or value.";
  let arguments = (ins StrAttr:$name, Plan_SpaceAttr:$space, DenseI64ArrayAttr:$offsets, OptionalAttr<StrAttr>:$ref,
                   OptionalAttr<ElementsAttr>:$value);
  let results = (outs BufferType:$result);
  let assemblyFormat = "$name `` $space $offsets (`of` $ref^)? (`=` $value^)? attr-dict `:` type($result)";
}
def LaunchOp : Plan_Op<"launch", [AttrSizedOperandSegments]> {
  let summary = "a launch of a kernel";
  let description = "`reads` and `writes` are the kernel's buffers. A launch may have several segments: `counts` "
                    "has the elements of each if the kernel is elementwise, else 0, and `reads` and `writes` list the "
                    "buffers of one segment after the other.";
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<BufferType>:$reads, Variadic<BufferType>:$writes,
                   DenseI64ArrayAttr:$counts,
                       Plan_WaitAttr:$wait, UnitAttr:$share);
  let assemblyFormat = "$kernel `wait` `` $wait (`share` $share^)? `reads` `(` ($reads^ `:` type($reads))? `)` "
                       "`writes` `(` ($writes^ `:` type($writes))? `)` `counts` $counts attr-dict";
}
def AllReduceOp : Plan_Op<"all_reduce", [AttrSizedOperandSegments]> {
  let summary = "the all-reduce of a bucket";
  let description = "The partial sums are contiguous in the arena, and the results are contiguous in `shared`, both in "
                    "the order of the operands. The op is a barrier of all devices before and after. `order` is its "
                    "index in the total order of the program's collectives.";
  let arguments = (ins I64Attr:$order, Variadic<BufferType>:$partials, Variadic<BufferType>:$results, I64Attr:$bytes);
  let assemblyFormat = "$order `bytes` $bytes `partials` `(` ($partials^ `:` type($partials))? `)` `results` `(` "
                       "($results^ `:` type($results))? `)` attr-dict";
}
def ResultOp : Plan_Op<"result"> {
  let summary = "a loss or metric: the buffer of its mean or of its sums, and the buffer of its weight";
  let arguments = (ins StrAttr:$name, BufferType:$value, BufferType:$weight, UnitAttr:$loss,
                       DefaultValuedAttr<Plan_FinalizerAttr, "::mlir::plan::Finalizer::mean">:$finalizer,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$shape,
                       DefaultValuedAttr<Plan_BetterAttr, "::mlir::plan::Better::lower">:$better,
                       DefaultValuedAttr<DenseF64ArrayAttr, "{}">:$parameters);
  let assemblyFormat = [{$name `,` $value `,` $weight (`loss` $loss^)? (`finalizer` `` $finalizer^)?
    (`parameters` $parameters^)? (`shape` $shape^)? (`better` `` $better^)? attr-dict `:` type($value) `,`
    type($weight)}];
}
def RateOp : Plan_Op<"rate"> {
  let summary = "the buffer of this step's learning rate, if a schedule computes it";
  let arguments = (ins BufferType:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}
#endif
