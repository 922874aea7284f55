// SPDX-License-Identifier: Apache-2.0
//
// Strangers who connect to process 0 ended runs with six bytes, with a text for the terminal and an exit code of their
// choice, kept it busy or filled its memory. Now each has to prove first that it knows the run's secret.
#include "runtime/device/ProcessGroup.h"
#include "runtime/support/secret.h"
#include "runtime/support/socket.h"
#include "runtime/support/text.h"

#include <arpa/inet.h>
#include <chrono>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace mtrun {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

const std::string secret = "a secret of this test";

std::string text(const Status &status) {
  return status.ok() ? "0" : std::to_string(status.code()) + ": " + status.message();
}

// A connection to 127.0.0.`last`; -1: nobody listens there.
int dial(int port, int last = 1) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(0x7f000000u + static_cast<uint32_t>(last));
  int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  timeval patience = {5, 0};
  setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  if (connect(made, reinterpret_cast<sockaddr *>(&address), sizeof address) == 0)
    return made;
  close(made);
  return -1;
}

// A port of 127.0.0.1 that nobody has.
int freePort() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bind(made, reinterpret_cast<sockaddr *>(&address), size), 0);
  getsockname(made, reinterpret_cast<sockaddr *>(&address), &size);
  close(made);
  return ntohs(address.sin_port);
}

// Process 0 of two, in a thread.
class First {
public:
  explicit First(double timeout = 20) {
    options.processes = 2;
    options.rendezvous = "tcp:127.0.0.1:" + std::to_string(port);
    options.agreement = "plan: a\nseed: 1";
    options.name = "cuda:0";
    options.secret = secret;
    options.timeout = timeout;
    thread_ = std::thread([this] {
      result = ProcessGroup::open(options, peers);
      ended = true;
    });
    stranger(""); // it listens
  }
  ~First() { wait(); }
  void wait() {
    if (thread_.joinable())
      thread_.join();
  }
  // Somebody connects, hears the challenge and says this. The socket.
  int stranger(const std::string &bytes) const {
    int made = -1;
    for (auto limit = Clock::now() + 5s; made < 0 && Clock::now() < limit;) {
      made = dial(port);
      if (made < 0)
        std::this_thread::sleep_for(5ms);
    }
    EXPECT_GE(made, 0);
    (void)!send(made, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return made;
  }
  // Process 1 as it should be.
  Status second(std::unique_ptr<ProcessGroup> &made,
                const std::function<void(ProcessGroupOptions &)> &change = {}) const {
    ProcessGroupOptions own = options;
    own.process = 1;
    own.name = "cuda:1";
    if (change)
      change(own);
    return ProcessGroup::open(own, made);
  }

  int port = freePort();
  ProcessGroupOptions options;
  Status result;
  std::atomic<bool> ended = false;
  std::unique_ptr<ProcessGroup> peers;

private:
  std::thread thread_;
};

// Bytes until the other closes, or 5 seconds are over.
std::string receiveAll(int socket, size_t most = 1 << 20) {
  std::string got;
  char room[4096];
  for (ssize_t count;
       got.size() < most && (count = recv(socket, room, std::min(sizeof room, most - got.size()), 0)) > 0;)
    got.append(room, static_cast<size_t>(count));
  return got;
}

// A process of ours by hand: the socket after the greeting, `challenge` and `response` as they went.
int greetByHand(const First &first, std::string *response = nullptr) {
  int socket = first.stranger("");
  std::string challenge = receiveAll(socket, challengeBytes);
  Greeting greeting(false, secret, std::string(nonceBytes, 'n'));
  greeting.take(challenge);
  std::string answer = greeting.answer();
  if (response)
    *response = answer;
  send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
  greeting.take(receiveAll(socket, proofBytes));
  EXPECT_EQ(greeting.state(), Greeting::State::Known);
  return socket;
}

// After whatever strangers did: both processes meet at once.
void expectMeets(First &first) {
  EXPECT_FALSE(first.ended) << text(first.result);
  std::unique_ptr<ProcessGroup> second;
  auto begin = Clock::now();
  EXPECT_EQ(text(first.second(second)), "0");
  EXPECT_LT(Clock::now() - begin, 2s);
  first.wait();
  ASSERT_EQ(text(first.result), "0");
  std::string told = "told", heard;
  EXPECT_EQ(text(first.peers->broadcast(told)), "0");
  EXPECT_EQ(text(second->broadcast(heard)), "0");
  EXPECT_EQ(heard, "told");
}

} // namespace

