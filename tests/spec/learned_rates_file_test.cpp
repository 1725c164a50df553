#include "spec/learned_rates_file.h"

#include <gtest/gtest.h>

#include <string>

namespace foretoken {
namespace {

LearnedRates learned_rates() {
  LearnedRates learned;
  learned.learned_on = "a model on a machine";
  LearnedDrafter drafter{
      .name = "eagle3", .max_draft_tokens = 3, .prior = {}, .policy = {}, .in_lists = {}};
  drafter.prior = {.since_draft = 2, .num_rated = 90, .rates = {60000, 50000, 65535}};
  BatchRates::State state = drafter.policy.rates.state();
  state.rates[0] = 61234;
  state.num_rated[2] = 60;
  state.share = 40000;
  drafter.policy = {
      .rates = BatchRates(state), .num_seen = 32, .num_ever = 8, .num_draft_tokens = 3};
  drafter.in_lists.num_ever = 7;
  learned.drafters = {drafter, drafter};
  learned.drafters[1].name = "ngram";
  learned.drafters[1].policy = {};
  learned.step_times = "0123456789abcdef";
  learned.steps = {{0, 0, 70000, 30000000}, {27, kMaxDraftTokens, 60000, 1}};
  return learned;
}

TEST(LearnedRatesFile, JsonComesBackAsItWas) {
  const std::string json = learned_rates_to_json(learned_rates());
  const auto read = parse_learned_rates(json, "file");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(learned_rates_to_json(read.value()), json);
  EXPECT_EQ(read.value().learned_on, "a model on a machine");
  const LearnedDrafter& drafter = read.value().drafters[0];
  EXPECT_EQ(drafter.prior.rates[1], 50000);
  EXPECT_EQ(drafter.prior.rates[3], spec::kFirstRate) << "not in the file";
  EXPECT_EQ(drafter.policy.rates.state(), learned_rates().drafters[0].policy.rates.state());
  EXPECT_EQ(drafter.policy.num_draft_tokens, 3);
  EXPECT_EQ(drafter.in_lists.num_ever, 7);
  EXPECT_EQ(read.value().step_times, "0123456789abcdef");
  EXPECT_EQ(read.value().steps, learned_rates().steps);
}

std::string with(const std::string& part, const std::string& instead) {
  std::string json = learned_rates_to_json(learned_rates());
  const size_t at = json.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return json.replace(at, part.size(), instead);
}

TEST(LearnedRatesFile, BadOnesAreRefusedInOneLine) {
  const auto expect_refused = [](const std::string& json, const std::string& part) {
    const auto read = parse_learned_rates(json, "the file");
    ASSERT_FALSE(read.ok()) << json;
    const std::string& message = read.status().message();
    EXPECT_EQ(message.rfind("the file", 0), 0u) << message;
    EXPECT_NE(message.find(part), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  };
  expect_refused("", "");
  expect_refused("[]", "");
  expect_refused("{}", "'format'");
  expect_refused(with("\"format\": 3", "\"format\": 2"), "'format'");
  expect_refused(with("\"a model on a machine\"", "3"), "'learned_on'");
  expect_refused(with("\"eagle3\"", "5"), "'name'");
  expect_refused(with("\"max_draft_tokens\": 3", "\"max_draft_tokens\": 4"), "'rates'");
  expect_refused(with("\"max_draft_tokens\": 3", "\"max_draft_tokens\": 100000"),
                 "'max_draft_tokens'");
  expect_refused(with("60000", "65536"), "'rates'");
  expect_refused(with("60000", "-1"), "'rates'");
  expect_refused(with("60000", "0.5"), "'rates'");
  expect_refused(with("61234", "65536"), "'rates'");
  expect_refused(with("\"num_rated\": 90", "\"num_rated\": 18446744073709551615"), "'num_rated'");
  expect_refused(with("\"num_draft_tokens\": 3", "\"num_draft_tokens\": 4"), "'num_draft_tokens'");
  expect_refused(with("\"share\": 40000", "\"chare\": 40000"), "'share'");
  expect_refused(with("\"policy\": {", "\"policies\": {"), "'policy'");
  expect_refused(with("\"drafters\": [", "\"drafters\": [1, 2, 3, "), "'drafters'");
  expect_refused(with("\"step_times\": ", "\"step_table\": "), "'step_times'");
  expect_refused(with("\"steps\": [", "\"steps\": [1, "), "'steps'");
  expect_refused(with("\"steps\": [", "\"steps\": [[0, 0, 65536], "), "'steps'");
  expect_refused(with("70000", "8191"), "'steps'");
  expect_refused(with("30000000", "0"), "'steps'");
  expect_refused(with("30000000", "0.5"), "'steps'");
}

}  // namespace
}  // namespace foretoken
