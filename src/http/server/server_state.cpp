#include "http/server/server_state.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace foretoken::http {
namespace {

std::string plain_error_body(int status, const std::string& message, const std::string&) {
  const nlohmann::json body = {{"error", {{"message", message}, {"code", status}}}};
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ServerConfig with_defaults(ServerConfig config) {
  if (!config.error_body) config.error_body = plain_error_body;
  return config;
}

}  // namespace

ServerState::ServerState(ServerConfig server_config, Router server_router)
    : config(with_defaults(std::move(server_config))),
      router(std::move(server_router)),
      cors(config.cors) {}

void ServerState::count(std::atomic<size_t>& counter, int by) {
  const size_t before = counter.fetch_add(static_cast<size_t>(by));
  if (before + static_cast<size_t>(by) != 0) return;
  const std::lock_guard lock(mutex_);
  zero_.notify_all();
}

void ServerState::add_connection(int by) { count(num_connections_, by); }
void ServerState::add_busy(int by) { count(num_busy_, by); }

bool ServerState::wait_zero(const std::atomic<size_t>& counter,
                            std::chrono::steady_clock::time_point end) {
  std::unique_lock lock(mutex_);
  return zero_.wait_until(lock, end, [&] { return counter.load() == 0; });
}

bool ServerState::wait_idle(std::chrono::steady_clock::time_point end) {
  return wait_zero(num_busy_, end);
}

bool ServerState::wait_closed(std::chrono::steady_clock::time_point end) {
  return wait_zero(num_connections_, end);
}

}  // namespace foretoken::http
