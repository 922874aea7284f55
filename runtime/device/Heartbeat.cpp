// SPDX-License-Identifier: Apache-2.0
//
// The thread of a ProcessGroup. It alone reads the connections, so that messages arrive while the other threads compute
// or wait for a disk. Both ends of a connection send a heartbeat every second, and each notices the other's silence:
// process 0 names a lost process to all, and a process that is cut off from process 0 ends too.
#include "runtime/device/ProcessGroup.h"
#include "runtime/support/blocked_signals.h"
#include "runtime/support/seconds_text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <tuple>
#include <unistd.h>

namespace mtrun {
namespace {

constexpr double missedBeats = 3; // number of missing heartbeats from which a process is suspected

} // namespace

Status ProcessGroup::startHeart() {
  auto now = Clock::now();
  for (Connection &connection : connections_)
    connection.heard = now;
  last_.resize(static_cast<size_t>(options_.processes));
  lastChange_ = now;
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0)
    return {MT_IO, std::string("cannot make an event for the heartbeat: ") + std::strerror(errno)};
  BlockedSignals blocked; // inherited by the new thread
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error &error) {
    return {MT_NO_MEMORY, std::string("expected a thread for the heartbeat: ") + error.what()};
  }
  return {};
}

void ProcessGroup::stopHeart() {
  stops_ = true;
  if (wake_ >= 0)
    (void)eventfd_write(wake_, 1);
  if (thread_.joinable())
    thread_.join();
  if (wake_ >= 0)
    ::close(wake_);
}

void ProcessGroup::watch() {
  const auto interval = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.interval));
  for (auto next = Clock::now(); !stops_;) {
    waitForEvents(next);
    std::lock_guard lock(mutex_);
    // All messages that have arrived are read before anyone is judged: this process may have slept itself.
    for (Connection &connection : connections_) {
      receive(connection);
      (void)flush(connection);
    }
    if (suspicious_)
      (void)inspect();
    changed_.notify_all();
    auto now = Clock::now();
    if (now < next)
      continue;
    next = now + interval;
    judge(now);
    beat();
  }
}

void ProcessGroup::waitForEvents(Clock::time_point next) {
  std::vector<pollfd> waits = {{wake_, POLLIN, 0}};
  {
    std::lock_guard lock(mutex_);
    for (const Connection &connection : connections_)
      if (connection.socket >= 0)
        waits.push_back(
            {connection.socket, static_cast<short>(connection.outgoing.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  }
  auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  (void)poll(waits.data(), waits.size(), static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
}

ProcessGroup::Work ProcessGroup::ownWork() const {
  return {own_.begun.load(std::memory_order_relaxed), own_.done.load(std::memory_order_relaxed),
          own_.parts.load(std::memory_order_relaxed)};
}

// A connection that accepts nothing gets no further heartbeats, so that its messages do not grow.
void ProcessGroup::beat() {
  Work own = ownWork();
  std::string text = std::to_string(own.begun) + " " + std::to_string(own.done) + " " + std::to_string(own.parts);
  for (Connection &connection : connections_)
    if (connection.socket >= 0 && connection.outgoing.empty())
      (void)send(connection, 'b', text);
}

void ProcessGroup::judge(Clock::time_point now) {
  if (!lost_.ok())
    return;
  for (const Connection &connection : connections_)
    if (connection.socket >= 0 && std::chrono::duration<double>(now - connection.heard).count() >= options_.silence) {
      (void)fail(title(connection.process) + " was lost: it was silent for " + secondsText(options_.silence));
      return;
    }
  if (options_.process != 0)
    return;
  std::vector<Work> all(static_cast<size_t>(options_.processes));
  all[0] = ownWork();
  for (const Connection &connection : connections_)
    all[static_cast<size_t>(connection.process)] = connection.work;
  bool works = std::any_of(all.begin(), all.end(), [](const Work &work) { return work.begun > work.done; });
  if (!works || all != last_) {
    last_ = std::move(all);
    lastChange_ = now;
  } else if (std::chrono::duration<double>(now - lastChange_).count() >= options_.timeout) {
    (void)fail(standsStill(now));
  }
}

// Names the processes that the others wait for: suspected ones, else the processes that have begun the least.
std::string ProcessGroup::standsStill(Clock::time_point now) const {
  auto key = [](const Work &work) { return std::tuple(work.begun, work.parts); };
  const Work &least =
      *std::min_element(last_.begin(), last_.end(), [&](const Work &a, const Work &b) { return key(a) < key(b); });
  std::string behind, silent;
  bool all = true;
  for (int process = 0; process < options_.processes; ++process) {
    bool waits = key(last_[static_cast<size_t>(process)]) == key(least);
    all = all && waits;
    if (waits)
      behind += (behind.empty() ? "" : ", ") + title(process);
  }
  for (const Connection &connection : connections_)
    if (std::chrono::duration<double>(now - connection.heard).count() >= missedBeats * options_.interval)
      silent += (silent.empty() ? "" : ", ") + title(connection.process);
  const std::string &names = silent.empty() ? behind : silent;
  std::string still = " stood still for " + patience();
  return all && silent.empty() ? "the step of all processes" + still : names + " was lost: its step" + still;
}

} // namespace mtrun
