#include "http/server/connection.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "http/server/test_server.h"

namespace foretoken::http {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kSoon{300};

TEST(HttpConnection, KeepAlive) {
  TestServer server;
  HttpClient client = server.connect();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client.ask(get("/hello")).body, "hello");
    EXPECT_EQ(client.ask(post("/echo", "abc" + std::to_string(i))).body, "abc" + std::to_string(i));
  }
  EXPECT_EQ(client.ask(get("/hello", "Connection: close\r\n")).header("Connection"), "close");
  EXPECT_TRUE(client.reaches_end());
}

TEST(HttpConnection, PipelinedRequestsAreAnsweredInOrder) {
  TestServer server;
  HttpClient client = server.connect();
  std::string requests = get("/held") + post("/echo", "second");
  for (int i = 0; i < 50; ++i) requests += get("/items/" + std::to_string(i));
  ASSERT_TRUE(client.send(requests));
  const auto held = server.held().take();
  ASSERT_NE(held, nullptr);
  held->respond(200, "text/plain", "first");
  EXPECT_EQ(client.read_answer().body, "first");
  EXPECT_EQ(client.read_answer().body, "second");
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.read_answer().body, std::to_string(i));
}

TEST(HttpConnection, OldHttpAndHead) {
  TestServer server;
  HttpClient client = server.connect();
  ASSERT_TRUE(client.send("HEAD /hello HTTP/1.1\r\nHost: t\r\n\r\n" + get("/items/x")));
  EXPECT_EQ(client.read_answer(true).header("Content-Length"), "5");
  EXPECT_EQ(client.read_answer().body, "x");  // no body came between
  client = server.connect();
  const Answer answer = client.ask("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(answer.header("Connection"), "keep-alive");
  EXPECT_EQ(client.ask("GET /hello HTTP/1.0\r\n\r\n").body, "hello");
  EXPECT_TRUE(client.reaches_end());
}

TEST(HttpConnection, ChunkedBodiesAndExpect) {
  TestServer server;
  HttpClient client = server.connect();
  EXPECT_EQ(client
                .ask("POST /echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
                .body,
            "abcde");
  ASSERT_TRUE(
      client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n"
                  "Expect: 100-continue\r\n\r\n"));
  EXPECT_EQ(client.read_answer().status, 100);
  EXPECT_EQ(client.ask("xyz").body, "xyz");
  // Refused before the body: no 100, and the connection ends.
  ASSERT_TRUE(
      client.send("POST /small HTTP/1.1\r\nHost: t\r\nContent-Length: 17\r\n"
                  "Expect: 100-continue\r\n\r\n"));
  EXPECT_EQ(client.read_answer().status, 413);
  EXPECT_TRUE(client.reaches_end());
}

TEST(HttpConnection, LargeBodiesBothWays) {
  TestServer server;
  std::string body(size_t{8} << 20, '\0');
  for (size_t i = 0; i < body.size(); ++i) body[i] = static_cast<char>(i * 2654435761U >> 13);
  HttpClient client = server.connect();
  std::thread sender([&] { client.send(post("/echo", body)); });
  const auto answer = [&] {
    sender.join();
    return client.read_answer();
  }();
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body == body);
}

