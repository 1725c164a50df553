#include "spec/cost_table_file.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/scratch_folder.h"
#include "support/time_curve.h"

namespace foretoken {
namespace {

using test::curve;

CostTable written_times() {
  CostTable times;
  times.target = curve({{1, 1000}, {8, 1700}, {64, 12900}});
  times.drafters = {{"eagle3", false, curve({{1, 100}, {64, 730}}), curve({{1, 80}, {16, 230}})},
                    {"ngram", true, {}, curve({{1, 7}})}};
  times.verify = {
      {.drafts = 0, .idle = curve({{1, 1000}, {8, 1600}}), .full = curve({{1, 1000}, {8, 1600}})},
      {.drafts = 3, .idle = curve({{1, 1100}, {8, 2600}}), .full = curve({{1, 1600}, {8, 4000}})}};
  times.context = {{0, 40000}, {4, 60000}};
  times.known_tokens = 256;
  return times;
}

CostTable with_short_contexts() {
  CostTable times = written_times();
  times.short_tokens = 64;
  times.short_steps.resize(1);
  times.short_steps[0].shares.add(1, 30000);
  times.short_steps[0].shares.add(16, 40000);
  times.drafters[0].short_catch_up.add(1, 60000);
  times.drafters[1].short_pass.add(1, 65536);
  return times;
}

TEST(CostTableFile, JsonComesBackAsItWas) {
  for (const CostTable& times : {written_times(), with_short_contexts()}) {
    const auto read = parse_cost_table(cost_table_to_json(times), "table");
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read.value(), times);
    EXPECT_EQ(cost_table_to_json(read.value()), cost_table_to_json(times));
  }
  EXPECT_EQ(cost_table_to_json(written_times()).find("short"), std::string::npos)
      << "earlier builds read it";
}

TEST(CostTableFile, BadShortContextsAreRefusedInOneLine) {
  const std::string json = cost_table_to_json(with_short_contexts());
  const std::string begin = json.substr(0, json.find("\"short\""));
  for (const char* text :
       {"3", "{}", R"({"known_tokens": 256, "steps": [], "drafters": [0, 0]})",
        R"({"known_tokens": 64, "steps": [], "drafters": []})",
        R"({"known_tokens": 64, "steps": [{"drafts": 65, "shares": []}], "drafters": [0, 0]})",
        R"({"known_tokens": 64, "steps": [{"drafts": 0, "shares": [[1, 0]]}], "drafters": [0, 0]})",
        R"({"known_tokens": 64, "steps": [], "drafters": [{"catch_up": 1, "pass": []}, {}]})"}) {
    const auto read = parse_cost_table(begin + "\"short\": " + text + "}", "table");
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().message().rfind("table, short", 0), 0u) << read.status().message();
  }
}

