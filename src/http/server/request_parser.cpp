#include "http/server/request_parser.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "http/message/header_text.h"
#include "http/message/inflater.h"

namespace foretoken::http {
namespace {

namespace bhttp = boost::beast::http;
using boost::beast::string_view;
using boost::system::error_code;

// A line of the chunk framing, extensions included, is a few bytes; nobody needs more than this.
constexpr size_t kMaxFramingBytes = size_t{16} << 10;
// "0 CR LF CR LF". Given less at first, Beast 1.81 fails an assertion of its own.
constexpr size_t kSmallestChunkedBody = 5;

std::string_view view(string_view text) { return {text.data(), text.size()}; }

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

ParseError bare_framing() {
  return {400, "the lines between the pieces of a chunked body must end with CR LF"};
}

std::string too_many_bytes(size_t limit) {
  return "the request line and the headers are longer than " + std::to_string(limit) + " bytes";
}

}  // namespace

class RequestParser::Impl final : public bhttp::basic_parser<true> {
 public:
  explicit Impl(const ParserLimits& limits) : limits_(limits) {
    header_limit(static_cast<std::uint32_t>(std::min<size_t>(limits.header_bytes, UINT32_MAX / 2)));
    body_limit(boost::none);
  }

  size_t feed(std::string_view input);

  ParserLimits limits_;
  RequestHead head_;
  std::string body_;
  uint64_t num_body_bytes_ = 0;
  bool discard_ = false;
  std::optional<Inflater> inflater_;  // of a packed body
  bool started_ = false;
  bool has_request_line_ = false;
  size_t num_searched_ = 0;  // bytes of the head without a bare line feed
  bool head_done_ = false;
  bool has_chunk_ = false;
  bool done_ = false;
  std::optional<ParseError> error_;

 private:
  void refuse(int status, std::string message, error_code& ec) {
    if (!error_) error_ = ParseError{status, std::move(message)};
    ec = bhttp::error::bad_value;
  }
  void explain(const error_code& ec, std::string_view rest);
  bool has_bare_line_feed(std::string_view rest);
  bool has_bare_framing(std::string_view framing) const;
  void check_framing(error_code& ec);
  void check_host(error_code& ec);
  size_t add_body(string_view bytes, error_code& ec);

  void on_request_impl(bhttp::verb, string_view method, string_view target, int version,
                       error_code&) override;
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_field_impl(bhttp::field, string_view name, string_view value, error_code& ec) override;
  void on_header_impl(error_code& ec) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view bytes, error_code& ec) override {
    return add_body(bytes, ec);
  }
  void on_chunk_header_impl(std::uint64_t size, string_view, error_code& ec) override;
  std::size_t on_chunk_body_impl(std::uint64_t, string_view bytes, error_code& ec) override {
    return add_body(bytes, ec);
  }
  void on_finish_impl(error_code& ec) override;

  size_t num_header_bytes_ = 0;
  size_t num_headers_ = 0;
  size_t num_hosts_ = 0;
  size_t num_lengths_ = 0;
  std::string transfer_encoding_;
  size_t num_encodings_ = 0;
};

size_t RequestParser::Impl::feed(std::string_view input) {
  size_t taken = 0;
  // Empty lines before a request are skipped, as RFC 9112 2.2 asks for; but not for ever.
  while (!started_ && taken < input.size() && (input[taken] == '\r' || input[taken] == '\n')) {
    if (++num_header_bytes_ > 64) {
      error_ = ParseError{400, "empty lines instead of a request"};
      return taken;
    }
    ++taken;
  }
  while (taken < input.size() && !done_ && !error_) {
    started_ = true;
    const bool had_head = head_done_;
    if (has_bare_line_feed(input.substr(taken))) {
      error_ = ParseError{400, "the lines of a request must end with CR LF"};
      break;
    }
    const std::string_view rest = input.substr(taken);
    if (head_done_ && chunked() && !has_chunk_ && rest.size() < kSmallestChunkedBody) {
      // Behind the last piece, of no bytes, there are only lines; behind others the piece follows.
      const bool last = rest.find_first_not_of('0') == rest.find_first_of("\r\n;");
      const size_t size = last ? rest.size() : rest.find('\n') + 1;
      if (has_bare_framing(rest.substr(0, size))) error_ = bare_framing();
      break;
    }
    error_code ec;
    taken += put({input.data() + taken, input.size() - taken}, ec);
    if (ec == bhttp::error::need_more) {
      if (head_done_ && input.size() - taken > kMaxFramingBytes) {
        error_ = ParseError{400, "a line of the chunked body is too long"};
      } else if (has_bare_framing(input.substr(taken))) {
        error_ = bare_framing();
      }
      break;
    }
    if (ec) explain(ec, input.substr(taken));
    if (head_done_ && !had_head) break;
  }
  return taken;
}

