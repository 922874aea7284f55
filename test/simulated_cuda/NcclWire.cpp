// SPDX-License-Identifier: Apache-2.0
//
// How simulated NCCL moves bytes: sockets of Linux' abstract space, one a pair of processes.
#include "Nccl.h"
#include "runtime/support/socket.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>

namespace simulated {
namespace {

struct Head {
  uint64_t number, reduces, bytes;
};

std::string place(const std::string &name, int rank) { return "unix:" + name + "-" + std::to_string(rank); }

class Exchange : public External {
public:
  Exchange(ncclComm &comm, std::vector<Piece> pieces)
      : comm_(comm), pieces_(std::move(pieces)), number_(++comm.exchanges), heard_(comm.sockets.size()) {
    auto at = static_cast<long>(number_);
    const NcclSettings &s = ncclSettings();
    if (s.isMine() && at == s.dieAt)
      raise(SIGKILL);
    stalls_ = s.isMine() && (at == s.stallAt || at == s.asyncAt);
    comm_.failed = comm_.failed || (s.isMine() && at == s.asyncAt);
    for (int peer = 0; peer < comm_.ranks && !stalls_; ++peer)
      if (peer != comm_.rank)
        say(peer);
  }

  bool advance() override {
    if (comm_.aborted)
      return true;
    bool all = !stalls_;
    for (int peer = 0; peer < comm_.ranks && !stalls_; ++peer) {
      if (peer == comm_.rank)
        continue;
      move(peer);
      auto p = static_cast<size_t>(peer);
      heard_[p] = heard_[p] || hear(peer);
      all &= heard_[p] && comm_.out[p].empty();
    }
    if (all && reduces())
      add();
    return all;
  }

private:
  bool reduces() const { return pieces_.size() == 1 && pieces_[0].kind == Piece::Kind::Reduce; }

  const Piece *piece(Piece::Kind kind, int peer) const {
    for (const Piece &each : pieces_)
      if (each.kind == Piece::Kind::Reduce || (each.kind == kind && each.peer == peer))
        return &each;
    return nullptr;
  }

  void say(int peer) {
    const Piece *sent = piece(Piece::Kind::Send, peer);
    Head head = {number_, reduces(), sent ? sent->floats * sizeof(float) : 0};
    std::string &out = comm_.out[static_cast<size_t>(peer)];
    out.append(reinterpret_cast<const char *>(&head), sizeof head);
    if (sent)
      out.append(reinterpret_cast<const char *>(sent->memory), head.bytes);
  }

  void move(int peer) {
    std::string &out = comm_.out[static_cast<size_t>(peer)], &in = comm_.in[static_cast<size_t>(peer)];
    int socket = comm_.sockets[static_cast<size_t>(peer)];
    for (ssize_t sent = 1; !out.empty() && sent > 0;)
      if ((sent = send(socket, out.data(), out.size(), MSG_DONTWAIT | MSG_NOSIGNAL)) > 0)
        out.erase(0, static_cast<size_t>(sent));
    static char room[1 << 16];
    for (ssize_t count = 1; count > 0;)
      if ((count = recv(socket, room, sizeof room, MSG_DONTWAIT)) > 0)
        in.append(room, static_cast<size_t>(count));
  }

  // Whether the peer's part of this exchange is there; it is taken.
  bool hear(int peer) {
    std::string &in = comm_.in[static_cast<size_t>(peer)];
    Head head;
    if (in.size() < sizeof head)
      return false;
    std::memcpy(&head, in.data(), sizeof head);
    const Piece *expected = piece(Piece::Kind::Receive, peer);
    uint64_t bytes = expected ? expected->floats * sizeof(float) : 0;
    if (head.number != number_ || head.reduces != reduces() || head.bytes != bytes)
      fatal("process " + std::to_string(comm_.rank) + " expects of process " + std::to_string(peer) + " " +
            std::to_string(bytes) + " bytes in exchange " + std::to_string(number_) + ", found " +
            std::to_string(head.bytes) + " in exchange " + std::to_string(head.number));
    if (in.size() < sizeof head + bytes)
      return false;
    if (reduces())
      parts_[peer] = in.substr(sizeof head, bytes);
    else if (bytes)
      std::memcpy(expected->memory, in.data() + sizeof head, bytes);
    in.erase(0, sizeof head + bytes);
    return true;
  }

  // In the order of processes, so the same in all of them.
  void add() {
    const Piece &piece = pieces_[0];
    parts_[comm_.rank] = std::string(reinterpret_cast<const char *>(piece.memory), piece.floats * sizeof(float));
    for (size_t i = 0; i < piece.floats; ++i) {
      float sum = 0;
      for (const auto &[peer, bytes] : parts_) {
        float value;
        std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
        sum += value;
      }
      std::memcpy(piece.result + i * sizeof sum, &sum, sizeof sum);
    }
  }

  ncclComm &comm_;
  std::vector<Piece> pieces_;
  uint64_t number_;
  std::vector<bool> heard_;
  std::map<int, std::string> parts_; // Reduce
  bool stalls_ = false;
};

} // namespace

void connectAll(ncclComm &comm, const std::string &name) {
  auto ranks = static_cast<size_t>(comm.ranks);
  comm.sockets.resize(ranks, -1);
  comm.out.resize(ranks);
  comm.in.resize(ranks);
  int listening = -1;
  if (mtrun::Status status = mtrun::listenAt(place(name, comm.rank), listening); !status.ok())
    fatal(status.message());
  for (int peer = 0; peer < comm.rank; ++peer) {
    int &socket = comm.sockets[static_cast<size_t>(peer)];
    while (socket < 0) {
      (void)mtrun::connectTo(place(name, peer), 1000, socket);
      usleep(1000);
    }
    (void)!write(socket, &comm.rank, sizeof comm.rank);
  }
  for (int count = comm.rank + 1; count < comm.ranks;) {
    int socket = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC), peer = -1;
    if (socket >= 0 && read(socket, &peer, sizeof peer) != sizeof peer) { // one that ended before it said its number
      close(socket);
      continue;
    }
    if (socket < 0 || peer <= comm.rank || peer >= comm.ranks)
      fatal("ncclCommInitRank: a connection that is none of ours");
    comm.sockets[static_cast<size_t>(peer)] = socket;
    ++count;
  }
  close(listening);
}

std::unique_ptr<External> beginExchange(ncclComm &comm, std::vector<Piece> pieces) {
  return std::make_unique<Exchange>(comm, std::move(pieces));
}

} // namespace simulated
