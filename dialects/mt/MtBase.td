// SPDX-License-Identifier: Apache-2.0
#ifndef MT_BASE_TD
#define MT_BASE_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Dialect/Shard/Interfaces/ShardingInterface.td"
include "dialects/mt/MtInterfaces.td"

def Mt_Dialect : Dialect {
  let name = "mt";
  let cppNamespace = "::mlir::mt";
  let summary = "what a training step computes";
  let description = [{
    Values are ranked tensors of f32, i32 and i1. In programs there are also bf16 and f16 (docs/precision.md), which
    `mt.cast` makes from f32 and extends again, moves move and contractions, reductions and pools read; there is no
    arithmetic on them. A `?` is always the first axis and always the batch axis: the rows of the view. In a model and
    in the training graph that is the global batch of n samples, after `mt-partition` one shard's valid rows. A tensor
    whose first axis is `?` is *split*, any other is *replicated*.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1; // what is not known here is a typing error
}

def Mt_Tensor : RankedTensorOf<[F32, BF16, F16, I32, I1]>;
def Mt_Number : RankedTensorOf<[F32, I32, I1]>;
def Mt_Float : RankedTensorOf<[F32]>;
def Mt_AnyFloat : RankedTensorOf<[F32, BF16, F16]>; // what contractions, reductions and pools read
def Mt_AnyNumber : RankedTensorOf<[F32, BF16, F16, I32]>; // what reductions read and mt.pad moves
def Mt_FloatOrInt : RankedTensorOf<[F32, I32]>;
def Mt_Int : RankedTensorOf<[I32]>;
def Mt_Bool : RankedTensorOf<[I1]>;
// Their types are never written.
def Mt_Scalar : Type<0DTensorOf<[F32]>.predicate, "tensor<f32>", "::mlir::RankedTensorType">,
                BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getF32Type())">;
def Mt_Predicate : Type<0DTensorOf<[I1]>.predicate, "tensor<i1>", "::mlir::RankedTensorType">,
                   BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI1Type())">;
def Mt_Step : Type<0DTensorOf<[I32]>.predicate, "tensor<i32>", "::mlir::RankedTensorType">,
              BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI32Type())">;

// MLIR's InferTypeOpAdaptor for ops of tensors. The parser asks for the type of a result before anything has verified
// the types of optional and variadic operands.
def Mt_InferType : TraitList<[DeclareOpInterfaceMethods<InferTypeOpInterface>,
                              NativeOpTrait<"InferTypeOpAdaptor", [], [{
    static ::llvm::LogicalResult inferReturnTypes(::mlir::MLIRContext *context,
                                                  std::optional<::mlir::Location> location, Adaptor adaptor,
                                                  ::llvm::SmallVectorImpl<::mlir::Type> &types);
  }], [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *context, std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr attributes, ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      for (::mlir::Type type : operands.getTypes())
        if (!::llvm::isa<::mlir::RankedTensorType>(type))
          return ::mlir::emitOptionalError(location, "expected tensors as operands, found ", type);
      return $cppClass::inferReturnTypes(context, location, Adaptor(operands, attributes, properties, regions), types);
    }
  }]>]>;

// Operands of any float type each, which it extends as it reads them; an f32 result. (A reduction of i32 has i32.)
def Mt_Extends : NativeOpTrait<"Extends"> { let cppNamespace = "::mlir::mt"; }
// What it reads are values that a kernel stores, and that a precision of 16 bits rounds.
def Mt_Rounds : NativeOpTrait<"Rounds"> { let cppNamespace = "::mlir::mt"; }
// A product of matrices, a convolution or a gradient of one. It extends and rounds; with a discardable attribute
// mt.precision = "f32" it is left alone.
def Mt_Contraction : NativeOpTrait<"Contraction"> { let cppNamespace = "::mlir::mt"; }
// Its floats have one element type, f32 or one of 16 bits: operands, which it extends as it reads them, and the result,
// which it rounds. Results with Mt_StaysFloat32 are f32 whatever is read, and so are operands that are such results.
def Mt_SameFloats : NativeOpTrait<"SameFloats"> { let cppNamespace = "::mlir::mt"; }
def Mt_StaysFloat32 : NativeOpTrait<"StaysFloat32"> { let cppNamespace = "::mlir::mt"; }
// Elements of the result are elements of the operands at other indices, or zeros (mt.pad with another value: that one).
def Mt_Moves : NativeOpTrait<"Moves"> { let cppNamespace = "::mlir::mt"; }
def Mt_MovesByLine : DeclareOpInterfaceMethods<MoveOpInterface, ["keepsFirstAxes", "dropFirstAxes"]>;
def Mt_PadMoves : DeclareOpInterfaceMethods<MoveOpInterface, ["getFill", "keepsFirstAxes", "dropFirstAxes"]>;
// Elements of the result are those of the operand in their order, each once or repeated.
def Mt_Repeats : NativeOpTrait<"Repeats"> { let cppNamespace = "::mlir::mt"; }
// An element of the result depends on its index, and on nothing that has elements.
def Mt_Generates : NativeOpTrait<"Generates"> { let cppNamespace = "::mlir::mt"; }
// No kernel computes it: what a program takes and gives, and what is known when it is compiled.
def Mt_Boundary : NativeOpTrait<"Boundary"> { let cppNamespace = "::mlir::mt"; }
class Mt_OwnKernel<list<string> answers = []> : DeclareOpInterfaceMethods<KernelOpInterface, answers>;
// A loss or an error, of whose means the lower one is better; an accuracy, of whose means the higher one is.
def Mt_LowerIsBetter : NativeOpTrait<"LowerIsBetter"> { let cppNamespace = "::mlir::mt"; }
def Mt_HigherIsBetter : NativeOpTrait<"HigherIsBetter"> { let cppNamespace = "::mlir::mt"; }

