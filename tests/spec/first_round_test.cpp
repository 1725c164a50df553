#include <gtest/gtest.h>

#include "spec/list_world.h"
#include "support/time_curve.h"

// The first round of a fresh engine: nothing is known of its drafters, and 16 or 64 sequences find
// out together. What that costs where no draft fits, and that those which do are made at once.

namespace foretoken {
namespace {

using test::curve;

// Llama-3-8B's shape on an H200, about (bench/results/h200-2026-11-28.md). Room for drafts costs
// what rows do.
CostTable hopper_times() {
  CostTable times;
  times.target = curve({{1, 4050000},
                        {16, 4380000},
                        {64, 5140000},
                        {128, 6250000},
                        {256, 9300000},
                        {512, 12500000},
                        {1024, 20000000},
                        {8192, 195000000}});
  const auto same = [](int drafts, const TimeCurve& both) {
    return VerifyTimes{.drafts = drafts, .idle = both, .full = both};
  };
  times.verify = {same(0, curve({{1, 4050000}, {4, 4090000}, {16, 4380000}, {64, 5140000}})),
                  same(1, curve({{1, 4070000}, {4, 4180000}, {16, 4500000}, {64, 5900000}})),
                  same(3, curve({{1, 4100000}, {4, 4350000}, {16, 5000000}, {64, 8300000}})),
                  same(8, curve({{1, 4400000}, {4, 4700000}, {16, 6300000}, {64, 13000000}})),
                  same(15, curve({{1, 4600000}, {4, 5300000}, {16, 9000000}, {64, 20500000}}))};
  return times;
}

DrafterTimes suffix_times() { return {"suffix", true, {}, curve({{1, 30000}, {64, 60000}})}; }

// Of the time without drafts.
ListWorld::Totals run_beside_off(const CostTable& times, const LengthControllerConfig& policy,
                                 const ListWorld::Workload& work, double* speed) {
  LengthControllerConfig off = policy;
  off.mode = LengthMode::kOff;
  const ListWorld::Totals plain = ListWorld(times, off, work).run();
  const ListWorld::Totals adaptive = ListWorld(times, policy, work).run();
  *speed = static_cast<double>(plain.ns) / static_cast<double>(adaptive.ns);
  return adaptive;
}

struct Setting {
  CostTable times = hopper_times();
  LengthControllerConfig policy{.mode = LengthMode::kAdaptive, .steps_in_flight = 2};
  ListWorld::Workload work;
};

// A look-up, or one before a head none of whose drafts is accepted.
Setting setting_of(bool is_list) {
  Setting setting;
  setting.times.drafters = {suffix_times()};
  setting.policy.drafters = {{.max_draft_tokens = 8, .looks_up = true}};
  setting.work.drafters = {{.looks_up = true}};
  setting.work.lookups = 1;
  setting.work.acceptance = [](int) { return 0.0; };
  if (!is_list) return setting;
  setting.times.drafters.push_back(
      {"eagle", false,
       curve({{1, 260000}, {64, 320000}, {256, 520000}, {2048, 5000000}, {8192, 20000000}}),
       curve({{1, 220000}, {64, 260000}})});
  setting.policy.drafters.push_back(
      {.max_draft_tokens = 3, .has_kv = true, .max_catch_up_rows = 8192});
  setting.work.drafters.push_back({.has_kv = true});
  setting.work.last = 1;
  return setting;
}

// A look-up finds two drafts at every fifth place, none of which is accepted.
TEST(FirstRound, RandomTextLosesLittle) {
  for (const bool is_list : {false, true}) {
    Setting setting = setting_of(is_list);
    setting.work.finds = [](int sequence, int position) {
      std::mt19937 random(static_cast<uint32_t>(sequence * 4096 + position));
      return random() % 5 == 0 ? 2 : 0;
    };
    for (const int batch : {16, 64}) {
      for (const int output : {128, 256, 512}) {
        setting.work.batch = batch;
        setting.work.output_len = output;
        double speed = 0;
        run_beside_off(setting.times, setting.policy, setting.work, &speed);
        EXPECT_GE(speed, 0.98) << (is_list ? "list, " : "suffix, ") << batch << " sequences, "
                               << output << " tokens";
      }
    }
  }
}

// Texts that begin to repeat themselves and stop again, as those of random weights do: by position,
// for how many tokens they have.
class RepeatingTexts {
 public:
  // Chances that a token begins a repetition, and that it ends one.
  RepeatingTexts(double begins, double ends) {
    std::mt19937 random(11);
    std::uniform_real_distribution<double> draw(0, 1);
    for (auto& text : repeated_) {
      int count = 0;
      for (int& at : text) {
        count =
            count == 0 ? (draw(random) < begins ? 1 : 0) : (draw(random) < ends ? 0 : count + 1);
        at = count;
      }
    }
  }
  int repeated(int sequence, int position) const {
    const auto& text = repeated_[static_cast<size_t>(sequence) % repeated_.size()];
    return text[static_cast<size_t>(position) % text.size()];
  }
  void put_in(ListWorld::Workload& work) const {
    work.accepts = [this](int sequence, int, int position) {
      return repeated(sequence, position) > 8;
    };
    work.is_sure = [this](int sequence, int position) { return repeated(sequence, position) > 24; };
    work.finds = [this](int sequence, int position) {
      if (repeated(sequence, position) >= 8) return 8;
      std::mt19937 random(static_cast<uint32_t>(sequence * 4096 + position));
      return random() % 5 == 0 ? 2 : 0;
    };
  }

