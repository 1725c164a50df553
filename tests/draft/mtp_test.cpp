#include <gtest/gtest.h>

#include <utility>

#include "draft/draft_context.h"
#include "draft/head_drafter.h"

namespace foretoken::test {
namespace {

TEST(Mtp, DraftsWithAModuleEach) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext context;
  SpeculativeConfig config =
      DrafterCase{.name = "mtp", .method = "mtp", .num_modules = 3}.config(6);
  auto drafter = make_head_drafter(context.context(config), HeadKind::kMtp, "mtp").value();
  EXPECT_EQ(std::string(drafter->name()), "mtp");
  // Three layers, the target's state and the pages of two modules; floats.
  EXPECT_EQ(drafter->bytes_per_block(8), 8 * 4 * (3 * 2 * 2 * 16 + 64 + 2 * 64));
  // A module that no draft comes from is not kept.
  config.num_speculative_tokens = 2;
  drafter = make_head_drafter(context.context(config), HeadKind::kMtp, "mtp").value();
  EXPECT_EQ(drafter->bytes_per_block(8), 8 * 4 * (2 * 2 * 2 * 16 + 64 + 64));
}

std::vector<std::byte> layer_of(const std::vector<std::byte>& entry, size_t layer, size_t layers) {
  const size_t size = entry.size() / layers;
  const auto begin = entry.begin() + static_cast<int64_t>(layer * size);
  return {begin, begin + static_cast<int64_t>(size)};
}

// Before its own pass a later module gets the entries of the drafts so far: where the drafts are
// right, they are those that a fresh pass over the ids writes.
TEST(Mtp, LaterModulesSeeTheDraftsBefore) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  DrafterCase drafter{.name = "mtp", .method = "mtp", .num_modules = 3};
  drafter.agreement = 1;
  DraftRig rig(drafter.target(), {drafter.config(3)});
  Reference reference(drafter.target(), drafter.config(3), rig.params);
  rig.start(0, cycle_from(0, 9));
  const RigOutput output = rig.step({.slot = 0, .num_tokens = 9, .num_draft_tokens = 3});
  ASSERT_EQ(output.proposed, cycle_from(10, 3));
  const KvCache& cache = *rig.drafter().kv_cache();
  const Reference::Entries fresh = reference.entries(cycle_from(0, 13));
  for (const auto& [module, position] : {std::pair{1, 10}, {2, 10}, {2, 11}}) {
    EXPECT_EQ(layer_of(rig.entry(cache, 0, position), size_t(module), 3),
              layer_of(fresh.drafter[size_t(position)], size_t(module), 3))
        << "module " << module << ", entry " << position;
  }
}

// Beyond the modules the last one goes on.
TEST(Mtp, ChainsTheLastModule) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  for (const int modules : {1, 2, 3}) {
    DrafterCase drafter{.name = "mtp", .method = "mtp", .num_modules = modules};
    drafter.agreement = 1;
    DraftRig rig(drafter.target(), {drafter.config(6)});
    rig.start(0, cycle_from(0, 9));
    for (int step = 0; step < 10; ++step) {
      const int left = rig.state(0).len - rig.state(0).computed;
      const RigOutput output = rig.step({.slot = 0, .num_tokens = left, .num_draft_tokens = 6});
      ASSERT_EQ(output.proposed, cycle_from(rig.state(0).len, 6));
    }
  }
}

}  // namespace
}  // namespace foretoken::test
