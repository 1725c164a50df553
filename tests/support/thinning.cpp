#include "support/thinning.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace foretoken {
namespace {

int read_thinning() {
  const char* value = std::getenv("FORETOKEN_TEST_THINNING");
  if (value == nullptr) return 1;
  const std::string_view text(value);
  int thinning = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), thinning);
  if (error != std::errc() || end != text.data() + text.size() || thinning < 1) {
    std::fprintf(stderr, "FORETOKEN_TEST_THINNING=%s: use a whole number from 1 on\n", value);
    std::exit(2);
  }
  return thinning;
}

}  // namespace

int test_thinning() {
  static const int thinning = read_thinning();
  return thinning;
}

}  // namespace foretoken
