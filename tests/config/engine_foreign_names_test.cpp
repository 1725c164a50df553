#include "config/engine_foreign_names.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "config/engine_fields.h"

namespace foretoken {
namespace {

TEST(EngineForeignNames, EveryNameStandsOnceAndSaysSomething) {
  std::set<std::string> names;
  for (const ForeignFlag& flag : foreign_flag_table()) {
    EXPECT_TRUE(flag.uses[0] != nullptr || *flag.note != '\0') << flag.names;
    for (const std::string& name : field_choices(flag.names)) {
      EXPECT_TRUE(names.insert(name).second) << name;
      EXPECT_EQ(name.front(), '-') << name;
    }
  }
}

// llama.cpp takes several kinds of drafts at once.
TEST(EngineForeignNames, KindsOfDraftsBecomeAList) {
  std::string (*translate)(const std::string&) = nullptr;
  for (const ForeignFlag& flag : foreign_flag_table()) {
    if (std::string(flag.names) == "--spec-type") translate = flag.translate;
  }
  ASSERT_NE(translate, nullptr);
  EXPECT_EQ(translate("draft-mtp,ngram-mod"), "ngram+mtp");
  EXPECT_EQ(translate("ngram-simple"), "ngram");
  EXPECT_EQ(translate("draft-simple"), "draft_model");
  EXPECT_EQ(translate("draft-eagle3"), "eagle3");
  EXPECT_EQ(translate("none"), "");
}

}  // namespace
}  // namespace foretoken
