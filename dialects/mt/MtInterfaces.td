// SPDX-License-Identifier: Apache-2.0
//
// Interfaces through which passes ask ops. An op implements an interface next to its definition, so that no pass has a
// switch over all ops.
#ifndef MT_INTERFACES_TD
#define MT_INTERFACES_TD

include "mlir/IR/OpBase.td"

def GradientOpInterface : OpInterface<"GradientOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    Reverse-mode derivative of an op, built of mt ops. Every op that can lie between a trainable variable and a loss
    implements it.
  }];
  let methods = [InterfaceMethod<[{
      Takes dL/dresult for each result (null stands for zero) and appends dL/doperand for each operand, of the
      operand's shape. Appends null for an operand that is not differentiable (integers, labels) or whose derivative is
      zero.
    }],
    "void", "buildGradient",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGradients,
         "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>];
}

def InterpretOpInterface : OpInterface<"InterpretOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{ Reference evaluation of an op in double precision, written for clarity and not for speed. }];
  let methods = [InterfaceMethod<[{
      Computes the results from the values of the operands. `context` has the number of rows (the size of every `?`),
      the index of the first row in the global batch, and the seed.
    }],
    "::llvm::LogicalResult", "interpret",
    (ins "const ::mlir::mt::EvalContext &":$context, "::llvm::ArrayRef<::mlir::mt::Tensor>":$operands,
         "::llvm::SmallVectorImpl<::mlir::mt::Tensor> &":$results)>];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{ Number of floating-point operations of an op. An FMA counts as two. }];
  let methods = [
    InterfaceMethod<"FLOPs of one row if the op has a batch axis (`?`), else of the whole op",
                    "int64_t", "getFlops", (ins)>];
}

def ElementwiseOpInterface : OpInterface<"ElementwiseOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op whose result element depends on the operands' elements at the same (broadcast) index. Code generation calls
    only its `lowerElement`.
  }];
  let methods = [InterfaceMethod<[{
      Emits the op for one element or for a vector of elements: the operands are all scalars or all `vector<16x...>` of
      their element types, i1 for booleans. May emit arith ops and LLVM intrinsics alone. An FMA is emitted explicitly.
      The bits of a vector's element must not depend on the other elements or on the target.
    }],
    "::mlir::Value", "lowerElement",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>];
}

def MoveOpInterface : OpInterface<"MoveOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op whose result holds elements of its operands, selected by their index alone. Both code generators emit such an
    op from these methods.
  }];
  let methods = [
    InterfaceMethod<"Boxes of operand elements that make up the result, in order; they do not overlap in the result",
                    "::llvm::SmallVector<::mlir::mt::Move>", "getMoves", (ins)>,
    InterfaceMethod<"Value of the result's elements outside of all boxes", "::llvm::APFloat", "getFill", (ins), "",
                    "return ::llvm::APFloat(0.0f);">,
    InterfaceMethod<[{
      Whether each index of the first `axes` axes of a sample can be computed independently: element [i, ...] of the
      result depends on elements [i, ...] of the operands alone (Lines.h). The caller has checked that the operands
      have the same first axes.
    }], "bool", "keepsFirstAxes", (ins "int64_t":$axes), "", "return false;">,
    InterfaceMethod<"Removes the first `axes` axes of a sample, for which keepsFirstAxes holds, from the attributes",
                    "void", "dropFirstAxes", (ins "int64_t":$axes), "", "return;">];
}

def LookupOpInterface : OpInterface<"LookupOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op that copies the lines of a table that ids select, or adds its operand's lines to the lines that ids select.
    Both code generators emit such an op from `getLookup`.
  }];
  let methods = [
    InterfaceMethod<"Number and size of the lines in one sample", "::mlir::mt::Lookup", "getLookup", (ins)>];
}

def WindowOpInterface : OpInterface<"WindowOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op whose result element is a fold over the elements of a window of its operand, channel by channel. The fold
    visits the elements that lie inside the image, in order of kh, then kw. Both code generators emit such an op from
    these methods.
  }];
  let methods = [
    InterfaceMethod<"Geometry of the windows", "::mlir::mt::Pooling", "getPooling", (ins)>,
    InterfaceMethod<"Operand over which the windows slide", "::mlir::Value", "getInput", (ins)>,
    InterfaceMethod<"Initial value of a fold", "float", "getWindowStart", (ins)>,
    InterfaceMethod<"Emits one step of a fold, on f32 scalars or vectors, by the rules of lowerElement",
                    "::mlir::Value", "foldElement",
                    (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$running, "::mlir::Value":$next)>,
    InterfaceMethod<"Emits the result of a window from the final value of its fold", "::mlir::Value",
                    "finishWindow", (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$running), "",
                    "return running;">];
}

