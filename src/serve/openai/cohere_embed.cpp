#include "serve/openai/cohere_embed.h"

#include <algorithm>
#include <utility>

#include "serve/fields/json_fields.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/score_request.h"
#include "serve/openai/vector_form.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

void read_embedding_types(JsonFields& fields, CohereEmbedRequest* request) {
  std::vector<std::string> types = {"float"};
  fields.read("embedding_types", &types);
  for (const std::string& type : types) {
    if (type != "float" && type != "base64" && !type_of_signs(type)) {
      fields.fail(
          "'embedding_types' may have \"float\", \"base64\", \"binary\" and \"ubinary\" here, not "
          "\"" +
          shown_name(type) + "\"");
    }
    if (std::ranges::count(request->types, type) == 0) request->types.push_back(type);
  }
  if (types.empty()) fields.fail("'embedding_types' is an empty list; give [\"float\"]");
}

// `kept`: of texts that are cut at their beginning, how many tokens are left.
void read_truncation(JsonFields& fields, CohereEmbedRequest* request, std::optional<int>* kept) {
  std::string side = "END";
  int most = 0;
  fields.read("truncate", &side);
  fields.read("max_tokens", &most);
  if (most < 0) fields.fail("'max_tokens' must be at least 0 (whole texts)");
  if (side == "END") {
    request->max_tokens = most;
  } else if (side == "START") {
    *kept = most > 0 ? most : -1;
  } else if (side != "NONE") {
    fields.fail("'truncate' must be \"NONE\", \"START\" or \"END\", not \"" + shown_name(side) +
                "\"");
  }
}

}  // namespace

Result<CohereEmbedRequest> parse_cohere_embed(const json& body, const OpenAiDefaults& defaults) {
  CohereEmbedRequest request;
  std::vector<std::string> warnings;
  JsonFields fields(body, "", field_notes(defaults, &warnings));
  std::optional<int> kept;
  FT_RETURN_IF_ERROR(read_texts(fields, fields.has("inputs") ? "inputs" : "texts", &request.texts));
  read_embedding_types(fields, &request);
  read_truncation(fields, &request, &kept);
  json embedding = {{"input", request.texts}};
  if (kept) {
    embedding["truncate_prompt_tokens"] = *kept;
    embedding["truncation_side"] = "left";
  }
  if (const json* size = fields.raw("output_dimension"); size != nullptr) {
    embedding["dimensions"] = *size;
  }
  for (const char* name : {"model", "priority"}) {
    if (const json* value = fields.raw(name); value != nullptr) embedding[name] = *value;
  }
  const json* type = fields.raw("input_type");
  if (type != nullptr && !defaults.embedding_prompts.empty()) embedding["input_type"] = *type;
  fields.refuse({{"images", "only texts are embedded here; give 'texts'"}});
  fields.check_unread();
  FT_RETURN_IF_ERROR(fields.status());
  FT_ASSIGN_OR_RETURN(request.embeddings,
                      parse_openai_request(OpenAiKind::kEmbedding, embedding, defaults));
  add_warnings(warnings, &request.embeddings.warnings);
  return request;
}

Status shorten_texts(const Engine& engine, CohereEmbedRequest* request) {
  if (!request->max_tokens) return {};
  std::vector<int32_t> special;
  FT_RETURN_IF_ERROR(engine.encode("", true, &special));
  const int room = engine.info().max_model_len - static_cast<int>(special.size());
  const int most = *request->max_tokens > 0 ? std::min(*request->max_tokens, room) : room;
  return shorten_texts(engine, request->embeddings.requests, most);
}

std::string CohereEmbedFormat::whole(const std::vector<const OutputSum*>& sums) {
  json vectors = json::object();
  for (const std::string& type : request_.types) {
    OpenAiRequest request = request_.embeddings;
    request.vectors.base64 = type == "base64";
    request.vectors.type = type_of_signs(type).value_or(VectorForm::Type::kFloat32);
    vectors[type] = json::array();
    for (const OutputSum* sum : sums) {
      vectors[type].push_back(embedding_value(request, sum->choices().front().embedding));
    }
  }
  int64_t num_tokens = 0;
  for (const OutputSum* sum : sums) num_tokens += sum->choices().front().stats.num_prompt_tokens;
  json body = {
      {"id", label().id},
      {"embeddings", std::move(vectors)},
      {"texts", request_.texts},
      {"meta",
       {{"api_version", {{"version", "2"}}}, {"billed_units", {{"input_tokens", num_tokens}}}}},
      {"response_type", "embeddings_by_type"}};
  put_warnings(request_.embeddings.warnings, &body);
  return json_text(body);
}

}  // namespace foretoken
