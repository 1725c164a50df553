// Bytes as a socket would bring them, against the parser of requests and their targets. The first
// byte says how they are cut; the request must not depend on the cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "http/message/header_text.h"
#include "http/message/target.h"
#include "http/server/request_parser.h"

namespace {

using foretoken::http::RequestParser;

constexpr foretoken::http::ParserLimits kLimits{2048, 32, 4096};

void require(bool holds) {
  if (!holds) std::abort();
}

// Returns how many bytes of `bytes` were taken.
size_t feed(RequestParser& parser, std::string_view bytes, size_t step) {
  std::string waiting;
  size_t num_taken = 0;
  for (size_t at = 0; at < bytes.size() && !parser.done() && !parser.error(); at += step) {
    waiting += bytes.substr(at, step);
    for (size_t taken = 1; taken > 0 && !waiting.empty() && !parser.done() && !parser.error();) {
      taken = parser.feed(waiting);
      require(taken <= waiting.size());
      num_taken += taken;
      waiting.erase(0, taken);
    }
    // What is left must be bounded, however long the client goes on.
    require(parser.done() || parser.error() || waiting.size() <= step + (size_t{16} << 10));
  }
  return num_taken;
}

void check_request(const RequestParser& parser) {
  require(parser.head().headers.size() <= kLimits.header_count);
  require(parser.num_body_bytes() <= kLimits.body_bytes);
  const auto target = foretoken::http::parse_target(parser.head().target, parser.head().method);
  if (!target.ok()) return;
  require(foretoken::http::is_utf8(target.value().path));
  require(!target.value().path.empty());
  require(target.value().path.find('\0') == std::string::npos);
}

bool is_limit(const RequestParser& parser) {
  return parser.error() && (parser.error()->status == 431 || parser.error()->status == 414);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  RequestParser whole(kLimits);
  RequestParser cut(kLimits);
  const size_t num_whole = feed(whole, bytes, std::max<size_t>(bytes.size(), 1));
  const size_t num_cut = feed(cut, bytes, size_t{data[0]} % 64 + 1);
  if (whole.done()) check_request(whole);
  if (cut.done()) check_request(cut);
  if (!whole.done() || !cut.done()) {
    // Only where a limit is met may the cut decide.
    require(whole.done() == cut.done() || is_limit(whole) || is_limit(cut));
    return 0;
  }
  require(num_whole == num_cut);
  require(whole.head().method == cut.head().method);
  require(whole.head().target == cut.head().target);
  require(whole.head().headers == cut.head().headers);
  require(whole.head().keep_alive == cut.head().keep_alive);
  require(whole.take_body() == cut.take_body());
  return 0;
}
