// SPDX-License-Identifier: Apache-2.0
//
// The handshake of two processes of a run, and the framing of their messages, as state machines over bytes: the caller
// reads and writes the socket, and no function here waits.
//
// Anyone can connect to process 0. Therefore both sides first prove that they know the run's secret, which is never
// sent, and only then interpret other data. The messages of the handshake have fixed sizes:
//
//   process 0:  "mtrun processes\n", a nonce A of 16 bytes                                       (32 bytes)
//   the other:  a nonce B of 16 bytes, HMAC-SHA-256(secret, "connects" A B)                      (48 bytes)
//   process 0:  HMAC-SHA-256(secret, "listens" A B)                                              (32 bytes)
//
// A proof is valid for one connection and one direction, so it cannot be replayed. Process 0 reads at most 48 bytes of
// an unknown connection before it closes it. Messages follow: a kind, four bytes of size, at most 64 KiB. They are not
// authenticated: an attacker who can modify packets between the hosts could also modify NCCL's unencrypted traffic.
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

  // `nonce`: 16 random bytes that were never used before.
  Greeting(bool listens, std::string_view secret, std::string_view nonce);

  State state() const { return state_; }
  bool challenged() const { return !others_.empty(); } // in a connecting process: process 0 has sent its challenge
  // Returns the number of bytes to read next; the caller must not read more.
  size_t wanted() const { return state_ == State::Waits ? wanted_ - received_.size() : 0; }
  // Handles received bytes, at most wanted().
  void take(std::string_view bytes);
  // Returns the bytes to send now, and removes them.
  std::string answer() { return std::exchange(answer_, std::string()); }

private:
  void step();
  std::string proof(std::string_view side) const;

  bool listens_;
  State state_ = State::Waits;
  std::string secret_, nonce_, others_; // others_: the nonce of the other process
  std::string received_, answer_;
  size_t wanted_;
};

struct Message {
  char kind = 0;
  std::string bytes;
};

// Splits received bytes into messages. Complete messages are appended to `messages`. Returns false if the bytes are not
// messages.
class MessageReader {
public:
  bool take(std::string_view bytes, std::vector<Message> &messages);

private:
  std::string received_; // the received part of an incomplete message
};

std::string messageBytes(char kind, std::string_view bytes);

// The first message of a process, by which it identifies itself.
struct Hello {
  int process = 0;
  std::string name;      // name of its device, printable
  std::string agreement; // lines "WHAT: VALUE"
};

std::string helloBytes(const Hello &hello);
// Returns false if `bytes` is not a Hello.
bool parseHello(std::string_view bytes, Hello &hello);
// Returns the first line that differs, as printable text "expected A, found B"; "" if all lines are equal.
std::string difference(std::string_view mine, std::string_view theirs);

} // namespace mtrun