// Looked for here, because the parser below waits for the end of the headers in CR LF, which such
// a client never sends.
bool RequestParser::Impl::has_bare_line_feed(std::string_view rest) {
  if (head_done_) return false;
  for (size_t at = rest.find('\n', num_searched_); at != std::string_view::npos;
       at = rest.find('\n', at + 1)) {
    num_searched_ = at + 1;
    if (at == 0 || rest[at - 1] != '\r') return true;
    if (at >= 3 && rest.substr(at - 3, 4) == "\r\n\r\n") return false;  // the body follows
  }
  num_searched_ = rest.size();
  return false;
}

// Of the lines between the bytes of a chunked body, which the parser below waits for likewise.
bool RequestParser::Impl::has_bare_framing(std::string_view framing) const {
  if (!head_done_ || !chunked()) return false;
  for (size_t at = framing.find('\n'); at != std::string_view::npos;
       at = framing.find('\n', at + 1)) {
    if (at == 0 || framing[at - 1] != '\r') return true;
  }
  return false;
}

void RequestParser::Impl::explain(const error_code& ec, std::string_view rest) {
  if (error_) return;
  if (ec == bhttp::error::header_limit) {
    error_ = has_request_line_ || rest.find('\n') != std::string_view::npos
                 ? ParseError{431, too_many_bytes(limits_.header_bytes)}
                 : ParseError{414, "the request line is longer than " +
                                       std::to_string(limits_.header_bytes) + " bytes"};
  } else if (ec == bhttp::error::bad_version) {
    error_ = ParseError{505, "only HTTP/1.1 and HTTP/1.0 are spoken here"};
  } else {
    error_ = ParseError{400, "the request is not valid HTTP/1.1: " + ec.message()};
  }
}

void RequestParser::Impl::on_request_impl(bhttp::verb, string_view method, string_view target,
                                          int version, error_code&) {
  has_request_line_ = true;
  num_header_bytes_ += method.size() + target.size();
  head_.method = method;
  head_.target = target;
  head_.http10 = version == 10;
}

void RequestParser::Impl::on_field_impl(bhttp::field field, string_view name, string_view value,
                                        error_code& ec) {
  num_header_bytes_ += name.size() + value.size() + 4;
  if (num_header_bytes_ > limits_.header_bytes) {
    return refuse(431, too_many_bytes(limits_.header_bytes), ec);
  }
  if (++num_headers_ > limits_.header_count) {
    return refuse(
        431, "the request has more than " + std::to_string(limits_.header_count) + " headers", ec);
  }
  if (view(value).find('\0') != std::string_view::npos) {
    return refuse(400, "a header has a NUL character", ec);
  }
  if (head_done_) return;  // a trailer: nobody asks for it
  if (field == bhttp::field::host) ++num_hosts_;
  if (field == bhttp::field::content_length) {
    ++num_lengths_;
    if (!all_digits(view(value))) {
      return refuse(400, "Content-Length is not a number of bytes", ec);
    }
  }
  if (field == bhttp::field::transfer_encoding) {
    ++num_encodings_;
    transfer_encoding_ = value;
  }
  if (field == bhttp::field::expect && same_name(view(value), "100-continue")) {
    head_.expects_continue = !head_.http10;
  }
  head_.headers.emplace_back(name, value);
}