// Its operands, which are the same on all devices, are read by whoever runs the program, when it is done.
def Mt_Reports : NativeOpTrait<"Reports"> { let cppNamespace = "::mlir::mt"; }

class Mt_Op<string mnemonic, list<Trait> traits = []> : Op<Mt_Dialect, mnemonic, traits>;

// A computation: no side effects, interpreted, costed, sharded.
class Mt_PureOp<string mnemonic, list<Trait> traits = []> : Mt_Op<mnemonic, !listconcat([
    Pure, DeclareOpInterfaceMethods<InterpretOpInterface>, DeclareOpInterfaceMethods<CostOpInterface>,
    DeclareOpInterfaceMethods<ShardingInterface, ["getLoopIteratorTypes", "getReductionLoopIteratorKinds",
                                                  "getIndexingMaps"]>], traits)>;

// An op that others can express. Most have a gradient of their own; that of Mt_DerivedComposite is what reverse mode
// makes of its decomposition.
class Mt_Composite<string mnemonic, list<Trait> traits = []>
    : Mt_PureOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<DecomposeOpInterface>], traits)>;
class Mt_DerivedComposite<string mnemonic, list<Trait> traits = []>
    : Mt_Composite<mnemonic, !listconcat([DeclareOpInterfaceMethods<GradientOpInterface>], traits)> {
  code derivedGradient = [{
    void $cppClass::buildGradient(::mlir::OpBuilder &builder, ::mlir::ValueRange resultGradients,
                                  ::llvm::SmallVectorImpl<::mlir::Value> &operandGradients) {
      buildDecomposedGradient(builder, *this, resultGradients, operandGradients);
    }
  }];
  let extraClassDefinition = derivedGradient;
}

class Mt_I32Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::mt";
  let genSpecializedAttr = 0;
}
class Mt_EnumAttr<EnumInfo info, string mnemonic> : EnumAttr<Mt_Dialect, info, mnemonic> {
  let assemblyFormat = "$value"; // its space keeps `#mt<kernel_kind elementwise>` readable for the parser
}

def Mt_InitKind : Mt_I32Enum<"InitKind", "how a variable starts", [
  I32EnumAttrCase<"zeros", 0>, I32EnumAttrCase<"ones", 1>, I32EnumAttrCase<"constant", 2>,
  I32EnumAttrCase<"glorot_uniform", 3>, I32EnumAttrCase<"glorot_normal", 4>, I32EnumAttrCase<"he_uniform", 5>,
  I32EnumAttrCase<"he_normal", 6>, I32EnumAttrCase<"lecun_uniform", 7>, I32EnumAttrCase<"lecun_normal", 8>,
  I32EnumAttrCase<"normal", 9>, I32EnumAttrCase<"uniform", 10>]>;
def Mt_InitKindAttr : Mt_EnumAttr<Mt_InitKind, "init">;

def Mt_VariableKind : Mt_I32Enum<"VariableKind", "who changes a variable", [
  I32EnumAttrCase<"trainable", 0>, I32EnumAttrCase<"non_trainable", 1>, I32EnumAttrCase<"slot", 2>]>;
def Mt_VariableKindAttr : Mt_EnumAttr<Mt_VariableKind, "variable_kind">;

def Mt_VariableRole : Mt_I32Enum<"VariableRole", "a variable of the optimizer's that the plan names", [
  I32EnumAttrCase<"learning_rate", 0>, I32EnumAttrCase<"iteration", 1>, I32EnumAttrCase<"average", 2>]>;
def Mt_VariableRoleAttr : Mt_EnumAttr<Mt_VariableRole, "variable_role">;

def Mt_Divisor : Mt_I32Enum<"Divisor", "what a loss is divided by", [
  I32EnumAttrCase<"samples", 0>, I32EnumAttrCase<"elements", 1>, I32EnumAttrCase<"weights", 2>]>;
def Mt_DivisorAttr : Mt_EnumAttr<Mt_Divisor, "divisor">;

