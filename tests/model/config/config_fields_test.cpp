#include "model/config/config_fields.h"

#include <gtest/gtest.h>

#include <limits>

namespace foretoken {
namespace {

using Json = nlohmann::json;

const Json kObject = {{"count", 7},      {"real", 2.5},        {"flag", true}, {"list", {1, 2.5}},
                      {"text", "seven"}, {"nothing", nullptr}, {"zero", 0},    {"mixed", {1, "x"}}};

TEST(ConfigFields, ReadsWhatIsThere) {
  const ConfigFields fields(kObject, "file");
  int32_t count = 0;
  double real = 0;
  bool flag = false;
  std::vector<double> list;
  EXPECT_TRUE(fields.need_count("count", &count).ok());
  EXPECT_TRUE(fields.need_positive("real", &real).ok());
  EXPECT_TRUE(fields.read_flag("flag", &flag).ok());
  EXPECT_TRUE(fields.read_positive_list("list", &list).ok());
  EXPECT_EQ(count, 7);
  EXPECT_EQ(real, 2.5);
  EXPECT_TRUE(flag);
  EXPECT_EQ(list, (std::vector<double>{1, 2.5}));
}

TEST(ConfigFields, WholeNumbersMayHaveAPoint) {
  const nlohmann::json object = {{"whole", 4096.0}, {"broken", 4096.5}, {"huge", 1e300}};
  const ConfigFields fields(object, "file");
  int32_t count = 0;
  EXPECT_TRUE(fields.read_count("whole", &count).ok());
  EXPECT_EQ(count, 4096);
  EXPECT_FALSE(fields.read_count("broken", &count).ok());
  EXPECT_FALSE(fields.read_count("huge", &count).ok());
}

TEST(ConfigFields, LeavesWhatIsMissing) {
  const ConfigFields fields(kObject, "file");
  int32_t count = 5;
  EXPECT_TRUE(fields.read_count("nothing", &count).ok());
  EXPECT_TRUE(fields.read_count("other", &count).ok());
  EXPECT_EQ(count, 5);
  EXPECT_EQ(fields.find("nothing"), nullptr);
  EXPECT_EQ(fields.need_count("nothing", &count).message(),
            "file: 'nothing' is missing; give it with --hf-overrides '{\"nothing\": ...}', or use "
            "the configuration that the model was published with");
  double real = 0;
  EXPECT_FALSE(fields.need_positive("other", &real).ok());
}

// Nothing but the target's files takes --hf-overrides.
TEST(ConfigFields, WhatADraftersFileLacksStandsInTheFile) {
  const ConfigFields fields(kObject, "file", false);
  const nlohmann::json inner = nlohmann::json::object();
  EXPECT_EQ(fields.of(inner, "inner").missing("nothing").message(),
            "file (inner): 'nothing' is missing; add it to the file, or use the files that the "
            "drafter was published with");
  EXPECT_EQ(fields.of(inner).where(), "file");
}

TEST(ConfigFields, NamesWhatIsWrong) {
  const ConfigFields fields(kObject, "file");
  int32_t count = 0;
  double real = 0;
  bool flag = false;
  std::vector<double> list;
  for (const Status& status :
       {fields.read_count("text", &count), fields.read_count("real", &count),
        fields.read_count("zero", &count), fields.read_positive("zero", &real),
        fields.read_positive("text", &real), fields.read_flag("count", &flag),
        fields.read_positive_list("count", &list), fields.read_positive_list("mixed", &list)}) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message().rfind("file: '", 0), 0u) << status.message();
    EXPECT_NE(status.message().find("but must be"), std::string::npos);
  }
}

TEST(ConfigFields, NumbersThatJsonHasNoWordsFor) {
  const nlohmann::json object = {{"x", std::numeric_limits<double>::infinity()}};
  double out = 1;
  const Status status = ConfigFields(object, "x.json").read_positive("x", &out);
  EXPECT_EQ(status.message(),
            "x.json: 'x' is Infinity, but must be a positive number; correct the file");
}

TEST(TokenIds, OfANumberOrAList) {
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(read_token_ids(Json(2.0)), Ids{2});
  EXPECT_EQ(read_token_ids(Json::parse("[3, null, -1, 4294967296]")), (Ids{3, -1, -1}));
  EXPECT_EQ(read_token_ids(Json::array()), Ids());
  for (const char* other : {"1.5", "\"2\"", "[[2]]", "{}", "true"}) {
    EXPECT_FALSE(read_token_ids(Json::parse(other))) << other;
  }
}

TEST(ConfigFields, Gpt2sNamesBecomeTheCommonOnes) {
  Json object = {{"n_embd", 48}, {"n_head", 3}, {"activation_function", "gelu_new"}};
  Json out = object;
  ASSERT_TRUE(take_gpt2_names(ConfigFields(object, "x.json"), &out).ok());
  EXPECT_EQ(out["hidden_size"], 48);
  EXPECT_EQ(out["num_attention_heads"], 3);
  EXPECT_EQ(out["hidden_act"], "gelu_new");
  EXPECT_EQ(out["intermediate_size"], 192);
  object["n_inner"] = 100;
  ASSERT_TRUE(take_gpt2_names(ConfigFields(object, "x.json"), &out).ok());
  EXPECT_EQ(out["intermediate_size"], 100);
  object.erase("n_embd");
  EXPECT_FALSE(take_gpt2_names(ConfigFields(object, "x.json"), &out).ok());
}

}  // namespace
}  // namespace foretoken
