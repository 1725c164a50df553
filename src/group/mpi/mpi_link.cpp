#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <list>
#include <string>
#include <thread>

#include "base/check.h"
#include "base/spin.h"
#include "group/mpi_plugin.h"

namespace foretoken::group {
namespace {

using namespace std::chrono_literals;
// Looks at a call before sleeping between looks; MPI's own waits would spin for ever, and with more
// ranks than cores nobody would get on.
constexpr int kLooks = 200;
constexpr auto kShortestSleep = 10us;
constexpr auto kLongestSleep = 200us;

// Of all links of this process, whose calls come one after the other.
int num_open = 0;
bool left_call = false;  // by the end of the group

// All calls are non-blocking and looked at with MPI_Test, so that the end of the group, which the
// control plane brings, ends them.
class MpiLink final : public RankLink {
 public:
  // `ranks` of MPI_COMM_WORLD, this one among them.
  MpiLink(std::shared_ptr<LinkShared> shared, std::span<const int> ranks)
      : shared_(std::move(shared)),
        size_(static_cast<int>(ranks.size())),
        is_narrow_(size_ < shared_->layout.num_ranks()),
        ranks_(ranks.begin(), ranks.end()),
        requests_(2 * ranks.size()) {
    rank_ = static_cast<int>(std::find(ranks.begin(), ranks.end(), shared_->rank) - ranks.begin());
    FT_CHECK(rank_ < size_);
    ++num_open;
  }

  // All ranks come to MPI_Finalize with their last link, unless one has failed or left a call
  // unfinished.
  ~MpiLink() override {
    const Status why = shared_->end.why();
    const bool well = why.ok() || why.code() == StatusCode::kAborted;
    if (--num_open == 0 && well && !left_call) MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  Status all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                    std::string_view what) override {
    FT_CHECK(all.size() == mine.size() * static_cast<std::size_t>(size_));
    if (is_narrow_) return gather_among(mine, all, what);
    const int count = count_of(mine);
    const std::byte* place = all.data() + mine.size() * static_cast<std::size_t>(rank_);
    const void* from = mine.data() == place ? MPI_IN_PLACE : mine.data();
    const int error = MPI_Iallgather(from, count, MPI_BYTE, all.data(), count, MPI_BYTE,
                                     MPI_COMM_WORLD, requests_.data());
    return finish(error, 1, what);
  }

  Status send(int peer, std::span<const std::byte> data, std::string_view what) override {
    FT_CHECK(peer >= 0 && peer < size_ && peer != rank_);
    return finish(start_send(peer, data, 0), 1, what);
  }

  Status post(int peer, std::span<const std::byte> data, std::string_view what) override {
    FT_CHECK(peer >= 0 && peer < size_ && peer != rank_);
    forget_posted();
    Posted& posted = posted_.emplace_back();
    posted.data.assign(data.begin(), data.end());
    const int error = MPI_Isend(posted.data.data(), count_of(data), MPI_BYTE, world_rank(peer), 0,
                                MPI_COMM_WORLD, &posted.request);
    return error == MPI_SUCCESS ? Status() : finish(error, 0, what);
  }

  // MPI may move a large message only while its sender calls it.
  Status flush(std::string_view what) override {
    while (!posted_.empty()) {
      forget_posted();
      if (shared_->end.ended()) {
        left_call = true;
        return shared_->end.why();
      }
      if (!posted_.empty()) std::this_thread::sleep_for(kShortestSleep);
    }
    shared_->activity.note(what);
    return {};
  }

  Status receive(int peer, std::span<std::byte> data, std::string_view what) override {
    FT_CHECK(peer >= 0 && peer < size_ && peer != rank_);
    return finish(start_receive(peer, data, 0), 1, what);
  }

  Status exchange(std::span<const PeerBytes> parts, std::string_view what) override {
    FT_CHECK(2 * parts.size() <= requests_.size());
    int error = MPI_SUCCESS;
    int count = 0;
    for (const PeerBytes& part : parts) {
      if (error == MPI_SUCCESS) error = start_receive(part.peer, part.in, count++);
      if (error == MPI_SUCCESS) error = start_send(part.peer, part.out, count++);
    }
    return finish(error, count, what);
  }

  Status broadcast(int root, std::span<std::byte> data, std::string_view what) override {
    FT_CHECK(root >= 0 && root < size_);
    if (is_narrow_) return broadcast_among(root, data, what);
    const int error =
        MPI_Ibcast(data.data(), count_of(data), MPI_BYTE, root, MPI_COMM_WORLD, requests_.data());
    return finish(error, 1, what);
  }

  void narrow(std::span<const int> ranks) override {
    const auto own = std::find(ranks.begin(), ranks.end(), rank_);
    FT_CHECK(own != ranks.end());
    is_narrow_ |= static_cast<int>(ranks.size()) < size_;
    std::vector<int> kept;
    for (const int rank : ranks) kept.push_back(world_rank(rank));
    ranks_ = std::move(kept);
    rank_ = static_cast<int>(own - ranks.begin());
    size_ = static_cast<int>(ranks.size());
  }

