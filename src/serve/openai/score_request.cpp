#include "serve/openai/score_request.h"

#include <foretoken/prompt_length.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text/ascii_text.h"
#include "serve/fields/json_fields.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

constexpr std::pair<const char*, const char*> kPairs[] = {
    {"text_1", "text_2"}, {"data_1", "data_2"}, {"queries", "documents"}, {"queries", "items"}};

// A text, {"text": ...}, or vLLM's {"content": [{"type": "text", "text": ...}]}.
Result<std::string> one_text(const json& value, const std::string& name) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("text")) return one_text(value["text"], name);
  std::string text;
  const bool parts = value.is_object() && value.contains("content") && value["content"].is_array();
  if (!parts) {
    return invalid_argument("'" + name + "' must be a text, or a list of texts or {\"text\": ...}");
  }
  for (const json& part : value["content"]) {
    if (!part.is_object() || part.value("type", json()) != "text") {
      return invalid_argument("'" + name + "': parts must be {\"type\": \"text\", ...}; others " +
                              "are not read here");
    }
    FT_ASSIGN_OR_RETURN(const std::string piece, one_text(part, name));
    text += piece;
  }
  return text;
}

void read_lengths(JsonFields& fields, ScoreRequest* request) {
  fields.read("max_tokens_per_query", &request->max_tokens_per_query);
  fields.read("max_tokens_per_doc", &request->max_tokens_per_doc);
  if (request->max_tokens_per_query < 0) {
    fields.fail("'max_tokens_per_query' must be at least 0 (whole queries)");
  }
  if (request->max_tokens_per_doc < 0) {
    fields.fail("'max_tokens_per_doc' must be at least 0 (whole documents)");
  }
}

// Voyage's "truncation", and NIM's "truncate" of "END" or "NONE".
bool cuts_texts(JsonFields& fields, RankingForm form) {
  bool cuts = false;
  fields.read("truncation", &cuts);
  if (form != RankingForm::kNim) return cuts;
  std::string side = "NONE";
  fields.read("truncate", &side);
  return cuts || lower_case(side) == "end";
}

// Reads what embeddings know beside the texts, and makes the request for all of them.
Status finish(JsonFields& fields, const OpenAiDefaults& defaults, ScoreRequest* request) {
  json body = {{"input", request->first}, {"normalize", true}};
  if (request->form == RankingForm::kTei) read_tei_truncation(fields, &body);
  if (cuts_texts(fields, request->form)) body["truncate_prompt_tokens"] = -1;
  for (const std::string& text : request->second) body["input"].push_back(text);
  for (const char* name : {"model", "truncate_prompt_tokens", "truncation_side", "priority",
                           "cache_salt", "user", "request_id", "add_special_tokens"}) {
    if (const json* value = fields.raw(name); value != nullptr) body[name] = *value;
  }
  // Hints of classifiers and of other servers.
  fields.ignore({"activation", "use_activation", "softmax", "rank_fields", "max_chunks_per_doc"});
  fields.pass_over_vllms();
  fields.pass_over({"padding", "instruction", "chat_template_kwargs"});
  read_lengths(fields, request);
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  FT_ASSIGN_OR_RETURN(request->embeddings,
                      parse_openai_request(OpenAiKind::kEmbedding, body, defaults));
  if (fields.notes().warnings != nullptr) {
    add_warnings(*fields.notes().warnings, &request->embeddings.warnings);
  }
  return {};
}

// The beginning of `text` that `ids`, its first tokens, stand for: less than they say where the
// last one of them is a part of a character. Where the tokenizer writes texts otherwise (lower
// case, composed accents), its own writing of that beginning.
Result<std::string> beginning(const Engine& engine, const std::string& text,
                              const std::vector<int32_t>& ids) {
  constexpr size_t kMaxCutBytes = 12;  // of up to four U+FFFD
  std::string decoded;
  FT_RETURN_IF_ERROR(engine.decode(ids, true, &decoded));
  const auto same = std::mismatch(text.begin(), text.end(), decoded.begin(), decoded.end());
  const std::string common(text.begin(), same.first);
  const bool is_whole = !common.empty() && decoded.size() - common.size() <= kMaxCutBytes;
  return is_whole ? common : decoded;
}

using Ids = std::vector<int32_t>;

Status encode_one(const Engine& engine, const Request& request, bool special, Ids* ids) {
  const auto encode = [&](const std::string& text, Ids* to) {
    return engine.encode(text, special, to);
  };
  if (request.truncate_prompt_tokens) return encode(request.prompt, ids);
  return encode_prompt(request.prompt, engine.info().max_model_len, encode, ids);
}

