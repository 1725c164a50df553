// Every row of config/sampling_fields.h is read by every API that it names, with its value, and
// stands in the document of that API. A field that one of them forgets fails here.
#include <gtest/gtest.h>

#include <type_traits>

#include "config/sampling_fields.h"
#include "serve/anthropic/messages_request.h"
#include "serve/llamacpp/llama_request.h"
#include "serve/openapi/openapi_fields.h"
#include "serve/responses/responses_request.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Another value than the default, in range.
struct OtherValue {
  const SamplingField& field;

  void operator()(bool& value) const { value = !value; }
  void operator()(int& value) const { ++value; }
  void operator()(float& value) const {
    value += field.range.holds(value + 0.25f) ? 0.25f : -0.25f;
  }
  void operator()(std::optional<int>& value) const { value = 3; }
  void operator()(std::optional<uint64_t>& value) const { value = 5; }
  void operator()(std::vector<std::string>& value) const { value = {"x"}; }
  void operator()(std::vector<int32_t>& value) const { value = {7}; }
  void operator()(std::optional<std::vector<int32_t>>& value) const { value = {7, 8}; }
  void operator()(std::vector<std::pair<int32_t, float>>& value) const { value = {{7, 2.5f}}; }
};

SamplingParams with_other(const SamplingField& field) {
  SamplingParams sampling;
  visit_sampling_member(field, sampling, OtherValue{field});
  return sampling;
}

// As clients write it.
json written(const SamplingField& field, const SamplingParams& sampling) {
  if (sampling.logit_bias.empty()) return sampling_value(field, sampling);
  return {{"7", 2.5}};
}

json smallest_body(ApiBody body) {
  const json messages = json::parse(R"([{"role": "user", "content": "x"}])");
  if (body == kCompletionBody || body == kLlamaBody) return {{"prompt", "x"}};
  if (body == kResponsesBody) return {{"input", "x"}};
  if (body == kMessagesBody) return {{"messages", messages}, {"max_tokens", 16}};
  return {{"messages", messages}};
}

// What the engine is asked for, by a server that passes nothing over.
Result<SamplingParams> sampling_of(ApiBody body, const json& value) {
  OpenAiDefaults defaults;
  defaults.strict_fields = true;
  defaults.max_model_len = 100;
  const auto front = [](const OpenAiRequest& request) { return request.requests.front().sampling; };
  if (body == kMessagesBody || body == kCountBody) {
    FT_ASSIGN_OR_RETURN(const OpenAiRequest request, parse_messages_request(value, defaults));
    return front(request);
  }
  if (body == kResponsesBody) {
    FT_ASSIGN_OR_RETURN(const ResponsesRequest request,
                        parse_responses_request(value, defaults, ResponseStore(1)));
    return front(request.chat);
  }
  if (body == kLlamaBody) {
    FT_ASSIGN_OR_RETURN(const LlamaRequest request, parse_llama_request(value, defaults));
    return front(request.text);
  }
  const OpenAiKind kind = body == kCompletionBody ? OpenAiKind::kCompletion : OpenAiKind::kChat;
  FT_ASSIGN_OR_RETURN(const OpenAiRequest request, parse_openai_request(kind, value, defaults));
  return front(request);
}

void expect_read(ApiBody body, const json& value, const SamplingField& field,
                 const SamplingParams& wanted) {
  const Result<SamplingParams> got = sampling_of(body, value);
  ASSERT_TRUE(got.ok()) << value << ": " << got.status().message();
  EXPECT_EQ(sampling_value(field, got.value()), sampling_value(field, wanted)) << value;
}

class SamplingPlaces : public testing::TestWithParam<ApiBody> {};

TEST_P(SamplingPlaces, EveryRowIsReadAndStandsInTheDocument) {
  const json document = openapi_body(GetParam(), {})["properties"];
  int count = 0;
  for (const SamplingField& field : sampling_fields()) {
    if ((field.bodies & GetParam()) == 0) continue;
    ++count;
    const SamplingParams wanted = with_other(field);
    for (const char* name : {field.name, field.llama_name}) {
      if (name == nullptr) continue;
      json body = smallest_body(GetParam());
      body[name] = written(field, wanted);
      expect_read(GetParam(), body, field, wanted);
      EXPECT_TRUE(document.contains(name)) << name;
    }
  }
  EXPECT_GE(count, 16);
}

TEST_P(SamplingPlaces, OllamasOptionsHaveWhatShapesDraws) {
  for (const SamplingField& field : sampling_fields()) {
    if (field.group != SamplingGroup::kDistribution || GetParam() == kLlamaBody) continue;
    json body = smallest_body(GetParam());
    const SamplingParams wanted = with_other(field);
    for (const char* name : {field.name, field.llama_name}) {
      if (name == nullptr) continue;
      body["options"] = {{name, written(field, wanted)}};
      expect_read(GetParam(), body, field, wanted);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Bodies, SamplingPlaces,
                         testing::Values(kChatBody, kCompletionBody, kMessagesBody, kCountBody,
                                         kResponsesBody, kLlamaBody));

// llama.cpp's answers repeat the settings.
TEST(LlamaSettings, SettingsOfAnswersHaveWhatShapesDraws) {
  for (const SamplingField& field : sampling_fields()) {
    if (!shapes_draws(field)) continue;
    const SamplingParams wanted = with_other(field);
    const json settings = llama_settings(wanted, false);
    const char* name = field.llama_name != nullptr ? field.llama_name : field.name;
    EXPECT_EQ(settings.value(name, json()), sampling_value(field, wanted)) << name;
  }
}

}  // namespace
}  // namespace foretoken
