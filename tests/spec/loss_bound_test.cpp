#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "spec/policy_tables.h"
#include "spec/policy_world.h"
#include "support/time_curve.h"

// What adaptive lengths lose at most, however badly drafts fit and however late results come: 1/128
// of the time, and some steps.

namespace foretoken {
namespace {

using test::curve;

// A GPU whose look-up makes up to eight drafts.
CostTable lookup_times() {
  CostTable times = tiled_times();
  times.drafters[0].one_pass = true;
  times.drafters[0].catch_up = {};
  times.drafters[0].pass = curve({{1, 30000}, {256, 60000}});
  times.target =
      curve({{1, 4500000}, {64, 5300000}, {128, 6700000}, {256, 9100000}, {576, 12000000}});
  times.verify.push_back({.drafts = 8,
                          .idle = curve({{1, 4700000}, {16, 5800000}, {64, 11500000}}),
                          .full = curve({{1, 4700000}, {16, 5900000}, {64, 12000000}})});
  return times;
}

LengthControllerConfig lookup_config(int steps_in_flight) {
  LengthControllerConfig config = policy_config(LengthMode::kAdaptive, 8);
  config.drafters[0].has_kv = false;
  config.steps_in_flight = steps_in_flight;
  return config;
}

using Fits = std::function<double(int index, int output, int position)>;

struct Text {
  const char* name;
  Fits fits;
  bool is_of_some = false;  // of the sequences
};

std::vector<Text> texts_to_lose_with() {
  return {{"never", [](int, int, int) { return 0.0; }},
          {"hardly", [](int, int, int) { return 0.2; }},
          {"of a few", [](int index, int, int) { return index % 8 == 0 ? 0.95 : 0.0; }, true},
          {"of some", [](int index, int, int) { return index % 8 < 3 ? 0.95 : 0.0; }, true},
          {"in turns", [](int, int output, int) { return output / 60 % 3 == 0 ? 0.6 : 0.0; }}};
}

// Of steps without drafts.
double steps_lost(const LengthControllerConfig& config, const PolicyWorld::Workload& work) {
  static const CostTable times = lookup_times();
  LengthControllerConfig off = config;
  off.mode = LengthMode::kOff;
  const PolicyWorld::Totals plain = PolicyWorld(times, off, work).run();
  const PolicyWorld::Totals adaptive = PolicyWorld(times, config, work).run();
  const double lost = static_cast<double>(adaptive.ns) / static_cast<double>(plain.ns) - 1;
  return (lost - 1.0 / 128) * static_cast<double>(plain.num_steps);
}

TEST(LossBound, HoldsForBatchesThatEndTogether) {
  for (const int steps_in_flight : {1, 2, 4, 6}) {
    for (const int batch : {1, 4, 16, 64}) {
      for (const Text& text : texts_to_lose_with()) {
        // Of four sequences three are most of them, and the batch takes as long as the fourth.
        if (batch == 4 && text.is_of_some) continue;
        const double lost =
            steps_lost(lookup_config(steps_in_flight), {.batch = batch,
                                                        .num_requests = batch,
                                                        .length = [](int) { return 272; },
                                                        .runs_to_the_end = true,
                                                        .fits = text.fits});
        EXPECT_LT(lost, 4) << text.name << ", " << batch << " sequences, results "
                           << steps_in_flight << " steps late";
      }
    }
  }
}

// Requests come and end all the time: prompts beside most steps.
TEST(LossBound, HoldsWhereRequestsComeAndEnd) {
  for (const int batch : {4, 64}) {
    for (const Text& text : texts_to_lose_with()) {
      const double lost =
          steps_lost(lookup_config(2), {.batch = batch,
                                        .num_requests = batch * 4,
                                        .length = [](int index) { return 60 + index * 37 % 140; },
                                        .runs_to_the_end = true,
                                        .fits = text.fits});
      EXPECT_LT(lost, 4) << text.name << ", " << batch << " sequences";
    }
  }
}

}  // namespace
}  // namespace foretoken
