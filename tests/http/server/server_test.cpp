#include "http/server/server.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "http/server/test_server.h"
#include "support/no_threads.h"

namespace foretoken::http {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(HttpServer, StartRefusesWhatCannotWork) {
  const auto problem = [](ServerConfig config, std::vector<Route> routes = {}) {
    config.port = 0;
    const auto server = Server::start(std::move(config), std::move(routes));
    return server.ok() ? std::string() : server.status().message();
  };
  ServerConfig config;
  config.num_threads = 0;
  EXPECT_NE(problem(config), "");
  config = {};
  config.max_header_bytes = 10;
  EXPECT_NE(problem(config).find("--h11-max-incomplete-event-size"), std::string::npos);
  config = {};
  config.root_path = "llm";
  EXPECT_NE(problem(config).find("--root-path"), std::string::npos);
  EXPECT_NE(problem({}, {{"GET", "nowhere", [](auto) {}}}), "");
}

TEST(HttpServer, AProbeFindsWhatAStartWouldAndLeavesNothing) {
  ServerConfig config;
  config.host = "127.0.0.1";
  config.port = 0;
  EXPECT_TRUE(Server::probe(config).ok());
  const auto server = Server::start(config, {});
  ASSERT_TRUE(server.ok()) << server.status().message();
  config.port = server.value()->port();
  EXPECT_NE(Server::probe(config).message().find("cannot listen"), std::string::npos);
  config.port = 0;
  config.tls.certfile = "/no/such/file";
  EXPECT_NE(Server::probe(config).message(), "");
}

TEST(HttpServer, WithoutThreadsItIsToldAndEnds) {
  ServerConfig config;
  config.host = "127.0.0.1";
  config.port = 0;
  const test::NoThreads none;
  const auto server = Server::start(config, {});
  ASSERT_FALSE(server.ok());
  EXPECT_NE(server.status().message().find("ulimit -u"), std::string::npos);
}

TEST(HttpServer, KeysOpenRoutesThatNeedThem) {
  ServerConfig config;
  config.api_keys = std::move(ApiKeys::read({"one", "two"}, "").value());
  TestServer server(std::move(config));
  EXPECT_EQ(server.ask(get("/open")).status, 200);
  const Answer refused = server.ask(get("/hello"));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.header("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(server.ask(get("/hello", "Authorization: Bearer two\r\n")).status, 200);
  EXPECT_EQ(server.ask(get("/hello", "x-api-key: one\r\n")).status, 200);
  EXPECT_EQ(server.ask(get("/hello", "api-key: one\r\n")).status, 200);
  EXPECT_EQ(server.ask(get("/hello", "api-key: three\r\n")).status, 401);
  EXPECT_EQ(server.ask(get("/hello", "x-api-key: three\r\n")).status, 401);
}

TEST(HttpServer, ErrorsSpeakTheConfiguredFormat) {
  ServerConfig config;
  config.error_body = [](int status, const std::string& message, const std::string& path) {
    return "<" + std::to_string(status) + " " + path + ">" + message;
  };
  config.root_path = "/llm";
  TestServer server(std::move(config));
  EXPECT_EQ(server.ask(get("/nowhere")).body, "<404 /nowhere>there is no /nowhere here");
  EXPECT_EQ(server.ask(get("/api/hello")).body,
            "<404 /api/hello>there is no /api/hello here; /hello is: leave /api out of the "
            "client's address, or start the server with --root-path /api");
  EXPECT_EQ(server.ask(get("/throws/hello")).body,
            "<404 /throws/hello>there is no /throws/hello here; /hello is: leave /throws out of "
            "the client's address");
  EXPECT_EQ(server.ask(get("/api/elsewhere")).body,
            "<404 /api/elsewhere>there is no /api/elsewhere here; use /hello");
  EXPECT_TRUE(server.ask(get("/throws")).body.starts_with("<500 /throws>"));
  EXPECT_TRUE(server.ask("bad\r\n\r\n").body.starts_with("<400 >"));
  // Refused before the head was read, or while it was.
  const std::string line = "POST /llm/small?a=b HTTP/1.1\r\nHost: t\r\n";
  EXPECT_TRUE(server.ask(line + "X: " + std::string(100000, 'x')).body.starts_with("<431 /small>"));
  EXPECT_TRUE(server.ask(line + "Content-Length: x\r\n\r\n").body.starts_with("<400 /small>"));
  EXPECT_TRUE(server.ask(line + "Content-Length: 17\r\n\r\n" + std::string(17, 'b'))
                  .body.starts_with("<413 /small>"));
}

TEST(HttpServer, AccessLog) {
  std::mutex mutex;
  std::vector<AccessRecord> records;
  ServerConfig config;
  config.access_log = [&](const AccessRecord& record) {
    const std::lock_guard lock(mutex);
    records.push_back(record);
  };
  // A record follows its answer, so the next connection's could overtake it.
  const auto recorded = [&](size_t count) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return records.size() == count;
    });
  };
  {
    TestServer server(std::move(config));
    server.ask(get("/hello?a=b", "X-Request-Id: abc\r\n"));
    EXPECT_TRUE(recorded(1));
    server.ask("bad\r\n\r\n");
    EXPECT_TRUE(recorded(2));
    HttpClient client = server.connect();
    client.send(get("/held"));
    const auto held = server.held().take();
    client.close();
    EXPECT_TRUE(eventually([&] { return held->gone(); }));
  }
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0].method + " " + records[0].target, "GET /hello?a=b");
  EXPECT_EQ(records[0].pattern, "/hello");
  EXPECT_EQ(records[0].id, "abc");
  EXPECT_EQ(records[0].status, 200);
  EXPECT_GT(records[0].num_bytes, 5U);
  EXPECT_TRUE(records[0].client.starts_with("127.0.0.1:"));
  EXPECT_EQ(records[1].status, 400);
  EXPECT_EQ(records[1].pattern, "");
  EXPECT_EQ(records[2].status, 499);
  EXPECT_EQ(records[2].pattern, "/held");
}

