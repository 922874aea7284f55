// SPDX-License-Identifier: Apache-2.0
#include "Nccl.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <unistd.h>

using namespace simulated;

#define MTC_SIM_DECLARE(member, symbol, parameters) extern "C" MT_API NcclResult symbol parameters;
MTRUN_NCCL_FUNCTIONS(MTC_SIM_DECLARE)
extern "C" MT_API const char *ncclGetErrorString(NcclResult);
extern "C" MT_API const char *ncclGetLastError(NcclComm);

namespace simulated {

static long setting(const char *name, long otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::strtol(text, nullptr, 10) : otherwise;
}

NcclSettings::NcclSettings() {
  version = setting("MTC_SIM_NCCL_VERSION", version);
  rank = setting("MTC_SIM_NCCL_RANK", rank);
  failAt = setting("MTC_SIM_NCCL_FAIL", 0);
  dieAt = setting("MTC_SIM_NCCL_DIE", 0);
  stallAt = setting("MTC_SIM_NCCL_STALL", 0);
  asyncAt = setting("MTC_SIM_NCCL_ASYNC", 0);
}

NcclSettings::~NcclSettings() {
  if (isMine() && failAt > calls)
    std::fprintf(stderr, "simulated NCCL: call %ld was not reached\n", failAt);
}

NcclSettings &ncclSettings() {
  static NcclSettings one;
  return one;
}

} // namespace simulated

namespace {

constexpr NcclResult systemError = 2, remoteError = 6;

// Communicators live as long as the process: what runs may look at one that was aborted.
std::vector<std::unique_ptr<ncclComm>> communicators;

// The group of calls under way.
int depth = 0;
ncclComm *groupComm = nullptr;
CUstream_st *groupStream = nullptr;
std::vector<Piece> pieces;

// A call that lives in a graph.
struct Token {
  ncclComm &comm;
  explicit Token(ncclComm &of) : comm(of) { ++comm.recorded; }
  ~Token() { --comm.recorded; }
};

bool fails(const char *call) {
  NcclSettings &s = ncclSettings();
  if (++s.calls != s.failAt || !s.isMine())
    return false;
  std::fprintf(stderr, "simulated NCCL: call %ld, %s, fails\n", s.calls, call);
  return true;
}

ncclComm &known(NcclComm comm, const char *call) {
  for (const auto &each : communicators)
    if (each.get() == comm && !each->ended)
      return *comm;
  fatal(std::string(call) + " of an unknown communicator");
}

std::byte *checked(const void *memory, size_t floats, CUstream_st &stream, const char *call) {
  const Memory *found = simulator().find(memory, floats * sizeof(float), call);
  if (!found || found->device != stream.device)
    fatal(std::string(call) + " of memory of another device");
  return static_cast<std::byte *>(const_cast<void *>(memory));
}

void add(const char *call, NcclComm comm, Stream stream, int type, Piece piece) {
  ncclComm &used = known(comm, call);
  if (depth == 0 && piece.kind != Piece::Kind::Reduce)
    fatal(std::string(call) + " outside of a group: two processes that send first wait for each other");
  if ((groupComm && groupComm != &used) || (used.stream && used.stream != stream))
    fatal(std::string(call) + " on another communicator or stream than the calls before");
  if (type != ncclF32 || piece.floats == 0)
    fatal(std::string(call) + " of other elements than floats, or of none");
  CUstream_st &on = simulator().streams.get(stream);
  if (on.device != used.device || on.device != simulator().device(call))
    fatal(std::string(call) + " on a stream of another device");
  if (on.priority != greatestPriority)
    fatal(std::string(call) + " on a stream that waits behind kernels");
  if (piece.kind != Piece::Kind::Reduce && (piece.peer < 0 || piece.peer >= used.ranks || piece.peer == used.rank))
    fatal(std::string(call) + " with process " + std::to_string(piece.peer));
  for (const Piece &other : pieces)
    if (piece.kind == Piece::Kind::Reduce || other.kind == Piece::Kind::Reduce ||
        (other.kind == piece.kind && other.peer == piece.peer))
      fatal(std::string(call) + " twice in a group");
  checked(piece.memory, piece.floats, on, call);
  if (piece.result)
    checked(piece.result, piece.floats, on, call);
  groupComm = used.stream ? &used : (used.stream = stream, &used);
  groupStream = stream;
  pieces.push_back(piece);
}

void enqueueGroup() {
  if (pieces.empty())
    return;
  Operation operation;
  operation.kind = Operation::Kind::External;
  std::shared_ptr<Token> token = groupStream->capture ? std::make_shared<Token>(*groupComm) : nullptr;
  operation.begin = [comm = groupComm, all = pieces, token] { return beginExchange(*comm, all); };
  simulator().enqueue(*groupStream, std::move(operation));
  pieces.clear();
  groupComm = nullptr;
  groupStream = nullptr;
}

} // namespace

