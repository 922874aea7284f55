// SPDX-License-Identifier: Apache-2.0
//
// What a pass may ask of an op. An op answers next to its definition; no pass holds a switch over all ops.
#ifndef MT_INTERFACES_TD
#define MT_INTERFACES_TD

include "mlir/IR/OpBase.td"

def GradientOpInterface : OpInterface<"GradientOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    Reverse-mode derivative of an op, as mt ops. Every op with a floating-point operand that a loss can depend on has
    it.
  }];
  let methods = [InterfaceMethod<[{
      Given dL/dresult for each result (null: zero), appends dL/doperand for each operand; null where the operand is
      not differentiable (integers, labels) or the derivative is zero. The shapes are the operands' shapes.
    }],
    "void", "buildGradient",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$resultGradients,
         "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>];
}

def InterpretOpInterface : OpInterface<"InterpretOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{ The meaning of an op, in double precision: slow and obvious. }];
  let methods = [InterfaceMethod<[{
      Computes the results from the operands' values. `context` gives the number of rows (the size of every `?`), the
      first row's global index, the seed.
    }],
    "::llvm::LogicalResult", "interpret",
    (ins "const ::mlir::mt::EvalContext &":$context, "::llvm::ArrayRef<::mlir::mt::Tensor>":$operands,
         "::llvm::SmallVectorImpl<::mlir::mt::Tensor> &":$results)>];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{ Floating-point operations of an op. A FMA counts two. }];
  let methods = [
    InterfaceMethod<"FLOPs of one row where the op works on batch rows (`?`), else of the whole op",
                    "int64_t", "getFlops", (ins)>];
}

def ElementwiseOpInterface : OpInterface<"ElementwiseOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op whose result element depends on the operands' elements at the same (broadcast) index. Code generation asks it
    for the arithmetic of one element and knows nothing else about it.
  }];
  let methods = [InterfaceMethod<[{
      Emits the op on lanes: each operand is a scalar or `vector<16x...>` of its element type (all of one shape), i1 for
      booleans. Only arith ops and llvm intrinsics may be emitted; FMA is spelled out, and a lane's bits may not
      depend on its neighbours or on the target.
    }],
    "::mlir::Value", "lowerElement",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands)>];
}

def MoveOpInterface : OpInterface<"MoveOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op whose result holds elements of its operands, picked by their position alone. Both code generators write the op
    from these answers.
  }];
  let methods = [
    InterfaceMethod<"The boxes of elements that make up the result, one after the other. They do not overlap",
                    "::llvm::SmallVector<::mlir::mt::Move>", "getMoves", (ins)>,
    InterfaceMethod<"What an element is that is in no box", "::llvm::APFloat", "getFill", (ins), "",
                    "return ::llvm::APFloat(0.0f);">,
    InterfaceMethod<[{
      Whether the first `axes` axes of a sample (those of the operands have been found equal to the result's) stay as
      they are, so that each index of them can be computed by itself (Lines.h).
    }], "bool", "keepsFirstAxes", (ins "int64_t":$axes), "", "return false;">,
    InterfaceMethod<"Takes the first `axes` axes of a sample, which it keeps, out of the op's attributes", "void",
                    "dropFirstAxes", (ins "int64_t":$axes), "", "return;">];
}

def LookupOpInterface : OpInterface<"LookupOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op that copies lines that ids name, or adds lines to those that ids name. Both code generators write the op from
    this answer.
  }];
  let methods = [InterfaceMethod<"Which lines, of one sample", "::mlir::mt::Lookup", "getLookup", (ins)>];
}

def WindowOpInterface : OpInterface<"WindowOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op whose result element is folded from the elements of a window of its operand, channel by channel: those that
    lie in the image, in order of kh, then kw. Both code generators write the op from these answers.
  }];
  let methods = [
    InterfaceMethod<"The windows", "::mlir::mt::Pooling", "getPooling", (ins)>,
    InterfaceMethod<"The operand that the windows lie over", "::mlir::Value", "getInput", (ins)>,
    InterfaceMethod<"What a fold starts from", "float", "getWindowStart", (ins)>,
    InterfaceMethod<"Emits the fold of one more element: f32 scalars or vectors, by the rules of lowerElement",
                    "::mlir::Value", "foldElement",
                    (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$running, "::mlir::Value":$next)>,
    InterfaceMethod<"Emits the result of a window from what its elements were folded to", "::mlir::Value",
                    "finishWindow", (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$running), "",
                    "return running;">];
}

