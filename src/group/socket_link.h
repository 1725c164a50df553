#pragma once
#include <memory>
#include <vector>

#include "group/activity.h"
#include "group/end_state.h"
#include "group/rank_link.h"
#include "group/rank_place.h"
#include "group/wire/socket.h"

namespace foretoken::group {

// What the links of one process share.
struct LinkShared {
  RankLayout layout;
  int rank = 0;
  int leader = 0;  // as of Rendezvous
  EndState end;
  Activity activity;
};

// A link over one connection to each other rank (Unix sockets on one host, TCP between hosts). No
// thread of its own: bytes move while a call runs, in both directions at once, so that ranks that
// send to each other never wait in a circle. Calls allocate nothing.
//
// A peer whose connection breaks ends the group; a peer that stands still is the heartbeat's to
// find (heartbeat.h), which ends the group and with it the pending calls.
class SocketLink : public RankLink {
 public:
  // `connections` by rank; the place of this rank is closed.
  SocketLink(std::shared_ptr<LinkShared> shared, std::vector<Socket> connections);
  // Between some ranks of the group, this one among them, or all (empty): a connection to each, in
  // their order.
  SocketLink(std::shared_ptr<LinkShared> shared, std::vector<int> ranks,
             std::vector<Socket> connections);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(connections_.size()); }
  Status all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                    std::string_view what) override;
  Status send(int peer, std::span<const std::byte> data, std::string_view what) override;
  Status post(int peer, std::span<const std::byte> data, std::string_view what) override;
  Status flush(std::string_view what) override;
  Status receive(int peer, std::span<std::byte> data, std::string_view what) override;
  Status exchange(std::span<const PeerBytes> parts, std::string_view what) override;
  Status broadcast(int root, std::span<std::byte> data, std::string_view what) override;
  void narrow(std::span<const int> ranks) override;
  std::vector<int> news_descriptors() const override;
  void on_end(std::function<void()> listener) override {
    shared_->end.on_end([listener = std::move(listener)](const Status&) { listener(); });
  }
  void abort(const Status& why) override { shared_->end.end(why); }

 private:
  // What is still to move between this rank and a peer.
  struct Transfer {
    std::span<const std::byte> out;
    std::span<std::byte> in;
  };

  // `all`: until what was posted has gone, too.
  Status run(std::string_view what, bool all = false);
  // Bytes of `posted_` that have not gone yet.
  bool has_posted(int peer) const { return !posted_[static_cast<std::size_t>(peer)].empty(); }
  Result<std::size_t> move_posted(int peer);
  // Moves what it can without waiting.
  Result<bool> move_some(int peer);
  // Sleeps until a transfer can go on or the group has ended.
  void wait();
  Status lost(int peer, std::string_view what, const Status& reason);

  std::shared_ptr<LinkShared> shared_;
  std::vector<int> ranks_;  // of the group, by place in this link
  int rank_ = 0;
  std::vector<Socket> connections_;
  std::vector<Transfer> transfers_;             // by peer
  std::vector<std::vector<std::byte>> posted_;  // by peer; ahead of its transfer
  std::vector<unsigned char> poll_memory_;
};

}  // namespace foretoken::group