def Mt_Finalizer : Mt_I32Enum<"Finalizer", "what a metric is of its sums over all samples; numbers as in plan.fbs", [
  I32EnumAttrCase<"mean", 0>, I32EnumAttrCase<"root_mean", 1>, I32EnumAttrCase<"roc", 2>,
  I32EnumAttrCase<"precision_recall", 3>,
  I32EnumAttrCase<"f1_macro", 4>, I32EnumAttrCase<"f1_weighted", 5>]>;
def Mt_FinalizerAttr : Mt_EnumAttr<Mt_Finalizer, "finalizer">;

def Mt_Better : Mt_I32Enum<"Better", "which of two values of a metric is the better one; numbers as in plan.fbs", [
  I32EnumAttrCase<"lower", 0>, I32EnumAttrCase<"higher", 1>]>;
def Mt_BetterAttr : Mt_EnumAttr<Mt_Better, "better">;

def Mt_Compare : Mt_I32Enum<"Compare", "comparison", [
  I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>, I32EnumAttrCase<"le", 3>,
  I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]>;
def Mt_CompareAttr : Mt_EnumAttr<Mt_Compare, "compare_kind">;

def Mt_Reduction : Mt_I32Enum<"Reduction", "reduction", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>]>;
def Mt_ReductionAttr : Mt_EnumAttr<Mt_Reduction, "reduction">;

def Mt_AttentionOperand : Mt_I32Enum<"AttentionOperand", "the operand of an attention that a gradient is of", [
  I32EnumAttrCase<"query", 0>, I32EnumAttrCase<"key", 1>, I32EnumAttrCase<"value", 2>]>;
def Mt_AttentionOperandAttr : Mt_EnumAttr<Mt_AttentionOperand, "attention_operand">;

def Mt_Precision : Mt_I32Enum<"PrecisionClass", "how values of 32 bits are rounded for products", [
  I32EnumAttrCase<"f32", 0>, I32EnumAttrCase<"tf32", 1>, I32EnumAttrCase<"bf16", 2>, I32EnumAttrCase<"f16", 3>]>;
def Mt_Mode : Mt_I32Enum<"Mode", "whether sums over the batch follow the reduction tree",
                         [I32EnumAttrCase<"exact", 0>, I32EnumAttrCase<"fast", 1>]>;
def Mt_Kinks : Mt_I32Enum<"Kinks",
                          "whose gradient is taken where a formula has a kink, as |x| at 0 (docs/ir.md)", [
  I32EnumAttrCase<"tensorflow", 0>, I32EnumAttrCase<"jax", 1>, I32EnumAttrCase<"torch", 2>]>;
// Read and changed by `Compilation` (dialects/mt/Compilation.h) alone.
def Mt_CompilationAttr : AttrDef<Mt_Dialect, "Compilation"> {
  let mnemonic = "compilation";
  let summary = "parameters of a compilation, the module's `mt.compilation`: #mt.compilation<batch = 32, shards = 8, "
                "shard_rows = 4>";
  let description = [{
    A batch, a number of shards and their rows that are 0 are not known. `shard_rows` is ceil(batch / shards).
    `device_memory` in bytes; 0: not limited. `min_devices`: the fewest devices that the plan fits on; 0: it fits on
    none.
  }];
  let parameters = (ins OptionalParameter<"::mlir::StringAttr">:$name, DefaultValuedParameter<"int64_t", "0">:$batch,
                        DefaultValuedParameter<"int64_t", "0">:$shards,
                        DefaultValuedParameter<"int64_t", "0">:$shard_rows,
                        DefaultValuedParameter<"int64_t", "1">:$seed,
                        DefaultValuedParameter<"::mlir::mt::PrecisionClass",
                                               "::mlir::mt::PrecisionClass::f32">:$precision,
                        DefaultValuedParameter<"::mlir::mt::Mode", "::mlir::mt::Mode::exact">:$mode,
                        DefaultValuedParameter<"bool", "false">:$local_statistics,
                        DefaultValuedParameter<"::mlir::mt::Kinks", "::mlir::mt::Kinks::tensorflow">:$kinks,
                        DefaultValuedParameter<"int64_t", "0">:$device_memory,
                        DefaultValuedParameter<"int64_t", "1">:$min_devices);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

include "dialects/mt/KernelKinds.td" // made by CMakeLists.txt: the enumerators of plan.fbs
def Mt_KernelKind : Mt_I32Enum<"KernelKind", "how a kernel's code walks its data; numbers as in plan.fbs", kernelKinds>;
def Mt_KernelKindAttr : Mt_EnumAttr<Mt_KernelKind, "kernel_kind">;

def Mt_Wait : Mt_I32Enum<"Wait",
                         "what must have finished before a kernel starts: nothing, what its device did, what all "
                         "devices did; numbers as in plan.fbs", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"device", 1>, I32EnumAttrCase<"all", 2>]>;
def Mt_WaitAttr : Mt_EnumAttr<Mt_Wait, "wait">;
#endif
