#include "group/socket_link.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/check.h"

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;
// Tries before a call sleeps: an answer that is nearly there costs no wake-up.
constexpr int kTries = 16;
// The rank that failed first tells why; a connection that broke because of it may be seen sooner.
constexpr auto kBetterReason = 300ms;

std::vector<int> ranks_below(std::size_t size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

}  // namespace

SocketLink::SocketLink(std::shared_ptr<LinkShared> shared, std::vector<Socket> connections)
    : SocketLink(std::move(shared), {}, std::move(connections)) {}

SocketLink::SocketLink(std::shared_ptr<LinkShared> shared, std::vector<int> ranks,
                       std::vector<Socket> connections)
    : shared_(std::move(shared)),
      ranks_(ranks.empty() ? ranks_below(connections.size()) : std::move(ranks)),
      rank_(static_cast<int>(std::find(ranks_.begin(), ranks_.end(), shared_->rank) -
                             ranks_.begin())),
      connections_(std::move(connections)),
      transfers_(connections_.size()),
      posted_(connections_.size()),
      poll_memory_((connections_.size() + 1) * sizeof(pollfd)) {
  FT_CHECK(rank() < size() && ranks_.size() == connections_.size());
}

void SocketLink::narrow(std::span<const int> ranks) {
  const auto own = std::find(ranks.begin(), ranks.end(), rank_);
  FT_CHECK(own != ranks.end());
  std::vector<Socket> kept;
  std::vector<int> kept_ranks;
  for (const int rank : ranks) {
    kept.push_back(std::move(connections_.at(std::size_t(rank))));
    kept_ranks.push_back(ranks_.at(std::size_t(rank)));
  }
  rank_ = static_cast<int>(own - ranks.begin());
  ranks_ = std::move(kept_ranks);
  connections_ = std::move(kept);
  transfers_.resize(ranks.size());
  posted_.resize(ranks.size());
}

Status SocketLink::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                              std::string_view what) {
  FT_CHECK(all.size() == mine.size() * connections_.size());
  for (std::size_t peer = 0; peer < connections_.size(); ++peer) {
    const std::span<std::byte> part = all.subspan(peer * mine.size(), mine.size());
    if (static_cast<int>(peer) == rank()) {
      if (!mine.empty()) std::memmove(part.data(), mine.data(), mine.size());
    } else {
      transfers_[peer] = {.out = mine, .in = part};
    }
  }
  return run(what);
}

Status SocketLink::send(int peer, std::span<const std::byte> data, std::string_view what) {
  FT_CHECK(peer >= 0 && peer < size() && peer != rank());
  transfers_[static_cast<std::size_t>(peer)].out = data;
  return run(what);
}

Status SocketLink::post(int peer, std::span<const std::byte> data, std::string_view what) {
  FT_CHECK(peer >= 0 && peer < size() && peer != rank());
  if (shared_->end.ended()) return shared_->end.why();
  std::vector<std::byte>& posted = posted_[static_cast<std::size_t>(peer)];
  posted.insert(posted.end(), data.begin(), data.end());
  const Result<std::size_t> sent = move_posted(peer);
  return sent.ok() ? Status() : lost(peer, what, sent.status());
}

Status SocketLink::flush(std::string_view what) {
  const bool none = std::all_of(posted_.begin(), posted_.end(),
                                [](const std::vector<std::byte>& each) { return each.empty(); });
  return none ? Status() : run(what, true);
}

std::vector<int> SocketLink::news_descriptors() const {
  std::vector<int> descriptors = {shared_->end.descriptor()};
  for (const Socket& connection : connections_) {
    if (connection.open()) descriptors.push_back(connection.descriptor());
  }
  return descriptors;
}

Status SocketLink::receive(int peer, std::span<std::byte> data, std::string_view what) {
  FT_CHECK(peer >= 0 && peer < size() && peer != rank());
  transfers_[static_cast<std::size_t>(peer)].in = data;
  return run(what);
}