def WindowGradientOpInterface : OpInterface<"WindowGradientOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op whose result element is a sum of gradients of windows: of all windows that contain the element, or of the
    windows whose first largest element it is. The sum is a chain that starts at +0, in order of oh, then ow.
  }];
  let methods = [
    InterfaceMethod<"Geometry of the windows", "::mlir::mt::Pooling", "getPooling", (ins)>,
    InterfaceMethod<"Operand with the gradient of each window", "::mlir::Value", "getGradient", (ins)>,
    InterfaceMethod<"Operand of the pool, if the windows' largest elements matter; else null", "::mlir::Value",
                    "getInput", (ins)>];
}

def ConvolutionOpInterface : OpInterface<"ConvolutionOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{ A convolution of images with a kernel, or a gradient of a convolution. }];
  let methods = [InterfaceMethod<"Geometry of the convolution", "::mlir::mt::Convolution", "getConvolution", (ins)>];
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op that may have a kernel kind of its own. `mt-fuse` starts a kernel at each such op.
  }];
  let methods = [
    InterfaceMethod<"Kind of the op's kernel; none if the op is part of a `rows` or `single` kernel",
                    "::std::optional<::mlir::mt::KernelKind>", "getKernelKind", (ins)>,
    InterfaceMethod<"Whether the op reads all operands from buffers, so that its kernel computes no operand", "bool",
                    "readsBuffers", (ins), "", "return true;">,
    InterfaceMethod<"Whether element-wise ops on the result may be an epilogue of the op's kernel",
                    "bool", "takesEpilogue", (ins), "", "return false;">,
    InterfaceMethod<"Word for the op in names of kernels", "::std::string", "getWord", (ins), "",
                    "return $_op->getName().stripDialect().str();">];
}

def IndexOpInterface : OpInterface<"IndexOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op with an operand of ids, which select rows of a table or classes. Ids out of range are clamped, only so that
    kernels stay in bounds.
  }];
  let methods = [
    InterfaceMethod<"Operand of ids", "::mlir::Value", "getIndex", (ins)>,
    InterfaceMethod<"Number of rows or classes", "int64_t", "getIndexLimit", (ins)>];
}

def DecomposeOpInterface : OpInterface<"DecomposeOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{ A composite: an op that other mt ops can express. `mt-decompose` replaces all composites. }];
  let methods = [InterfaceMethod<"Builds ops that compute the op's one result, and returns it",
    "::mlir::Value", "decompose", (ins "::mlir::OpBuilder &":$builder)>];
}

def TrainingOpInterface : OpInterface<"TrainingOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op that differs between train_step and the programs eval_step and predict, such as dropout and batch
    normalization. A model has the form for eval_step and predict. `mt-differentiate` calls `beginTraining` on the copy
    in train_step.
  }];
  let methods = [InterfaceMethod<[{
      Changes the op to its training form. `iteration` (tensor<i32>) is the number of steps before this one. For each
      operand that is a frozen variable which the op updates, appends the operand's number and the new value.
    }],
    "void", "beginTraining",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$iteration,
         "::llvm::SmallVectorImpl<std::pair<unsigned, ::mlir::Value>> &":$updates)>];
}

def OptimizerOpInterface : OpInterface<"OptimizerOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An optimizer of a model, such as `mt.sgd` or `mt.adam`: its slots and its update formula, exactly as in Keras.
    Clipping, weight decay, moving averages and the schedule of the learning rate are attributes and an operand that
    all optimizers have. `mt-expand-optimizer` implements them, and builds the mt.update for which the optimizer stands.
  }];
  let methods = [
    InterfaceMethod<"Name of the optimizer in Keras, first part of slot names: adam", "::llvm::StringRef",
                    "getOptimizerName", (ins)>,
    InterfaceMethod<"Suffixes of the slots of a variable: momentum, velocity",
                    "::llvm::SmallVector<::llvm::StringRef>", "getSlotNames", (ins)>,
    InterfaceMethod<"Initial value of the slots", "double", "getSlotStart", (ins), "", "return 0;">,
    InterfaceMethod<"Scalars that the optimizer keeps from step to step, with their initial values",
      "::llvm::SmallVector<std::pair<::llvm::StringRef, double>>", "getState", (ins), "", "return {};">,
    InterfaceMethod<[{
      Builds the scalars that the updates of all variables share, such as Adam's alpha, from the learning rate
      (tensor<f32>), the number of steps before this one (tensor<i32>) and the state. Returns the new state first.
      }], "::llvm::SmallVector<::mlir::Value>", "buildScalars",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$learningRate, "::mlir::Value":$iteration,
       "::mlir::ValueRange":$state)>,
    InterfaceMethod<"Builds the new values of the variable, then of each slot",
      "::llvm::SmallVector<::mlir::Value>", "buildUpdate",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$scalars, "::mlir::Value":$variable,
           "::mlir::Value":$gradient, "::mlir::ValueRange":$slots)>];
}
#endif
