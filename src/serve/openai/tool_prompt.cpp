#include "serve/openai/tool_prompt.h"

#include "chat/generic_tools.h"
#include "chat/template_formats.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* kAuto = "auto";
constexpr const char* kNone = "none";

json arguments_of(const OpenAiRequest& request) {
  return request.arguments_json.empty() ? json::object() : json::parse(request.arguments_json);
}

void choose_parsers(const ChatTemplateTraits* traits, ChatParserOptions* parser) {
  const ChatFormats found = traits == nullptr ? ChatFormats{} : formats_of_template(traits->source);
  if (parser->tool_parser == kAuto) parser->tool_parser = found.tool_parser;
  if (parser->reasoning_parser == kAuto) parser->reasoning_parser = found.reasoning_parser;
  for (std::string* name : {&parser->tool_parser, &parser->reasoning_parser}) {
    if (*name == kNone) name->clear();
  }
}

}  // namespace

bool sends_tools(const OpenAiRequest& request) { return arguments_of(request).contains("tools"); }

void fit_tools(const ChatTemplateTraits* traits, OpenAiRequest* request) {
  ChatParserOptions& parser = request->parser;
  const bool automatic = parser.tool_parser == kAuto;
  choose_parsers(traits, &parser);
  if (traits == nullptr || !traits->renders || traits->shows_tools) return;
  json arguments = arguments_of(*request);
  const json tools = arguments.value("tools", json());
  const json messages = json::parse(request->messages_json);
  if (tools.is_null() && !holds_calls(messages)) return;
  request->messages_json = with_generic_tools(messages, tools).dump();
  if (tools.is_null()) return;
  if (automatic) parser.tool_parser = "generic";
  arguments.erase("tools");
  request->arguments_json = arguments.empty() ? std::string() : arguments.dump();
  request->warnings.push_back(
      "the model's chat template cannot show 'tools'; they are described in a system message, "
      "which the model was not trained for");
}

}  // namespace foretoken
