#include "http/message/answer_frame.h"

#include <gtest/gtest.h>

namespace foretoken::http {
namespace {

TEST(HttpAnswerFrame, HeadOfAWholeAnswer) {
  AnswerFrame frame;
  frame.headers = {{"Server", "foretoken"}};
  const std::string head = make_answer_head(frame, 200, "text/plain", {{"X-A", "b"}}, 5, true);
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\nDate: ")) << head;
  EXPECT_NE(head.find("\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nServer: foretoken\r\n"
                      "X-A: b\r\n\r\n"),
            std::string::npos)
      << head;
  EXPECT_EQ(head.find("Connection"), std::string::npos);
}

TEST(HttpAnswerFrame, FramingFollowsVersionAndStatus) {
  AnswerFrame frame;
  EXPECT_NE(make_answer_head(frame, 200, "", {}, {}, true).find("Transfer-Encoding: chunked"),
            std::string::npos);
  EXPECT_NE(make_answer_head(frame, 200, "", {}, 0, false).find("Connection: close"),
            std::string::npos);
  const std::string empty = make_answer_head(frame, 204, "", {}, 0, true);
  EXPECT_EQ(empty.find("Content-Length"), std::string::npos);
  EXPECT_FALSE(frame.has_body(304));
  EXPECT_TRUE(frame.is_chunked(200));
  frame.http10 = true;
  const std::string old = make_answer_head(frame, 200, "", {}, {}, false);
  EXPECT_TRUE(old.starts_with("HTTP/1.0 200 OK\r\n"));
  EXPECT_EQ(old.find("Transfer-Encoding"), std::string::npos);
  EXPECT_FALSE(frame.is_chunked(200));
  EXPECT_NE(make_answer_head(frame, 200, "", {}, 1, true).find("Connection: keep-alive"),
            std::string::npos);
}

TEST(HttpAnswerFrame, HandlersCannotBreakTheFraming) {
  const Headers hostile = {
      {"X-A", "b\r\nSet-Cookie: c"}, {"Bad Name", "x"}, {"content-length", "9"},
      {"Transfer-Encoding", "gzip"}, {"", "x"},         {"Connection", "close"}};
  const std::string head = make_answer_head({}, 200, "a\r\nb", hostile, 1, true);
  EXPECT_EQ(head.find("\r\nSet-Cookie"), std::string::npos);
  EXPECT_EQ(head.find("Bad Name"), std::string::npos);
  EXPECT_EQ(head.find("gzip"), std::string::npos);
  EXPECT_EQ(head.find("9\r\n"), std::string::npos);
  EXPECT_NE(head.find("Content-Type: a  b\r\n"), std::string::npos);
  EXPECT_TRUE(asks_to_close(hostile));
  EXPECT_FALSE(asks_to_close({{"Connection", "keep-alive"}}));
}

TEST(HttpAnswerFrame, Chunks) {
  std::string out;
  append_chunk(out, std::string(26, 'x'));
  EXPECT_EQ(out, "1a\r\n" + std::string(26, 'x') + "\r\n");
}

}  // namespace
}  // namespace foretoken::http