// Special tokens stand around either text; of those before the second one, where a model has them
// at both ends, the last of the first text takes the place or joins it. No longer than can be of
// use, since one text may be in thousands of pairs.
Result<Ids> ids_of_pair(const Engine& engine, const Ids& first, const Request& second) {
  const EngineInfo& info = engine.info();
  const auto most = static_cast<size_t>(info.max_model_len) + 1;
  Ids more;
  FT_RETURN_IF_ERROR(encode_one(engine, second, info.pair_marks > 0, &more));
  if (!second.truncate_prompt_tokens && first.size() + more.size() > most + 1) {
    return prompt_too_long(first.size() + more.size(), info.max_model_len);
  }
  Ids ids(first.size() > most ? first.end() - static_cast<int64_t>(most) : first.begin(),
          first.end());
  if (info.pair_marks == 2 && !ids.empty()) ids.push_back(ids.back());
  const size_t begin = info.pair_marks > 0 && !more.empty() ? 1 : 0;
  for (size_t i = begin; i < more.size(); ++i) ids.push_back(more[i] + info.second_text_ids);
  return ids;
}

// In one pass, so that what texts say stays.
void put_into_template(const std::string& pair_template, const std::string& query, Request* pair) {
  constexpr std::string_view kQuery = "{query}", kDocument = "{document}";
  std::string text;
  for (size_t at = 0; at < pair_template.size();) {
    const std::string_view rest = std::string_view(pair_template).substr(at);
    if (rest.starts_with(kQuery)) {
      text += query;
      at += kQuery.size();
    } else if (rest.starts_with(kDocument)) {
      text += pair->prompt;
      at += kDocument.size();
    } else {
      text += pair_template[at++];
    }
  }
  pair->prompt = std::move(text);
  pair->add_special_tokens = false;
}

}  // namespace

void read_tei_truncation(JsonFields& fields, json* body) {
  bool truncates = true;
  std::string direction = "right";
  fields.read("truncate", &truncates);
  fields.read("truncation_direction", &direction);
  const std::string side = lower_case(direction);
  if (side != "right" && side != "left") {
    fields.fail("'truncation_direction' must be \"right\" or \"left\", not \"" +
                shown_name(direction) + "\"");
  }
  if (!truncates) return;
  (*body)["truncate_prompt_tokens"] = -1;
  (*body)["truncation_side"] = side;
}

Status join_pair(const Engine& engine, const Request& first, Request* second) {
  if (!engine.info().pair_template.empty()) {
    put_into_template(engine.info().pair_template, first.prompt, second);
    return {};
  }
  Ids ids;
  FT_RETURN_IF_ERROR(encode_one(engine, first, true, &ids));
  FT_ASSIGN_OR_RETURN(second->prompt_token_ids, ids_of_pair(engine, ids, *second));
  second->prompt.clear();
  return {};
}

Status join_pairs(const Engine& engine, ScoreRequest* request) {
  const int labels = engine.info().num_labels;
  const std::string& pair_template = engine.info().pair_template;
  if (labels == 0) return {};
  if (labels != 1 && pair_template.empty()) {
    return unsupported("this model gives " + std::to_string(labels) +
                       " numbers of a text, which are no score; use one with a single label");
  }
  std::vector<Request>& requests = request->embeddings.requests;
  const size_t num_first = request->first.size();
  // Each pair has a copy of the one query.
  if (!pair_template.empty() && num_first == 1) {
    const json query = {{"query", requests.front().prompt}};
    FT_RETURN_IF_ERROR(check_copies(query, "documents", request->second.size()));
  }
  std::vector<Request> pairs;
  Ids first;
  for (size_t i = 0; i < request->second.size(); ++i) {
    // What is much too long is refused before there are many of it.
    if (i < num_first) FT_RETURN_IF_ERROR(encode_one(engine, requests[i], true, &first));
    Request pair = requests[num_first + i];
    if (!pair_template.empty()) {
      put_into_template(pair_template, requests[num_first == 1 ? 0 : i].prompt, &pair);
    } else {
      FT_ASSIGN_OR_RETURN(pair.prompt_token_ids, ids_of_pair(engine, first, pair));
      pair.prompt.clear();
    }
    pairs.push_back(std::move(pair));
  }
  requests = std::move(pairs);
  request->judged = true;
  return {};
}

