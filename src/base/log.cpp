#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

namespace foretoken {

void init_logging(const char* level) {
  auto logger = std::make_shared<spdlog::logger>(
      "foretoken", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%^%L%$ %T %v");
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

void make_logger() { (void)spdlog::default_logger(); }

}  // namespace foretoken
