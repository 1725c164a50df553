#include "group/local_link.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/result.h"
#include "base/spin.h"

namespace foretoken::group {
namespace {

constexpr int kSpinsBeforePark = 256;
constexpr size_t kMaxWaitingBytes = size_t{1} << 20;

// Bytes from one rank to another, not received yet.
struct Pipe {
  std::vector<std::byte> bytes;
  size_t begin = 0;

  size_t size() const { return bytes.size() - begin; }
  void push(std::span<const std::byte> data) {
    // Also where it is never quite empty, since each side sends before the other has received.
    if (begin >= size()) {
      bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(begin));
      begin = 0;
    }
    bytes.insert(bytes.end(), data.begin(), data.end());
  }
  void pop(std::span<std::byte> data) {
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), data.size(), data.begin());
    begin += data.size();
  }
};

// What the ranks of one lane share. Calls are numbered alike on all ranks; call n uses the halves
// of parity n. A rank enters call n + 2 only after all have entered n + 1 and so have left n.
struct SharedLane {
  explicit SharedLane(int size)
      : parts{std::vector<std::vector<std::byte>>(static_cast<size_t>(size)),
              std::vector<std::vector<std::byte>>(static_cast<size_t>(size))},
        pipes(static_cast<size_t>(size) * static_cast<size_t>(size)) {}

  std::atomic<uint64_t> arrivals{0};
  std::array<std::vector<std::vector<std::byte>>, 2> parts;  // by parity and rank; its own writer
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Pipe> pipes;  // [from, to], under the mutex
};

using SharedLanes = std::array<SharedLane, kNumLanes>;

template <size_t... I>
SharedLanes make_lanes(int size, std::index_sequence<I...>) {
  return {((void)I, SharedLane(size))...};
}

// Of all lanes.
struct SharedGroup {
  explicit SharedGroup(int size) : lanes(make_lanes(size, std::make_index_sequence<kNumLanes>())) {}

  void abort(const Status& why) {
    {
      std::lock_guard lock(mutex);
      if (aborted.load()) return;
      reason = why;
      aborted.store(true);
    }
    for (SharedLane& lane : lanes) wake(lane);
    {
      std::lock_guard lock(parts_mutex);
      for (auto& [ranks, lane] : parts) wake(lane);
    }
    for (const auto& listener : take_listeners()) listener();
  }

  void on_end(std::function<void()> listener) {
    {
      std::lock_guard lock(mutex);
      listeners.push_back(std::move(listener));
      if (!aborted.load()) return;
    }
    for (const auto& late : take_listeners()) late();
  }

  std::vector<std::function<void()>> take_listeners() {
    std::lock_guard lock(mutex);
    return std::exchange(listeners, {});
  }

  // What `ranks` share of a lane instead.
  SharedLane& part_of(int lane, std::span<const int> ranks) {
    std::vector<int> key{lane};
    key.insert(key.end(), ranks.begin(), ranks.end());
    std::lock_guard lock(parts_mutex);
    return parts.try_emplace(std::move(key), static_cast<int>(ranks.size())).first->second;
  }

  static void wake(SharedLane& lane) {
    {
      std::lock_guard lock(lane.mutex);
    }
    lane.changed.notify_all();
  }

  SharedLanes lanes;
  std::atomic<bool> aborted{false};
  std::mutex mutex;
  Status reason;                                 // written before `aborted`
  std::vector<std::function<void()>> listeners;  // under the mutex
  std::mutex parts_mutex;
  std::map<std::vector<int>, SharedLane> parts;  // by lane, then the ranks
};

class LocalLink final : public RankLink {
 public:
  LocalLink(std::shared_ptr<SharedGroup> group, int lane, int rank, int size)
      : group_(std::move(group)),
        lane_number_(lane),
        lane_(&group_->lanes[static_cast<size_t>(lane)]),
        group_rank_(rank),
        rank_(rank),
        size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Status all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                    std::string_view what) override;
  Status send(int peer, std::span<const std::byte> data, std::string_view what) override;
  Status post(int peer, std::span<const std::byte> data, std::string_view what) override;
  Status receive(int peer, std::span<std::byte> data, std::string_view what) override;
  Status exchange(std::span<const PeerBytes> parts, std::string_view what) override;
  Status broadcast(int root, std::span<std::byte> data, std::string_view what) override;
  void narrow(std::span<const int> ranks) override;
  void on_end(std::function<void()> listener) override { group_->on_end(std::move(listener)); }
  void abort(const Status& why) override { group_->abort(why); }

 private:
  Status aborted_at(std::string_view what) const;
  Status meet(std::string_view what);
  std::vector<std::byte>& part(int rank) {
    return lane_->parts[num_calls_ % 2][static_cast<size_t>(rank)];
  }
  Pipe& pipe(int from, int to) {
    return lane_
        ->pipes[static_cast<size_t>(from) * static_cast<size_t>(size_) + static_cast<size_t>(to)];
  }

  const std::shared_ptr<SharedGroup> group_;
  const int lane_number_;
  SharedLane* lane_;
  const int group_rank_;
  int rank_;
  int size_;
  uint64_t num_calls_ = 0;
};

