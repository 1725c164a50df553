#include "serve/fields/sampling_schema.h"

#include <gtest/gtest.h>

#include "config/sampling_fields.h"

namespace foretoken {
namespace {

std::string schema_text(const char* name) {
  return sampling_schema(*find_sampling_field(name)).dump();
}

TEST(SamplingSchema, NumbersHaveTheirRange) {
  EXPECT_EQ(schema_text("n"), R"({"type":"integer","minimum":1,"maximum":128})");
  EXPECT_EQ(schema_text("top_p"), R"({"type":"number","exclusiveMinimum":0,"maximum":1})");
  EXPECT_EQ(schema_text("repetition_penalty"),
            R"({"type":"number","minimum":1e-06,"maximum":1000000})");
  EXPECT_EQ(clamped_schema(*find_sampling_field("min_p")).dump(),
            R"({"type":"number","description":"Below 0 as 0, above 1 as 1."})");
}

TEST(SamplingSchema, OtherTypesHaveTheirForm) {
  EXPECT_EQ(schema_text("ignore_eos"), R"({"type":"boolean"})");
  EXPECT_NE(schema_text("detokenize").find("Stop strings need it true."), std::string::npos);
  EXPECT_NE(schema_text("logit_bias").find("Cut to [-100, 100]."), std::string::npos);
  EXPECT_NE(schema_text("max_tokens").find("As many as fit."), std::string::npos);
  EXPECT_NE(schema_text("allowed_token_ids").find("minItems"), std::string::npos);
}

}  // namespace
}  // namespace foretoken
