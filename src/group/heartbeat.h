#pragma once
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "group/socket_link.h"

namespace foretoken::group {

struct HeartbeatTimes {
  std::chrono::milliseconds between{1000};
  // Silence after which a rank counts as dead. Cut networks and stopped processes are found within
  // it and one `between`.
  std::chrono::milliseconds patience{5000};
};

// The control plane of a running group: its leader (rank 0, or a front end without engines) has a
// connection to every rank, and a thread of each rank sends beats and looks for those of the
// others. It notices what links cannot: a rank that is stopped, and a group that ends elsewhere.
// The end of one rank becomes the end of all, with the first reason; it names the rank and what it
// did last.
//
// A rank whose own thread stood still (a suspended machine) judges nobody by that time.
class Heartbeat {
 public:
  // `control` as Rendezvous has it.
  Heartbeat(std::shared_ptr<LinkShared> shared, std::vector<Socket> control, HeartbeatTimes times);
  // Leaves: the others learn that this rank ends as meant. Where it is the leader, that ends the
  // group for them with Aborted "rank 0 has ended the group" (or "the front end").
  ~Heartbeat();

 private:
  struct Peer {
    int rank = 0;
    Socket socket;
    Clock::time_point heard;
    std::string doing;
    bool left = false;
  };

  void run();
  // False: the group has ended or this rank leaves.
  bool wait(Clock::time_point until);
  void hear(Peer& peer);
  void take(Peer& peer, const class Message& message);
  void beat();
  void judge(Clock::time_point now);
  void tell_end();
  void tell(const class Message& message);
  std::string name(int rank) const;

  std::shared_ptr<LinkShared> shared_;
  std::vector<Peer> peers_;
  HeartbeatTimes times_;
  EndState leaving_;
  std::thread thread_;
};

}  // namespace foretoken::group
