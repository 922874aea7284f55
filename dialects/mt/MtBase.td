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
  let summary = "operations of a training step";
  let description = [{
    Values are ranked tensors of f32, i32 and i1; in a module of precision f64, of f64, i32 and i1. Programs also have
    bf16 and f16 values (docs/precision.md): `mt.cast` converts them from f32 and to f32, ops that move data move them,
    and contractions, reductions and pools read them.
    No arithmetic is done in 16 bits. Only the first axis may be `?`, and `?` is the batch axis. Its size is the number
    n of samples in the global batch up to `mt-partition`, and the number of valid rows of one shard after it. A tensor
    whose first axis is `?` is *split*; any other tensor is *replicated*.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1; // an unknown `mt.` attribute is an error
}

def Mt_Tensor : RankedTensorOf<[F32, F64, BF16, F16, I32, I1]>;
def Mt_Number : RankedTensorOf<[F32, F64, I32, I1]>;
def Mt_Float : RankedTensorOf<[F32, F64]>;
def Mt_AnyFloat : RankedTensorOf<[F32, F64, BF16, F16]>; // operands of contractions, reductions and pools
def Mt_AnyNumber : RankedTensorOf<[F32, F64, BF16, F16, I32]>; // operands of reductions and of mt.pad
def Mt_FloatOrInt : RankedTensorOf<[F32, F64, I32]>;
def Mt_Int : RankedTensorOf<[I32]>;
def Mt_Bool : RankedTensorOf<[I1]>;
// The assembly format omits these types.
// A number of type f32, or f64 in a module of precision f64. The text form states f64, and omits f32.
def Mt_Scalar : Type<0DTensorOf<[F32, F64]>.predicate, "tensor<f32> or tensor<f64>", "::mlir::RankedTensorType">;
// A number that an op is written with: f32, or f64 in a module of precision f64.
def Mt_Real : TypedAttrBase<F32, "FloatAttr", And<[CPred<"::llvm::isa<::mlir::FloatAttr>($_self)">,
    Or<[CPred<"::llvm::cast<::mlir::FloatAttr>($_self).getType().isF32()">,
        CPred<"::llvm::cast<::mlir::FloatAttr>($_self).getType().isF64()">]>]>, "32-bit or 64-bit float attribute"> {
  let returnType = "::llvm::APFloat";
}
def Mt_Predicate : Type<0DTensorOf<[I1]>.predicate, "tensor<i1>", "::mlir::RankedTensorType">,
                   BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI1Type())">;
def Mt_Step : Type<0DTensorOf<[I32]>.predicate, "tensor<i32>", "::mlir::RankedTensorType">,
              BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI32Type())">;

// MLIR's InferTypeOpAdaptor, with a check that all operands are tensors. The parser infers result types before the
// verifier has checked the types of optional and variadic operands.
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

// The op converts each floating-point operand to f32 when it reads it, and its result is f32 (i32 for a reduction of
// i32).
def Mt_Extends : NativeOpTrait<"Extends"> { let cppNamespace = "::mlir::mt"; }
// The op reads stored values. If the plan's precision has 16 bits, `mt-precision` rounds them.
def Mt_Rounds : NativeOpTrait<"Rounds"> { let cppNamespace = "::mlir::mt"; }
// A matrix product, a convolution or a gradient of a convolution. The op also has the traits Extends and Rounds. An op
// with the discardable attribute mt.precision = "f32" keeps f32.
def Mt_Contraction : NativeOpTrait<"Contraction"> { let cppNamespace = "::mlir::mt"; }
// All floating-point operands and results have one element type: f32, bf16 or f16. The op computes in f32 and rounds
// its result. Results with Mt_StaysFloat32 are always f32, and so are operands that another op with Mt_StaysFloat32
// computes.
def Mt_SameFloats : NativeOpTrait<"SameFloats"> { let cppNamespace = "::mlir::mt"; }
def Mt_StaysFloat32 : NativeOpTrait<"StaysFloat32"> { let cppNamespace = "::mlir::mt"; }
// Each element of the result is an element of an operand at another index, or a fill value: 0, or the value of mt.pad.
def Mt_Moves : NativeOpTrait<"Moves"> { let cppNamespace = "::mlir::mt"; }
def Mt_MovesByLine : DeclareOpInterfaceMethods<MoveOpInterface, ["keepsFirstAxes", "dropFirstAxes"]>;
def Mt_PadMoves : DeclareOpInterfaceMethods<MoveOpInterface, ["getFill", "keepsFirstAxes", "dropFirstAxes"]>;
// The elements of the result are the elements of the operand in the same order, each of them once or several times.
def Mt_Repeats : NativeOpTrait<"Repeats"> { let cppNamespace = "::mlir::mt"; }
// An element of the result depends on its index alone (and on scalar operands).
def Mt_Generates : NativeOpTrait<"Generates"> { let cppNamespace = "::mlir::mt"; }
// No kernel computes the op: it is an input, an output or an access to a variable of a program, or a constant.
def Mt_Boundary : NativeOpTrait<"Boundary"> { let cppNamespace = "::mlir::mt"; }
class Mt_OwnKernel<list<string> answers = []> : DeclareOpInterfaceMethods<KernelOpInterface, answers>;
// The lower of two means of a loss or error is better, or the higher of two means of an accuracy.
def Mt_LowerIsBetter : NativeOpTrait<"LowerIsBetter"> { let cppNamespace = "::mlir::mt"; }
def Mt_HigherIsBetter : NativeOpTrait<"HigherIsBetter"> { let cppNamespace = "::mlir::mt"; }

