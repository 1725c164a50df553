#include "serve/fields/beam_fields.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

TEST(BeamFields, BeamsAreAskedForWithAPenaltyOfLength) {
  const json body = {{"use_beam_search", true}, {"length_penalty", 0.5}};
  std::vector<std::string> warnings;
  JsonFields fields(body, "", FieldNotes{&warnings});
  SamplingParams sampling;
  sampling.stop = {"x"};
  sampling.temperature = 0;
  EXPECT_EQ(read_beams(fields, &sampling), 0.5f);
  EXPECT_EQ(sampling.temperature, 1) << "which has no effect, and allows of several at 0";
  EXPECT_TRUE(fields.status().ok()) << fields.status().message();
  EXPECT_EQ(warnings, std::vector<std::string>{"'stop' has no effect on 'use_beam_search'"});
}

TEST(BeamFields, NothingIsSearchedForWhereNobodyAsks) {
  for (const json& body :
       {json::object(), json{{"use_beam_search", false}, {"length_penalty", 2}}}) {
    JsonFields fields(body, "");
    SamplingParams sampling;
    EXPECT_FALSE(read_beams(fields, &sampling).has_value());
    EXPECT_TRUE(fields.status().ok());
    EXPECT_FALSE(fields.first_unread().has_value());
  }
}

}  // namespace
}  // namespace foretoken
