#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "http/message/exchange.h"

namespace foretoken::http {

// What the request says about how its answer is written.
struct AnswerFrame {
  bool http10 = false;
  bool head_only = false;  // HEAD: the head of the answer to GET, and no body
  bool keep_alive = true;
  Headers headers;  // of every answer: Server, X-Request-Id, CORS

  // What an answer of this status may carry.
  bool has_body(int status) const { return !head_only && status != 204 && status != 304; }
  // An answer of unknown length ends a connection of HTTP/1.0.
  bool is_chunked(int status) const { return !http10 && has_body(status); }
};

// Status line and headers with the empty line. `length` of the body, or nothing for one that comes
// in pieces; `keep_alive` as it is in the end. Headers about framing (Content-Length,
// Transfer-Encoding, Connection, Date) are the server's: a handler's are left out.
std::string make_answer_head(const AnswerFrame& frame, int status, const std::string& content_type,
                             const Headers& headers, std::optional<size_t> length, bool keep_alive);

// Whether a handler's headers ask for the end of the connection.
bool asks_to_close(const Headers& headers);

// One chunk of a chunked body; `bytes` must not be empty.
void append_chunk(std::string& out, std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace foretoken::http