 private:
  std::array<std::array<int, 512>, 256> repeated_{};
};

// Those that repeat themselves have room for what a look-up finds, and the others, which end the
// batch, take hardly longer than without drafts. Where requests come all the time, those make room
// for more of them.
TEST(FirstRound, TextsThatRepeatThemselvesPayForTheirOwnRoom) {
  struct Case {
    double begins, ends;
    int batch;
    double alone, with_others_to_come;
  };
  for (const Case& one :
       {Case{1. / 300, 0, 4, 0.965, 1.6}, Case{1. / 300, 0, 16, 0.975, 1.55},
        Case{1. / 300, 0, 64, 0.975, 1.3}, Case{1. / 300, 0.01, 4, 0.965, 1.07},
        Case{1. / 300, 0.01, 16, 0.965, 1.05}, Case{1. / 300, 0.01, 64, 0.975, 0.99},
        Case{0.01, 0.03, 16, 0.97, 0.975}, Case{0.01, 0.03, 64, 0.98, 0.98}}) {
    for (const bool is_list : {false, true}) {
      Setting setting = setting_of(is_list);
      const RepeatingTexts texts(one.begins, one.ends);
      texts.put_in(setting.work);
      setting.work.batch = one.batch;
      double speed = 0;
      // A head that is never right is tried, too.
      const double head = is_list ? 0.025 : 0;
      run_beside_off(setting.times, setting.policy, setting.work, &speed);
      EXPECT_GE(speed, one.alone - head) << one.begins << ", " << one.ends << ", " << one.batch;
      setting.work.requests = 6 * one.batch;
      run_beside_off(setting.times, setting.policy, setting.work, &speed);
      EXPECT_GE(speed, one.with_others_to_come - head)
          << one.begins << ", " << one.ends << ", " << one.batch << ", and others come";
    }
  }
}

TEST(FirstRound, BlocksThatFitAreMadeAtOnce) {
  CostTable times = hopper_times();
  times.drafters = {
      {"dflash", true,
       curve({{1, 30000}, {64, 60000}, {256, 150000}, {2048, 1500000}, {8192, 6000000}}),
       curve({{1, 650000}, {4, 700000}, {16, 1000000}, {64, 2200000}})}};
  const LengthControllerConfig policy{
      .mode = LengthMode::kAdaptive,
      .steps_in_flight = 2,
      .drafters = {{.max_draft_tokens = 15, .has_kv = true, .max_catch_up_rows = 8192}}};
  struct Blocks {
    int batch;
    double acceptance, at_least;
  };
  // Mean lengths of 4.24 and 7.87 where all fifteen drafts are verified.
  for (const Blocks& one :
       {Blocks{4, 0.773, 2.2}, Blocks{16, 0.773, 1.7}, Blocks{64, 0.773, 1.15},
        Blocks{4, 0.915, 3.6}, Blocks{16, 0.915, 2.4}, Blocks{64, 0.915, 1.45}}) {
    double speed = 0;
    const ListWorld::Totals totals =
        run_beside_off(times, policy,
                       {.batch = one.batch,
                        .drafters = {{.has_kv = true, .entries_ahead = 15}},
                        .acceptance = [&](int) { return one.acceptance; }},
                       &speed);
    EXPECT_GE(speed, one.at_least) << one.batch << " sequences, " << one.acceptance;
    EXPECT_EQ(totals.first_accepting_step, 1) << one.batch << " sequences, " << one.acceptance;
  }
}

}  // namespace
}  // namespace foretoken
