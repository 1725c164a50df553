#include "engine/start/agreed_config.h"

#include <gtest/gtest.h>

#include "engine/dialled_engine.h"
#include "support/changed_field.h"

namespace foretoken {
namespace {

std::string difference(const EngineConfig& a, const EngineConfig& b) {
  return group::first_difference(agreed_parts(a), agreed_parts(b), "rank 1").value_or("");
}

TEST(AgreedConfig, NamesTheFlagThatDiffers) {
  EngineConfig one;
  one.model = bundled_model_folder();
  EngineConfig other = one;
  EXPECT_EQ(difference(one, other), "");
  // A path is not what a model is, and threads shape no token.
  other.model += "/.";
  other.cpu_threads = 3;
  EXPECT_EQ(difference(one, other), "");
  other.max_num_seqs = 7;
  EXPECT_EQ(difference(one, other),
            "rank 1 has --max-num-seqs 7, rank 0 has 0; start all ranks alike");
  other = one;
  other.model = "/nowhere";
  EXPECT_NE(difference(one, other).find("config.json"), std::string::npos);
  other = one;
  other.speculative = {ngram_config(3)};
  EXPECT_NE(difference(one, other).find("--speculative-config"), std::string::npos);
  one.speculative = {ngram_config(2)};
  EXPECT_NE(difference(one, other).find("--speculative-config"), std::string::npos);
  one.speculative = {ngram_config(3)};
  EXPECT_EQ(difference(one, other), "");
}

TEST(AgreedConfig, EveryRowIsComparedThatSaysSo) {
  EngineConfig one;
  one.model = bundled_model_folder();
  for (const EngineField& field : engine_fields()) {
    EngineConfig other = one;
    test::change_field(field, &other);
    const std::string told = difference(one, other);
    const bool is_told = told.find(engine_flag(field)) != std::string::npos;
    EXPECT_EQ(is_told, field.agreement != FieldAgreement::kNone) << field.name << ": " << told;
  }
}

TEST(AgreedConfig, EveryFieldOfADrafterIsCompared) {
  EngineConfig one;
  one.model = bundled_model_folder();
  one.speculative = {ngram_config(3)};
  for (const DrafterField& field : drafter_fields()) {
    EngineConfig other = one;
    test::change_field(field, &other.speculative[0]);
    const bool is_told = difference(one, other).find("--speculative-config") != std::string::npos;
    EXPECT_EQ(is_told, field.member.index() != 0) << field.name;
  }
  EngineConfig other = one;
  other.speculative[0].prompt_lookup_max = 7;
  EXPECT_NE(difference(one, other), "");
}

}  // namespace
}  // namespace foretoken