Status read_texts(JsonFields& fields, const char* name, std::vector<std::string>* texts) {
  const json* value = fields.raw(name);
  if (value == nullptr) return invalid_argument("'" + std::string(name) + "' is missing");
  const json list = value->is_array() ? *value : json::array({*value});
  if (list.empty()) return invalid_argument("'" + std::string(name) + "' is an empty list");
  for (const json& item : list) {
    FT_ASSIGN_OR_RETURN(std::string text, one_text(item, name));
    if (text.empty()) {
      return invalid_argument("'" + std::string(name) +
                              "' has an empty text, which has no meaning");
    }
    texts->push_back(std::move(text));
  }
  return {};
}

Status shorten_texts(const Engine& engine, std::span<Request> requests, int max_tokens) {
  const auto most = static_cast<size_t>(max_tokens);
  if (most == 0) return {};
  for (Request& request : requests) {
    const std::string text = request.prompt;
    std::vector<int32_t> ids;
    FT_RETURN_IF_ERROR(engine.encode(text, false, &ids));
    if (ids.size() <= most) continue;
    ids.resize(most);
    FT_ASSIGN_OR_RETURN(request.prompt, beginning(engine, text, ids));
  }
  return {};
}

Status shorten_texts(const Engine& engine, ScoreRequest* request) {
  const std::span<Request> all = request->embeddings.requests;
  const size_t first = request->first.size();
  FT_RETURN_IF_ERROR(shorten_texts(engine, all.first(first), request->max_tokens_per_query));
  return shorten_texts(engine, all.subspan(first), request->max_tokens_per_doc);
}

Status prepare_comparison(const Engine& engine, ScoreRequest* request) {
  FT_RETURN_IF_ERROR(shorten_texts(engine, request));
  FT_RETURN_IF_ERROR(join_pairs(engine, request));
  const EngineInfo& info = engine.info();
  if (info.token_size == 0 || info.labels_tokens) return {};
  request->token_size = info.token_size;
  for (Request& each : request->embeddings.requests) each.pooling = Pooling::kTokens;
  return {};
}

Result<ScoreRequest> parse_score_request(const json& body, const OpenAiDefaults& defaults) {
  ScoreRequest request;
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(defaults, &warnings));
  const std::pair<const char*, const char*>* pair = nullptr;
  for (const auto& names : kPairs) {
    if (pair == nullptr && fields.has(names.first) && fields.has(names.second)) pair = &names;
  }
  if (pair == nullptr) {
    return invalid_argument(
        "the texts to compare are missing; give 'text_1' and 'text_2', or 'queries' and "
        "'documents'");
  }
  FT_RETURN_IF_ERROR(read_texts(fields, pair->first, &request.first));
  FT_RETURN_IF_ERROR(read_texts(fields, pair->second, &request.second));
  if (request.first.size() != 1 && request.first.size() != request.second.size()) {
    return invalid_argument("'" + std::string(pair->first) + "' has " +
                            std::to_string(request.first.size()) + " texts and '" + pair->second +
                            "' has " + std::to_string(request.second.size()) +
                            "; give one, or equally many");
  }
  FT_RETURN_IF_ERROR(finish(fields, defaults, &request));
  return request;
}

RankingForm ranking_form(const json& body) {
  const JsonFields fields(body, "");
  if (fields.has("documents")) {
    const bool voyage = fields.has("top_k") || fields.has("truncation");
    return voyage && !fields.has("top_n") ? RankingForm::kVoyage : RankingForm::kUsual;
  }
  if (fields.has("texts")) return RankingForm::kTei;
  return fields.has("passages") ? RankingForm::kNim : RankingForm::kUsual;
}

Result<ScoreRequest> parse_rerank_request(const json& body, const OpenAiDefaults& defaults) {
  ScoreRequest request;
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(defaults, &warnings));
  FT_RETURN_IF_ERROR(read_texts(fields, "query", &request.first));
  if (request.first.size() != 1) return invalid_argument("'query' must be one text");
  request.form = ranking_form(body);
  const bool tei = request.form == RankingForm::kTei, nim = request.form == RankingForm::kNim;
  FT_RETURN_IF_ERROR(read_texts(fields,
                                tei   ? "texts"
                                : nim ? "passages"
                                      : "documents",
                                &request.second));
  fields.read("top_k", &request.top_n);  // as Voyage calls it
  fields.read("top_n", &request.top_n);
  request.return_documents = request.form == RankingForm::kUsual;
  fields.read(tei ? "return_text" : "return_documents", &request.return_documents);
  request.raw_scores = nim;
  if (tei) fields.read("raw_scores", &request.raw_scores);
  if (request.top_n < 0) fields.fail("'top_n' must be at least 0 (all)");
  FT_RETURN_IF_ERROR(finish(fields, defaults, &request));
  return request;
}

}  // namespace foretoken
