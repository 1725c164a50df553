#include "group/rank_link.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "link_contract.h"

namespace foretoken::group {
namespace {

// The smallest group: what the contract says about one rank.
class AloneLink : public RankLink {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  Status all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                    std::string_view) override {
    if (ended_.ok()) std::copy(mine.begin(), mine.end(), all.begin());
    return ended_;
  }
  Status send(int, std::span<const std::byte>, std::string_view) override { return ended_; }
  Status post(int, std::span<const std::byte>, std::string_view) override { return {}; }
  Status receive(int, std::span<std::byte>, std::string_view) override { return ended_; }
  Status exchange(std::span<const PeerBytes>, std::string_view) override { return ended_; }
  Status broadcast(int, std::span<std::byte>, std::string_view) override { return ended_; }
  void narrow(std::span<const int>) override {}
  void on_end(std::function<void()> listener) override {
    listener_ = std::move(listener);
    if (!ended_.ok()) listener_();
  }
  void abort(const Status& why) override {
    if (!ended_.ok()) return;
    ended_ = why;
    if (listener_) listener_();
  }

 private:
  Status ended_;
  std::function<void()> listener_;
};

TEST(RankLink, OneRankTalksToItself) {
  AloneLink link;
  expect_exchanges(link);
  expect_abort_reaches_all({&link});
}

}  // namespace
}  // namespace foretoken::group
