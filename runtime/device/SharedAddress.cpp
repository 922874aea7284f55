// SPDX-License-Identifier: Apache-2.0
//
// Every process sends process 0 a text that is the same for processes of one host. Process 0 answers with lines: the
// secret, and its addresses. Each process uses the first address that it can reach. A text that begins with "!" is the
// failure of a process in place of its text, or of any process in place of the answer.
#include "runtime/device/SharedAddress.h"

#include "runtime/support/seconds_text.h"
#include "runtime/support/secret.h"
#include "runtime/support/socket.h"
#include "runtime/support/text.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace mtrun {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t secretBytes = 16;
constexpr int reachMilliseconds = 5000;
// All messages have one size.
using Text = std::array<char, 4096>;

Text textOf(const std::string &string) {
  Text text = {};
  std::memcpy(text.data(), string.data(), std::min(string.size(), text.size() - 1));
  return text;
}

std::string stringOf(const Text &text) { return {text.data(), strnlen(text.data(), text.size())}; }

// Returns a text that processes have in common if they can connect by names of Linux's abstract sockets: the boot of
// the host, and its network namespace.
std::string hostText() {
  char boot[64] = "", network[64] = "";
  if (FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    (void)std::fread(boot, 1, sizeof boot - 1, file);
    std::fclose(file);
  }
  (void)readlink("/proc/self/ns/net", network, sizeof network - 1);
  return std::string(boot) + network;
}

std::string failureText(const Status &failure) {
  return "!" + std::to_string(failure.code()) + " " + failure.message();
}

// Returns the failure that a text tells of, or success.
Status failureOf(const std::string &text) {
  int code = 0;
  if (!text.starts_with("!"))
    return {};
  const char *end = std::from_chars(text.data() + 1, text.data() + text.size(), code).ptr;
  return {code > 0 ? static_cast<mt_code>(code) : MT_LOST,
          printable(std::string_view(end, text.data() + text.size()).substr(*end == ' '))};
}

class Sharing {
public:
  Sharing(Transport &transport, double timeout)
      : transport_(transport), timeout_(timeout),
        deadline_(Clock::now() +
                  std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(timeout, 1e6)))) {}

  Status send(int peer, const std::string &string) {
    Text text = textOf(string);
    int request = 0;
    if (Status status = transport_.send(peer, 0, text.data(), text.size(), request); !status.ok())
      return status;
    return wait(peer, request, "received");
  }

  Status receive(int peer, std::string &string) {
    Text text = {};
    int request = 0;
    if (Status status = transport_.receive(peer, 0, text.data(), text.size(), request); !status.ok())
      return status;
    Status status = wait(peer, request, "sent");
    string = stringOf(text);
    return status;
  }

private:
  Status wait(int peer, int request, const char *what) {
    for (bool done = false;;) {
      if (Status status = transport_.test(request, done); !status.ok() || done)
        return status;
      if (Clock::now() >= deadline_) {
        transport_.abandon();
        return {MT_LOST,
                "process " + std::to_string(peer) + " was lost: it " + what + " nothing for " + secondsText(timeout_)};
      }
      std::this_thread::sleep_for(20us);
    }
  }

  Transport &transport_;
  double timeout_;
  Clock::time_point deadline_;
};

// Listens at all addresses of this host, at a port that the system chooses.
Status listenAnywhere(std::string &rendezvous, std::string &places) {
  int socket = -1;
  if (Status six = listenAt("tcp:[::]:0", socket); !six.ok())
    if (Status four = listenAt("tcp:0.0.0.0:0", socket); !four.ok())
      return four;
  int port = portOf(socket);
  if (port == 0)
    return {MT_IO, std::string("cannot find the port of a socket: ") + std::strerror(errno)};
  for (const std::string &address : hostAddresses())
    places += "tcp:" + address + ":" + std::to_string(port) + "\n";
  rendezvous = "fd:" + std::to_string(socket);
  return {};
}

// Selects the first address that accepts a connection. Process 0 ignores connections that end without a greeting.
Status firstReached(const std::string &places, std::string &rendezvous) {
  std::string tried;
  for (size_t begin = 0; begin < places.size();) {
    size_t end = std::min(places.find('\n', begin), places.size());
    std::string place = places.substr(begin, end - begin);
    begin = end + 1;
    int socket = -1;
    if (place.starts_with("unix:") || (connectTo(place, reachMilliseconds, socket).ok() && socket >= 0)) {
      if (socket >= 0)
        close(socket);
      rendezvous = place;
      return {};
    }
    tried += (tried.empty() ? "" : ", ") + printable(place);
  }
  return {MT_LOST, "cannot reach process 0 at any of its addresses: " + (tried.empty() ? "none" : tried)};
}

Status answer(Sharing &sharing, int processes, const Status &failure, std::string &rendezvous, std::string &secret) {
  std::string own = hostText(), random, places;
  bool oneHost = true;
  Status failed = failure;
  for (int peer = 1; peer < processes; ++peer) {
    std::string theirs;
    if (Status status = sharing.receive(peer, theirs); !status.ok())
      return status;
    oneHost = oneHost && theirs == own;
    if (Status status = failureOf(theirs); !status.ok() && failed.ok())
      failed = std::move(status).in("process " + std::to_string(peer) + ": ");
  }
  for (int peer = 1; peer < processes && !failed.ok(); ++peer)
    if (Status status = sharing.send(peer, failureText(failed)); !status.ok())
      return status;
  if (!failed.ok())
    return failed;
  if (Status status = randomBytes(2 * secretBytes, random); !status.ok())
    return status;
  if (secret.empty())
    secret = hexadecimal(random.substr(0, secretBytes));
  if (!rendezvous.empty()) {
    places = rendezvous + "\n";
  } else if (oneHost) {
    rendezvous = "unix:mtrun-" + std::to_string(getuid()) + "-" + hexadecimal(random.substr(secretBytes));
    places = rendezvous + "\n";
  } else if (Status status = listenAnywhere(rendezvous, places); !status.ok()) {
    return status;
  }
  for (int peer = 1; peer < processes; ++peer)
    if (Status status = sharing.send(peer, secret + "\n" + places); !status.ok())
      return status;
  return {};
}

} // namespace

Status shareAddress(Transport &transport, double timeout, std::string &rendezvous, std::string &secret,
                    const Status &failure) {
  Sharing sharing(transport, timeout);
  if (transport.process() == 0)
    return answer(sharing, transport.processes(), failure, rendezvous, secret);
  if (Status status = sharing.send(0, failure.ok() ? hostText() : failureText(failure)); !status.ok())
    return status;
  std::string text;
  if (Status status = sharing.receive(0, text); !status.ok())
    return status;
  if (Status status = failureOf(text); !status.ok())
    return failure.ok() ? status : failure;
  size_t end = std::min(text.find('\n'), text.size());
  secret = text.substr(0, end);
  std::string places = text.substr(std::min(end + 1, text.size()));
  return rendezvous.empty() ? firstReached(places, rendezvous) : Status();
}

} // namespace mtrun