void expect_refused(const std::string& json, const std::string& part) {
  const auto read = parse_cost_table(json, "--step-time-table x.json");
  ASSERT_FALSE(read.ok()) << json;
  EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument);
  const std::string& message = read.status().message();
  EXPECT_EQ(message.rfind("--step-time-table x.json", 0), 0u) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(CostTableFile, BadTablesAreRefusedInOneLine) {
  expect_refused("{", "");
  expect_refused("[]", "");
  expect_refused("{}", "lacks 'format'");
  expect_refused(R"({"format": 1, "target": [[1, 5]], "drafters": []})", "format 1");
  const auto table = [](const std::string& target, const std::string& verify,
                        const std::string& context, const std::string& drafters) {
    return R"({"format": 3, "target": )" + target + R"(, "verify": )" + verify +
           R"(, "context": {"known_tokens": 0, "picoseconds": )" + context + R"(}, "drafters": )" +
           drafters + "}";
  };
  expect_refused(table("[]", "[]", "[]", "[]"), "target: is empty");
  expect_refused(table("5", "[]", "[]", "[]"), "target: is not a list");
  expect_refused(table("[[1, 5]]", "[]", "[]", R"([], "x": 1)"), "unknown key 'x'");
  for (const char* pair : {"[1]", "[1, 2.5]", "[0, 5]", "[1, -5]", "[1, 99999999999999]", "7",
                           "[1, 5], [1, 6]", "[2, 5], [1, 6]", "[1, 5], [2, 4]"}) {
    expect_refused(table(std::string("[") + pair + "]", "[]", "[]", "[]"), "target: '");
  }
  for (const char* pairs : {"3", "[3]", "[[0]]", "[[0, -1]]", "[[0, 1.5]]", "[[65, 1]]",
                            "[[0, 1], [0, 2]]", "[[0, 2000000000]]"}) {
    expect_refused(table("[[1, 5]]", "[]", pairs, "[]"), "growing drafts");
  }
  const auto refuse_verify = [&](const std::string& verify, const std::string& part) {
    expect_refused(table("[[1, 5]]", verify, "[]", "[]"), part);
  };
  const auto refuse_drafters = [&](const std::string& drafters, const std::string& part) {
    expect_refused(table("[[1, 5]]", "[]", "[]", drafters), part);
  };
  refuse_verify("3", "'verify' must be a list");
  refuse_verify("[{}]", "verify 0 lacks 'drafts'");
  refuse_verify(R"([{"drafts": 1, "idle": [[1, 5]], "full": [[1, 5]]}])", "'drafts' must be 0");
  refuse_verify(R"([{"drafts": 0, "idle": [], "full": [[1, 5]]}])", "an empty curve");
  refuse_verify(R"([{"drafts": 0, "idle": [[1, 5]], "full": [[1, 5], [1, 6]]}])", "0, full: '");
  refuse_drafters("[1]", "drafter 0 must be a JSON object");
  refuse_drafters("[{}]", "drafter 0 lacks 'name'");
  refuse_drafters(R"([{"name": 1, "one_pass": true, "catch_up": [], "pass": []}])", "'name'");
  refuse_drafters(R"([{"name": "a", "one_pass": 1, "catch_up": [], "pass": []}])", "'one_pass'");
  refuse_drafters(R"([{"name": "a", "one_pass": true, "catch_up": [[0, 0]], "pass": []}])",
                  "drafter 0, catch_up");
  refuse_drafters("[0, 0, 0, 0, 0]", "at most 4");
  CostTable times = written_times();
  times.measured_on = "a device";
  std::string json = cost_table_to_json(times);
  EXPECT_EQ(parse_cost_table(json, "table").value(), times);
  json.replace(json.find("\"a device\""), 10, "3");
  EXPECT_NE(parse_cost_table(json, "table").status().message().find("'measured_on'"),
            std::string::npos);
}

TEST(CostTableFile, FilesAreReadForTheDraftersTheyWereMeasuredWith) {
  const test::ScratchFolder folder;
  const std::string path = folder.file("step_times.json");
  const CostTable times = written_times();
  ASSERT_TRUE(write_cost_table(times, path).ok());
  const std::vector<std::string> names = {"eagle3", "ngram"};
  const auto read = read_cost_table(path, names);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read.value(), times);
  const auto other = read_cost_table(path, std::vector<std::string>{"mtp"});
  EXPECT_EQ(other.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(other.status().message().find("eagle3, ngram"), std::string::npos);
  EXPECT_NE(other.status().message().find("mtp"), std::string::npos);
  EXPECT_EQ(read_cost_table(folder.file("none"), names).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(read_cost_table("/dev/zero", names).ok());
  const Status not_a_file = read_cost_table(folder.path(), names).status();
  EXPECT_NE(not_a_file.message().find("--step-time-table " + folder.path() + " cannot be read"),
            std::string::npos)
      << not_a_file.message();
  EXPECT_FALSE(write_cost_table(times, folder.file("none/x.json")).ok());
}

}  // namespace
}  // namespace foretoken
