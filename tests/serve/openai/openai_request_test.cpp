#include "serve/openai/openai_request.h"

#include <gtest/gtest.h>

#include "support/quiet_engine.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

OpenAiDefaults defaults() {
  OpenAiDefaults values;
  values.max_model_len = 100;
  values.model_names = {"given", "folder"};
  return values;
}

Result<OpenAiRequest> parse(OpenAiKind kind, const char* text) {
  return parse_openai_request(kind, json::parse(text), defaults());
}

// Of a server that passes nothing over.
std::string error(OpenAiKind kind, const char* text) {
  OpenAiDefaults strict = defaults();
  strict.strict_fields = true;
  const Result<OpenAiRequest> request = parse_openai_request(kind, json::parse(text), strict);
  return request.ok() ? "" : request.status().message();
}

TEST(OpenAiRequest, ChatFields) {
  const Result<OpenAiRequest> parsed = parse(OpenAiKind::kChat, R"({
    "model": "folder", "messages": [{"role": "user", "content": "Hi"}], "max_completion_tokens": 9,
    "logprobs": true, "top_logprobs": 3, "n": 2, "seed": 4, "tools": [{"type": "function", "function": {"name": "f"}}],
    "chat_template_kwargs": {"enable_thinking": false}, "continue_final_message": true,
    "user": "me", "priority": 2, "response_format": {"type": "text"}, "stream": true,
    "stream_options": {"include_usage": true}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const OpenAiRequest& request = parsed.value();
  ASSERT_EQ(request.requests.size(), 1u);
  const Request& only = request.requests[0];
  EXPECT_EQ(only.sampling.max_tokens, 9);
  EXPECT_EQ(only.sampling.logprobs, 3);
  EXPECT_EQ(only.sampling.n, 2);
  EXPECT_EQ(only.sampling.seed, 4u);
  EXPECT_EQ(only.priority, 2);
  EXPECT_FALSE(only.add_special_tokens);
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_EQ(json::parse(request.messages_json)[0]["content"], "Hi");
  const json arguments = json::parse(request.arguments_json);
  EXPECT_EQ(arguments["enable_thinking"], false);
  EXPECT_EQ(arguments["continue_final_message"], true);
  EXPECT_EQ(arguments["tools"].size(), 1u);
}

TEST(OpenAiRequest, ChatWithoutLimitMayFillTheContext) {
  const auto parsed =
      parse(OpenAiKind::kChat, R"({"messages": [{"role": "user", "content": ""}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed.value().requests[0].sampling.max_tokens, 100);
  EXPECT_TRUE(parsed.value().arguments_json.empty());
}

TEST(OpenAiRequest, TheModelsDefaultsStay) {
  OpenAiDefaults values = defaults();
  values.max_new_tokens = 33;
  values.sampling.temperature = 0.5f;
  const auto parsed = parse_openai_request(
      OpenAiKind::kChat, json::parse(R"({"messages": [{"role": "user", "content": "x"}]})"),
      values);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed.value().requests[0].sampling.max_tokens, 33);
  EXPECT_EQ(parsed.value().requests[0].sampling.temperature, 0.5f);
  EXPECT_TRUE(parsed.value().warnings.empty());
}

TEST(OpenAiRequest, TheModelsLimitHoldsForThoseWhoAskForMore) {
  OpenAiDefaults values = defaults();
  values.max_new_tokens = 33;
  const auto length = [&](OpenAiKind kind, const char* text, size_t num_warnings) {
    const auto parsed = parse_openai_request(kind, json::parse(text), values);
    EXPECT_TRUE(parsed.ok()) << parsed.status().message();
    EXPECT_EQ(parsed.value().warnings.size(), num_warnings) << text;
    return parsed.value().requests.back().sampling.max_tokens;
  };
  EXPECT_EQ(length(OpenAiKind::kCompletion, R"({"prompt": ["x", "y"], "max_tokens": 40})", 1), 33);
  EXPECT_EQ(length(OpenAiKind::kCompletion, R"({"prompt": "x", "max_tokens": 5})", 0), 5);
  EXPECT_EQ(length(OpenAiKind::kCompletion, R"({"prompt": "x"})", 0), 16);
  values.max_new_tokens = 7;
  EXPECT_EQ(length(OpenAiKind::kCompletion, R"({"prompt": "x"})", 0), 7);
  // Who says the number that would hold anyway has asked for it; who says "all that fits" has not.
  EXPECT_EQ(length(OpenAiKind::kCompletion, R"({"prompt": "x", "max_tokens": 16})", 1), 7);
  EXPECT_EQ(length(OpenAiKind::kCompletion, R"({"prompt": "x", "n_predict": -1})", 0), 7);
}

TEST(OpenAiRequest, ToolChoiceNoneHidesTheTools) {
  const auto parsed =
      parse(OpenAiKind::kChat,
            R"({"messages": [{"role": "user", "content": "x"}], "tool_choice": "none",
          "tools": [{"type": "function", "function": {"name": "f"}}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_TRUE(parsed.value().arguments_json.empty());
}

TEST(OpenAiRequest, ToolsNeedAParserWhereNothingForcesTheirForm) {
  OpenAiDefaults strict = defaults();
  strict.refuse_unparsed_tools = true;
  json body = json::parse(R"({"messages": [{"role": "user", "content": "x"}],
      "tools": [{"type": "function", "function": {"name": "f"}}]})");
  const auto status_of = [&] {
    return parse_openai_request(OpenAiKind::kChat, body, strict).status();
  };
  EXPECT_NE(status_of().message().find("--no-enable-auto-tool-choice"), std::string::npos);
  body["tool_choice"] = "required";
  EXPECT_TRUE(status_of().ok()) << status_of().message();
  body["tool_choice"] = "auto";
  strict.tool_parser = "hermes";
  EXPECT_TRUE(status_of().ok()) << status_of().message();
}

TEST(OpenAiRequest, FieldsOfAServersAnswers) {
  OpenAiDefaults given = defaults();
  given.force_include_usage = true;
  given.timeout_seconds = 9;
  const auto parsed = parse_openai_request(
      OpenAiKind::kChat, json::parse(R"({"messages": [{"role": "user", "content": "x"}],
      "stream": true, "stream_interval": 4, "queue_timeout_seconds": 0.5, "request_id": "r",
      "return_token_origins": true, "reasoning_effort": "none", "modalities": ["text"],
      "session_id": "s"})"),
      given);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const OpenAiRequest& request = parsed.value();
  EXPECT_TRUE(request.include_usage && request.continuous_usage && request.return_token_origins);
  EXPECT_EQ(request.stream_interval, 4);
  EXPECT_EQ(request.request_id, "r");
  EXPECT_EQ(request.requests[0].queue_timeout_seconds, 0.5);
  EXPECT_EQ(request.requests[0].timeout_seconds, 9);
  EXPECT_EQ(json::parse(request.arguments_json)["enable_thinking"], false);
}

TEST(OpenAiRequest, VariablesOfTemplatesThatTheServerNames) {
  OpenAiDefaults given = defaults();
  given.template_arguments = R"({"enable_thinking": false, "a": 1})";
  const auto arguments = [&](const char* more) {
    const std::string body =
        std::string(R"({"messages": [{"role": "user", "content": "x"}])") + more + "}";
    return json::parse(
        parse_openai_request(OpenAiKind::kChat, json::parse(body), given).value().arguments_json);
  };
  EXPECT_EQ(arguments(""), json({{"enable_thinking", false}, {"a", 1}}));
  EXPECT_EQ(arguments(R"(, "chat_template_kwargs": {"a": 2})")["a"], 2);
  EXPECT_EQ(arguments(R"(, "reasoning_effort": "high")")["enable_thinking"], true);
}

TEST(OpenAiRequest, PromptsOfACompletion) {
  const auto num = [](const char* text) {
    const auto parsed = parse(OpenAiKind::kCompletion, text);
    return parsed.ok() ? parsed.value().requests.size() : 0;
  };
  EXPECT_EQ(num(R"({"prompt": "a"})"), 1u);
  EXPECT_EQ(num(R"({"prompt": ["a", "b"]})"), 2u);
  EXPECT_EQ(num(R"({"prompt": [1, 2, 3]})"), 1u);
  EXPECT_EQ(num(R"({"prompt": [[1, 2], [3]]})"), 2u);
  const auto ids = parse(OpenAiKind::kCompletion, R"({"prompt": [[1, 2], [3]], "logprobs": 1})");
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids.value().requests[1].prompt_token_ids, std::vector<int32_t>{3});
  EXPECT_EQ(ids.value().requests[1].sampling.logprobs, 1);
  EXPECT_EQ(ids.value().requests[1].sampling.max_tokens, 16);
}

