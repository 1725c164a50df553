#include "http/server/request_parser.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace foretoken::http {
namespace {

// Feeds `text` in pieces of `step` bytes, as a socket would bring them; returns what is left over.
std::string feed(RequestParser& parser, const std::string& text, size_t step = std::string::npos) {
  std::string waiting;
  for (size_t at = 0; at < text.size() && !parser.done() && !parser.error();) {
    const size_t count = std::min(step, text.size() - at);
    waiting += text.substr(at, count);
    at += count;
    for (size_t taken = 1; taken > 0 && !waiting.empty();) {
      taken = parser.feed(waiting);
      waiting.erase(0, taken);
    }
    if (parser.done()) waiting += text.substr(at);
  }
  return waiting;
}

int refused(const std::string& text, const ParserLimits& limits = {}) {
  int status = 0;
  // The same whichever way the bytes come.
  for (const size_t step : {std::string::npos, size_t{1}, size_t{7}}) {
    RequestParser parser(limits);
    feed(parser, text, step);
    const int now = parser.error() ? parser.error()->status : 0;
    if (step != std::string::npos) {
      EXPECT_EQ(now, status) << text.substr(0, 200) << " in pieces of " << step;
    }
    status = now;
  }
  return status;
}

const std::string kHost = "Host: h\r\n";

TEST(HttpRequestParser, AnyPiecesGiveTheSameRequest) {
  const std::string text =
      "POST /a?b=c HTTP/1.1\r\nHost: h\r\nX-A:  1 \r\nContent-Length: 5\r\n\r\nhello";
  for (size_t step = 1; step <= text.size(); ++step) {
    RequestParser parser({});
    EXPECT_EQ(feed(parser, text + "GET", step), "GET") << step;
    ASSERT_TRUE(parser.done()) << step;
    EXPECT_EQ(parser.head().method, "POST");
    EXPECT_EQ(parser.head().target, "/a?b=c");
    EXPECT_EQ(parser.head().headers,
              (Headers{{"Host", "h"}, {"X-A", "1"}, {"Content-Length", "5"}}));
    EXPECT_EQ(parser.head().content_length, 5U);
    EXPECT_TRUE(parser.head().keep_alive);
    EXPECT_EQ(parser.take_body(), "hello");
  }
}

TEST(HttpRequestParser, ChunkedBodiesAndTrailers) {
  const std::string text =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "4;ext=\"a\"\r\nWiki\r\n00A\r\n0123456789\r\n0\r\nX-Trailer: t\r\n\r\n";
  for (size_t step = 1; step <= text.size(); ++step) {
    RequestParser parser({});
    EXPECT_EQ(feed(parser, text + "next", step), "next") << step;
    ASSERT_TRUE(parser.done()) << step;
    EXPECT_FALSE(parser.head().content_length);
    EXPECT_TRUE(parser.head().has_body());
    EXPECT_EQ(parser.take_body(), "Wiki0123456789");
    EXPECT_EQ(parser.head().headers.size(), 2U);  // the trailer is no header
  }
}

TEST(HttpRequestParser, StopsBetweenHeadAndBody) {
  RequestParser parser({});
  const std::string head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n";
  EXPECT_EQ(parser.feed(head + "abc"), head.size());
  EXPECT_TRUE(parser.head_done());
  EXPECT_FALSE(parser.done());
  parser.discard_body();
  EXPECT_EQ(parser.feed("abc"), 3U);
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(parser.num_body_bytes(), 3U);
  EXPECT_EQ(parser.take_body(), "");
}

TEST(HttpRequestParser, EmptyLinesBeforeARequest) {
  RequestParser parser({});
  EXPECT_EQ(feed(parser, "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n", 1), "");
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(refused(std::string(1000, '\n')), 400);
}

TEST(HttpRequestParser, KeepAliveByVersionAndHeader) {
  const auto keeps = [](const std::string& version, const std::string& headers) {
    RequestParser parser({});
    feed(parser, "GET / HTTP/" + version + "\r\nHost: h\r\n" + headers + "\r\n");
    EXPECT_TRUE(parser.done());
    return parser.head().keep_alive;
  };
  EXPECT_TRUE(keeps("1.1", ""));
  EXPECT_FALSE(keeps("1.1", "Connection: x, Close\r\n"));
  EXPECT_FALSE(keeps("1.0", ""));
  EXPECT_TRUE(keeps("1.0", "Connection: keep-alive\r\n"));
}

TEST(HttpRequestParser, WhatTwoReadersCouldUnderstandInTwoWaysIsRefused) {
  const auto with = [](const std::string& headers) {
    return refused("POST / HTTP/1.1\r\nHost: h\r\n" + headers + "\r\nabcdef");
  };
  EXPECT_EQ(with("Content-Length: 3\r\nContent-Length: 3\r\n"), 400);
  EXPECT_EQ(with("Content-Length: 3\r\nContent-Length: 4\r\n"), 400);
  EXPECT_EQ(with("Content-Length: 3, 3\r\n"), 400);
  EXPECT_EQ(with("Content-Length: +3\r\n"), 400);
  EXPECT_EQ(with("Content-Length: -1\r\n"), 400);
  EXPECT_EQ(with("Content-Length: 0x3\r\n"), 400);
  EXPECT_EQ(with("Content-Length: \r\n"), 400);
  EXPECT_EQ(with("Content-Length: 99999999999999999999999\r\n"), 400);
  EXPECT_EQ(with("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(with("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), 400);
  EXPECT_EQ(with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(with("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(with("Transfer-Encoding: gzip, chunked\r\n"), 501);
  EXPECT_EQ(with("Transfer-Encoding: chunked, gzip\r\n"), 501);
  EXPECT_EQ(with("Transfer-Encoding: xchunked\r\n"), 501);
  EXPECT_EQ(with("Transfer-Encoding : chunked\r\n"), 400);
  EXPECT_EQ(with("Host: other\r\n"), 400);
  EXPECT_EQ(refused("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n\r\n"), 400);  // no Host
  EXPECT_EQ(refused("GET / HTTP/1.0\r\n\r\n"), 0);
}

TEST(HttpRequestParser, BrokenSyntaxIsRefused) {
  // Bare line feeds, wherever a line ends.
  EXPECT_EQ(refused("GET / HTTP/1.1\nHost: h\n\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: h\n\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: h\r\n\n"), 400);
  EXPECT_EQ(refused("\x16\x03\x01\x02"), 400);  // TLS on a plain port
  EXPECT_EQ(refused("G\x01T / HTTP/1.1\r\n" + kHost + "\r\n"), 400);
  EXPECT_EQ(refused("GET /a b HTTP/1.1\r\n" + kHost + "\r\n"), 505);
  EXPECT_EQ(refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n" + kHost + "No colon\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n" + kHost + ": no name\r\n\r\n"), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n" + kHost + std::string("A: b\0c\r\n\r\n", 11)), 400);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\n" + kHost + "A: b\rc\r\n\r\n"), 400);
}

TEST(HttpRequestParser, BrokenChunksAreRefused) {
  const auto with = [](const std::string& body, const ParserLimits& limits = {}) {
    return refused("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + body,
                   limits);
  };
  EXPECT_EQ(with("x\r\n\r\n"), 400);
  EXPECT_EQ(with("-1\r\n\r\n"), 400);
  EXPECT_EQ(with("\r\n\r\n\r\n"), 400);
  EXPECT_EQ(with("3\r\nabcX\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(with("fffffffffffffffff\r\n"), 400);
  EXPECT_EQ(with("3;" + std::string(40000, 'e')), 400);
  EXPECT_EQ(with("0\r\n" + std::string(40000, 'e')), 400);
  // Bare line feeds between the pieces; those in them are theirs.
  EXPECT_EQ(with("5\nhello\n0\n\n"), 400);
  EXPECT_EQ(with("0\n\n"), 400);
  EXPECT_EQ(with("5\r\nhello\r\n0\n"), 400);
  EXPECT_EQ(with("0\r\n\n"), 400);
  EXPECT_EQ(with("4\r\n\na\n\n\r\n0\r\n\r\n"), 0);
}

TEST(HttpRequestParser, LimitsHoldAtEveryByte) {
  ParserLimits limits;
  limits.header_bytes = 2048;
  limits.header_count = 20;
  limits.body_bytes = 10;
  EXPECT_EQ(refused("GET /" + std::string(4000, 'a'), limits), 414);
  EXPECT_EQ(refused("GET / HTTP/1.1\r\nHost: h\r\nA: " + std::string(4000, 'a'), limits), 431);
  std::string many = "GET / HTTP/1.1\r\n" + kHost;
  for (int i = 0; i < 20; ++i) many += "A: b\r\n";
  EXPECT_EQ(refused(many + "\r\n", limits), 431);
  std::string large = "GET / HTTP/1.1\r\n" + kHost;
  for (int i = 0; i < 4; ++i) large += "A: " + std::string(600, 'b') + "\r\n";
  EXPECT_EQ(refused(large + "\r\n", limits), 431);
  const std::string chunked = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(refused(chunked + "5\r\nabcde\r\n6\r\n", limits), 413);
  EXPECT_EQ(refused(chunked + "fffffffffffffff0\r\n", limits), 413);
  EXPECT_EQ(refused(chunked + "5\r\nabcde\r\n5\r\nabcde\r\n0\r\n\r\n", limits), 0);
  std::string trailers = chunked + "0\r\n";
  for (int i = 0; i < 30; ++i) trailers += "A: b\r\n";
  EXPECT_EQ(refused(trailers + "\r\n", limits), 431);
}

TEST(HttpRequestParser, FoldedLinesAreOneValue) {
  RequestParser parser({});
  feed(parser, "GET / HTTP/1.1\r\nHost: h\r\nX-A: b\r\n  c\r\n\r\n", 1);
  ASSERT_TRUE(parser.done());
  EXPECT_EQ(parser.head().headers.at(1).second, "b c");
}

TEST(HttpRequestParser, ExpectContinue) {
  RequestParser parser({});
  feed(parser, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n");
  EXPECT_TRUE(parser.head_done());
  EXPECT_TRUE(parser.head().expects_continue);
}

}  // namespace
}  // namespace foretoken::http
