#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "base/result.h"

namespace foretoken {

// An error as HTTP tells it.
struct ServeError {
  ServeError(Status why);  // NOLINT(google-explicit-constructor): as http_status(why) says
  ServeError(int http_status, Status why, int retry_after_seconds = 0)
      : status(std::move(why)), http(http_status), retry_after(retry_after_seconds) {}

  Status status;
  int http = 500;
  int retry_after = 0;  // seconds; 0: not said
};

// The HTTP status of an error: 400 for the caller's faults, 404 for what does not exist, 501 for
// the unsupported, 503 for a lack of room, 499 for aborted requests, 500 otherwise.
int http_status(const Status& status);

// {"error": {"message", "type", "param", "code"}} with vLLM's types. The code is the HTTP status;
// OpenAI's are "context_length_exceeded" of a prompt that is too long, and
// "previous_response_not_found".
nlohmann::ordered_json openai_error(const ServeError& error);
// {"type": "error", "error": {"type", "message"}}, as Anthropic's API has it.
nlohmann::ordered_json anthropic_error(const ServeError& error);

// The text of an error that the HTTP server itself answers, in the form of the API that `path`
// belongs to.
std::string http_error_body(int http, const std::string& message, const std::string& path);

// A value or a ServeError.
template <class T>
class [[nodiscard]] ServeResult {
 public:
  ServeResult(T value) : state_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  ServeResult(ServeError error)
      : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  ServeResult(Status status)  // NOLINT(google-explicit-constructor)
      : state_(ServeError(std::move(status))) {}

  bool ok() const { return std::holds_alternative<T>(state_); }
  T& value() { return std::get<T>(state_); }
  const ServeError& error() const { return std::get<ServeError>(state_); }

 private:
  std::variant<T, ServeError> state_;
};

}  // namespace foretoken