Status LocalLink::aborted_at(std::string_view what) const {
  std::lock_guard lock(group_->mutex);
  return {group_->reason.code(), "rank " + std::to_string(group_rank_) + ", " + std::string(what) +
                                     ": " + group_->reason.message()};
}

void LocalLink::narrow(std::span<const int> ranks) {
  const auto own = std::find(ranks.begin(), ranks.end(), rank_);
  FT_CHECK(own != ranks.end() && num_calls_ == 0);
  lane_ = &group_->part_of(lane_number_, ranks);
  rank_ = static_cast<int>(own - ranks.begin());
  size_ = static_cast<int>(ranks.size());
}

// Waits until every rank has come so far.
Status LocalLink::meet(std::string_view what) {
  if (group_->aborted.load()) return aborted_at(what);
  const uint64_t wanted = (num_calls_ + 1) * static_cast<uint64_t>(size_);
  const auto done = [&] {
    return lane_->arrivals.load(std::memory_order_acquire) >= wanted || group_->aborted.load();
  };
  if (lane_->arrivals.fetch_add(1, std::memory_order_acq_rel) + 1 == wanted) {
    {
      std::lock_guard lock(lane_->mutex);
    }
    lane_->changed.notify_all();
    return {};
  }
  for (int spins = 0; !done() && spins < kSpinsBeforePark; ++spins) spin_pause(spins);
  if (!done()) {
    std::unique_lock lock(lane_->mutex);
    lane_->changed.wait(lock, done);
  }
  return lane_->arrivals.load(std::memory_order_acquire) >= wanted ? Status() : aborted_at(what);
}

Status LocalLink::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                             std::string_view what) {
  FT_CHECK(all.size() == mine.size() * static_cast<size_t>(size_));
  part(rank_).assign(mine.begin(), mine.end());
  FT_RETURN_IF_ERROR(meet(what));
  for (int rank = 0; rank < size_; ++rank) {
    FT_CHECK(part(rank).size() == mine.size());
    std::memmove(all.data() + static_cast<size_t>(rank) * mine.size(), part(rank).data(),
                 mine.size());
  }
  ++num_calls_;
  return {};
}

Status LocalLink::broadcast(int root, std::span<std::byte> data, std::string_view what) {
  if (rank_ == root) part(root).assign(data.begin(), data.end());
  FT_RETURN_IF_ERROR(meet(what));
  if (rank_ != root) {
    FT_CHECK(part(root).size() == data.size());
    std::copy(part(root).begin(), part(root).end(), data.begin());
  }
  ++num_calls_;
  return {};
}

Status LocalLink::send(int peer, std::span<const std::byte> data, std::string_view what) {
  FT_CHECK(peer != rank_ && peer >= 0 && peer < size_);
  {
    std::unique_lock lock(lane_->mutex);
    Pipe& to = pipe(rank_, peer);
    lane_->changed.wait(lock,
                        [&] { return group_->aborted.load() || to.size() <= kMaxWaitingBytes; });
    if (group_->aborted.load()) return aborted_at(what);
    to.push(data);
  }
  lane_->changed.notify_all();
  return {};
}

Status LocalLink::post(int peer, std::span<const std::byte> data, std::string_view what) {
  FT_CHECK(peer != rank_ && peer >= 0 && peer < size_);
  {
    std::unique_lock lock(lane_->mutex);
    if (group_->aborted.load()) return aborted_at(what);
    pipe(rank_, peer).push(data);
  }
  lane_->changed.notify_all();
  return {};
}

Status LocalLink::receive(int peer, std::span<std::byte> data, std::string_view what) {
  FT_CHECK(peer != rank_ && peer >= 0 && peer < size_);
  {
    std::unique_lock lock(lane_->mutex);
    Pipe& from = pipe(peer, rank_);
    lane_->changed.wait(lock, [&] { return group_->aborted.load() || from.size() >= data.size(); });
    if (from.size() < data.size()) return aborted_at(what);
    from.pop(data);
  }
  lane_->changed.notify_all();
  return {};
}

Status LocalLink::exchange(std::span<const PeerBytes> parts, std::string_view what) {
  for (const PeerBytes& part : parts) FT_RETURN_IF_ERROR(post(part.peer, part.out, what));
  for (const PeerBytes& part : parts) FT_RETURN_IF_ERROR(receive(part.peer, part.in, what));
  return {};
}

}  // namespace

std::vector<LaneLinks> make_local_links(int size) {
  FT_CHECK(size >= 1);
  const auto group = std::make_shared<SharedGroup>(size);
  std::vector<LaneLinks> links(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    for (int lane = 0; lane < kNumLanes; ++lane) {
      links[static_cast<size_t>(rank)][static_cast<size_t>(lane)] =
          std::make_unique<LocalLink>(group, lane, rank, size);
    }
  }
  return links;
}

}  // namespace foretoken::group