  void on_end(std::function<void()> listener) override {
    shared_->end.on_end([listener = std::move(listener)](const Status&) { listener(); });
  }
  void abort(const Status& why) override { shared_->end.end(why); }

 private:
  // A message that MPI may still read.
  struct Posted {
    std::vector<std::byte> data;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  int world_rank(int peer) const { return ranks_[static_cast<std::size_t>(peer)]; }

  int start_send(int peer, std::span<const std::byte> data, int index) {
    return MPI_Isend(data.data(), count_of(data), MPI_BYTE, world_rank(peer), 0, MPI_COMM_WORLD,
                     &requests_[static_cast<std::size_t>(index)]);
  }
  int start_receive(int peer, std::span<std::byte> data, int index) {
    return MPI_Irecv(data.data(), count_of(data), MPI_BYTE, world_rank(peer), 0, MPI_COMM_WORLD,
                     &requests_[static_cast<std::size_t>(index)]);
  }

  // MPI's own collectives are those of all ranks.
  Status gather_among(std::span<const std::byte> mine, std::span<std::byte> all,
                      std::string_view what) {
    int error = MPI_SUCCESS;
    int count = 0;
    for (int peer = 0; peer < size_ && error == MPI_SUCCESS; ++peer) {
      const auto part = all.subspan(static_cast<std::size_t>(peer) * mine.size(), mine.size());
      if (peer == rank_) {
        if (!mine.empty()) std::memmove(part.data(), mine.data(), mine.size());
        continue;
      }
      error = start_receive(peer, part, count++);
      if (error == MPI_SUCCESS) error = start_send(peer, mine, count++);
    }
    return finish(error, count, what);
  }

  Status broadcast_among(int root, std::span<std::byte> data, std::string_view what) {
    if (root != rank_) return receive(root, data, what);
    int error = MPI_SUCCESS;
    int count = 0;
    for (int peer = 0; peer < size_ && error == MPI_SUCCESS; ++peer) {
      if (peer != rank_) error = start_send(peer, data, count++);
    }
    return finish(error, count, what);
  }

  void forget_posted() {
    std::erase_if(posted_, [](Posted& posted) {
      int done = 0;
      return MPI_Test(&posted.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
    });
  }

  static int count_of(std::span<const std::byte> data) {
    FT_CHECK(data.size() <= INT_MAX);
    return static_cast<int>(data.size());
  }

  Status finish(int error, int count, std::string_view what) {
    shared_->activity.note(what);
    auto sleep = kShortestSleep;
    for (int look = 0; error == MPI_SUCCESS; ++look) {
      int done = 0;
      error = MPI_Testall(count, requests_.data(), &done, MPI_STATUSES_IGNORE);
      if (done != 0 && error == MPI_SUCCESS) return {};
      if (shared_->end.ended()) {
        left_call = true;
        return shared_->end.why();
      }
      if (look < kLooks) {
        spin_pause(look);
      } else {
        std::this_thread::sleep_for(sleep);
        sleep = std::min<std::chrono::microseconds>(sleep * 2, kLongestSleep);
      }
    }
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    shared_->end.end(internal_error(
        fmt::format("{} failed in {}: {}", describe(shared_->layout, shared_->rank), what, text)));
    return shared_->end.why();
  }

  std::shared_ptr<LinkShared> shared_;
  int rank_ = 0;
  int size_ = 0;
  bool is_narrow_ = false;  // not to all ranks of MPI_COMM_WORLD
  std::vector<int> ranks_;  // there, by place in this link
  std::vector<MPI_Request> requests_;
  std::list<Posted> posted_;
};

std::string start_mpi(const LinkShared& shared) {
  if (num_open > 0) return "";
  int given = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given) != MPI_SUCCESS) {
    return "MPI does not start";
  }
  if (given < MPI_THREAD_SERIALIZED) return "this MPI library cannot be used from threads";
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == shared.rank && size == shared.layout.num_ranks()) return "";
  return fmt::format(
      "MPI counts this process as rank {} of {}, its group as rank {} of {}; start "
      "all ranks with one mpirun",
      rank, size, shared.rank, shared.layout.num_ranks());
}

}  // namespace
}  // namespace foretoken::group

extern "C" {

[[gnu::visibility("default")]] int foretoken_mpi_abi() { return foretoken::group::kMpiPluginAbi; }

[[gnu::visibility("default")]] foretoken::group::RankLink* foretoken_mpi_open(
    const std::shared_ptr<foretoken::group::LinkShared>* shared, const int* ranks,
    std::size_t num_ranks, char* error, std::size_t error_size) {
  const std::string wrong = foretoken::group::start_mpi(**shared);
  if (wrong.empty()) return new foretoken::group::MpiLink(*shared, {ranks, num_ranks});
  std::strncpy(error, wrong.c_str(), error_size - 1);
  return nullptr;
}

}  // extern "C"
