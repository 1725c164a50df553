#include "http/message/answer_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/http/status.hpp>
#include <ctime>
#include <iterator>

#include "http/message/header_text.h"

namespace foretoken::http {
namespace {

// The value of the header Date, made once a second by each thread.
const std::string& http_date() {
  thread_local std::time_t second = -1;
  thread_local std::string date;
  const std::time_t now = std::time(nullptr);
  if (now != second) {
    second = now;
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[64];
    // The names of days and months are those of the C locale, which nobody here changes.
    date.assign(text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts));
  }
  return date;
}

std::string_view reason_of(int status) {
  const auto reason =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  return {reason.data(), reason.size()};
}

bool is_framing(std::string_view name) {
  constexpr std::string_view kNames[] = {"content-length", "transfer-encoding", "connection",
                                         "date"};
  return std::any_of(std::begin(kNames), std::end(kNames),
                     [&](std::string_view one) { return same_name(one, name); });
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  if (name.empty() || name.find_first_of(" \t\r\n:") != std::string_view::npos) return;
  fmt::format_to(std::back_inserter(out), "{}: {}\r\n", header_safe(name), header_safe(value));
}

}  // namespace

bool asks_to_close(const Headers& headers) {
  return std::any_of(headers.begin(), headers.end(), [](const auto& header) {
    return same_name(header.first, "connection") && list_has(header.second, "close");
  });
}

std::string make_answer_head(const AnswerFrame& frame, int status, const std::string& content_type,
                             const Headers& headers, std::optional<size_t> length,
                             bool keep_alive) {
  std::string out = fmt::format("HTTP/1.{} {} {}\r\nDate: {}\r\n", frame.http10 ? 0 : 1, status,
                                reason_of(status), http_date());
  if (!content_type.empty()) append_header(out, "Content-Type", content_type);
  if (status != 204 && status != 304) {
    if (length) {
      fmt::format_to(std::back_inserter(out), "Content-Length: {}\r\n", *length);
    } else if (!frame.http10) {
      out += "Transfer-Encoding: chunked\r\n";
    }
  }
  if (!keep_alive) out += "Connection: close\r\n";
  if (keep_alive && frame.http10) out += "Connection: keep-alive\r\n";
  for (const Headers* some : {&frame.headers, &headers}) {
    for (const auto& [name, value] : *some) {
      if (!is_framing(name)) append_header(out, name, value);
    }
  }
  out += "\r\n";
  return out;
}

void append_chunk(std::string& out, std::string_view bytes) {
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
  out += bytes;
  out += "\r\n";
}

}  // namespace foretoken::http
