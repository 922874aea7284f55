// SPDX-License-Identifier: Apache-2.0
//
// cuDNN 9: convolutions, by its graph API.
#pragma once

#include "runtime/device/cuda/CallLibrary.h"

namespace mtrun::cuda {

// Opens libcudnn.so.9, or the file in $MTRUN_CUDA_CUDNN, once per process, and creates a handle on the GPU of the
// current context. MT_DEVICE.
Status openDnn(std::unique_ptr<CallLibrary> &library);

} // namespace mtrun::cuda
