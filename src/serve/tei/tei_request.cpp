#include "serve/tei/tei_request.h"

#include <utility>

#include "serve/fields/json_fields.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/score_request.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// The fields of "parameters" beside those of the body.
json with_parameters(const json& body) {
  json whole = body;
  const auto parameters = body.find("parameters");
  if (parameters == body.end() || !parameters->is_object()) return whole;
  whole.erase("parameters");
  for (const auto& [name, value] : parameters->items()) whole[name] = value;
  return whole;
}

// Reads what is common to all and makes the request of `input`.
Result<OpenAiRequest> finish_texts(JsonFields& fields, json input, const OpenAiDefaults& defaults,
                                   std::vector<std::string>& warnings) {
  json embedding = {{"input", std::move(input)}};
  read_tei_truncation(fields, &embedding);
  for (const char* name : {"normalize", "dimensions", "prompt_name", "model"}) {
    if (const json* value = fields.raw(name); value != nullptr && !value->is_null()) {
      embedding[name] = *value;
    }
  }
  // Of the Inference API.
  fields.ignore({"options", "inputs"});
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  FT_ASSIGN_OR_RETURN(OpenAiRequest request,
                      parse_openai_request(OpenAiKind::kEmbedding, embedding, defaults));
  add_warnings(warnings, &request.warnings);
  return request;
}

// The texts of a list of one or two.
Status add_texts(const json& list, json* input, std::vector<bool>* are_pairs) {
  const bool fits = list.is_array() && (list.size() == 1 || list.size() == 2) &&
                    list.front().is_string() && list.back().is_string();
  if (!fits) {
    return invalid_argument(
        "'inputs' must be a text, a pair of texts [\"a\", \"b\"], or a list of [\"a\"] and "
        "[\"a\", \"b\"]");
  }
  for (const json& text : list) input->push_back(text);
  are_pairs->push_back(list.size() == 2);
  return {};
}

Result<json> texts_to_judge(const json& inputs, TeiPredict* predict) {
  json input = json::array();
  const bool is_batch = inputs.is_array() && !inputs.empty() && inputs.front().is_array();
  predict->is_single = !is_batch;
  if (!is_batch) {
    const json list = inputs.is_string() ? json::array({inputs}) : inputs;
    FT_RETURN_IF_ERROR(add_texts(list, &input, &predict->are_pairs));
    return input;
  }
  for (const json& list : inputs) {
    FT_RETURN_IF_ERROR(add_texts(list, &input, &predict->are_pairs));
  }
  return input;
}

void read_rule(JsonFields& fields, TeiPredict* predict) {
  bool raw = false;
  std::string function;
  fields.read("raw_scores", &raw);
  fields.read("function_to_apply", &function);
  fields.read("top_k", &predict->top_k);
  if (predict->top_k < 0) fields.fail("'top_k' must be at least 0 (all classes)");
  constexpr std::pair<const char*, ClassRule> kFunctions[] = {{"none", ClassRule::kNone},
                                                              {"softmax", ClassRule::kSoftmax},
                                                              {"sigmoid", ClassRule::kSigmoid}};
  bool is_known = function.empty();
  for (const auto& [name, rule] : kFunctions) {
    if (function != name) continue;
    predict->rule = rule;
    is_known = true;
  }
  if (raw) predict->rule = ClassRule::kNone;
  if (!is_known) {
    fields.fail("'function_to_apply' must be \"softmax\", \"sigmoid\" or \"none\", not \"" +
                shown_name(function) + "\"");
  }
}

}  // namespace

Result<OpenAiRequest> parse_tei_embed(const json& body, const OpenAiDefaults& defaults) {
  const json whole = with_parameters(body);
  std::vector<std::string> warnings;
  JsonFields fields(whole, "", field_notes(defaults, &warnings));
  const json* inputs = fields.raw("inputs");
  if (inputs == nullptr) return invalid_argument("'inputs' is missing; give a text or a list");
  return finish_texts(fields, *inputs, defaults, warnings);
}

Result<OpenAiRequest> parse_tei_similarity(const json& body, const OpenAiDefaults& defaults) {
  const json whole = with_parameters(body);
  std::vector<std::string> warnings;
  JsonFields fields(whole, "", field_notes(defaults, &warnings));
  const json* inputs = fields.raw("inputs");
  if (inputs == nullptr || !inputs->is_object()) {
    return invalid_argument("'inputs' must be {\"source_sentence\": ..., \"sentences\": [...]}");
  }
  JsonFields texts(*inputs, "'inputs'");
  std::string source;
  std::vector<std::string> sentences;
  texts.read("source_sentence", &source);
  texts.read("sentences", &sentences);
  if (source.empty() || sentences.empty()) {
    texts.fail("must have a text 'source_sentence' and a list 'sentences' of texts");
  }
  FT_RETURN_IF_ERROR(texts.status());
  json input = json::array({source});
  for (std::string& sentence : sentences) input.push_back(std::move(sentence));
  return finish_texts(fields, std::move(input), defaults, warnings);
}

Result<TeiPredict> parse_tei_predict(const json& body, const OpenAiDefaults& defaults) {
  const json whole = with_parameters(body);
  std::vector<std::string> warnings;
  JsonFields fields(whole, "", field_notes(defaults, &warnings));
  TeiPredict predict;
  predict.is_api = body.contains("parameters");
  const json* inputs = fields.raw("inputs");
  if (inputs == nullptr) return invalid_argument("'inputs' is missing; give a text or a list");
  FT_ASSIGN_OR_RETURN(json input, texts_to_judge(*inputs, &predict));
  read_rule(fields, &predict);
  FT_ASSIGN_OR_RETURN(predict.texts, finish_texts(fields, std::move(input), defaults, warnings));
  return predict;
}

bool is_tei_body(const json& body, bool writes_texts) {
  const auto inputs = body.find("inputs");
  const bool compares = inputs != body.end() && inputs->is_structured();
  const bool ranks = body.contains("query") && body.contains("texts");
  return compares || ranks || (inputs != body.end() && !writes_texts);
}

}  // namespace foretoken
