#include "draft/parts/method_fields.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "draft/registry.h"

namespace foretoken {
namespace {

TEST(MethodFields, StandInAMemberOrByName) {
  SpeculativeConfig config;
  const MethodField member = {.name = "prompt_lookup_max",
                              .member = &SpeculativeConfig::prompt_lookup_max};
  const MethodField named = {.name = "depth"};
  const MethodField share = {.name = "share", .is_whole = false};
  for (const MethodField& field : {member, named, share}) EXPECT_FALSE(is_given(config, field));
  set_field(member, 7, &config);
  set_field(named, 0, &config);
  set_field(share, 0.25, &config);
  for (const MethodField& field : {member, named, share}) EXPECT_TRUE(is_given(config, field));
  EXPECT_EQ(config.prompt_lookup_max, 7);
  EXPECT_EQ(method_field(config, "depth", 24), 0);
  EXPECT_EQ(method_field(config, "share", 1), 0.25);
  EXPECT_EQ(method_field(config, "other", 24), 24);
}

// One name means one thing, and what is built is refused nowhere.
TEST(MethodFields, AreOfOneMethodEach) {
  std::set<std::string> names;
  std::set<std::string> fields;
  for (const DrafterEntry& entry : drafters()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_EQ(entry.traits.reads_files, std::string(entry.files) != "") << entry.name;
    for (const MethodField& field : entry.fields) {
      EXPECT_TRUE(fields.insert(field.name).second) << field.name;
    }
  }
  for (const UnbuiltDrafter& unbuilt : unbuilt_drafters()) {
    EXPECT_TRUE(names.insert(unbuilt.name).second) << unbuilt.name;
    std::istringstream list(unbuilt.fields);
    for (std::string name; list >> name;) EXPECT_TRUE(fields.insert(name).second) << name;
  }
}

}  // namespace
}  // namespace foretoken
