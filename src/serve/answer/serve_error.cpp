#include "serve/answer/serve_error.h"

#include <foretoken/prompt_length.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "config/sampling_fields.h"
#include "serve/fields/request_body.h"

namespace foretoken {
namespace {

using nlohmann::ordered_json;

const char* openai_type(int http) {
  switch (http) {
    case 401:
      return "AuthenticationError";
    case 403:
      return "PermissionDeniedError";
    case 404:
      return "NotFoundError";
    case 408:
    case 504:
      return "TimeoutError";
    case 422:
      return "UnprocessableEntityError";
    case 429:
      return "RateLimitError";
    case 499:
      return "RequestAborted";
    case 501:
      return "NotImplementedError";
    case 503:
      return "ServiceUnavailableError";
    default:
      return http < 500 ? "BadRequestError" : "InternalServerError";
  }
}

const char* anthropic_type(int http) {
  switch (http) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 408:
    case 504:
      return "timeout_error";
    case 503:
      return "overloaded_error";
    case 501:
      return "invalid_request_error";
    default:
      return http < 500 ? "invalid_request_error" : "api_error";
  }
}

// Whether the engine's sentences begin with this name of a field.
bool is_engine_field(std::string_view name) {
  constexpr std::array<std::string_view, 3> kOthers = {"priority", "structured_outputs",
                                                       "truncate_prompt_tokens"};
  return find_sampling_field(name) != nullptr ||
         std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
}

// The field that a message names first, as in "'top_p' must ..." and in the engine's "top_p is
// ..."; "message 2: ..." is of 'messages'.
ordered_json param_of(const std::string& message) {
  const bool quoted = message.starts_with('\'');
  const size_t end = quoted ? message.find('\'', 1) : message.find_first_of(" :");
  if (end == std::string::npos) return nullptr;
  std::string name = message.substr(quoted ? 1 : 0, quoted ? end - 1 : end);
  if (quoted || is_engine_field(name)) return name;
  constexpr std::string_view kDigits = "0123456789";
  const bool numbered = name == "message" && end + 1 < message.size() &&
                        kDigits.find(message[end + 1]) != std::string_view::npos;
  return numbered ? ordered_json("messages") : ordered_json(nullptr);
}

// Agents tell by OpenAI's codes that they must shorten their conversation, or send all of it again.
ordered_json code_of(const ServeError& error, const ordered_json& param) {
  if (is_prompt_too_long(error.status)) return "context_length_exceeded";
  const bool forgotten = error.http == 404 && param == "previous_response_id";
  return forgotten ? ordered_json("previous_response_not_found") : ordered_json(error.http);
}

bool is_anthropic(std::string_view path) {
  constexpr std::string_view kRoot = "/v1/messages";
  return path.starts_with(kRoot) && (path.size() == kRoot.size() || path[kRoot.size()] == '/');
}

}  // namespace

ServeError::ServeError(Status why) : status(std::move(why)), http(http_status(status)) {
  if (http == 503) retry_after = 1;
}

int http_status(const Status& status) {
  switch (status.code()) {
    case StatusCode::kOk:
      return 200;
    case StatusCode::kInvalidArgument:
      return 400;
    case StatusCode::kNotFound:
      return 404;
    case StatusCode::kUnsupported:
      return 501;
    case StatusCode::kResourceExhausted:
      return 503;
    case StatusCode::kAborted:
      return 499;
    default:
      return 500;
  }
}

ordered_json openai_error(const ServeError& error) {
  ordered_json body;
  const ordered_json param = param_of(error.status.message());
  body["error"] = {{"message", error.status.message()},
                   {"type", openai_type(error.http)},
                   {"param", param},
                   {"code", code_of(error, param)}};
  return body;
}

ordered_json anthropic_error(const ServeError& error) {
  ordered_json body = {{"type", "error"}};
  body["error"] = {{"type", anthropic_type(error.http)}, {"message", error.status.message()}};
  return body;
}

std::string http_error_body(int http, const std::string& message, const std::string& path) {
  const ServeError error(http, invalid_argument(message));
  return json_text(is_anthropic(path) ? anthropic_error(error) : openai_error(error));
}

}  // namespace foretoken