// Whatever two readers could understand in two ways is refused: else a proxy in front of this
// server might see other requests than the server does.
void RequestParser::Impl::check_framing(error_code& ec) {
  if (num_lengths_ > 1) return refuse(400, "the request has several Content-Length headers", ec);
  if (num_encodings_ == 0) return;
  if (num_lengths_ > 0) {
    return refuse(400, "the request has both Content-Length and Transfer-Encoding", ec);
  }
  if (head_.http10) return refuse(400, "HTTP/1.0 has no Transfer-Encoding", ec);
  if (num_encodings_ > 1) {
    return refuse(400, "the request has several Transfer-Encoding headers", ec);
  }
  if (!same_name(transfer_encoding_, "chunked")) {
    return refuse(501, "the only Transfer-Encoding understood here is chunked", ec);
  }
}

void RequestParser::Impl::check_host(error_code& ec) {
  if (num_hosts_ > 1) return refuse(400, "the request has several Host headers", ec);
  if (num_hosts_ == 0 && !head_.http10) {
    return refuse(400, "the request has no Host header, which HTTP/1.1 demands", ec);
  }
}

void RequestParser::Impl::on_header_impl(error_code& ec) {
  check_framing(ec);
  if (!ec) check_host(ec);
  if (ec) return;
  head_done_ = true;
  head_.keep_alive = keep_alive();
  if (chunked()) {
    head_.content_length.reset();
  } else {
    head_.content_length = content_length().value_or(0);
  }
}

void RequestParser::Impl::on_chunk_header_impl(std::uint64_t size, string_view, error_code& ec) {
  has_chunk_ = true;
  if (size > limits_.body_bytes - std::min<uint64_t>(num_body_bytes_, limits_.body_bytes)) {
    refuse(413, "the body is longer than " + std::to_string(limits_.body_bytes) + " bytes", ec);
  }
}

size_t RequestParser::Impl::add_body(string_view bytes, error_code& ec) {
  num_body_bytes_ += bytes.size();
  if (num_body_bytes_ > limits_.body_bytes) {
    refuse(413, "the body is longer than " + std::to_string(limits_.body_bytes) + " bytes", ec);
    return bytes.size();
  }
  if (discard_) return bytes.size();
  if (!inflater_) {
    body_.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  const Status status = inflater_->push(view(bytes), limits_.body_bytes, &body_);
  if (!status.ok()) {
    const bool long_body = status.code() == StatusCode::kResourceExhausted;
    refuse(long_body ? 413 : 400, status.message(), ec);
  }
  return bytes.size();
}

void RequestParser::Impl::on_finish_impl(error_code& ec) {
  if (inflater_ && !discard_ && !inflater_->ended()) {
    return refuse(400, "the packed body ends before it is whole", ec);
  }
  done_ = true;
}

RequestParser::RequestParser(const ParserLimits& limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;
RequestParser::RequestParser(RequestParser&&) noexcept = default;
RequestParser& RequestParser::operator=(RequestParser&&) noexcept = default;

size_t RequestParser::feed(std::string_view input) { return impl_->feed(input); }
bool RequestParser::started() const { return impl_->started_; }
bool RequestParser::head_done() const { return impl_->head_done_; }
bool RequestParser::done() const { return impl_->done_; }
const std::optional<ParseError>& RequestParser::error() const { return impl_->error_; }
const RequestHead& RequestParser::head() const { return impl_->head_; }
RequestHead RequestParser::take_head() { return std::move(impl_->head_); }
void RequestParser::set_body_limit(size_t num_bytes) { impl_->limits_.body_bytes = num_bytes; }
void RequestParser::discard_body() { impl_->discard_ = true; }
void RequestParser::inflate_body() { impl_->inflater_.emplace(); }
uint64_t RequestParser::num_body_bytes() const { return impl_->num_body_bytes_; }
std::string RequestParser::take_body() { return std::move(impl_->body_); }

}  // namespace foretoken::http
