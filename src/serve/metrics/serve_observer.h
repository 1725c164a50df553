#pragma once
#include <foretoken/request.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace foretoken {

// A search for tool calls in what came of one choice.
struct ToolParse {
  const char* request_type = "other";  // "chat_completions", "responses" or "other"
  bool streaming = false;              // a piece of the text; otherwise all of it
  bool found = false;                  // a call, or a piece of one
};

// Who asked for a request, and when.
struct RequestOrigin {
  std::chrono::steady_clock::time_point received = std::chrono::steady_clock::now();
  std::string traceparent;  // W3C's headers of the client; empty: it sent none
  std::string tracestate;
  // The engine that it names, by vLLM's X-data-parallel-rank, or by its port where the server has
  // one for each engine.
  std::optional<int> engine = {};
};

// A request that is about to be given to the engine, with the engine's id.
struct Submission {
  const Request& request;
  const std::string& answer_id;  // by which the client knows it
  const RequestOrigin& origin;
};

// Where counts of serving are known, for whoever keeps metrics. Each may be empty; none may wait.
struct ServeObserver {
  // On a thread of the pool.
  std::function<void(const Submission&)> on_submit;
  // The engine refused that request. On the same thread.
  std::function<void(const std::string& request_id)> on_refused;
  // A request was refused for want of room before it reached the engine.
  std::function<void(const std::string& reason)> on_rejected;
  // Each output, before it is answered. On the engine's output thread.
  std::function<void(const RequestOutput&)> on_output;
  // Each search for tool calls in a model's own format. On the thread that writes the answer.
  std::function<void(const ToolParse&)> on_tool_parse;
};

}  // namespace foretoken
