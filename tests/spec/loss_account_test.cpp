#include "spec/loss_account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>

namespace foretoken {
namespace {

constexpr int64_t kAloneNs = 5'000'000;
using Scale = LossAccount::Scale;

// Drafts that are tried whenever they may, whose results come `delay` steps late.
class Trial {
 public:
  explicit Trial(int delay) : delay_(delay) {}

  // A step that gains so much with drafts. True: it had drafts.
  bool run(int64_t gain_ns, const Scale& scale) {
    const bool drafts = !account.is_used_up();
    late_.push_back({drafts ? gain_ns : 0, scale});
    lost_ -= late_.back().gain_ns;
    allowed_ += scale.plain_ns / LossAccount::kShare;
    worst = std::max(worst, lost_ - allowed_);
    if (static_cast<int>(late_.size()) > delay_) {
      account.add(late_.front().gain_ns, late_.front().scale.plain_ns, late_.front().scale);
      late_.pop_front();
    }
    return drafts;
  }

  LossAccount account;
  int64_t worst = 0;  // loss beyond the allowance at any time

 private:
  struct Late {
    int64_t gain_ns;
    Scale scale;
  };
  const int delay_;
  std::deque<Late> late_;
  int64_t lost_ = 0, allowed_ = 0;
};

TEST(LossAccount, WhatBringsNothingWaitsUntilHalfAStepIsBack) {
  Trial one(0);
  const Scale scale{64, kAloneNs};
  int steps = 0;
  while (one.run(-kAloneNs / 5, scale)) ++steps;
  EXPECT_EQ(steps, 7) << "1.25 steps, 0.2 of one less 1/128 at a time";
  int waits = 1;
  while (!one.run(-kAloneNs / 5, scale)) ++waits;
  EXPECT_GE(waits, 64);
  EXPECT_LE(waits, 84);
}

// At any time, however late results are, whatever was gained before, while sequences end.
TEST(LossAccount, LossesAreBounded) {
  const int64_t cost = kAloneNs * 4 / 10;
  const auto bad = [&](int) { return -cost; };
  const auto in_turns = [&](int step) { return step / 150 % 2 == 0 ? 2 * kAloneNs : -cost; };
  const auto hardly = [&](int step) { return step % 3 == 0 ? kAloneNs * 7 / 10 : -cost; };
  for (int delay = 0; delay <= 6; ++delay) {
    for (const auto& gain_at : {std::function<int64_t(int)>(bad), {in_turns}, {hardly}}) {
      for (const bool end : {false, true}) {
        Trial trial(delay);
        int num_drafted = 0;
        for (int step = 0; step < 20000; ++step) {
          const int num_seqs = end ? std::max(1, 64 - step / 100) : 64;
          num_drafted += trial.run(gain_at(step), {num_seqs, kAloneNs}) ? 1 : 0;
        }
        EXPECT_LE(trial.worst, kAloneNs * 5 / 4 + (delay + 1) * cost) << delay;
        EXPECT_GT(num_drafted, 100) << "what may be lost is tried";
      }
    }
  }
}

TEST(LossAccount, WhatPaysIsNeverStopped) {
  for (const int num_seqs : {1, 4, 64}) {
    for (int delay = 0; delay <= 6; ++delay) {
      Trial trial(delay);
      for (int step = 0; step < 5000; ++step) {
        // One token more in every fifth step at a tenth of its time, or the mean of many.
        const int64_t one = step % 5 == 4 ? kAloneNs * 9 / 10 : -kAloneNs / 10;
        ASSERT_TRUE(trial.run(num_seqs == 1 ? one : kAloneNs / 10, {num_seqs, kAloneNs}));
      }
    }
  }
}

// One sequence alone whose text did not fit for long: it is tried again soon, and goes on.
TEST(LossAccount, TextThatFitsAgainIsNotLeftForLong) {
  Trial one(2);
  const Scale scale{1, kAloneNs};
  for (int step = 0; step < 5000; ++step) one.run(-kAloneNs * 4 / 10, scale);
  int waits = 0;
  int num_drafted = 0;
  for (int step = 0; step < 1000; ++step) {
    const bool drafts = one.run(kAloneNs, scale);
    if (num_drafted == 0 && !drafts) ++waits;
    num_drafted += drafts ? 1 : 0;
  }
  EXPECT_LE(waits, 260);
  EXPECT_EQ(num_drafted, 1000 - waits);
}

TEST(LossAccount, RefilledItMayBeUsedAtOnce) {
  Trial one(0);
  while (one.run(-kAloneNs, {64, kAloneNs})) {
  }
  one.account.refill();
  EXPECT_FALSE(one.account.is_used_up());
  EXPECT_EQ(one.account.balance_ns({}), kAloneNs / 2);
}

}  // namespace
}  // namespace foretoken