NcclResult ncclGetVersion(int *version) {
  *version = static_cast<int>(ncclSettings().version);
  return fails("ncclGetVersion") ? systemError : ncclOk;
}

NcclResult ncclGetUniqueId(NcclId *id) {
  if (fails("ncclGetUniqueId"))
    return systemError;
  std::random_device chance;
  std::snprintf(id->bytes, sizeof id->bytes, "mtc-sim-nccl-%d-%08x%08x", getpid(), chance(), chance());
  return ncclOk;
}

NcclResult ncclCommInitRank(NcclComm *comm, int ranks, NcclId id, int rank) {
  int device = simulator().device("ncclCommInitRank");
  ncclSettings().known = rank;
  if (fails("ncclCommInitRank"))
    return systemError;
  if (rank < 0 || rank >= ranks)
    fatal("ncclCommInitRank of rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  auto made = std::make_unique<ncclComm>();
  made->rank = rank;
  made->ranks = ranks;
  made->device = device;
  id.bytes[sizeof id.bytes - 1] = 0;
  connectAll(*made, id.bytes);
  *comm = made.get();
  communicators.push_back(std::move(made));
  return ncclOk;
}

NcclResult ncclCommDestroy(NcclComm comm) {
  ncclComm &ending = known(comm, "ncclCommDestroy");
  if (ending.recorded)
    fatal("ncclCommDestroy of a communicator that graphs refer to");
  bool failing = fails("ncclCommDestroy");
  ending.ended = true;
  for (int socket : ending.sockets)
    if (socket >= 0)
      close(socket);
  return failing ? systemError : ncclOk;
}

// As NCCL does from 2.26 on: ends what runs, then waits for the graphs to go.
NcclResult ncclCommAbort(NcclComm comm) {
  ncclComm &ending = known(comm, "ncclCommAbort");
  (void)simulator().device("ncclCommAbort");
  ending.aborted = true;
  for (int turn = 0; ending.recorded; ++turn) {
    if (turn > 200000)
      fatal("ncclCommAbort waited 20 seconds for graphs to be destroyed");
    usleep(100);
  }
  ending.ended = true;
  return ncclOk;
}

NcclResult ncclCommGetAsyncError(NcclComm comm, NcclResult *error) {
  *error = known(comm, "ncclCommGetAsyncError").failed ? remoteError : ncclOk;
  return fails("ncclCommGetAsyncError") ? systemError : ncclOk;
}

NcclResult ncclGroupStart() {
  if (fails("ncclGroupStart"))
    return systemError;
  ++depth;
  return ncclOk;
}

NcclResult ncclGroupEnd() {
  if (depth == 0)
    fatal("ncclGroupEnd without a start");
  --depth;
  if (fails("ncclGroupEnd")) {
    pieces.clear();
    return systemError;
  }
  if (depth == 0)
    enqueueGroup();
  return ncclOk;
}

NcclResult ncclSend(const void *from, size_t count, int type, int peer, NcclComm comm, Stream stream) {
  if (fails("ncclSend"))
    return systemError;
  add("ncclSend", comm, stream, type,
      {Piece::Kind::Send, static_cast<std::byte *>(const_cast<void *>(from)), nullptr, count, peer});
  return ncclOk;
}

NcclResult ncclRecv(void *to, size_t count, int type, int peer, NcclComm comm, Stream stream) {
  if (fails("ncclRecv"))
    return systemError;
  add("ncclRecv", comm, stream, type, {Piece::Kind::Receive, static_cast<std::byte *>(to), nullptr, count, peer});
  return ncclOk;
}

NcclResult ncclAllReduce(const void *from, void *to, size_t count, int type, int op, NcclComm comm, Stream stream) {
  if (fails("ncclAllReduce"))
    return systemError;
  if (op != ncclAdd)
    fatal("ncclAllReduce of another kind than a sum");
  add("ncclAllReduce", comm, stream, type,
      {Piece::Kind::Reduce, static_cast<std::byte *>(const_cast<void *>(from)), static_cast<std::byte *>(to), count,
       0});
  if (depth == 0)
    enqueueGroup();
  return ncclOk;
}

const char *ncclGetErrorString(NcclResult error) {
  return error == systemError   ? "unhandled system error (run with NCCL_DEBUG=INFO for details)"
         : error == remoteError ? "remote process exited or there was a network error"
                                : "internal error";
}

const char *ncclGetLastError(NcclComm) { return ""; }
