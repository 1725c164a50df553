#include "serve/anthropic/message_thread.h"

#include <optional>
#include <utility>

#include "serve/answer/serve_error.h"
#include "serve/fields/json_fields.h"

namespace foretoken {
namespace {

using json = nlohmann::ordered_json;

// Said at the beginning of a thread alone.
constexpr const char* kOfBeginning[] = {"system", "tools"};

json member(const json& body, const char* name) {
  const auto found = body.find(name);
  return found == body.end() ? json() : *found;
}

Status go_on(const StoredResponse& kept, json* body) {
  for (const char* name : kOfBeginning) {
    if (!member(*body, name).is_null()) {
      return invalid_argument("'" + std::string(name) +
                              "' is that of the beginning of a thread; leave it out, or begin "
                              "another thread");
    }
    const json value = member(kept.response, name);
    if (!value.is_null()) (*body)[name] = value;
  }
  const json added = member(*body, "messages");
  if (!added.is_null() && !added.is_array()) {
    return invalid_argument("'messages' must be an array of {\"role\", \"content\"}");
  }
  json messages = kept.messages;
  for (const json& message : added) messages.push_back(message);
  (*body)["messages"] = std::move(messages);
  return {};
}

}  // namespace

Result<MessageThread> join_thread(const ResponseStore& threads, json* body) {
  MessageThread thread;
  const json asked = member(*body, "thread");
  body->erase("thread");
  if (asked.is_null()) return thread;
  if (!asked.is_object()) return invalid_argument("'thread' must be an object");
  JsonFields fields(asked, "'thread'");
  std::string type;
  std::string previous;
  fields.read("type", &type);
  fields.read("previous_message_id", &previous);
  FT_RETURN_IF_ERROR(fields.status());
  const bool goes_on = type == "continue";
  if ((type != "create" && !goes_on) || goes_on == previous.empty()) {
    return invalid_argument(
        "'thread' must be {\"type\": \"create\"} or {\"type\": \"continue\", "
        "\"previous_message_id\"}");
  }
  thread.keeps = true;
  if (!goes_on) return thread;
  const std::optional<StoredResponse> kept = threads.find(previous);
  if (!kept) {
    thread.lost_id = previous;
    return thread;
  }
  FT_RETURN_IF_ERROR(go_on(*kept, body));
  return thread;
}

KeepMessage thread_keeper(ResponseStore& threads, std::string id, const json& body) {
  StoredResponse kept;
  for (const char* name : kOfBeginning) kept.response[name] = member(body, name);
  kept.messages = member(body, "messages");
  return [&threads, id = std::move(id), kept = std::move(kept)](const json& content) {
    StoredResponse whole = kept;
    if (!content.empty()) {
      whole.messages.push_back({{"role", "assistant"}, {"content", content}});
    }
    threads.put(id, std::move(whole));
  };
}

json lost_thread_error(const std::string& id) {
  json error = anthropic_error(
      not_found("'thread': the message '" + id +
                "' is not kept here, or no more; begin a thread with the whole conversation"));
  error["error"]["details"] = {{"error_code", "thread_not_found"}};
  return error;
}

}  // namespace foretoken
