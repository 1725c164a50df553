#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/message/exchange.h"

namespace foretoken::http {

struct ParserLimits {
  size_t header_bytes = size_t{64} << 10;  // request line, headers and trailers
  size_t header_count = 256;               // headers and trailers
  size_t body_bytes = size_t{64} << 20;
};

// A request that is refused, and how.
struct ParseError {
  int status = 400;
  std::string message;
};

struct RequestHead {
  std::string method;
  std::string target;  // as the client wrote it
  bool http10 = false;
  bool keep_alive = true;
  bool expects_continue = false;
  Headers headers;
  // 0 without a body, nothing for a chunked one.
  std::optional<uint64_t> content_length = 0;

  bool has_body() const { return !content_length || *content_length > 0; }
};

// Reads one request from bytes as they come, with limits that hold at every byte. Refused besides
// broken syntax: several Content-Length headers, Content-Length beside Transfer-Encoding, transfer
// encodings other than chunked, and a missing or repeated Host in HTTP/1.1. One thread.
class RequestParser {
 public:
  explicit RequestParser(const ParserLimits& limits);
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;

  // Takes bytes from the front of `input` and returns how many; what it leaves must come again with
  // what follows. Stops at the end of the head, at the end of the request and at an error.
  size_t feed(std::string_view input);

  bool started() const;  // a byte of the request was seen
  bool head_done() const;
  bool done() const;
  const std::optional<ParseError>& error() const;

  const RequestHead& head() const;
  RequestHead take_head();
  // Between head and body: another limit for the body, or a body that is read and forgotten.
  void set_body_limit(size_t num_bytes);
  void discard_body();
  // Between head and body: the body is packed by gzip or deflate, and its limit holds for what it
  // holds.
  void inflate_body();
  // Bytes of the body as they came so far, chunk framing left out.
  uint64_t num_body_bytes() const;
  std::string take_body();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace foretoken::http