// FIPS 180-4's and RFC 4231's examples.
TEST(Secret, Digests) {
  EXPECT_EQ(hexadecimal(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hexadecimal(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hexadecimal(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hexadecimal(sha256(std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(hexadecimal(hmac("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hexadecimal(hmac(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
  EXPECT_TRUE(equalSecretly("same", "same"));
  EXPECT_FALSE(equalSecretly("same", "sam"));
  EXPECT_FALSE(equalSecretly("same", "some"));
}

TEST(Rendezvous, ProcessesThatKnowTheSecretMeet) {
  First first;
  expectMeets(first);
}

TEST(Rendezvous, NoMessageBeforeTheGreetingIsObeyed) {
  First first;
  std::string end = messageBytes('x', "7\033[31mgone"), other = messageBytes('h', "1\nmallory\nprocesses: 2\nplan: b");
  for (const std::string &bytes : {end, other, end + std::string(64, 'x'), other + std::string(64, 'x')}) {
    int socket = first.stranger(bytes);
    if (bytes.size() >= responseBytes)
      receiveAll(socket); // until it is closed
    close(socket);
  }
  expectMeets(first);
}

TEST(Rendezvous, AStreamOfAnythingIsClosedAtOnce) {
  First first;
  for (const char *begin : {"", "x\xff\xff\xff\xff", "h\0\0\0\0"}) {
    auto start = Clock::now();
    int socket = first.stranger(begin);
    std::string zeros(1 << 16, '\0');
    size_t sent = 0;
    for (ssize_t count; sent < 64 << 20 && (count = send(socket, zeros.data(), zeros.size(), MSG_NOSIGNAL)) > 0;)
      sent += static_cast<size_t>(count);
    EXPECT_LT(sent, 64u << 20) << "nobody closed the connection";
    EXPECT_LT(Clock::now() - start, 2s);
    close(socket);
  }
  expectMeets(first);
}

TEST(Rendezvous, SilentStrangersCostNoTime) {
  First first;
  std::vector<int> sockets;
  for (int i = 0; i < 300; ++i)
    sockets.push_back(first.stranger(i % 2 ? "half" : ""));
  expectMeets(first);
  for (int socket : sockets)
    close(socket);
}

TEST(Rendezvous, AProofCannotBeUsedAgain) {
  First first(2);
  std::string response;
  int known = greetByHand(first, &response), again = first.stranger("");
  EXPECT_EQ(receiveAll(again, challengeBytes).size(), challengeBytes);
  send(again, response.data(), response.size(), MSG_NOSIGNAL);
  EXPECT_EQ(receiveAll(again), "");
  first.wait();
  EXPECT_EQ(text(first.result), "9: expected 2 processes at " + first.options.rendezvous +
                                    " within 2 seconds, found 1; missing processes: 1; 1 connection did not know "
                                    "the secret");
  close(known);
  close(again);
}

TEST(Rendezvous, WhatAKnownProcessSaysIsLimitedAndShownSafely) {
  First first;
  int socket = greetByHand(first);
  std::string hello = messageBytes('h', "1\ncuda:1\033[2J\nprocesses: 2\nplan: b\033]0;x\a\nseed: 1");
  send(socket, hello.data(), hello.size(), MSG_NOSIGNAL);
  first.wait();
  EXPECT_EQ(text(first.result), "1: process 1 (cuda:1?[2J): expected plan: a, found plan: b?]0;x?");
  close(socket);

  First large;
  socket = greetByHand(large);
  std::string head("h\xff\xff\xff\xff", 5);
  send(socket, head.data(), head.size(), MSG_NOSIGNAL);
  EXPECT_EQ(receiveAll(socket), ""); // closed
  expectMeets(large);
  close(socket);

  // The end of all, by one of us, with a code that is none.
  First ended;
  socket = greetByHand(ended);
  std::string all =
      messageBytes('h', "1\ncuda:1\nprocesses: 2\n" + ended.options.agreement) + messageBytes('x', "\xff"
                                                                                                   "over\033[2J");
  send(socket, all.data(), all.size(), MSG_NOSIGNAL);
  ended.wait();
  Status status = ended.result;
  for (auto limit = Clock::now() + 5s; status.ok() && Clock::now() < limit;)
    status = ended.peers->check();
  EXPECT_EQ(text(status), "9: process 1 (cuda:1): over?[2J");
  close(socket);
}

TEST(Rendezvous, AnotherSecretIsToldSo) {
  First first(5);
  std::unique_ptr<ProcessGroup> second;
  EXPECT_EQ(
      text(first.second(second, [](ProcessGroupOptions &options) { options.secret = "another secret of 32 bytes"; })),
      "1: expected process 0 at " + first.options.rendezvous +
          " to know this process by its secret (MTC_SECRET), found that it closes the connection");
  first.wait();
  EXPECT_NE(text(first.result).find("connections did not know the secret"), std::string::npos);
}

TEST(Rendezvous, TcpNeedsASecret) {
  for (auto [given, found] : {std::pair("", "none"), std::pair("short", "5 bytes")}) {
    ProcessGroupOptions options;
    options.processes = 2;
    options.rendezvous = "tcp:127.0.0.1:1";
    options.secret = given;
    std::unique_ptr<ProcessGroup> peers;
    EXPECT_EQ(text(ProcessGroup::open(options, peers)),
              std::string("1: expected a secret of at least 16 bytes, the same in all processes, for the rendezvous "
                          "tcp:127.0.0.1:1 (MTC_SECRET in the environment; openssl rand -hex 16 makes one), found ") +
                  found);
  }
}

TEST(Rendezvous, ListensAtTheNamedAddressAlone) {
  First first;
  EXPECT_EQ(dial(first.port, 2), -1);
  expectMeets(first);
}

// The kernel draws the port of the caller's own end; where it draws the one that is called, TCP connects the two.
TEST(Rendezvous, NobodyIsNotItself) {
  int first = 0, last = 0;
  FILE *range = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");
  if (!range || fscanf(range, "%d %d", &first, &last) != 2)
    GTEST_SKIP() << "no range of ports is known here";
  fclose(range);
  std::string place = "tcp:127.0.0.1:" + std::to_string((first + last) / 4 * 2); // even ones are drawn first
  for (int i = 0; i < 2 * (last - first); ++i) {
    int socket = -1;
    ASSERT_EQ(text(connectTo(place, 100, socket)), "0");
    ASSERT_EQ(socket, -1) << "after " << i;
  }
}

TEST(Text, WhatATerminalMayBeGiven) {
  EXPECT_EQ(printable("a\nb\tc\033[0m \x7f \xc3\xa9 \xc2\x9b \xff \xe2\x82\xac \xed\xa0\x80"),
            "a\nb?c?[0m ? \xc3\xa9 ? ? \xe2\x82\xac ???");
  EXPECT_TRUE(isUtf8("\xf0\x9f\x98\x80 \xe2\x82\xac"));
  for (const char *wrong : {"\xff", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"})
    EXPECT_FALSE(isUtf8(wrong)) << wrong;
}

} // namespace mtrun
