// SPDX-License-Identifier: Apache-2.0
//
// One cell of a recurrent layer over all steps of its input.
#ifndef FRONTEND_KERAS_LAYERS_RECURRENTCELL_H
#define FRONTEND_KERAS_LAYERS_RECURRENTCELL_H

#include "frontend/keras/LayerBuilder.h"

namespace mtc::keras {

enum class CellKind { Simple, Lstm, Gru };

// A class of cells, or of layers with one cell of this kind.
struct CellClass {
  const char *layer, *cell, *cellName;
  CellKind kind;
  int64_t gates, states;
};
inline constexpr CellClass cellClasses[] = {{"SimpleRNN", "SimpleRNNCell", "simple_rnn_cell", CellKind::Simple, 1, 1},
                                            {"LSTM", "LSTMCell", "lstm_cell", CellKind::Lstm, 4, 2},
                                            {"GRU", "GRUCell", "gru_cell", CellKind::Gru, 3, 1}};

// Finds a class by the name of the cell or the layer; null if there is none.
const CellClass *findCell(llvm::StringRef name);

// Options of a recurrent layer that concern the steps.
struct StepOrder {
  bool sequences, state, backward, zeroMasked;
};

// Results of a loop: `outputs` of all steps, in the order of the input, and the values after the last step of the loop,
// `last` and `states`.
struct StepResult {
  mlir::Value outputs, last;
  mlir::SmallVector<mlir::Value> states;
};

// Runs a cell; the config of the layer is that of the cell. x [?, T, C]; `mask` [?, T] or null; `states` before the
// first step, empty for zeros. `last` is null after an error.
StepResult runCell(LayerBuilder &layer, const CellClass &cell, StepOrder order, mlir::Value mask, mlir::Value x,
                   mlir::SmallVector<mlir::Value> states);

} // namespace mtc::keras

#endif
