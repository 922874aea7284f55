// SPDX-License-Identifier: Apache-2.0
//
// How two processes of a run greet each other, and the messages that follow: what is taken from a connection, as a
// machine over bytes. Whoever reads the socket gives them in; nothing here waits.
//
// Anybody can connect to process 0, so each side proves that it knows the run's secret before anything else of it is
// looked at, and neither tells the secret. Of fixed size, in this order:
//
//   process 0:  "mtrun processes\n", 16 bytes A that were never used before                     (32 bytes)
//   the other:  16 such bytes B, HMAC-SHA-256(secret, "connects" A B)                            (48 bytes)
//   process 0:  HMAC-SHA-256(secret, "listens" A B)                                              (32 bytes)
//
// A proof fits one connection and one side, so none can be used again. Process 0 reads 48 bytes of a stranger and
// closes the connection. Then messages go: a kind, four bytes of size, at most 64 KiB. Their bytes are not sealed: who
// can change packets on the way between the hosts can also change what NCCL sends beside them, which is in the clear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mtrun {

constexpr size_t nonceBytes = 16, proofBytes = 32, challengeBytes = 16 + nonceBytes,
                 responseBytes = nonceBytes + proofBytes, maxMessageBytes = size_t{1} << 16;

class Greeting {
public:
  enum class State { Waits, Known, Refused };

  // `nonce`: 16 bytes that were never used before.
  Greeting(bool listens, std::string_view secret, std::string_view nonce);

  State state() const { return state_; }
  bool challenged() const { return !others_.empty(); } // of one that connects: process 0 has spoken
  // Bytes that must come next; no more than these are to be read.
  size_t wanted() const { return state_ == State::Waits ? wanted_ - received_.size() : 0; }
  // Takes what came, at most wanted() bytes.
  void take(std::string_view bytes);
  // What is to be sent now, which this call takes away.
  std::string answer() { return std::exchange(answer_, std::string()); }

private:
  void step();
  std::string proof(std::string_view side) const;

  bool listens_;
  State state_ = State::Waits;
  std::string secret_, nonce_, others_; // nonces
  std::string received_, answer_;
  size_t wanted_;
};

struct Message {
  char kind = 0;
  std::string bytes;
};

// Takes what has come; messages that are whole go to the end of `messages`. False: these are none of ours.
class MessageReader {
public:
  bool take(std::string_view bytes, std::vector<Message> &messages);

private:
  std::string received_; // the beginning of a message
};

std::string messageBytes(char kind, std::string_view bytes);

// What a process says of itself first.
struct Hello {
  int process = 0;
  std::string name;      // of its device, fit to be shown
  std::string agreement; // lines "WHAT: VALUE"
};

std::string helloBytes(const Hello &hello);
// False: it is none.
bool parseHello(std::string_view bytes, Hello &hello);
// The first line that differs, fit to be shown: "expected A, found B"; "" if none does.
std::string difference(std::string_view mine, std::string_view theirs);

} // namespace mtrun
