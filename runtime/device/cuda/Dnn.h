// SPDX-License-Identifier: Apache-2.0
//
// cuDNN 9: convolutions, through its graph API's descriptors.
#pragma once

#include "runtime/device/cuda/CallLibrary.h"

namespace mtrun::cuda {

// Opens libcudnn.so.9, or what $MTRUN_CUDA_CUDNN names, once a process, and starts it on the GPU whose context is
// current. MT_DEVICE.
Status openDnn(std::unique_ptr<CallLibrary> &library);

} // namespace mtrun::cuda
