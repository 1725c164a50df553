#include "config/engine_drafter_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "config/engine_fields.h"
#include "support/config_members.h"

namespace foretoken {
namespace {

TEST(DrafterFields, EveryMemberHasARow) {
  // Of single methods, whose rows of the registry name them, and what a list in `method` says.
  const std::set<std::string> of_methods = {"prompt_lookup_min", "prompt_lookup_max",
                                            "method_fields", "leads"};
  size_t count = 0;
  for (const std::string& member : test::config_members("SpeculativeConfig")) {
    if (of_methods.count(member) != 0) continue;
    ++count;
    const DrafterField* field = find_drafter_field(member);
    ASSERT_NE(field, nullptr) << member << ": give it a row of the table";
    EXPECT_NE(field->member.index(), 0u) << member;
  }
  size_t with_member = 0;
  for (const DrafterField& field : drafter_fields()) {
    if (field.member.index() != 0) ++with_member;
  }
  EXPECT_EQ(count, with_member);
}

TEST(DrafterFields, DefaultsAreAmongTheChoices) {
  for (const DrafterField& field : drafter_fields()) {
    const std::vector<std::string> choices = field_choices(field.choices);
    if (choices.empty()) continue;
    EXPECT_EQ(std::count(choices.begin(), choices.end(), drafter_field_text(field, {})), 1)
        << field.name;
  }
}

TEST(DrafterFields, TextsOfValues) {
  SpeculativeConfig drafter;
  drafter.synthetic_acceptance_rates = {0.5, 0.25};
  drafter.num_speculative_tokens_per_batch_size = {{1, 8, 4}, {9, 64, 0}};
  const auto text = [&](const char* name) {
    return drafter_field_text(*find_drafter_field(name), drafter);
  };
  EXPECT_EQ(text("synthetic_acceptance_rates"), "0.5 0.25");
  EXPECT_EQ(text("num_speculative_tokens_per_batch_size"), "1-8:4 9-64:0");
  EXPECT_EQ(text("parallel_drafting"), "");
}

TEST(DrafterFields, NamesStandOnce) {
  std::set<std::string> names;
  for (const DrafterField& field : drafter_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
  }
  for (const RefusedDrafterField& field : refused_drafter_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
  }
}

}  // namespace
}  // namespace foretoken
