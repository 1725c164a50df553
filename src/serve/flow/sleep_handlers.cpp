#include "serve/flow/sleep_handlers.h"

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken {
namespace {

Status check_sleep(std::string_view level, std::string_view mode) {
  if (!level.empty() && level != "1" && level != "2") {
    return invalid_argument("'level' must be 1 or 2, not '" + std::string(level) + "'");
  }
  if (!mode.empty() && mode != "abort" && mode != "wait") {
    return invalid_argument("'mode' must be abort or wait, not '" + std::string(mode) + "'");
  }
  return {};
}

void sleep_now(ServeContext& context, http::Exchange& exchange) {
  const std::string_view level = exchange.request().query_value("level");
  const std::string_view mode = exchange.request().query_value("mode");
  Status status = check_sleep(level, mode);
  int64_t bytes = 0;
  std::stop_source recall;
  exchange.when_gone([recall]() mutable { recall.request_stop(); });
  const std::stop_callback ends(context.sleeps_end.get_token(), [&] { recall.request_stop(); });
  if (status.ok()) {
    status = context.engine.sleep(level == "2" ? 2 : 1, mode != "wait", &bytes, recall.get_token());
  }
  if (!status.ok()) return respond_error(exchange, openai_error, status);
  respond_json(exchange, 200, {{"is_sleeping", true}, {"released_bytes", bytes}});
}

void wake_now(ServeContext& context, http::Exchange& exchange) {
  std::vector<std::string> tags;
  for (const auto& [name, value] : exchange.request().query) {
    if (name == "tags") tags.push_back(value);
  }
  const Status status = context.engine.wake_up(tags);
  if (!status.ok()) return respond_error(exchange, openai_error, status);
  respond_json(exchange, 200, {{"is_sleeping", context.engine.is_sleeping()}});
}

void on_pool_or_full(ServeContext& context, WorkPool& pool,
                     const std::shared_ptr<http::Exchange>& exchange,
                     void (*answer)(ServeContext&, http::Exchange&)) {
  const bool taken = pool.try_post([&context, exchange, answer] { answer(context, *exchange); });
  if (taken) return;
  const Status full =
      resource_exhausted("too many calls to sleep or to wake up wait; try again later");
  respond_error(*exchange, openai_error, ServeError(503, full, 1));
}

}  // namespace

void answer_sleep(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange) {
  on_pool_or_full(context, context.sleeps, exchange, sleep_now);
}

void answer_wake_up(ServeContext& context, const std::shared_ptr<http::Exchange>& exchange) {
  on_pool_or_full(context, context.wakes, exchange, wake_now);
}

}  // namespace foretoken
