#pragma once
#include <spdlog/spdlog.h>

namespace foretoken {

// Sends spdlog's default logger to stderr, so that stdout holds only results, and sets its level
// by name: trace, debug, info, warning, error.
void init_logging(const char* level);

// Makes the default logger, which its first use does else: not for two threads at once.
void make_logger();

}  // namespace foretoken

// FT_LOG(info, "loaded {} tensors", n). Nothing at info or above inside the step path.
#define FT_LOG(level, ...) ::spdlog::level(__VA_ARGS__)
