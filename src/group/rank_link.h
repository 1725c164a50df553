#pragma once
#include <foretoken/status.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace foretoken::group {

// A group's ranks open one link for each kind of traffic, so that none waits behind another.
enum class Lane : int {
  kCollectives = 0,  // of the queue: used by its worker thread
  kPlans = 1,        // rank 0's plans to the others
  kControl = 2,      // start-up, agreement
  kStages = 3,       // from stage to stage; of the queue as well
  kSecondLane = 4,   // collectives of the second of two lanes of rows; of the queue as well
};
inline constexpr int kNumLanes = 5;

// What goes to a peer and what comes from it.
struct PeerBytes {
  int peer;
  std::span<const std::byte> out;
  std::span<std::byte> in;
};

// How the ranks of one group exchange bytes on one lane.
//
// A link is used by one thread at a time, except `abort`. Every call blocks until it is done, until
// some rank called `abort`, or until a peer is found dead; then it returns an error that names the
// rank, the peer and `what` (a collective and step, e.g. "all_gather of step 12"), and every later
// call returns that error. Waiting backs off to sleep: more ranks than cores must not spin.
// Collectives are called by all ranks in the same order with the same sizes.
class RankLink {
 public:
  virtual ~RankLink() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // `all` [size() x mine.size()] takes every rank's bytes in the order of ranks. `mine` may be this
  // rank's part of `all`.
  virtual Status all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                            std::string_view what) = 0;
  // To one peer (not this rank), in order for each pair. May return before the peer receives: what
  // a socket or a bounded buffer takes.
  virtual Status send(int peer, std::span<const std::byte> data, std::string_view what) = 0;
  // As send, but never waits for the peer: what cannot go now goes during later calls, from a copy.
  virtual Status post(int peer, std::span<const std::byte> data, std::string_view what) = 0;
  // Nothing that was posted is left to go. After every peer has, or will have, received what was
  // posted to it before it comes to a call like this one.
  virtual Status flush(std::string_view /*what*/) { return {}; }
  // As many bytes as the peer's send or post has.
  virtual Status receive(int peer, std::span<std::byte> data, std::string_view what) = 0;
  // To and from several peers at once, each of which makes such a call with this one among its
  // own: ranks that exchange among themselves. Nothing is left to go when it returns.
  virtual Status exchange(std::span<const PeerBytes> parts, std::string_view what) = 0;
  // `data` of `root` replaces that of all others.
  virtual Status broadcast(int root, std::span<std::byte> data, std::string_view what) = 0;

  // From here on the link joins only `ranks`, numbered by their place there; this one is among
  // them. Once, before any other call, on each of them alike.
  virtual void narrow(std::span<const int> ranks) = 0;

  // Descriptors of which poll() finds one readable while a peer has sent what this rank has not
  // received, or once the group has ended; none where ranks are threads. They live as long as the
  // link.
  virtual std::vector<int> news_descriptors() const { return {}; }
  // Calls `listener` once when the group ends, on the thread that ends it; at once where it has
  // ended. For what waits for peers elsewhere than in a link. One for each rank.
  virtual void on_end(std::function<void()> listener) = 0;
  // Any thread: ends the pending and later calls of every rank with `why`. The first reason stays.
  virtual void abort(const Status& why) = 0;
};

// The links of one rank, by Lane.
using LaneLinks = std::array<std::unique_ptr<RankLink>, kNumLanes>;

inline RankLink& link_of(const LaneLinks& links, Lane lane) {
  return *links[static_cast<size_t>(lane)];
}

}  // namespace foretoken::group