TEST(OpenAiRequest, EchoWithoutTokensWantsThePromptOnly) {
  const auto parsed = parse(OpenAiKind::kCompletion,
                            R"({"prompt": "a", "echo": true, "max_tokens": 0, "logprobs": 2})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_TRUE(parsed.value().prompt_only);
  EXPECT_EQ(parsed.value().requests[0].sampling.prompt_logprobs, 2);
}

TEST(OpenAiRequest, Embeddings) {
  const auto parsed =
      parse(OpenAiKind::kEmbedding, R"({"input": ["a", "b"], "encoding_format": "base64"})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_TRUE(parsed.value().vectors.base64);
  EXPECT_EQ(parsed.value().requests[1].pooling, Pooling::kLast);
  const auto chat =
      parse(OpenAiKind::kEmbedding, R"({"messages": [{"role": "user", "content": "a"}]})");
  ASSERT_TRUE(chat.ok()) << chat.status().message();
  EXPECT_FALSE(chat.value().messages_json.empty());
  EXPECT_NE(
      error(OpenAiKind::kEmbedding, R"({"input": "a", "encoding_format": "hex"})").find("hex"),
      std::string::npos);
  EXPECT_NE(error(OpenAiKind::kEmbedding, R"({"input": "a", "dimensions": 0})").find("dimensions"),
            std::string::npos);
}

TEST(OpenAiRequest, DefaultsOfWhatIsNotThereAreHarmless) {
  EXPECT_EQ(error(OpenAiKind::kCompletion,
                  R"({"prompt": "a", "best_of": 1, "length_penalty": 1.0, "suffix": "",
                      "use_beam_search": false})"),
            "");
  EXPECT_NE(error(OpenAiKind::kCompletion, R"({"prompt": "a", "suffix": "b"})").find("'suffix'"),
            std::string::npos);
}

TEST(OpenAiRequest, WhatIsNotFollowedIsAWarning) {
  const Result<OpenAiRequest> parsed = parse(OpenAiKind::kChat, R"({
    "messages": [{"role": "user", "content": "Hi"}], "best_of": 3, "echo": true, "temprature": 1,
    "stream": true, "stream_options": {"usage": true}, "audio": {"voice": "a"}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_FALSE(parsed.value().echo);
  EXPECT_EQ(parsed.value().warnings,
            (std::vector<std::string>{
                "'stream_options': 'usage' is unknown and was passed over",
                "'echo' has no effect in a chat whose last message is not the assistant's",
                "'best_of' has no effect here and was passed over",
                "'audio' has no effect here and was passed over",
                "'temprature' is unknown; did you mean 'temperature'?"}));
}

TEST(OpenAiRequest, WhatIsWrongIsNamed) {
  constexpr const char* kMessages = R"({"messages": [{"role": "user", "content": "Hi"}], )";
  for (const auto& [fields, part] :
       {std::pair{R"("documents": [3]})", "'documents' must be an array of objects"},
        std::pair{R"("timeout_seconds": 2e9})", "timeout_seconds is 2e+09"},
        std::pair{R"("max_tokens": 0, "max_completion_tokens": 1})", "'max_tokens' must be"},
        std::pair{R"("tools": [{"function": {"name": "f", "description": 3}}]})",
                  "'description' must be a string"}}) {
    const std::string found = error(OpenAiKind::kChat, (std::string(kMessages) + fields).c_str());
    EXPECT_NE(found.find(part), std::string::npos) << found;
  }
  const std::vector<std::pair<const char*, const char*>> bad = {
      {R"({"prompt": "a", "temprature": 1})", "did you mean 'temperature'?"},
      {R"({"prompt": "a", "top_p": 7})", "top_p is 7"},
      {R"({"prompt": "a", "best_of": 3})", "'best_of' has no effect here"},
      {R"({"prompt": "a", "response_format": {"type": "xml"}})", "'response_format'"},
      {R"({"prompt": 5})", "'prompt' must be"},
      {R"({"prompt": []})", "empty"},
      {R"({"prompt": ["a", {}]})", "'prompt' must be"},
      {R"({})", "'prompt' is missing"},
      {R"({"prompt": "a", "model": "foldr"})",
       "`foldr` does not exist; this server has 'given', 'folder'; did you mean 'folder'?"},
      {R"({"prompt": "a", "stream_options": {"include_usage": true}})", "'stream_options'"}};
  for (const auto& [text, part] : bad) {
    EXPECT_NE(error(OpenAiKind::kCompletion, text).find(part), std::string::npos)
        << text << ": " << error(OpenAiKind::kCompletion, text);
  }
  EXPECT_NE(error(OpenAiKind::kChat, R"({"messages": []})").find("'messages'"), std::string::npos);
  EXPECT_NE(error(OpenAiKind::kChat,
                  R"({"messages": [{"role": "user", "content": "x"}], "top_logprobs": 2})")
                .find("'top_logprobs' needs"),
            std::string::npos);
}

TEST(OpenAiRequest, ManyPromptsWithLargeFieldsAreRefused) {
  json body = {{"prompt", json::array()},
               {"structured_outputs", {{"regex", std::string(size_t{1} << 20, 'x')}}}};
  for (int i = 0; i < 1000; ++i) body["prompt"].push_back("a");
  const auto parsed = parse_openai_request(OpenAiKind::kCompletion, body, OpenAiDefaults());
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.status().message().find("'prompt' has 1000 entries"), std::string::npos);
}

// Prompts are the first letters of contents, and a letter is a token.
class LetterEngine : public test::QuietEngine {
 public:
  explicit LetterEngine(int max_model_len) { info_.max_model_len = max_model_len; }
  Status render_chat(const std::string& messages, const std::string&, std::string* prompt,
                     std::vector<std::string>*) const override {
    for (const json& message : json::parse(messages)) {
      *prompt += message["content"].get<std::string>();
    }
    return {};
  }
  Status encode(const std::string& text, bool, std::vector<int32_t>* ids) const override {
    ids->assign(text.begin(), text.end());
    return {};
  }
};

// What is left of a chat of an instruction, a call with two results, and others.
std::string left_of_chat(int max_model_len, bool drops_oldest, size_t* num_warnings) {
  OpenAiRequest request;
  request.requests.emplace_back().sampling.max_tokens = 1;
  request.drops_oldest = drops_oldest;
  const std::pair<const char*, const char*> messages[] = {
      {"system", "S"}, {"user", "aaa"}, {"assistant", "bb"}, {"tool", "c"},
      {"tool", "d"},   {"user", "e"},   {"assistant", "f"},  {"user", "g"}};
  json all = json::array();
  for (const auto& [role, content] : messages)
    all.push_back({{"role", role}, {"content", content}});
  request.messages_json = all.dump();
  EXPECT_TRUE(render_history(LetterEngine(max_model_len), &request).ok());
  *num_warnings = request.warnings.size();
  return request.requests.front().prompt;
}

TEST(OpenAiRequest, TheOldestMessagesAreLeftOutWhereNotAllFit) {
  size_t warned = 0;
  for (const auto& [context, wanted] :
       {std::pair{13, "Saaabbcdefg"}, std::pair{12, "Saaabbcdefg"}, std::pair{11, "Sbbcdefg"},
        std::pair{9, "Sbbcdefg"}, std::pair{8, "Sefg"}, std::pair{5, "Sefg"}, std::pair{4, "Sfg"},
        std::pair{3, "Sg"}}) {
    EXPECT_EQ(wanted, left_of_chat(context, true, &warned)) << context;
    EXPECT_EQ(context < 12 ? 1u : 0u, warned);
  }
  // What does not fit in any case is told to be too long, as it was sent.
  EXPECT_EQ("Saaabbcdefg", left_of_chat(2, true, &warned));
  EXPECT_EQ("Saaabbcdefg", left_of_chat(5, false, &warned));
  EXPECT_EQ(0u, warned);
}

TEST(OpenAiRequest, ANameThatPeftGivesAdaptersIsNoPlaceholderBesideThem) {
  OpenAiDefaults values = defaults();
  std::vector<std::string> adapters;
  values.adapters = [&adapters] { return adapters; };
  EXPECT_TRUE(check_model_name("default", values).ok());
  adapters = {"sql"};
  EXPECT_EQ(check_model_name("default", values).code(), StatusCode::kNotFound);
  EXPECT_TRUE(check_model_name("local-model", values).ok());
  adapters = {"default"};
  EXPECT_TRUE(check_model_name("default", values).ok());
  adapters.clear();
  values.adapters_come = true;
  EXPECT_EQ(check_model_name("default", values).code(), StatusCode::kNotFound);
  values.model_names.emplace_back("default");
  EXPECT_TRUE(check_model_name("default", values).ok());
}

}  // namespace
}  // namespace foretoken