Status SocketLink::exchange(std::span<const PeerBytes> parts, std::string_view what) {
  for (const PeerBytes& part : parts) {
    FT_CHECK(part.peer >= 0 && part.peer < size() && part.peer != rank());
    transfers_[static_cast<std::size_t>(part.peer)] = {.out = part.out, .in = part.in};
  }
  return run(what);
}

Status SocketLink::broadcast(int root, std::span<std::byte> data, std::string_view what) {
  FT_CHECK(root >= 0 && root < size());
  if (root != rank()) return receive(root, data, what);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) transfers_[static_cast<std::size_t>(peer)].out = data;
  }
  return run(what);
}

Status SocketLink::run(std::string_view what, bool all) {
  shared_->activity.note(what);
  for (int idle = 0;;) {
    if (shared_->end.ended()) break;
    bool pending = false;
    bool moved = false;
    for (int peer = 0; peer < size(); ++peer) {
      Result<bool> some = move_some(peer);
      if (!some.ok()) return lost(peer, what, some.status());
      moved |= some.value();
      const Transfer& transfer = transfers_[static_cast<std::size_t>(peer)];
      pending |= !transfer.out.empty() || !transfer.in.empty() || (all && has_posted(peer));
    }
    if (!pending) return {};
    idle = moved ? 0 : idle + 1;
    if (idle > kTries) wait();
  }
  std::fill(transfers_.begin(), transfers_.end(), Transfer{});
  return shared_->end.why();
}

Result<std::size_t> SocketLink::move_posted(int peer) {
  std::vector<std::byte>& posted = posted_[static_cast<std::size_t>(peer)];
  FT_ASSIGN_OR_RETURN(const std::size_t sent,
                      try_send(connections_[static_cast<std::size_t>(peer)], posted));
  posted.erase(posted.begin(), posted.begin() + static_cast<std::ptrdiff_t>(sent));
  return sent;
}

Result<bool> SocketLink::move_some(int peer) {
  const auto at = static_cast<std::size_t>(peer);
  Transfer& transfer = transfers_[at];
  std::size_t moved = 0;
  if (has_posted(peer)) {
    FT_ASSIGN_OR_RETURN(moved, move_posted(peer));
  }
  if (!has_posted(peer) && !transfer.out.empty()) {
    FT_ASSIGN_OR_RETURN(const std::size_t sent, try_send(connections_[at], transfer.out));
    transfer.out = transfer.out.subspan(sent);
    moved += sent;
  }
  if (!transfer.in.empty()) {
    FT_ASSIGN_OR_RETURN(const std::size_t got, try_receive(connections_[at], transfer.in));
    transfer.in = transfer.in.subspan(got);
    moved += got;
  }
  return moved > 0;
}

void SocketLink::wait() {
  auto* polled = reinterpret_cast<pollfd*>(poll_memory_.data());
  nfds_t count = 0;
  polled[count++] = {shared_->end.descriptor(), POLLIN, 0};
  for (std::size_t peer = 0; peer < transfers_.size(); ++peer) {
    const int events = (transfers_[peer].out.empty() && posted_[peer].empty() ? 0 : POLLOUT) |
                       (transfers_[peer].in.empty() ? 0 : POLLIN);
    if (events != 0) {
      polled[count++] = {connections_[peer].descriptor(), static_cast<short>(events), 0};
    }
  }
  poll(polled, count, -1);
}

Status SocketLink::lost(int peer, std::string_view what, const Status& reason) {
  std::fill(transfers_.begin(), transfers_.end(), Transfer{});
  wait_for(-1, 0, shared_->end.descriptor(), Clock::now() + kBetterReason);
  shared_->end.end(internal_error(fmt::format(
      "{} lost {} in {}: {}", describe(shared_->layout, shared_->rank),
      describe(shared_->layout, ranks_[static_cast<std::size_t>(peer)]), what, reason.message())));
  return shared_->end.why();
}

}  // namespace foretoken::group
