#include "draft/head_drafter.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "draft/draft_context.h"
#include "draft/drafter_cases.h"
#include "model/files/containers/json_file.h"
#include "support/folders.h"

namespace foretoken::test {
namespace {

std::string golden(const std::string& name) {
  return std::string(foretoken::kSourceFolder) + "/tests/golden/" + name;
}

// What PyTorch drafts with tiny random heads (tests/golden/heads), token by token, behind prefixes
// that are given, not sampled.
TEST(HeadDrafter, DraftsAsTheReferenceDoes) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const nlohmann::json file = read_json_file(golden("heads/golden.json")).value();
  const auto ids = file.at("ids").get<std::vector<int32_t>>();
  for (const auto& head : file.at("heads")) {
    const std::string name = head.at("name");
    SpeculativeConfig config;
    config.model = golden("heads/" + name);
    config.num_speculative_tokens = 4;
    DraftRig rig(golden(file.at("target")), {config}, {}, "float32");
    for (const auto& draft : head.at("drafts")) {
      const auto prefix = draft.at("prefix").get<int32_t>();
      if (prefix < 2) continue;
      SCOPED_TRACE(name + " behind " + std::to_string(prefix));
      rig.start(0, {ids.begin(), ids.begin() + prefix - 1});
      rig.forced[0] = {ids[static_cast<size_t>(prefix - 1)]};
      RigOutput output = rig.step({.slot = 0, .num_tokens = prefix - 1, .num_draft_tokens = 3});
      EXPECT_EQ(output.proposed, draft.at("ids").get<std::vector<int32_t>>());
      rig.release(0);
    }
  }
}

SpeculativeConfig mtp_config(int modules, int drafts) {
  return DrafterCase{.name = "mtp", .method = "mtp", .num_modules = modules}.config(drafts);
}

TEST(HeadDrafter, NumberOfMtpDrafts) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext target;
  const int taken[][3] = {{1, 0, 1}, {1, 5, 5}, {3, 0, 3}, {3, 2, 2}, {3, 6, 6}, {2, 1, 1}};
  for (const auto& [modules, asked, expected] : taken) {
    const auto drafter = target.make(mtp_config(modules, asked));
    ASSERT_TRUE(drafter.ok()) << drafter.status().message();
    EXPECT_EQ(drafter.value()->traits().max_draft_tokens, expected);
  }
  const auto drafter = target.make(mtp_config(3, 4));
  EXPECT_EQ(drafter.status().code(), StatusCode::kInvalidArgument);
  expect_contains(refusal(drafter), "divisible by their number, such as 3");
}

TEST(HeadDrafter, TakesMemoryByTheBlock) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  const DraftContext target;
  for (const DrafterCase& drafter : drafter_cases()) {
    if (drafter.method == "draft_model" || drafter.name != "Mtp2") continue;
    const auto made = target.make(drafter.config(2));
    const Drafter& mtp = *made.value();
    EXPECT_EQ(mtp.kv_cache(), nullptr);
    // Two layers of two heads of 16, a tap of the target's state, one module's page; floats.
    EXPECT_EQ(mtp.bytes_per_block(16), 16 * 4 * (2 * 2 * 2 * 16 + 64 + 64));
    EXPECT_GT(mtp.memory_bytes(), 0);
    EXPECT_FALSE(mtp.traits().keeps_written);
    EXPECT_TRUE(mtp.traits().has_kv);
    EXPECT_FALSE(mtp.traits().one_pass);
  }
}

// Modules in the target's own files draft as those in a folder of their own.
TEST(HeadDrafter, ReadsModulesOfTheTarget) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  DialledShape shape = dialled_target();
  shape.num_mtp_modules = 2;
  SpeculativeConfig own;
  own.method = "mtp";
  DraftRig with_own(dialled_folder(shape), {own});
  SpeculativeConfig other = own;
  shape.num_mtp_modules = 0;
  DialledHead head{.kind = HeadKind::kMtp, .agreement = 0.8, .num_modules = 2};
  other.model = dialled_head_folder(shape, head);
  DraftRig with_other(dialled_folder(shape), {other});
  for (DraftRig* rig : {&with_own, &with_other}) rig->start(0, cycle_from(4, 12));
  for (int step = 0; step < 10; ++step) {
    const int left = with_own.state(0).len - with_own.state(0).computed;
    const RigSpan span{.slot = 0, .num_tokens = left, .num_draft_tokens = 2};
    const RigOutput a = with_own.step(span), b = with_other.step(span);
    ASSERT_EQ(a.committed, b.committed);
    ASSERT_EQ(a.proposed, b.proposed);
    ASSERT_EQ(a.proposed.size(), 2u);
  }
}

TEST(HeadDrafter, RefusesHeadsOfAnotherTarget) {
  if (test_device() == nullptr) GTEST_SKIP() << "no device";
  DialledShape wide = dialled_target();
  wide.hidden_size = 96;
  wide.seed = 2;
  const DraftContext target;
  for (const HeadKind kind : {HeadKind::kEagle, HeadKind::kEagle3, HeadKind::kMtp}) {
    SpeculativeConfig config;
    config.num_speculative_tokens = 1;
    config.model = dialled_head_folder(wide, {.kind = kind});
    const auto drafter = target.make(config);
    EXPECT_EQ(drafter.status().code(), StatusCode::kInvalidArgument);
    expect_contains(refusal(drafter), "trained for this target");
  }
}

}  // namespace
}  // namespace foretoken::test
