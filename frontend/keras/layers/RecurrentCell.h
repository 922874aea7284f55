// SPDX-License-Identifier: Apache-2.0
//
// One cell of a recurrent layer over all steps of its input.
#ifndef FRONTEND_KERAS_LAYERS_RECURRENTCELL_H
#define FRONTEND_KERAS_LAYERS_RECURRENTCELL_H

#include "frontend/keras/LayerBuilder.h"

namespace mtc::keras {

enum class CellKind { Simple, Lstm, Gru };

// A class of cells, or of layers with such a cell.
struct CellClass {
  const char *layer, *cell, *cellName;
  CellKind kind;
  int64_t gates, states;
};
inline constexpr CellClass cellClasses[] = {{"SimpleRNN", "SimpleRNNCell", "simple_rnn_cell", CellKind::Simple, 1, 1},
                                            {"LSTM", "LSTMCell", "lstm_cell", CellKind::Lstm, 4, 2},
                                            {"GRU", "GRUCell", "gru_cell", CellKind::Gru, 3, 1}};

// By the name of the cell or the layer; null where there is none.
const CellClass *findCell(llvm::StringRef name);

// What a recurrent layer does with its steps, beside the cell.
struct StepOrder {
  bool sequences, state, backward, zeroMasked;
};

// Of all steps, where they stand in the input; after the last step of the loop.
struct StepResult {
  mlir::Value outputs, last;
  mlir::SmallVector<mlir::Value> states;
};

// The layer's config is the cell's. x [?, T, C]; `mask` [?, T], or null; `states`: before the first step, none for
// zeros. No `last` after an error.
StepResult runCell(LayerBuilder &layer, const CellClass &cell, StepOrder order, mlir::Value mask, mlir::Value x,
                   mlir::SmallVector<mlir::Value> states);

} // namespace mtc::keras

#endif
