#pragma once
#include <string>

namespace foretoken {

// Prints the failed condition with its place and ends the process.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& detail);

}  // namespace foretoken

// A programmer's error: always on. Anything a user can cause returns a Status instead.
#define FT_CHECK(condition)                                                          \
  do {                                                                               \
    if (!(condition)) ::foretoken::check_failed(__FILE__, __LINE__, #condition, ""); \
  } while (0)

// The same with a std::string that explains the values at fault.
#define FT_CHECK_MSG(condition, detail)                                                  \
  do {                                                                                   \
    if (!(condition)) ::foretoken::check_failed(__FILE__, __LINE__, #condition, detail); \
  } while (0)