// A request to /echo of which the server has seen the head, and nothing else has been sent.
void begin_request(HttpClient& client) {
  ASSERT_TRUE(client.send(
      "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n"));
  ASSERT_EQ(client.read_answer().status, 100);
}

TEST(HttpServer, DrainLetsRequestsEnd) {
  TestServer server;
  HttpClient running = server.connect();
  ASSERT_TRUE(running.send(get("/held")));
  const auto held = server.held().take();
  ASSERT_NE(held, nullptr);
  held->begin(200, "text/plain");
  HttpClient sending = server.connect();
  begin_request(sending);
  ASSERT_TRUE(sending.send("abc"));
  HttpClient idle = server.connect();
  EXPECT_EQ(idle.ask(get("/hello")).status, 200);
  std::atomic<int> drained{-1};
  std::thread drainer([&] { drained = server->drain(seconds(600)) ? 1 : 0; });
  EXPECT_EQ(idle.read_some(), "");
  EXPECT_FALSE(server.connect().connected());
  EXPECT_EQ(drained, -1);
  held->write("abc");
  held->end();
  EXPECT_EQ(running.read_answer().body, "abc");
  EXPECT_TRUE(running.reaches_end());
  const Answer answer = sending.ask("def");
  EXPECT_EQ(answer.body, "abcdef");
  EXPECT_EQ(answer.header("Connection"), "close");
  drainer.join();
  EXPECT_EQ(drained, 1);
}

TEST(HttpServer, DrainDoesNotWaitForHalfRequests) {
  ServerConfig config;
  config.timeouts.drain = milliseconds(200);
  TestServer server(std::move(config));
  HttpClient body = server.connect();
  begin_request(body);
  ASSERT_TRUE(body.send("abc"));
  // Who has answered the first has seen the half behind it.
  HttpClient head = server.connect();
  EXPECT_EQ(head.ask(get("/hello") + "GET /hello HTTP/1.1\r\nHost:").status, 200);
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<bool> drained{false};
  std::thread drainer([&] { drained = server->drain(seconds(600)); });
  for (HttpClient* client : {&body, &head}) {
    const Answer answer = client->read_answer();
    EXPECT_EQ(answer.status, 503);
    EXPECT_NE(answer.body.find("shutting down"), std::string::npos) << answer.body;
    EXPECT_TRUE(client->reaches_end());
    client->close();
  }
  drainer.join();
  EXPECT_TRUE(drained);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(300));
}