def WindowGradientOpInterface : OpInterface<"WindowGradientOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op whose result element is the sum of the gradients of the windows that hold it, or of those windows whose first
    largest element it is: a chain that starts at +0, in order of oh, then ow.
  }];
  let methods = [
    InterfaceMethod<"The windows", "::mlir::mt::Pooling", "getPooling", (ins)>,
    InterfaceMethod<"The gradient of each window's result", "::mlir::Value", "getGradient", (ins)>,
    InterfaceMethod<"What the windows lay over, if their largest elements matter; else null", "::mlir::Value",
                    "getInput", (ins)>];
}

def ConvolutionOpInterface : OpInterface<"ConvolutionOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{ A convolution of images with a kernel, or a gradient of one. }];
  let methods = [InterfaceMethod<"Its geometry", "::mlir::mt::Convolution", "getConvolution", (ins)>];
}

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op that may have a kernel of a kind of its own. `mt-fuse` builds its kernels around such ops.
  }];
  let methods = [
    InterfaceMethod<"The kind; none where the op is a part of a kernel of rows or of one tile",
                    "::std::optional<::mlir::mt::KernelKind>", "getKernelKind", (ins)>,
    InterfaceMethod<"Whether the op reads its operands from buffers: its kernel computes none of them", "bool",
                    "readsBuffers", (ins), "", "return true;">,
    InterfaceMethod<"Whether element-wise work on the result may go into the op's kernel: it is in registers there",
                    "bool", "takesEpilogue", (ins), "", "return false;">,
    InterfaceMethod<"What the names of kernels call the op", "::std::string", "getWord", (ins), "",
                    "return $_op->getName().stripDialect().str();">];
}

def IndexOpInterface : OpInterface<"IndexOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op with an operand whose numbers pick rows of a table, or classes. Numbers out of range have a meaning only so
    that kernels stay in bounds.
  }];
  let methods = [
    InterfaceMethod<"The operand", "::mlir::Value", "getIndex", (ins)>,
    InterfaceMethod<"How many rows or classes there are", "int64_t", "getIndexLimit", (ins)>];
}

def DecomposeOpInterface : OpInterface<"DecomposeOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{ A composite: an op that other mt ops can express. It must not exist after `mt-decompose`. }];
  let methods = [InterfaceMethod<"Builds the op's one result from other ops",
    "::mlir::Value", "decompose", (ins "::mlir::OpBuilder &":$builder)>];
}

def TrainingOpInterface : OpInterface<"TrainingOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    An op that means one thing in train_step and another in eval_step and predict: dropout, batch normalisation. What
    stands in a model is the form for eval_step and predict; `mt-differentiate` asks the copy in train_step to become
    the other.
  }];
  let methods = [InterfaceMethod<[{
      Turns the op into its training form. `iteration` (tensor<i32>): the steps before this one. Appends the numbers of
      the operands that are frozen variables to change, and their new values.
    }],
    "void", "beginTraining",
    (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$iteration,
         "::llvm::SmallVectorImpl<std::pair<unsigned, ::mlir::Value>> &":$updates)>];
}

def OptimizerOpInterface : OpInterface<"OptimizerOpInterface"> {
  let cppNamespace = "::mlir::mt";
  let description = [{
    The `mt.sgd`, `mt.adam` ... of a model: knows its slots and its update formula (Keras' exactly). What all optimizers
    have (clipping, weight decay, moving averages, the learning rate's schedule) are attributes and an operand that
    `mt-differentiate` reads.
  }];
  let methods = [
    InterfaceMethod<"Keras' name of the optimizer, first part of slot names: adam", "::llvm::StringRef",
                    "getOptimizerName", (ins)>,
    InterfaceMethod<"The suffixes of its slots of a variable: momentum, velocity",
                    "::llvm::SmallVector<::llvm::StringRef>", "getSlotNames", (ins)>,
    InterfaceMethod<"What its slots start at", "double", "getSlotStart", (ins), "", "return 0;">,
    InterfaceMethod<"The scalars that it keeps from step to step, and what they start at",
      "::llvm::SmallVector<std::pair<::llvm::StringRef, double>>", "getState", (ins), "", "return {};">,
    InterfaceMethod<[{
      Scalars shared by all variables of a step (Adam's alpha), from the learning rate (tensor<f32>), the iteration
      before the step (tensor<i32>) and the state. The state's new values come first.
      }], "::llvm::SmallVector<::mlir::Value>", "buildScalars",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$learningRate, "::mlir::Value":$iteration,
       "::mlir::ValueRange":$state)>,
    InterfaceMethod<"New values: the variable's first, then each slot's",
      "::llvm::SmallVector<::mlir::Value>", "buildUpdate",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$scalars, "::mlir::Value":$variable,
           "::mlir::Value":$gradient, "::mlir::ValueRange":$slots)>];
}
#endif
