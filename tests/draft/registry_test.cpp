#include "draft/registry.h"

#include <gtest/gtest.h>

#include <string>

#include "kernels/step_types.h"

namespace foretoken {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(DrafterRegistry, NoMethodIsNoDrafter) {
  const auto drafter = make_drafter({});
  ASSERT_TRUE(drafter.ok());
  EXPECT_EQ(drafter.value(), nullptr);
}

TEST(DrafterRegistry, FindsEveryEntryByNameAndAlias) {
  EXPECT_FALSE(drafters().empty());
  for (const DrafterEntry& entry : drafters()) {
    EXPECT_NE(std::string(entry.description), "");
    const auto drafter = make_drafter({.method = entry.name, .num_speculative_tokens = 3});
    ASSERT_TRUE(drafter.ok()) << drafter.status().message();
    EXPECT_EQ(std::string(drafter.value()->name()), entry.name);
    EXPECT_EQ(drafter.value()->max_drafts(), 3);
  }
  for (const char* alias : {"ngram", "ngram_gpu", "[ngram]"}) {
    const auto drafter = make_drafter({.method = alias, .num_speculative_tokens = 1});
    ASSERT_TRUE(drafter.ok()) << alias;
    EXPECT_EQ(std::string(drafter.value()->name()), "ngram");
  }
}

TEST(DrafterRegistry, AnUnknownMethodListsTheKnownOnes) {
  for (const char* method : {"eagle", "ngra", "ngram "}) {
    const auto drafter = make_drafter({.method = method, .num_speculative_tokens = 3});
    EXPECT_EQ(drafter.status().code(), StatusCode::kUnsupported) << method;
    EXPECT_TRUE(contains(drafter.status().message(), method));
    EXPECT_TRUE(contains(drafter.status().message(), "use one of: ngram"));
  }
}

TEST(DrafterRegistry, TheNumberOfDraftsIsBounded) {
  EXPECT_TRUE(make_drafter({.method = "ngram", .num_speculative_tokens = kMaxDrafts}).ok());
  for (const int count : {-1, 0, kMaxDrafts + 1}) {
    const auto drafter = make_drafter({.method = "ngram", .num_speculative_tokens = count});
    EXPECT_EQ(drafter.status().code(), StatusCode::kInvalidArgument) << count;
    EXPECT_TRUE(contains(drafter.status().message(), std::to_string(count)));
    EXPECT_TRUE(contains(drafter.status().message(), "from 1 to 16"));
  }
}

}  // namespace
}  // namespace foretoken