// The op reports its operands to the caller of the program after the step. They are equal on all devices.
def Mt_Reports : NativeOpTrait<"Reports"> { let cppNamespace = "::mlir::mt"; }

class Mt_Op<string mnemonic, list<Trait> traits = []> : Op<Mt_Dialect, mnemonic, traits>;

// A computation without side effects, with a reference evaluation, a cost and a sharding rule.
class Mt_PureOp<string mnemonic, list<Trait> traits = []> : Mt_Op<mnemonic, !listconcat([
    Pure, DeclareOpInterfaceMethods<InterpretOpInterface>, DeclareOpInterfaceMethods<CostOpInterface>,
    DeclareOpInterfaceMethods<ShardingInterface, ["getLoopIteratorTypes", "getReductionLoopIteratorKinds",
                                                  "getIndexingMaps"]>], traits)>;

// An op that other ops can express. Most composites define their own gradient. The gradient of an Mt_DerivedComposite
// is the reverse-mode gradient of its decomposition.
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
  let assemblyFormat = "$value"; // a leading space, for `#mt<kernel_kind elementwise>`
}

def Mt_InitKind : Mt_I32Enum<"InitKind", "initializer of a variable", [
  I32EnumAttrCase<"zeros", 0>, I32EnumAttrCase<"ones", 1>, I32EnumAttrCase<"constant", 2>,
  I32EnumAttrCase<"glorot_uniform", 3>, I32EnumAttrCase<"glorot_normal", 4>, I32EnumAttrCase<"he_uniform", 5>,
  I32EnumAttrCase<"he_normal", 6>, I32EnumAttrCase<"lecun_uniform", 7>, I32EnumAttrCase<"lecun_normal", 8>,
  I32EnumAttrCase<"normal", 9>, I32EnumAttrCase<"uniform", 10>]>;
def Mt_InitKindAttr : Mt_EnumAttr<Mt_InitKind, "init">;

def Mt_VariableKind : Mt_I32Enum<"VariableKind", "kind of a variable: trained, not trained, optimizer state", [
  I32EnumAttrCase<"trainable", 0>, I32EnumAttrCase<"non_trainable", 1>, I32EnumAttrCase<"slot", 2>]>;
def Mt_VariableKindAttr : Mt_EnumAttr<Mt_VariableKind, "variable_kind">;

def Mt_VariableRole : Mt_I32Enum<"VariableRole", "role of a variable of the optimizer", [
  I32EnumAttrCase<"learning_rate", 0>, I32EnumAttrCase<"iteration", 1>, I32EnumAttrCase<"average", 2>]>;
def Mt_VariableRoleAttr : Mt_EnumAttr<Mt_VariableRole, "variable_role">;

def Mt_Divisor : Mt_I32Enum<"Divisor", "divisor of a loss", [
  I32EnumAttrCase<"samples", 0>, I32EnumAttrCase<"elements", 1>, I32EnumAttrCase<"weights", 2>]>;
def Mt_DivisorAttr : Mt_EnumAttr<Mt_Divisor, "divisor">;

def Mt_Finalizer : Mt_I32Enum<"Finalizer", "function of a metric's sums over all samples; numbers as in plan.fbs", [
  I32EnumAttrCase<"mean", 0>, I32EnumAttrCase<"root_mean", 1>, I32EnumAttrCase<"roc", 2>,
  I32EnumAttrCase<"precision_recall", 3>,
  I32EnumAttrCase<"f1_macro", 4>, I32EnumAttrCase<"f1_weighted", 5>, I32EnumAttrCase<"sum", 6>,
  I32EnumAttrCase<"precision_recall_gain", 7>, I32EnumAttrCase<"sensitivity_at_specificity", 8>,
  I32EnumAttrCase<"specificity_at_sensitivity", 9>, I32EnumAttrCase<"precision_at_recall", 10>,
  I32EnumAttrCase<"recall_at_precision", 11>, I32EnumAttrCase<"iou", 12>, I32EnumAttrCase<"r2", 13>]>;
