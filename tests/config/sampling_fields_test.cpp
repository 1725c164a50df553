#include "config/sampling_fields.h"
#include "support/folders.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <type_traits>

namespace foretoken {
namespace {

// The members of the struct as include/foretoken/request.h has them.
std::vector<std::string> sampling_members() {
  std::ifstream file(std::string(foretoken::kSourceFolder) + "/include/foretoken/request.h");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t begin = text.find("struct SamplingParams {");
  const std::string body = text.substr(begin, text.find("\n};", begin) - begin);
  const std::regex member(R"(\n  [\w:<>*&, ]+? (\w+)(?: = [^;\n]*)?;)");
  std::vector<std::string> names;
  for (std::sregex_iterator at(body.begin(), body.end(), member), end; at != end; ++at) {
    names.push_back((*at)[1]);
  }
  return names;
}

TEST(SamplingFields, EveryMemberHasARow) {
  const std::set<std::string> others = {"logits_processors", "structured_outputs",
                                        "processed_logprobs"};
  size_t count = 0;
  for (const std::string& member : sampling_members()) {
    if (others.contains(member)) continue;
    ++count;
    EXPECT_NE(find_sampling_field(member), nullptr) << member << ": give it a row of the table";
  }
  EXPECT_EQ(count, sampling_fields().size());
}

TEST(SamplingFields, RowsHaveOneNameAndNumbersARange) {
  std::set<std::string> names;
  for (const SamplingField& field : sampling_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    if (field.llama_name != nullptr) {
      EXPECT_TRUE(names.insert(field.llama_name).second) << field.llama_name;
    }
    visit_sampling_member(field, SamplingParams(), [&](const auto& value) {
      using T = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<T, int> || std::is_same_v<T, float>) {
        EXPECT_TRUE(field.range.holds(value)) << field.name << ": its default is not in its range";
      } else {
        EXPECT_EQ(field.llama_name, nullptr) << field.name << ": only numbers have other names";
        EXPECT_EQ(field.model_name, nullptr) << field.name << ": only numbers are read from models";
        EXPECT_NE(field.llama, LlamaReading::kClamped) << field.name;
      }
    });
  }
}

TEST(SamplingFields, TextsOfFlagsRangesAndValues) {
  EXPECT_EQ(sampling_flag(*find_sampling_field("top_p")), "--top-p");
  EXPECT_EQ(sampling_flag(*find_sampling_field("seed")), "--sampling-seed");
  EXPECT_EQ(range_text(find_sampling_field("top_p")->range), "(0, 1]");
  EXPECT_EQ(range_text(find_sampling_field("repetition_penalty")->range), "[1e-6, 1000000]");
  EXPECT_EQ(range_text(find_sampling_field("max_tokens")->range), "at least 1");
  EXPECT_EQ(range_text(find_sampling_field("stop")->range), "");
  EXPECT_TRUE(shapes_draws(*find_sampling_field("min_p")));
  EXPECT_FALSE(shapes_draws(*find_sampling_field("seed")));
  EXPECT_EQ(find_sampling_field("min_q"), nullptr);
  SamplingParams sampling;
  EXPECT_TRUE(sampling_value(*find_sampling_field("seed"), sampling).is_null());
  sampling.seed = UINT64_MAX;
  EXPECT_EQ(sampling_value(*find_sampling_field("seed"), sampling), UINT64_MAX);
  sampling.logit_bias = {{3, 0.5f}};
  EXPECT_EQ(sampling_value(*find_sampling_field("logit_bias"), sampling).dump(), "[[3,0.5]]");
}

}  // namespace
}  // namespace foretoken
