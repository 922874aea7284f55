// SPDX-License-Identifier: Apache-2.0
//
// Compares the model of an exchange with a simulation of its messages, in which each device has one port for sending
// and one for receiving to its host, and two for other hosts, and each port carries one message at a time.
#include "runtime/device/Collectives.h"
#include "runtime/device/Exchange.h"
#include "runtime/support/exchange_time.h"
#include "runtime/support/subtrees.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <queue>

namespace mtrun {
namespace {

constexpr int64_t pieceElements = 1 << 20; // as in HostCommunicator
constexpr int maxRunning = 4;

class MessageSimulation {
public:
  MessageSimulation(ExchangeKind kind, const Cluster &cluster, int64_t elements) : cluster_(cluster) {
    auto processes = static_cast<int>(cluster.devices());
    std::vector<int> hosts(cluster.hosts, static_cast<int>(cluster.perHost));
    std::vector<TreeSum> sums = treeSums(splitShardsOnHosts(processes, hosts)).back();
    for (int64_t left = elements; left > 0; left -= pieceElements, ++pieces_)
      for (int process = 0; process < processes; ++process)
        rounds_[{process, pieces_}] =
            exchangeRounds({kind, processes, process, processes, std::min(left, pieceElements), hosts}, sums);
    ports_.resize(static_cast<size_t>(processes));
    for (int process = 0; process < processes; ++process)
      for (int piece = 0; piece < std::min(maxRunning, pieces_); ++piece)
        begin(process, piece, 0);
  }

  // Returns the seconds until all processes have all results.
  double run() {
    double end = 0;
    while (!events_.empty()) {
      Event event = events_.top();
      events_.pop();
      if (event.seconds > 0) { // it has left the sender's port
        double &port = ports_[static_cast<size_t>(event.process)].receive[event.far];
        port = std::max(port, event.time) + event.seconds;
        event.time = port + cluster_.exchange + (event.far ? cluster_.between : 0);
        event.seconds = 0;
        events_.push(event);
        continue;
      }
      end = event.time;
      ++states_[{event.process, event.piece}].arrived[event.round];
      advance(event.process, event.piece, event.time);
    }
    return end;
  }

private:
  // A message begins to arrive at the port of a process, and needs it for some seconds; or has arrived.
  struct Event {
    double time, seconds;
    bool far;
    int process, piece;
    size_t round;
    bool operator<(const Event &other) const { return time > other.time; }
  };
  struct State {
    size_t round = 0;
    std::map<size_t, size_t> arrived; // messages, by round of the sender
  };
  // Times at which the ports are free: sending and receiving, inside the host and to others.
  struct Ports {
    double send[2] = {}, receive[2] = {};
  };

  void begin(int process, int piece, double now) {
    states_[{process, piece}];
    post(process, piece, now);
    advance(process, piece, now);
  }

  void post(int process, int piece, double now) {
    size_t round = states_[{process, piece}].round;
    for (const ExchangeMessage &message : rounds_[{process, piece}][round].sends) {
      bool far =
          static_cast<uint64_t>(process) / cluster_.perHost != static_cast<uint64_t>(message.peer) / cluster_.perHost;
      double &port = ports_[static_cast<size_t>(process)].send[far];
      double start = std::max(now, port);
      double seconds = static_cast<double>(message.elements) * 4 / (far ? cluster_.network : cluster_.link);
      port = start + seconds;
      events_.push({start, seconds, far, message.peer, piece, round});
    }
  }

  // Goes on to the next round of a piece, and after the last one to the next piece.
  void advance(int process, int piece, double now) {
    auto &rounds = rounds_[{process, piece}];
    for (State &state = states_[{process, piece}];
         state.round < rounds.size() && state.arrived[state.round] >= rounds[state.round].receives.size();) {
      if (++state.round < rounds.size()) {
        post(process, piece, now);
        continue;
      }
      if (int next = piece + maxRunning; next < pieces_)
        begin(process, next, now);
    }
  }

  Cluster cluster_;
  int pieces_ = 0;
  std::map<std::pair<int, int>, std::vector<ExchangeRound>> rounds_;
  std::map<std::pair<int, int>, State> states_;
  std::vector<Ports> ports_;
  std::priority_queue<Event> events_;
};

TEST(ExchangeTimeTest, EqualsTheSimulation) {
  for (auto [hosts, perHost] : {std::pair(1, 8), {2, 1}, {8, 1}, {64, 1}, {2, 4}, {4, 8}, {8, 8}, {16, 4}})
    for (int64_t elements : {64 << 10, 1 << 20, 12 << 20}) {
      Cluster cluster = {static_cast<uint64_t>(hosts), static_cast<uint64_t>(perHost), 360e9, 45e9, 12e-6, 10e-6, 2e-6};
      double simulated = MessageSimulation(ExchangeKind::HostFirst, cluster, elements).run();
      double modelled = exchangeTime(ClusterExchange::HostFirst, cluster, static_cast<double>(elements) * 4);
      EXPECT_NEAR(modelled / simulated, 1, 0.25)
          << hosts << " x " << perHost << ", " << elements << ": " << modelled << " " << simulated;
      if (hosts > 1 && perHost > 1 && elements > 1 << 20) {
        EXPECT_LT(2 * simulated, MessageSimulation(ExchangeKind::Direct, cluster, elements).run());
      }
    }
}

} // namespace
} // namespace mtrun
