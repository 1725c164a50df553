#include "base/json_log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <atomic>
#include <ctime>
#include <string>

#include "base/log.h"

namespace foretoken {
namespace {

std::atomic<bool> json_logs{false};

std::string utc(spdlog::log_clock::time_point time) {
  const auto since = time.time_since_epoch();
  const std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                     ms);
}

std::string json_line(spdlog::log_clock::time_point time, spdlog::level::level_enum level,
                      std::string_view message, const nlohmann::ordered_json& fields) {
  const spdlog::string_view_t name = spdlog::level::to_string_view(level);
  nlohmann::ordered_json line{{"time", utc(time)},
                              {"level", std::string(name.data(), name.size())},
                              {"message", std::string(message)}};
  if (fields.is_object()) line.update(fields);
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const std::string text =
        json_line(message.time, message.level,
                  std::string_view(message.payload.data(), message.payload.size()), nullptr);
    line.append(text.data(), text.data() + text.size());
    line.push_back('\n');
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

// Writes its payload as it is; shares the lock of the log's own sink.
spdlog::logger& event_logger() {
  static const auto logger = [] {
    auto made = std::make_shared<spdlog::logger>(
        "events", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%v");
    return made;
  }();
  return *logger;
}

}  // namespace

void use_json_logs() {
  for (const spdlog::sink_ptr& sink : spdlog::default_logger()->sinks()) {
    sink->set_formatter(std::make_unique<JsonFormatter>());
  }
  json_logs.store(true);
}

void log_event(std::string_view message, const nlohmann::ordered_json& fields) {
  if (!spdlog::default_logger()->should_log(spdlog::level::info)) return;
  if (json_logs.load(std::memory_order_relaxed)) {
    event_logger().info(json_line(spdlog::log_clock::now(), spdlog::level::info, message, fields));
    return;
  }
  std::string line(message);
  for (const auto& [name, value] : fields.items()) {
    line += ' ' + name + '=';
    line += value.is_string() ? value.get<std::string>() : value.dump();
  }
  FT_LOG(info, "{}", line);
}

}  // namespace foretoken