TEST(HttpServer, DrainSaysWhenTheDeadlineCameFirst) {
  TestServer server;
  HttpClient client = server.connect();
  ASSERT_TRUE(client.send(get("/held")));
  const auto held = server.held().take();
  ASSERT_NE(held, nullptr);
  Gate gone;
  held->when_gone([&] { gone.open(); });
  EXPECT_FALSE(server->drain(milliseconds(100)));
  EXPECT_FALSE(held->gone());
  server->stop();
  EXPECT_TRUE(gone.wait());
  EXPECT_EQ(client.read_some(), "");
}

TEST(HttpServer, ExchangesOutliveTheServer) {
  TestServer server;
  HttpClient client = server.connect();
  ASSERT_TRUE(client.send(get("/held")));
  auto held = server.held().take();
  ASSERT_NE(held, nullptr);
  bool ran = false;
  server.destroy();
  EXPECT_TRUE(held->gone());
  held->respond(200, "text/plain", "nobody");
  held->post([&] { ran = true; });
  held->when_gone([&] { ran = true; });
  held.reset();
  EXPECT_FALSE(ran);
}

TEST(HttpServer, TooManyConnectionsAreTurnedAway) {
  ServerConfig config;
  config.max_connections = 2;
  config.error_body = [](int, const std::string& message, const std::string& path) {
    return "<" + path + ">" + message;
  };
  TestServer server(std::move(config));
  HttpClient one = server.connect();
  HttpClient two = server.connect();
  EXPECT_EQ(one.ask(get("/hello")).status, 200);
  EXPECT_EQ(two.ask(get("/hello")).status, 200);
  // In the form of its path, and read to its end first: a client that is still sending is not cut
  // off.
  const std::string body(100'000, 'x');
  HttpClient three = server.connect();
  const Answer answer = three.ask("POST /hello HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                                  std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.header("Retry-After"), "1");
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_EQ(answer.body, "</hello>too many connections; try again later");
  three.close();
  EXPECT_TRUE(eventually([&] { return server->counters().open_connections == 2; }));
  one.close();
  EXPECT_TRUE(eventually([&] { return server->counters().open_connections == 1; }));
  EXPECT_EQ(server.ask(get("/hello")).status, 200);
}

TEST(HttpServer, TooManyOfThoseAreToldAtOnce) {
  ServerConfig config;
  config.max_connections = 1;
  TestServer server(std::move(config));
  std::vector<HttpClient> idle;
  for (int i = 0; i < 257; ++i) idle.push_back(server.connect());
  EXPECT_TRUE(eventually([&] { return server->counters().open_connections == idle.size(); }));
  HttpClient one = server.connect();
  EXPECT_EQ(one.read_answer().status, 503);
}

TEST(HttpServer, HundredsOfStreamsAtOnce) {
  constexpr int kClients = 300;
  constexpr int kPieces = 20;
  TestServer server;
  std::vector<HttpClient> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(server.connect());
    ASSERT_TRUE(clients.back().send(get("/held")));
  }
  std::vector<std::shared_ptr<Exchange>> held;
  for (int i = 0; i < kClients; ++i) {
    held.push_back(server.held().take());
    ASSERT_NE(held.back(), nullptr);
    held.back()->begin(200, "text/event-stream");
  }
  EXPECT_EQ(server->counters().requests_in_flight, size_t{kClients});
  EXPECT_EQ(server->counters().open_connections, size_t{kClients});
  // Every third client leaves in the middle.
  for (int piece = 0; piece < kPieces; ++piece) {
    for (const auto& exchange : held) exchange->write("data: " + std::to_string(piece) + "\n\n");
    if (piece == kPieces / 2) {
      for (int i = 0; i < kClients; i += 3) clients[static_cast<size_t>(i)].close();
    }
  }
  for (const auto& exchange : held) exchange->end();
  std::string expected;
  for (int i = 0; i < kPieces; ++i) expected += "data: " + std::to_string(i) + "\n\n";
  for (int i = 0; i < kClients; ++i) {
    if (i % 3 == 0) continue;
    EXPECT_EQ(clients[static_cast<size_t>(i)].read_answer().body, expected);
  }
  EXPECT_TRUE(eventually([&] { return server->counters().requests_in_flight == 0; }));
}

TEST(HttpServer, ManyShortConnections) {
  TestServer server;
  std::atomic<int> num_good{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 250; ++i) {
        if (server.ask(get("/hello", "Connection: close\r\n")).body == "hello") ++num_good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_good, 1000);
  EXPECT_TRUE(eventually([&] { return server->counters().open_connections == 0; }));
}

}  // namespace
}  // namespace foretoken::http
