#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "serve/flow/response_store.h"

namespace foretoken {

// Anthropic's threads: the server keeps a conversation under the id of its last message, and a
// request that goes on from there has nothing but new messages.

// Receives the blocks of a message that has ended.
using KeepMessage = std::function<void(const nlohmann::ordered_json& content)>;

// What the 'thread' of a body asks for.
struct MessageThread {
  bool keeps = false;   // the answer is kept
  std::string lost_id;  // of a message that is not kept here, or no more; else empty
};

// Takes 'thread' out of `*body`. One that goes on becomes the body of the whole conversation, with
// the system message and the tools of its beginning. InvalidArgument for what threads have not.
Result<MessageThread> join_thread(const ResponseStore& threads, nlohmann::ordered_json* body);

// What keeps the conversation of `body` with the answer `id`. `threads` outlives it.
KeepMessage thread_keeper(ResponseStore& threads, std::string id,
                          const nlohmann::ordered_json& body);

// The error of one that is lost, by which Anthropic's clients send the whole conversation again.
nlohmann::ordered_json lost_thread_error(const std::string& id);

}  // namespace foretoken
