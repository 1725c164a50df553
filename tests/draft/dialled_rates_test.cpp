#include <gtest/gtest.h>

#include <string>

#include "draft/drafter_cases.h"

namespace foretoken::test {
namespace {

// Accepted drafts of each place among those that were reached, over the whole cycle.
struct Rates {
  std::vector<int> reached, accepted;
  double of(size_t place) const {
    return reached[place] == 0 ? 0 : static_cast<double>(accepted[place]) / reached[place];
  }
};

Rates measure(const DrafterCase& drafter, int num_draft_tokens) {
  DraftRig rig(drafter.target(), {drafter.config(num_draft_tokens)});
  Rates rates{std::vector<int>(16), std::vector<int>(16)};
  rig.start(0, cycle_from(0, 2));
  while (rig.state(0).len < 260) {
    const RigOutput output = rig.step({.slot = 0,
                                       .num_tokens = rig.state(0).len - rig.state(0).computed,
                                       .num_draft_tokens = num_draft_tokens});
    for (size_t i = 0; i < output.drafted.size(); ++i) {
      if (static_cast<int>(i) > output.num_accepted) break;
      ++rates.reached[i];
      if (static_cast<int>(i) < output.num_accepted) ++rates.accepted[i];
    }
  }
  expect_follows_cycle(rig.tokens(0), 2);
  return rates;
}

// Dialled drafters agree with their target on the dialled share of ids, in every place of a draft.
TEST(DialledRates, AreMet) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  std::vector<DrafterCase> cases = {{.name = "draft_model", .method = "draft_model"},
                                    {.name = "eagle", .method = "eagle"},
                                    {.name = "eagle3", .method = "eagle3"},
                                    {.name = "mtp", .method = "mtp"},
                                    {.name = "mtp2", .method = "mtp", .num_modules = 2}};
  for (DrafterCase& drafter : cases) {
    for (const double agreement : {0.35, 0.6, 0.9}) {
      drafter.agreement = agreement;
      // One draft a step sees every second id or fewer; the share of them is near the whole one.
      const Rates one = measure(drafter, 2);
      EXPECT_NEAR(one.of(0), agreement, 0.1) << drafter.name;
      EXPECT_NEAR(one.of(1), agreement, 0.15) << drafter.name;
    }
    drafter.agreement = 1;
    const Rates all = measure(drafter, 4);
    for (size_t place = 0; place < 4; ++place) EXPECT_EQ(all.of(place), 1) << drafter.name;
  }
}

}  // namespace
}  // namespace foretoken::test
