#include <algorithm>

#include "chat/calls/call_form.h"
#include "chat/calls/parser_table.h"
#include "chat/scan/call_openings.h"
#include "chat/tool_choice.h"
#include "serve/openai/openai_request.h"
#include "serve/openai/tool_prompt.h"

// What of a request needs the model's tokenizer and template.

namespace foretoken {
namespace {

// The last one that is said of a token counts.
void set_bias(int32_t id, float bias, SamplingParams* sampling) {
  auto& all = sampling->logit_bias;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.first == id; });
  if (found != all.end()) {
    found->second = bias;
  } else {
    all.emplace_back(id, bias);
  }
}

bool goes_on(const OpenAiRequest& request) {
  if (request.arguments_json.empty()) return false;
  const auto arguments = nlohmann::ordered_json::parse(request.arguments_json);
  const auto found = arguments.find("continue_final_message");
  return found != arguments.end() && *found == true;
}

// What goes on with an answer is past its reasoning, for which formats that always begin with it
// would take it.
void leave_reasoning(const OpenAiRequest& request, ChatParserOptions* parser) {
  const ReasoningParserEntry* entry = find_reasoning_parser(parser->reasoning_parser);
  const bool always = entry != nullptr && entry->format.always && !parser->starts_in_reasoning;
  if (always && goes_on(request)) parser->reasoning_parser.clear();
}

Status bias_texts(const Engine& engine, OpenAiRequest* request) {
  for (const auto& [text, bias] : request->text_biases) {
    std::vector<int32_t> ids;
    FT_RETURN_IF_ERROR(engine.encode(text, false, &ids));
    for (Request& one : request->requests) {
      for (const int32_t id : ids) set_bias(id, bias, &one.sampling);
    }
  }
  request->text_biases.clear();
  return {};
}

// An answer in a form, or calls in place of it, as OpenAI has it. The calls have the form that
// their format gives them, where a grammar is written for it: what only begins as one would be
// neither.
void allow_calls(const ChatParserOptions& parser, StructuredOutputs* form,
                 std::vector<std::string>* warnings) {
  const std::vector<std::string> markers = call_markers(parser.tool_parser);
  if (markers.empty() || (form->json.empty() && !form->json_object)) {
    warnings->push_back(
        "'response_format' holds for the whole answer, so that no tool is called; leave it out "
        "until the tools' results are there, or force calls by 'tool_choice'");
    return;
  }
  using Json = nlohmann::ordered_json;
  const Json schema = form->json.empty() ? Json{{"type", "object"}} : Json::parse(form->json);
  Json either = {{"schema", schema}, {"openings", markers}};
  const std::optional<std::string> calls = form_of_calls(parser);
  if (calls) either["calls"] = Json::parse(*calls)["calls"];
  if (!calls && any_strict_tool(parser.tools)) {
    warnings->push_back(
        "'strict' of 'tools' is not enforced beside 'response_format' in the format '" +
        parser.tool_parser + "'; leave 'response_format' out until the tools' results are there");
  }
  form->structural_tag = Json{{"either", std::move(either)}}.dump();
  form->json.clear();
  form->json_object = false;
}

// The form that strict tools give to the calls of a text that need not have any.
std::optional<StructuredOutputs> strict_calls(OpenAiRequest* request) {
  const ChatParserOptions& parser = request->parser;
  if (parser.tool_choice != "auto" || !any_strict_tool(parser.tools)) return std::nullopt;
  const std::optional<std::string> tag = form_of_calls(parser);
  if (!tag) {
    request->warnings.push_back(
        "'strict' of 'tools' is enforced in calls that 'tool_choice' forces; the arguments of "
        "others are as the model writes them in the format '" +
        (parser.tool_parser.empty() ? std::string("none") : parser.tool_parser) + "'");
    return std::nullopt;
  }
  StructuredOutputs form;
  form.structural_tag = *tag;
  form.strict_schemas = request->strict_schemas;
  // A marker within reasoning is a thought, but for formats whose reasoning it ends.
  const ReasoningParserEntry* entry = find_reasoning_parser(parser.reasoning_parser);
  if (entry != nullptr && !entry->format.ends.empty()) return form;
  return after_reasoning(std::move(form), &request->parser);
}

}  // namespace

Status render_messages(const Engine& engine, OpenAiRequest* request, std::string* prompt) {
  fit_tools(engine.chat_template(sends_tools(*request)), request);
  return engine.render_chat(request->messages_json, request->arguments_json, prompt,
                            &request->warnings);
}

Status render_openai_prompt(const Engine& engine, OpenAiRequest* request) {
  FT_RETURN_IF_ERROR(bias_texts(engine, request));
  if (request->messages_json.empty()) return {};
  FT_RETURN_IF_ERROR(render_history(engine, request));
  Request& only = request->requests.front();
  if (request->kind != OpenAiKind::kChat) return {};
  ChatParserOptions& parser = request->parser;
  parser.starts_in_reasoning = opens_reasoning(parser.reasoning_parser, only.prompt);
  leave_reasoning(*request, &parser);
  only.reasoning = reasoning_markers(parser);
  if (needs_special_tokens(parser)) only.sampling.skip_special_tokens = false;
  std::optional<StructuredOutputs>& form = only.sampling.structured_outputs;
  FT_ASSIGN_OR_RETURN(std::optional<StructuredOutputs> forced, tool_choice_outputs(&parser));
  if (forced && form && !request->form_is_response_format) {
    return invalid_argument(
        "'tool_choice' forces a form on the output, and so does 'structured_outputs'; remove one "
        "of the two");
  }
  if (forced && form) {
    request->warnings.push_back(
        "'response_format' holds for texts; the calls that 'tool_choice' forces have their own "
        "form");
  }
  const bool may_call =
      !forced && form && request->form_is_response_format && uses_tool_parser(parser);
  if (forced) {
    form = std::move(forced);
    // Nobody reads the layout of arguments, and a weak model can go on with blanks for ever.
    form->disable_any_whitespace = true;
    form->strict_schemas = request->strict_schemas;
  } else if (form) {
    form = after_reasoning(*std::move(form), &parser);
    if (may_call) allow_calls(parser, &*form, &request->warnings);
  } else {
    form = strict_calls(request);
  }
  return {};
}

}  // namespace foretoken
