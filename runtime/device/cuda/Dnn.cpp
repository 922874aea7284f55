// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cuda/Dnn.h"

#include "runtime/device/cuda/DnnGraph.h"

#include <dlfcn.h>
#include <map>

namespace mtrun::cuda {

namespace fb = ::mt::plan;

namespace {

Status open(DnnFunctions &functions) {
  void *library = nullptr;
  std::string place;
  if (Status status = openCallLibrary(cudnnLibrary(),
                                      "cudnn9-cuda-13 or nvidia-cudnn-cu13, for CUDA 12 cudnn9-cuda-12 or "
                                      "nvidia-cudnn-cu12",
                                      library, place);
      !status.ok())
    return status;
#define MTRUN_DNN_FIND(member, symbol, type, parameters)                                                               \
  functions.member = reinterpret_cast<decltype(functions.member)>(dlsym(library, #symbol));                            \
  if (!functions.member)                                                                                               \
    return {MT_DEVICE, "expected cuDNN 9, found " + place + " without " #symbol};
  MTRUN_DNN_FUNCTIONS(MTRUN_DNN_FIND)
#undef MTRUN_DNN_FIND
  return {};
}

class Dnn : public CallLibrary {
public:
  explicit Dnn(const DnnFunctions &functions) : functions_(functions) {}
  ~Dnn() override {
    plans_.clear();
    if (handle_)
      (void)functions_.destroy(handle_);
  }
  Status start() { return good(functions_.create(&handle_), "cuDNN does not start"); }

  std::string version() const override {
    size_t number = functions_.getVersion();
    return "cuDNN " + std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." +
           std::to_string(number % 100);
  }

  Status algorithms(const fb::LibraryCall &call, int64_t shardRows, const Wanted &wanted,
                    std::vector<Algorithm> &found) override {
    std::vector<DnnAlgorithm> proposals;
    DnnProblem problem = {call, shardRows};
    for (int mode : {dnn::bestMode, dnn::fallbackMode}) {
      if (mode == dnn::fallbackMode && !wanted.fallbacks)
        continue;
      DnnDescriptors made(functions_);
      DnnDescriptor graph = makeGraph(made, {handle_}, problem);
      if (Status status = good(made.code(), "cannot describe a convolution to cuDNN"); !status.ok())
        return status;
      for (DnnAlgorithm &proposal : propose(made, {handle_}, problem, graph, mode))
        proposals.push_back(std::move(proposal));
      if (Status status = supported(made.code(), "cuDNN finds no algorithm"); !status.ok())
        return status;
    }
    for (const DnnAlgorithm &proposal : proposals) {
      Algorithm algorithm = {proposal.name(), 0};
      bool known = false;
      for (const Algorithm &earlier : found)
        known |= earlier.name == algorithm.name;
      Ready *ready = nullptr;
      if (known || found.size() == wanted.most)
        continue;
      if (Status status = prepare(call, shardRows, algorithm.name, ready); !status.ok())
        return status;
      if (ready && ready->workspace <= wanted.workspace)
        found.push_back({algorithm.name, ready->workspace});
    }
    return {};
  }

  // All shards use the same plan, one after another.
  Status find(const fb::LibraryCall &call, int64_t shardRows, int64_t, Algorithm &algorithm) override {
    Ready *ready = nullptr;
    if (Status status = prepare(call, shardRows, algorithm.name, ready); !status.ok())
      return status;
    if (!ready)
      return {MT_INVALID, "expected an algorithm of " + version() + " for this convolution, found " + algorithm.name};
    algorithm.workspace = ready->workspace;
    return {};
  }

  Status enqueue(const fb::LibraryCall &call, int64_t shardRows, const Algorithm &algorithm, const CallPlaces &places,
                 int64_t shards, Stream stream) override {
    Ready *ready = nullptr;
    if (Status status = prepare(call, shardRows, algorithm.name, ready); !status.ok())
      return status;
    if (!ready)
      return {MT_DEVICE, "expected an algorithm of " + version() + " for this convolution, found " + algorithm.name};
    CallSizes sizes;
    if (Status status = callSizes(call, "library call", sizes); !status.ok())
      return status;
    if (Status status = good(functions_.setStream(handle_, stream), "cuDNN takes no stream"); !status.ok())
      return status;
    auto shardBytes = [&](uint64_t elements, bool rows) {
      return rows ? elements * static_cast<uint64_t>(shardRows) * sizeof(float) : 0;
    };
    uint64_t left = shardBytes(sizes.left, true), right = shardBytes(sizes.right, sizes.rightRows);
    uint64_t result = sizes.resultRows ? shardBytes(sizes.result, true) : sizes.result * sizeof(float);
    for (uint64_t shard = 0; shard < static_cast<uint64_t>(shards); ++shard) {
      int64_t ids[] = {dnnLeft, dnnRight, dnnResult, dnnBias};
      const void *pointers[] = {places.left + shard * left, places.right + shard * right,
                                places.result + shard * result, places.bias};
      int64_t tensors = places.bias ? 4 : 3;
      const void *workspace = places.workspace;
      DnnDescriptors made(functions_);
      DnnDescriptor pack = made.make(dnn::variantPack);
      made.set(pack, dnn::packIds, dnn::int64Type, tensors, ids);
      made.set(pack, dnn::packPointers, dnn::pointerType, tensors, pointers);
      made.set(pack, dnn::packWorkspace, dnn::pointerType, 1, &workspace);
      made.finalize(pack);
      int code = made.code();
      if (code == dnn::success)
        code = functions_.execute(handle_, ready->plan, pack);
      if (Status status = good(code, "cuDNN does not compute a convolution"); !status.ok())
        return status;
    }
    return {};
  }

private:
  // A cuDNN plan with the descriptors that it consists of.
  struct Ready {
    explicit Ready(const DnnFunctions &functions) : made(functions) {}
    DnnDescriptors made;
    DnnDescriptor plan = nullptr;
    uint64_t workspace = 0;
  };

  // Values of cudnnStatus_t; 3000 to 3999 are reasons for missing support.
  static constexpr int notSupported = 3000, compilationFailed = 4001, noHostMemory = 4003, noDeviceMemory = 4004;

  Status good(int code, const std::string &what) const {
    if (code == dnn::success)
      return {};
    const char *name = functions_.errorString(code);
    return {code == noHostMemory || code == noDeviceMemory ? MT_NO_MEMORY : MT_DEVICE,
            what + ": " + (name ? name : std::to_string(code))};
  }
  // As good(), but missing support is not an error.
  Status supported(int code, const std::string &what) const {
    bool refused = (code >= notSupported && code < notSupported + 1000) || code == compilationFailed;
    return refused ? Status() : good(code, what);
  }

  // Makes the plan if it does not exist; null: the library does not support it.
  Status prepare(const fb::LibraryCall &call, int64_t shardRows, const std::string &name, Ready *&ready) {
    auto found = plans_.find({&call, name});
    if (found == plans_.end()) {
      auto made = std::make_unique<Ready>(functions_);
      DnnAlgorithm algorithm;
      if (!DnnAlgorithm::parse(name, algorithm))
        return {};
      DnnProblem problem = {call, shardRows};
      DnnDescriptor graph = makeGraph(made->made, {handle_}, problem);
      if (Status status = good(made->made.code(), "cannot describe a convolution to cuDNN"); !status.ok())
        return status;
      made->plan = makePlan(made->made, {handle_}, problem, graph, algorithm, made->workspace);
      if (Status status = supported(made->made.code(), "cuDNN makes no plan"); !status.ok())
        return status;
      if (!made->plan)
        return {};
      found = plans_.emplace(std::pair(&call, name), std::move(made)).first;
    }
    ready = found->second.get();
    return {};
  }

  const DnnFunctions &functions_;
  DnnHandle handle_ = nullptr;
  std::map<std::pair<const fb::LibraryCall *, std::string>, std::unique_ptr<Ready>> plans_;
};

} // namespace

Status openDnn(std::unique_ptr<CallLibrary> &library) {
  struct Opened {
    DnnFunctions functions;
    Status status;
    Opened() { status = open(functions); }
  };
  static const Opened opened;
  if (!opened.status.ok())
    return opened.status;
  auto started = std::make_unique<Dnn>(opened.functions);
  Status status = started->start();
  library = std::move(started);
  return status;
}

} // namespace mtrun::cuda