def Mt_FinalizerAttr : Mt_EnumAttr<Mt_Finalizer, "finalizer">;

def Mt_Better : Mt_I32Enum<"Better", "whether lower or higher values of a metric are better; numbers as in plan.fbs", [
  I32EnumAttrCase<"lower", 0>, I32EnumAttrCase<"higher", 1>]>;
def Mt_BetterAttr : Mt_EnumAttr<Mt_Better, "better">;

def Mt_Compare : Mt_I32Enum<"Compare", "comparison", [
  I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>, I32EnumAttrCase<"le", 3>,
  I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]>;
def Mt_CompareAttr : Mt_EnumAttr<Mt_Compare, "compare_kind">;

def Mt_ThreefryResult : Mt_I32Enum<"ThreefryResult", "what is made of the two words of Threefry", [
  I32EnumAttrCase<"first", 0>, I32EnumAttrCase<"second", 1>, I32EnumAttrCase<"both", 2>,
  I32EnumAttrCase<"uniform", 3>]>;
def Mt_ThreefryResultAttr : Mt_EnumAttr<Mt_ThreefryResult, "threefry_result">;

def Mt_Reduction : Mt_I32Enum<"Reduction", "reduction", [
  I32EnumAttrCase<"sum", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>]>;
def Mt_ReductionAttr : Mt_EnumAttr<Mt_Reduction, "reduction">;

def Mt_AttentionOperand : Mt_I32Enum<"AttentionOperand", "operand of mt.attention whose gradient is computed", [
  I32EnumAttrCase<"query", 0>, I32EnumAttrCase<"key", 1>, I32EnumAttrCase<"value", 2>]>;
def Mt_AttentionOperandAttr : Mt_EnumAttr<Mt_AttentionOperand, "attention_operand">;

def Mt_Precision : Mt_I32Enum<"PrecisionClass", "precision of a plan", [
  I32EnumAttrCase<"f32", 0>, I32EnumAttrCase<"tf32", 1>, I32EnumAttrCase<"bf16", 2>, I32EnumAttrCase<"f16", 3>,
  I32EnumAttrCase<"f64", 4>]>;
def Mt_Mode : Mt_I32Enum<"Mode", "whether sums over the batch follow the reduction tree",
                         [I32EnumAttrCase<"exact", 0>, I32EnumAttrCase<"fast", 1>]>;
def Mt_Kinks : Mt_I32Enum<"Kinks",
                          "framework whose derivative is used where a function has none, as |x| at 0 (docs/ir.md)", [
  I32EnumAttrCase<"tensorflow", 0>, I32EnumAttrCase<"jax", 1>, I32EnumAttrCase<"torch", 2>]>;
// Only the class `Compilation` (dialects/mt/Compilation.h) reads and changes this attribute.
def Mt_CompilationAttr : AttrDef<Mt_Dialect, "Compilation"> {
  let mnemonic = "compilation";
  let summary = "parameters of a compilation: the attribute `mt.compilation` of the module";
  let description = [{
    `#mt.compilation<batch = 32, shards = 8, shard_rows = 4>`

    `name`              name of the model
    `batch`             samples of the global batch; 0: unknown
    `shards`            number of shards, a power of two; 0: unknown
    `shard_rows`        samples of a shard: ceil(batch / shards); 0: unknown
    `seed`              seed of initial values and of random numbers
    `precision`         precision of the operands of contractions, or of everything: `f64` (docs/precision.md)
    `mode`              `exact`: sums over the batch follow the reduction tree (docs/exactness.md); `fast`: any order
    `local_statistics`  each shard has batch normalization statistics of its own
    `kinks`             framework whose derivative is used at kinks (docs/ir.md)
    `device_memory`     memory limit of a device in bytes; 0: no limit
    `min_devices`       smallest number of devices that the plan fits on; 0: it fits on no number of devices
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

include "dialects/mt/KernelKinds.td" // KernelKinds.cmake generates it from the enumerators of plan.fbs
def Mt_KernelKind : Mt_I32Enum<"KernelKind", "kind of a kernel; numbers as in plan.fbs", kernelKinds>;
def Mt_KernelKindAttr : Mt_EnumAttr<Mt_KernelKind, "kernel_kind">;

def Mt_Wait : Mt_I32Enum<"Wait",
                         "barrier before a kernel: none, of the threads of a device, or of all devices; numbers as in "
                         "plan.fbs", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"device", 1>, I32EnumAttrCase<"all", 2>]>;
def Mt_WaitAttr : Mt_EnumAttr<Mt_Wait, "wait">;
#endif
