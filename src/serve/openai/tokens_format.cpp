#include "serve/openai/tokens_format.h"

#include <algorithm>
#include <utility>

#include "serve/answer/sse.h"
#include "serve/fields/request_body.h"
#include "serve/fields/request_warnings.h"
#include "serve/openai/openai_choice.h"
#include "serve/openai/openai_logprobs.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

// As vLLM's, they name the token itself where no others are asked for.
ordered_json logprobs_of(const RequestOutput& output) {
  ordered_json told = chat_logprobs(named_by_id(output.logprobs));
  for (ordered_json& token : told["content"]) {
    if (!token["top_logprobs"].empty()) continue;
    ordered_json own = token;
    own.erase("top_logprobs");
    token["top_logprobs"] = ordered_json::array({std::move(own)});
  }
  return told;
}

}  // namespace

Result<ordered_json> completion_of_tokens(const ordered_json& body) {
  const ordered_json ids = body.value("token_ids", ordered_json());
  const bool numbers = ids.is_array() && std::ranges::all_of(ids, [](const ordered_json& id) {
                         return id.is_number_integer();
                       });
  if (!numbers || ids.empty()) return invalid_argument("'token_ids' must be a list of token ids");
  ordered_json completion = body.value("sampling_params", ordered_json());
  if (!completion.is_object()) return invalid_argument("'sampling_params' must be an object");
  // Texts are never told here.
  completion.erase("detokenize");
  if (completion.value("max_tokens", ordered_json()).is_null()) completion["max_tokens"] = -1;
  for (const auto& [name, value] : body.items()) {
    const bool own = name == "token_ids" || name == "sampling_params";
    if (!own && !value.is_null()) completion[name] = value;
  }
  completion["prompt"] = ids;
  return completion;
}

TokensFormat::TokensFormat(OpenAiRequest request, std::string id)
    : request_(std::move(request)), id_(std::move(id)), usage_(request_.requests) {}

ordered_json TokensFormat::choice(const RequestOutput& output) const {
  const bool wanted = request_.requests.front().sampling.logprobs.has_value();
  return {{"index", output.index},
          {"logprobs", wanted ? logprobs_of(output) : ordered_json(nullptr)},
          {"finish_reason", finish_reason(request_, output, 0)},
          {"token_ids", output.token_ids}};
}

std::string TokensFormat::whole(const std::vector<const OutputSum*>& sums) {
  ordered_json body = {{"request_id", id_}, {"choices", ordered_json::array()}};
  const std::vector<RequestOutput>& all = sums.front()->choices();
  for (const RequestOutput& one : all) body["choices"].push_back(choice(one));
  body["prompt_logprobs"] = nullptr;
  if (request_.requests.front().sampling.prompt_logprobs) {
    body["prompt_logprobs"] = prompt_logprobs(all.front().prompt_logprobs);
  }
  body["kv_transfer_params"] = nullptr;
  put_warnings(request_.warnings, &body);
  return json_text(body);
}

std::string TokensFormat::error(const ServeError& error) { return json_text(openai_error(error)); }

std::string TokensFormat::events(size_t request, const ChoiceOutput& news) {
  usage_.note(request, news.output.index, news.output.stats);
  ordered_json chunk = {{"request_id", id_},
                        {"choices", ordered_json::array({choice(news.output)})}};
  if (request_.continuous_usage) chunk["usage"] = openai_usage(usage_.counts());
  return sse_data(chunk);
}

std::string TokensFormat::last_events() {
  if (!request_.include_usage) return sse_done();
  return sse_data({{"request_id", id_},
                   {"choices", ordered_json::array()},
                   {"usage", openai_usage(usage_.counts())}}) +
         sse_done();
}

std::string TokensFormat::error_events(const ServeError& error) {
  return sse_data(openai_error(error)) + sse_done();
}

}  // namespace foretoken
