// src/http with a model that says numbers, one every few milliseconds: what load_suite.py needs to
// try the server's layer alone. Prints its address and serves until SIGTERM, then drains.
#include <csignal>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "http/server/server.h"

namespace {

using foretoken::http::Exchange;
using nlohmann::json;

struct Talk {
  std::shared_ptr<Exchange> exchange;
  int num_said = 0;
  int num_wanted = 0;
};

// Says one word in every talk at every tick.
class Talker {
 public:
  ~Talker() {
    ended_ = true;
    thread_.join();
  }
  void add(Talk talk) {
    const std::lock_guard lock(mutex_);
    talks_.push_back(std::move(talk));
  }
  size_t num_running() {
    const std::lock_guard lock(mutex_);
    return talks_.size();
  }

 private:
  void run() {
    while (!ended_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const std::lock_guard lock(mutex_);
      talks_.erase(
          std::remove_if(talks_.begin(), talks_.end(), [](Talk& talk) { return say(talk); }),
          talks_.end());
    }
  }
  // True when the talk is over.
  static bool say(Talk& talk) {
    if (talk.exchange->gone()) return true;
    const json event = {
        {"choices", {{{"delta", {{"content", std::to_string(talk.num_said) + " "}}}}}}};
    talk.exchange->write("data: " + event.dump() + "\n\n");
    if (++talk.num_said < talk.num_wanted) return false;
    talk.exchange->write("data: [DONE]\n\n");
    talk.exchange->end();
    return true;
  }

  std::mutex mutex_;
  std::vector<Talk> talks_;
  std::atomic<bool> ended_{false};
  std::thread thread_{[this] { run(); }};
};

// Deeper values than any request has would end the parser's own stack of frees.
bool too_deep(const std::string& body) {
  int depth = 0;
  return std::any_of(body.begin(), body.end(), [&](char c) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    return depth > 64;
  });
}

void chat(Talker& talker, std::shared_ptr<Exchange> exchange) {
  const std::string& text = exchange->request().body;
  const json body =
      too_deep(text) ? json(json::value_t::discarded) : json::parse(text, nullptr, false);
  const bool good = body.is_object() && body.contains("messages") && body["messages"].is_array() &&
                    !body["messages"].empty() && body["messages"][0].is_object() &&
                    body.contains("max_tokens") && body["max_tokens"].is_number_integer() &&
                    body["max_tokens"] > 0 && body.value("stream", json(false)) == json(true);
  if (!good) return exchange->respond(400, "application/json", R"({"error":{"message":"no"}})");
  exchange->begin(200, "text/event-stream");
  const int num_wanted = body["max_tokens"];
  talker.add({std::move(exchange), 0, num_wanted});
}

}  // namespace

int main() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Talker talker;
  const auto text = [](const std::shared_ptr<Exchange>& exchange, std::string body) {
    exchange->respond(200, "text/plain", std::move(body));
  };
  foretoken::http::ServerConfig config;
  config.host = "127.0.0.1";
  config.port = 0;
  auto server = foretoken::http::Server::start(
      config, {{"GET", "/health", [&](auto exchange) { text(exchange, ""); }},
               {"GET", "/v1/models",
                [&](auto exchange) { text(exchange, R"({"data":[{"id":"numbers"}]})"); }},
               {"GET", "/metrics",
                [&](auto exchange) {
                  text(exchange,
                       "vllm:num_requests_running " + std::to_string(talker.num_running()) + "\n");
                }},
               {"POST", "/v1/chat/completions",
                [&](auto exchange) { chat(talker, std::move(exchange)); }}});
  if (!server.ok()) {
    std::fprintf(stderr, "%s\n", server.status().message().c_str());
    return 1;
  }
  std::printf("%s\n", server.value()->address().c_str());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  return server.value()->drain(std::chrono::seconds(120)) ? 0 : 1;
}