TEST(HttpConnection, RefusalsKeepTheConnectionWhereTheBodyIsSmall) {
  TestServer server;
  HttpClient client = server.connect();
  EXPECT_EQ(client.ask(post("/nowhere", "body")).status, 404);
  EXPECT_EQ(client.ask(post("/hello", "body")).header("Allow"), "GET, HEAD");
  EXPECT_EQ(client.ask(post("/small", std::string(17, 'x'))).status, 413);
  EXPECT_EQ(client.ask(post("/small", std::string(16, 'x'))).status, 200);
  EXPECT_EQ(client
                .ask("POST /small HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "11\r\n01234567890123456\r\n0\r\n\r\n")
                .status,
            413);
  EXPECT_TRUE(client.reaches_end());  // where a chunked body ends, nobody knows
}

// The answer reaches a client that is still sending.
TEST(HttpConnection, TooLargeBodiesAreRefusedAtOnce) {
  ServerConfig config;
  config.max_body_bytes = 1 << 20;
  TestServer server(std::move(config));
  HttpClient client = server.connect();
  ASSERT_TRUE(client.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 67108864\r\n\r\n"));
  ASSERT_TRUE(client.send(std::string(size_t{4} << 20, 'x')));
  const Answer answer = client.read_answer();
  EXPECT_EQ(answer.status, 413);
  EXPECT_NE(answer.body.find("67108864"), std::string::npos) << answer.body;
}

TEST(HttpConnection, HostileHeadsAreAnswered) {
  TestServer server;
  std::string many = "GET /hello HTTP/1.1\r\nHost: t\r\n";
  for (int i = 0; i < 10000; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  EXPECT_EQ(server.ask(many + "\r\n").status, 431);
  EXPECT_EQ(server.ask("GET /" + std::string(200000, 'a') + " HTTP/1.1\r\n\r\n").status, 414);
  EXPECT_EQ(server.ask("GET /%ff HTTP/1.1\r\nHost: t\r\n\r\n").status, 400);
  EXPECT_EQ(server.ask("GET /items/\xff\xfe HTTP/1.1\r\nHost: t\r\n\r\n").status, 400);
  EXPECT_EQ(server.ask("GET /hello HTTP/1.1\r\nHost: t\r\nX: \xff\xfe\r\n\r\n").status, 200);
  EXPECT_EQ(server.ask("GET /hello HTTP/3.0\r\n\r\n").status, 505);
  EXPECT_EQ(server.ask("nonsense\r\n\r\n").status, 400);
  EXPECT_EQ(server.ask(get("/hello", "Transfer-Encoding: gzip\r\n")).status, 501);
  EXPECT_EQ(server.ask(get("/hello")).status, 200);
}

TEST(HttpConnection, FaultsOfHandlersAre500) {
  TestServer server;
  HttpClient client = server.connect();
  EXPECT_EQ(client.ask(get("/throws")).status, 500);
  EXPECT_EQ(client.ask(get("/dropped")).status, 500);
  EXPECT_EQ(client.ask(get("/hello")).status, 200);
  ASSERT_TRUE(client.send(get("/held")));
  auto held = server.held().take();
  held->begin(200, "text/plain");
  held->write("half");
  held.reset();
  const Answer answer = client.read_answer();
  EXPECT_FALSE(answer.whole);  // the client can tell
}

TEST(HttpConnection, StreamsInOrderFromAnyThread) {
  TestServer server;
  HttpClient client = server.connect();
  ASSERT_TRUE(client.send(get("/held")));
  const auto held = server.held().take();
  ASSERT_NE(held, nullptr);
  std::string expected;
  for (int i = 0; i < 2000; ++i) expected += "data: " + std::to_string(i) + "\n\n";
  std::thread writer([&] {
    held->begin(200, "text/event-stream", {{"Cache-Control", "no-cache"}});
    for (int i = 0; i < 2000; ++i) held->write("data: " + std::to_string(i) + "\n\n");
    held->end();
  });
  const Answer answer = client.read_answer();
  writer.join();
  EXPECT_EQ(answer.header("Content-Type"), "text/event-stream");
  EXPECT_EQ(answer.body, expected);
  EXPECT_EQ(client.ask(get("/hello")).body, "hello");
}

TEST(HttpConnection, AClientThatGoesIsNoticed) {
  TestServer server;
  for (const bool begun : {false, true}) {
    HttpClient client = server.connect();
    ASSERT_TRUE(client.send(get("/held")));
    const auto held = server.held().take();
    ASSERT_NE(held, nullptr);
    if (begun) {
      held->begin(200, "text/event-stream");
      held->write("data: 1\n\n");
      EXPECT_FALSE(client.read_some().empty());
    }
    Gate gone;
    held->when_gone([&] { gone.open(); });
    EXPECT_FALSE(held->gone());
    client.close();
    EXPECT_TRUE(gone.wait());
    EXPECT_TRUE(held->gone());
    held->respond(200, "text/plain", "nobody");
    EXPECT_TRUE(eventually([&] { return server->counters().open_connections == 0; }));
    EXPECT_EQ(server->counters().requests_in_flight, 0U);
  }
}

// Also behind so many pipelined bytes that reading rests.
TEST(HttpConnection, AClientThatGoesBehindPipelinedBytesIsNoticed) {
  TestServer server;
  HttpClient client = server.connect();
  std::string requests = get("/held");
  while (requests.size() < (size_t{128} << 10)) requests += get("/hello");
  ASSERT_TRUE(client.send(requests));
  const auto held = server.held().take();
  ASSERT_NE(held, nullptr);
  Gate gone;
  held->when_gone([&] { gone.open(); });
  client.close();
  EXPECT_TRUE(gone.wait());
}

TEST(HttpConnection, BackPressureAndASlowReader) {
  TestServer server;
  HttpClient slow = HttpClient::tcp(server->port());
  ASSERT_TRUE(slow.send(get("/held")));
  const auto held = server.held().take();
  ASSERT_NE(held, nullptr);
  held->begin(200, "text/plain");
  const std::string piece(size_t{1} << 20, 'x');
  size_t num_pieces = 0;
  // The system's buffers take some; then bytes stay here.
  while (held->num_queued_bytes() < (size_t{4} << 20)) {
    held->write(piece);
    ++num_pieces;
    std::this_thread::sleep_for(milliseconds(1));
    ASSERT_LT(num_pieces, 1000U);
  }
  std::atomic<bool> all_sent{false};
  held->when_sent([&] { all_sent = true; });
  // Nobody else waits for it, on no loop.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(server.ask(get("/hello")).body, "hello");
  EXPECT_FALSE(all_sent);
  held->end();
  const Answer answer = slow.read_answer();
  EXPECT_EQ(answer.body.size(), num_pieces << 20);
  EXPECT_TRUE(eventually([&] { return all_sent.load(); }));
}

TEST(HttpConnection, AReaderThatTakesNothingIsGivenUp) {
  ServerConfig config;
  config.timeouts.write = kSoon;
  TestServer server(std::move(config));
  HttpClient client = server.connect();
  ASSERT_TRUE(client.send(get("/held")));
  const auto held = server.held().take();
  ASSERT_NE(held, nullptr);
  Gate gone;
  held->when_gone([&] { gone.open(); });
  held->begin(200, "text/plain");
  held->write(std::string(size_t{64} << 20, 'x'));
  EXPECT_TRUE(gone.wait());
}

// Time alone ends nothing: an answer may take as long as it needs.
TEST(HttpConnection, SlowAnswersLive) {
  ServerConfig config;
  config.timeouts.body = config.timeouts.keep_alive = config.timeouts.write = kSoon;
  TestServer server(std::move(config));
  HttpClient client = server.connect();
  ASSERT_TRUE(client.send(get("/held")));
  const auto held = server.held().take();
  ASSERT_NE(held, nullptr);
  std::this_thread::sleep_for(3 * kSoon);
  EXPECT_FALSE(held->gone());
  held->respond(200, "text/plain", "late");
  EXPECT_EQ(client.read_answer().body, "late");
}

TEST(HttpConnection, SlowRequestsAre408) {
  ServerConfig config;
  config.timeouts.header = config.timeouts.body = config.timeouts.linger_unread = kSoon;
  TestServer server(std::move(config));
  HttpClient head = server.connect();
  ASSERT_TRUE(head.send("GET /hello HTTP/1.1\r\nHost: t\r\nX: "));
  HttpClient trickle = server.connect();
  std::atomic<bool> done{false};
  std::thread writer([&] {
    trickle.send("GET /hello HTTP/1.1\r\nX: ");
    while (!done && trickle.send("y")) std::this_thread::sleep_for(milliseconds(20));
  });
  HttpClient body = server.connect();
  ASSERT_TRUE(body.send("POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 5000\r\n\r\nabc"));
  EXPECT_EQ(head.read_answer().status, 408);
  EXPECT_EQ(body.read_answer().status, 408);
  EXPECT_TRUE(eventually([&] { return server->counters().open_connections <= 1; }));
  done = true;
  writer.join();
  EXPECT_EQ(trickle.read_answer().status, 408);
}

TEST(HttpConnection, IdleConnectionsAreClosedQuietly) {
  ServerConfig strict;
  strict.timeouts.connect = kSoon;
  TestServer first(std::move(strict));
  HttpClient silent = first.connect();
  EXPECT_EQ(silent.read_some(), "");
  strict = {};
  strict.timeouts.keep_alive = kSoon;
  TestServer second(std::move(strict));
  HttpClient idle = second.connect();
  EXPECT_EQ(idle.ask(get("/hello")).status, 200);
  EXPECT_EQ(idle.read_some(), "");
}

TEST(HttpConnection, RequestIdsAndServerName) {
  ServerConfig config;
  config.request_id_headers = true;
  TestServer server(std::move(config));
  EXPECT_EQ(server.ask(get("/hello", "X-Request-Id: abc\r\n")).header("X-Request-Id"), "abc");
  EXPECT_EQ(server.ask(get("/hello")).header("X-Request-Id").size(), 32U);
  EXPECT_EQ(server.ask(get("/nowhere")).header("X-Request-Id").size(), 32U);
  EXPECT_EQ(server.ask("bad\r\n\r\n").header("X-Request-Id").size(), 32U);
  EXPECT_EQ(server.ask(get("/hello")).header("Server"), "foretoken");
  TestServer plain;
  EXPECT_EQ(plain.ask(get("/hello", "X-Request-Id: abc\r\n")).header("X-Request-Id"), "");
}

TEST(HttpConnection, Cors) {
  TestServer server;
  const Answer preflight = server.ask(
      "OPTIONS /echo HTTP/1.1\r\nHost: t\r\nOrigin: https://a.example\r\n"
      "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: x-a\r\n\r\n");
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(preflight.header("Access-Control-Allow-Headers"), "x-a");
  EXPECT_EQ(preflight.head.find("Access-Control-Allow-Origin"),
            preflight.head.rfind("Access-Control-Allow-Origin"));
  EXPECT_EQ(server.ask(get("/hello", "Origin: https://a.example\r\n"))
                .header("Access-Control-Allow-Origin"),
            "*");
  EXPECT_EQ(server.ask(get("/nowhere", "Origin: https://a.example\r\n"))
                .header("Access-Control-Allow-Origin"),
            "*");  // pages may read errors too
}

}  // namespace
}  // namespace foretoken::http
