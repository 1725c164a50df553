#include "serve/openai/embedding_prompt.h"

#include <gtest/gtest.h>

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

OpenAiDefaults with_prompts(std::vector<EmbeddingPrompt> prompts, std::string usual = "") {
  OpenAiDefaults defaults;
  defaults.embedding_prompts = std::move(prompts);
  defaults.embedding_prompt = std::move(usual);
  return defaults;
}

Result<OpenAiRequest> parsed_input(const std::string& body, const OpenAiDefaults& defaults) {
  return parse_openai_request(OpenAiKind::kEmbedding, json::parse(body), defaults);
}

std::string prompt_of(const std::string& body, const OpenAiDefaults& defaults) {
  const Result<OpenAiRequest> request = parsed_input(body, defaults);
  if (!request.ok()) return "error: " + request.status().message();
  return request.value().requests.front().prompt;
}

TEST(EmbeddingPrompt, GoesBeforeTheTexts) {
  const OpenAiDefaults defaults = with_prompts({{"query", "Q: "}, {"Retrieval-document", "D: "}});
  EXPECT_EQ(prompt_of(R"({"input": "a", "prompt_name": "query"})", defaults), "Q: a");
  EXPECT_EQ(prompt_of(R"({"input": "a", "prompt_name": "Query"})", defaults), "Q: a");
  EXPECT_EQ(prompt_of(R"({"input": "a"})", defaults), "a");
  EXPECT_EQ(prompt_of(R"({"input": "a", "prompt_name": "none"})", defaults),
            "error: 'prompt_name': the model has no prompt 'none'; it has 'query', "
            "'Retrieval-document'");
  const auto both = parsed_input(R"({"input": ["a", "b"], "prompt_name": "query"})", defaults);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both.value().requests[1].prompt, "Q: b");
}

TEST(EmbeddingPrompt, IsTheOneOfWhatTheTextsAreFor) {
  const OpenAiDefaults defaults =
      with_prompts({{"query", "Q: "}, {"Retrieval-document", "D: "}, {"Clustering", "C: "}});
  const auto of_type = [&](const std::string& type) {
    return prompt_of(R"({"input": "a", "input_type": ")" + type + "\"}", defaults);
  };
  for (const char* type : {"query", "search_query", "SEARCH_QUERY"}) {
    EXPECT_EQ(of_type(type), "Q: a") << type;
  }
  for (const char* type : {"document", "passage", "search_document"}) {
    EXPECT_EQ(of_type(type), "D: a") << type;
  }
  EXPECT_EQ(of_type("clustering"), "C: a");
  EXPECT_EQ(of_type("classification"), "a");
}

TEST(EmbeddingPrompt, TheUsualOneIsOfRequestsThatNameNone) {
  const OpenAiDefaults defaults = with_prompts({{"query", "Q: "}, {"document", ""}}, "query");
  EXPECT_EQ(prompt_of(R"({"input": "a"})", defaults), "Q: a");
  EXPECT_EQ(prompt_of(R"({"input": "a", "input_type": "document"})", defaults), "a");
  const auto ids = parsed_input(R"({"input": [1, 2]})", defaults);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids.value().requests.front().prompt, "");
  EXPECT_EQ(ids.value().requests.front().prompt_token_ids, (std::vector<int32_t>{1, 2}));
  EXPECT_FALSE(parsed_input(R"({"input": [1, 2], "prompt_name": "query"})", defaults).ok());
}

TEST(EmbeddingPrompt, IsFoundByName) {
  const std::vector<EmbeddingPrompt> prompts = {{"query", "Q: "}, {"Query", "q: "}};
  EXPECT_EQ(find_prompt(prompts, "Query"), &prompts[1]);
  EXPECT_EQ(find_prompt(prompts, "QUERY"), &prompts[0]);
  EXPECT_EQ(find_prompt(prompts, "none"), nullptr);
  EXPECT_EQ(no_such_prompt({}, "none"), "the model has no prompts of its own");
}

TEST(EmbeddingPrompt, IsReadAndPutBeforeTexts) {
  const json body = {{"prompt_name", "query"}};
  JsonFields fields(body, "");
  EXPECT_EQ(read_embedding_prompt(fields, with_prompts({{"query", "Q: "}})), "Q: ");
  std::vector<Request> requests(2);
  requests[0].prompt = "a";
  requests[1].prompt_token_ids = {1};
  put_before_texts(fields, "Q: ", &requests);
  EXPECT_EQ(requests[0].prompt, "Q: a");
  EXPECT_NE(fields.status().message().find("give 'input' as text"), std::string::npos);
}

TEST(EmbeddingPrompt, OfAModelWithoutPromptsIsToldOf) {
  const auto request = parsed_input(R"({"input": "a", "input_type": "query"})", {});
  ASSERT_TRUE(request.ok()) << request.status().message();
  ASSERT_EQ(request.value().warnings.size(), 1u);
  EXPECT_NE(request.value().warnings.front().find("'input_type'"), std::string::npos);
}

TEST(EmbeddingPrompt, FieldsHaveTheNamesOfOtherServicesToo) {
  const OpenAiDefaults strict = [] {
    OpenAiDefaults defaults;
    defaults.strict_fields = true;
    return defaults;
  }();
  const auto nim = parsed_input(R"({"input": "a", "truncate": "START"})", strict);
  ASSERT_TRUE(nim.ok()) << nim.status().message();
  EXPECT_EQ(nim.value().requests[0].truncate_prompt_tokens, -1);
  EXPECT_EQ(nim.value().requests[0].truncation_side, TruncationSide::kLeft);
  const auto none =
      parsed_input(R"({"input": "a", "truncate": "NONE", "truncation": false})", strict);
  ASSERT_TRUE(none.ok()) << none.status().message();
  EXPECT_FALSE(none.value().requests[0].truncate_prompt_tokens);
  const auto voyage =
      parsed_input(R"({"input": "a", "truncation": true, "output_dimension": 8})", strict);
  ASSERT_TRUE(voyage.ok()) << voyage.status().message();
  EXPECT_EQ(voyage.value().dimensions, 8);
  EXPECT_EQ(voyage.value().requests[0].truncation_side, TruncationSide::kRight);
  const auto jina = parsed_input(
      R"({"input": [{"text": "a"}, "b"], "normalized": false, "embedding_type": "base64"})",
      strict);
  ASSERT_TRUE(jina.ok()) << jina.status().message();
  EXPECT_EQ(jina.value().requests[0].prompt + jina.value().requests[1].prompt, "ab");
  EXPECT_FALSE(jina.value().requests[0].normalize);
  EXPECT_TRUE(jina.value().vectors.base64);
  EXPECT_FALSE(parsed_input(R"({"input": "a", "truncate": "MIDDLE"})", strict).ok());
  EXPECT_FALSE(parsed_input(R"({"input": [{"image": "a"}]})", strict).ok());
}

}  // namespace
}  // namespace foretoken
