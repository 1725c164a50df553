#include "serve/openapi/openapi_rules.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr unsigned kOpenAiRules = kChatBody | kCompletionBody;
constexpr unsigned kChatRules = kChatBody | kTokenizeBody;

struct Rule {
  unsigned bodies;
  const char* schema;
};

// Generators (schemathesis among them) multiply the branches out and give up beyond 32, so a body
// has at most four rules; what else fields ask of each other stands in their descriptions.
constexpr Rule kRules[] = {
    {kOpenAiRules | kTokenizeBody, R"({"anyOf":[
        {"properties":{"stream_options":{"anyOf":[{"type":"null"},{"type":"object","maxProperties":0}]}}},
        {"required":["stream"],"properties":{"stream":{"const":true}}}]})"},
    {kOpenAiRules | kLlamaBody, R"({"anyOf":[{"properties":{"n":{"enum":[1,null]}}},
        {"properties":{"temperature":{"anyOf":[{"type":"null"},
            {"type":"number","exclusiveMinimum":0}]}}}]})"},
    {kChatRules, R"({"anyOf":[{"properties":{"top_logprobs":{"enum":[0,null]}}},
        {"required":["logprobs"],"properties":{"logprobs":{"const":true}}}]})"},
    {kCompletionBody | kLlamaBody, R"({"anyOf":[{"properties":{"response_format":{"type":"null"}}},
        {"properties":{"structured_outputs":{"type":"null"}}}]})"},
    {kChatRules, R"({"anyOf":[{"properties":{"tool_choice":{"enum":["none",null]}}},
        {"required":["tools"],"properties":{"tools":{"type":"array","minItems":1}}}]})"},
    {kResponsesBody,
     R"({"anyOf":[{"properties":{"tool_choice":{"enum":["none","auto","required",null]}}},
        {"required":["tools"],"properties":{"tools":{"type":"array","minItems":1}}}]})"},
    {kResponsesBody, R"({"anyOf":[{"properties":{"background":{"enum":[false,null]}}},
        {"properties":{"store":{"enum":[true,null]}}}]})"},
    {kMessagesBody | kCountBody, R"({"anyOf":[
        {"properties":{"structured_outputs":{"type":"null"}}},
        {"properties":{"tool_choice":{"anyOf":[{"type":"null"},
            {"type":"object","properties":{"type":{"enum":["auto","none"]}}}]}}}]})"},
};

// Of servers that do not look for tool calls, where a choice must force them.
constexpr Rule kUnparsedTools[] = {
    {kChatBody, R"({"anyOf":[
        {"properties":{"tools":{"anyOf":[{"type":"null"},{"type":"array","maxItems":0}]}}},
        {"required":["tool_choice"],
         "properties":{"tool_choice":{"anyOf":[{"enum":["none","required"]},{"type":"object"}]}}}]})"},
    {kResponsesBody, R"({"anyOf":[
        {"properties":{"tools":{"anyOf":[{"type":"null"},{"type":"array","maxItems":0}]}}},
        {"required":["tool_choice"],
         "properties":{"tool_choice":{"anyOf":[{"enum":["none","required"]},{"type":"object"}]}}}]})"},
    {kMessagesBody, R"({"anyOf":[
        {"properties":{"tools":{"anyOf":[{"type":"null"},{"type":"array","maxItems":0}]}}},
        {"required":["tool_choice"],"properties":{"tool_choice":{"type":"object",
            "properties":{"type":{"enum":["none","any","tool"]}}}}}]})"},
};

}  // namespace

json openapi_rules(ApiBody body, const OpenApiFacts& facts) {
  json rules = json::array();
  for (const Rule& rule : kRules) {
    if ((rule.bodies & body) != 0) rules.push_back(json::parse(rule.schema));
  }
  for (const Rule& rule : kUnparsedTools) {
    if (facts.finds_tool_calls || (rule.bodies & body) == 0) continue;
    rules.push_back(json::parse(rule.schema));
  }
  return rules;
}

}  // namespace foretoken
