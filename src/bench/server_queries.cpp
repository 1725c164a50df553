#include "bench/server_queries.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "bench/answer_reader.h"

namespace foretoken::bench {
namespace {

constexpr std::chrono::milliseconds kAskTimeout{60'000};

}  // namespace

WholeAnswer ask_server(net::Client& client, const std::string& method, const std::string& path,
                       const net::Headers& headers) {
  WholeAnswer answer;
  net::ClientHandlers handlers;
  handlers.on_head = [&](int status, const net::Headers&) { answer.status = status; };
  handlers.on_body = [&](std::string_view bytes) { answer.body += bytes; };
  handlers.on_end = [&](const Status& status) { answer.end = status; };
  client.send({method, path, headers, "", kAskTimeout}, std::move(handlers));
  client.run();
  return answer;
}

Result<std::string> first_model(net::Client& client, const net::Headers& headers) {
  const WholeAnswer answer = ask_server(client, "GET", "/v1/models", headers);
  const std::string remedy = "; name the model with --model";
  if (!answer.end.ok()) return not_found(answer.end.message());
  if (answer.status != 200) {
    return not_found(
        fmt::format("/v1/models: HTTP {}: {}{}", answer.status, error_text(answer.body), remedy));
  }
  const auto parsed = nlohmann::json::parse(answer.body, nullptr, false);
  const auto data = parsed.is_object() ? parsed.value("data", nlohmann::json()) : parsed;
  const bool has = data.is_array() && !data.empty() && data[0].is_object() &&
                   data[0].contains("id") && data[0]["id"].is_string();
  if (!has) return not_found("/v1/models lists no model" + remedy);
  return data[0]["id"].get<std::string>();
}

std::optional<DraftCounters> fetch_draft_counters(net::Client& client,
                                                  const net::Headers& headers) {
  const WholeAnswer answer = ask_server(client, "GET", "/metrics", headers);
  if (!answer.end.ok() || answer.status != 200) return {};
  return read_draft_counters(answer.body);
}

}  // namespace foretoken::bench
