#include "serve/sglang/label_scores.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>

#include "serve/fields/json_fields.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/flow/serve_context.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;
using Ids = std::vector<int32_t>;

struct Parts {
  json query;
  json items;
  bool item_first = false;
  bool add_special = true;
};

// A text, or token ids.
Result<Ids> ids_of(const Engine& engine, const json& given, const std::string& name,
                   bool add_special) {
  Ids ids;
  if (given.is_string()) {
    FT_RETURN_IF_ERROR(encode_bounded(engine, given.get<std::string>(), add_special, &ids));
    return ids;
  }
  const auto is_id = [](const json& id) {
    return id.is_number_integer() && id >= 0 && id <= INT32_MAX;
  };
  const bool are_ids = given.is_array() && std::all_of(given.begin(), given.end(), is_id);
  if (!are_ids) return invalid_argument("'" + name + "' must be a text or an array of token ids");
  for (const json& id : given) ids.push_back(id.get<int32_t>());
  return ids;
}

// A prompt for each item.
Result<json> prompts_of(const Engine& engine, const Parts& parts) {
  FT_ASSIGN_OR_RETURN(const Ids query, ids_of(engine, parts.query, "query", parts.add_special));
  const auto most = static_cast<size_t>(std::max(engine.info().max_model_len - 1, 1));
  json prompts = json::array();
  for (const json& item : parts.items) {
    FT_ASSIGN_OR_RETURN(Ids ids, ids_of(engine, item, "items", false));
    ids.insert(parts.item_first ? ids.end() : ids.begin(), query.begin(), query.end());
    if (ids.empty()) return invalid_argument("'query' and an entry of 'items' are both empty");
    if (ids.size() > most) ids.resize(most);
    prompts.push_back(ids);
  }
  return prompts;
}

Status check_labels(const Engine& engine, const Ids& labels) {
  if (labels.empty()) return invalid_argument("'label_token_ids' must name at least one token id");
  const EngineInfo& info = engine.info();
  for (const int32_t id : labels) {
    if (id >= 0 && id < info.vocab_size) continue;
    return invalid_argument("'label_token_ids': " + std::to_string(id) +
                            " is not in the vocabulary of " + std::to_string(info.vocab_size));
  }
  const std::set<int32_t> different(labels.begin(), labels.end());
  if (info.max_logprobs < 0 || different.size() <= static_cast<size_t>(info.max_logprobs)) {
    return {};
  }
  return invalid_argument("'label_token_ids' names " + std::to_string(different.size()) +
                          " token ids, more than --max-logprobs " +
                          std::to_string(info.max_logprobs) + "; name fewer, or raise it");
}

// The one token that a request chooses among the labels.
SamplingParams one_of(const Ids& labels) {
  SamplingParams sampling;
  sampling.max_tokens = 1;
  sampling.temperature = 0;
  sampling.ignore_eos = true;
  sampling.detokenize = false;
  const std::set<int32_t> different(labels.begin(), labels.end());
  sampling.allowed_token_ids.emplace(different.begin(), different.end());
  sampling.logprobs = 0;
  return sampling;
}

// For each item a request that tells the labels' shares of each other, and, unless these are all
// that is wanted, one that tells the model's own probability of the likeliest.
void add_requests(LabelScoring* scoring) {
  std::vector<Request>& requests = scoring->texts.requests;
  scoring->num_items = requests.size();
  for (Request& request : requests) {
    request.sampling = one_of(scoring->labels);
    request.speculative.enabled = false;
  }
  if (!scoring->among_labels) {
    std::vector<Request> plain = requests;
    requests.insert(requests.end(), plain.begin(), plain.end());
  }
  for (size_t i = 0; i < scoring->num_items; ++i) {
    SamplingParams& sampling = requests[i].sampling;
    sampling.temperature = 1;
    sampling.processed_logprobs = true;
    sampling.logprobs = static_cast<int>(sampling.allowed_token_ids->size());
  }
}

}  // namespace

Result<LabelScoring> parse_label_scoring(const json& body, const Engine& engine,
                                         const OpenAiDefaults& defaults, bool as_lists) {
  LabelScoring scoring;
  scoring.as_lists = as_lists;
  scoring.among_labels = !as_lists;
  Parts parts;
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(defaults, &warnings));
  const json* query = fields.raw("query");
  const json* items = fields.raw("items");
  fields.read("label_token_ids", &scoring.labels);
  fields.read("apply_softmax", &scoring.among_labels);
  fields.read("item_first", &parts.item_first);
  fields.read("add_special_tokens", &parts.add_special);
  json completion = json::object();
  for (const char* name : {"model", "priority", "request_id"}) {
    if (const json* value = fields.raw(name)) completion[name] = *value;
  }
  fields.ignore({"user", "rid"});
  fields.check_unread();
  if (query == nullptr) fields.fail("'query' is missing; give a text or token ids");
  if (items == nullptr || items->empty()) fields.fail("'items' must hold at least one text");
  FT_RETURN_IF_ERROR(fields.status());
  FT_RETURN_IF_ERROR(check_labels(engine, scoring.labels));
  parts.query = *query;
  parts.items = items->is_array() ? *items : json::array({*items});
  FT_RETURN_IF_ERROR(check_copies(body, "items", parts.items.size()));
  FT_ASSIGN_OR_RETURN(completion["prompt"], prompts_of(engine, parts));
  FT_ASSIGN_OR_RETURN(scoring.texts,
                      parse_openai_request(OpenAiKind::kCompletion, completion, defaults));
  add_warnings(warnings, &scoring.texts.warnings);
  add_requests(&scoring);
  return scoring;
}

// Of each label, in their order.
std::vector<double> LabelScoreFormat::scores(const OutputSum& among, const OutputSum* plain) const {
  std::map<int32_t, double> logprobs;
  double shift = 0;
  const RequestOutput& shares = among.choices().front();
  if (!shares.logprobs.empty()) {
    for (const Logprob& label : shares.logprobs.front().top)
      logprobs[label.token_id] = label.logprob;
  }
  if (plain != nullptr && !plain->choices().front().logprobs.empty()) {
    const Logprob& own = plain->choices().front().logprobs.front().token;
    shift = double{own.logprob} - logprobs[own.token_id];
  }
  std::vector<double> probabilities;
  for (const int32_t label : scoring_.labels) {
    const auto found = logprobs.find(label);
    probabilities.push_back(found == logprobs.end() ? 0 : std::exp(found->second + shift));
  }
  return probabilities;
}

std::string LabelScoreFormat::whole(const std::vector<const OutputSum*>& sums) {
  json data = json::array();
  int64_t num_tokens = 0;
  for (size_t i = 0; i < scoring_.num_items; ++i) {
    const OutputSum* plain = scoring_.among_labels ? nullptr : sums[scoring_.num_items + i];
    const std::vector<double> values = scores(*sums[i], plain);
    num_tokens += sums[i]->stats().num_prompt_tokens;
    if (scoring_.as_lists) {
      data.push_back(values);
    } else {
      data.push_back({{"index", i}, {"object", "score"}, {"score", values.front()}});
    }
  }
  const json usage = {
      {"prompt_tokens", num_tokens}, {"total_tokens", num_tokens}, {"completion_tokens", 0}};
  json body;
  if (scoring_.as_lists) {
    body = {{"scores", std::move(data)},
            {"model", label().model},
            {"usage", usage},
            {"object", "scoring"}};
  } else {
    body = start_openai_body("list", label());
    body["data"] = std::move(data);
    body["usage"] = usage;
  }
  put_warnings(scoring_.texts.warnings, &body);
  return json_text(body);
}

}  // namespace foretoken
