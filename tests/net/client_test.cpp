#include "net/client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "support/fake_server.h"
#include "support/gate.h"

namespace foretoken::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::FakeReply;
using test::FakeRequest;
using test::FakeServer;

// Longer than any test; a server's pause ends with the server.
constexpr milliseconds kForEver{600'000};

struct Answer {
  int status = 0;
  Headers headers;
  std::string body;
  Status end;
  int num_ends = 0;
};

std::unique_ptr<Client> client_of(const std::string& url, const ClientOptions& options = {}) {
  return Client::create(parse_url(url).value(), options).value();
}

void send(Client& client, ClientRequest request, Answer* answer,
          std::function<void()> then = nullptr) {
  ClientHandlers handlers;
  handlers.on_head = [=](int status, const Headers& headers) {
    answer->status = status;
    answer->headers = headers;
  };
  handlers.on_body = [=](std::string_view bytes) { answer->body += bytes; };
  handlers.on_end = [=](const Status& status) {
    answer->end = status;
    ++answer->num_ends;
    if (then) then();
  };
  client.send(std::move(request), std::move(handlers));
}

Answer ask(Client& client, const ClientRequest& request) {
  Answer answer;
  send(client, request, &answer);
  client.run();
  EXPECT_EQ(answer.num_ends, 1);
  return answer;
}

ClientRequest get(const std::string& path) { return {"GET", path, {}, "", {}}; }

TEST(HttpClient, SendsAndReceives) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) { reply.json(201, "{\"x\":1}"); });
  const auto client = client_of(server.url() + "/prefix/");
  const Answer answer =
      ask(*client, {"POST", "/v1/x", {{"X-Key", "value"}}, std::string(300'000, 'b'), {}});
  EXPECT_TRUE(answer.end.ok()) << answer.end.message();
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.body, "{\"x\":1}");
  EXPECT_EQ(header_of(answer.headers, "content-type"), "application/json");
  const FakeRequest got = server.requests().at(0);
  EXPECT_EQ(got.method, "POST");
  EXPECT_EQ(got.path, "/prefix/v1/x");
  EXPECT_EQ(got.headers.at("x-key"), "value");
  EXPECT_EQ(got.headers.at("host"), "127.0.0.1:" + std::to_string(server.port()));
  EXPECT_EQ(got.body, std::string(300'000, 'b'));
}

TEST(HttpClient, BytesComeAsTheyAreSent) {
  std::atomic<size_t> num_told{0};
  FakeServer server([&](const FakeRequest&, FakeReply& reply) {
    reply.begin_stream();
    for (size_t i = 0; i < 4; ++i) {
      // A client that waited for more would wait in vain.
      reply.wait_until([&] { return num_told >= i * 6; });
      reply.chunk("piece ");
    }
    reply.end_stream();
  });
  const auto client = client_of(server.url());
  const auto start = steady_clock::now();
  std::string body;
  ClientHandlers handlers;
  handlers.on_body = [&](std::string_view bytes) {
    body += bytes;
    num_told = body.size();
  };
  client->send(get("/"), std::move(handlers));
  client->run();
  EXPECT_EQ(body, "piece piece piece piece ");
  EXPECT_LT(steady_clock::now() - start, test::kPatience) << "the server waited in vain";
}

TEST(HttpClient, AnAnswerCutAnywhereIsTheSame) {
  const std::string text =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
  FakeServer server([&](const FakeRequest& request, FakeReply& reply) {
    const size_t cut = std::stoul(request.path.substr(1));
    reply.raw(text.substr(0, cut));
    reply.pause(milliseconds(2));
    reply.raw(text.substr(cut));
  });
  const auto client = client_of(server.url());
  for (size_t cut = 1; cut < text.size(); ++cut) {
    const Answer answer = ask(*client, get("/" + std::to_string(cut)));
    EXPECT_TRUE(answer.end.ok()) << cut << ": " << answer.end.message();
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "hello!") << cut;
  }
  EXPECT_EQ(server.num_connections(), 1u);
}

TEST(HttpClient, BodiesWithoutALengthEndWithTheConnection) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) {
    reply.raw("HTTP/1.1 200 OK\r\n\r\nall of it");
    reply.close();
  });
  const auto client = client_of(server.url());
  for (int i = 0; i < 2; ++i) {
    const Answer answer = ask(*client, get("/"));
    EXPECT_TRUE(answer.end.ok()) << answer.end.message();
    EXPECT_EQ(answer.body, "all of it");
  }
  EXPECT_EQ(client->num_connections(), 2u);
}

TEST(HttpClient, ConnectionsAreUsedAgainAndManyAtOnce) {
  constexpr int kAtOnce = 50;
  std::atomic<int> num_asked{0};
  FakeServer server([&](const FakeRequest& request, FakeReply& reply) {
    const int round = num_asked++ / kAtOnce;
    reply.wait_until([&] { return num_asked >= (round + 1) * kAtOnce; });
    reply.json(200, request.path);
  });
  const auto client = client_of(server.url());
  std::vector<Answer> answers(kAtOnce);
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < answers.size(); ++i) {
      answers[i] = {};
      send(*client, get("/" + std::to_string(i)), &answers[i]);
    }
    client->run();
    for (size_t i = 0; i < answers.size(); ++i) {
      EXPECT_EQ(answers[i].body, "/" + std::to_string(i)) << answers[i].end.message();
    }
  }
  EXPECT_EQ(client->num_connections(), 50u);
  EXPECT_EQ(server.num_connections(), 50u);
}

TEST(HttpClient, AClosedIdleConnectionIsReplaced) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) {
    reply.json(200, "{}");
    reply.close();
  });
  const auto client = client_of(server.url());
  for (int i = 0; i < 20; ++i) {
    const Answer answer = ask(*client, get("/"));
    EXPECT_TRUE(answer.end.ok()) << answer.end.message();
  }
  EXPECT_EQ(server.requests().size(), 20u);
}

TEST(HttpClient, NobodyListens) {
  const std::string url = "http://127.0.0.1:" + std::to_string(test::closed_port());
  const auto client = client_of(url);
  const Answer answer = ask(*client, get("/"));
  EXPECT_EQ(answer.end.message(), "cannot connect to " + url + ": Connection refused");
}

TEST(HttpClient, AnUnknownHostIsNamed) {
  const auto client = Client::create(parse_url("http://no-such-host.invalid:1").value(), {});
  ASSERT_FALSE(client.ok());
  EXPECT_NE(client.status().message().find("no-such-host.invalid"), std::string::npos);
}

TEST(HttpClient, ABrokenAnswerIsAnError) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    if (request.path == "/chunks") {
      reply.begin_stream();
      reply.chunk("half");
    } else if (request.path == "/length") {
      reply.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    } else if (request.path == "/noise") {
      reply.raw("this is not HTTP\r\n\r\n");
    }
    reply.close();
  });
  const auto client = client_of(server.url());
  for (const char* path : {"/chunks", "/length", "/none"}) {
    const Answer answer = ask(*client, get(path));
    EXPECT_NE(answer.end.message().find("the server closed the connection"), std::string::npos)
        << path << ": " << answer.end.message();
    EXPECT_EQ(answer.body, std::string(path) == "/none" ? "" : "half");
  }
  const Answer noise = ask(*client, get("/noise"));
  EXPECT_FALSE(noise.end.ok());
  EXPECT_EQ(noise.status, 0);
}

TEST(HttpClient, ASlowAnswerEndsAtTheTimeLimit) {
  FakeServer server([](const FakeRequest& request, FakeReply& reply) {
    if (request.path == "/drip") {
      reply.begin_stream();
      for (int i = 0; i < 200; ++i) {
        reply.chunk(".");
        reply.pause(milliseconds(10));
      }
    }
    reply.pause(kForEver);
  });
  ClientOptions options;
  options.request_timeout = milliseconds(200);
  const auto client = client_of(server.url(), options);
  for (const char* path : {"/silent", "/drip"}) {
    const auto start = steady_clock::now();
    const Answer answer = ask(*client, get(path));
    EXPECT_NE(answer.end.message().find("no end within 0.2 s"), std::string::npos)
        << answer.end.message();
    EXPECT_LT(steady_clock::now() - start, kForEver / 2);
  }
  ClientRequest longer = get("/silent");
  longer.timeout = milliseconds(300);
  EXPECT_NE(ask(*client, longer).end.message().find("0.3 s"), std::string::npos);
}

TEST(HttpClient, CallsComeInTheOrderOfTheirTimes) {
  const auto client = client_of("http://127.0.0.1:1");
  const auto now = steady_clock::now();
  std::string order;
  // All have passed when the client runs, so that only their times decide.
  client->call_at(now - milliseconds(10), [&] { order += "c"; });
  client->call_at(now - milliseconds(20), [&] {
    order += "b";
    client->call_at(now - milliseconds(60), [&] { order += "+"; });
  });
  client->call_at(now - milliseconds(30), [&] { order += "a"; });
  client->run();
  EXPECT_EQ(order, "abc+");
  client->call_at(now + milliseconds(60), [&] { order += "d"; });
  client->run();
  EXPECT_EQ(order, "abc+d");
  EXPECT_GE(steady_clock::now() - now, milliseconds(60));
}

TEST(HttpClient, StopEndsEverything) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) {
    reply.begin_stream();
    reply.chunk("begun");
    reply.pause(kForEver);
  });
  const auto client = client_of(server.url());
  std::vector<Answer> answers(20);
  for (Answer& answer : answers) send(*client, get("/"), &answer);
  const auto start = steady_clock::now();
  client->call_at(start + milliseconds(100), [&] { client->stop(); });
  bool called = false;
  client->call_at(start + kForEver / 4, [&] { called = true; });
  client->run();
  EXPECT_LT(steady_clock::now() - start, kForEver / 2);
  EXPECT_FALSE(called);
  for (const Answer& answer : answers) {
    EXPECT_EQ(answer.num_ends, 1);
    EXPECT_EQ(answer.end.code(), StatusCode::kAborted);
  }
  std::string after;
  ClientHandlers handlers;
  handlers.on_body = [&](std::string_view bytes) {
    after += bytes;
    if (after == "begun") client->stop();
  };
  client->send(get("/"), std::move(handlers));
  client->run();
  EXPECT_EQ(after, "begun") << "the client serves on after stop()";
}

TEST(HttpClient, NobodyIsCalledByTheDestructor) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) {
    reply.begin_stream();
    reply.chunk("begun");
    reply.pause(kForEver);
  });
  auto client = client_of(server.url());
  std::string body;
  int num_ends = 0;
  ClientHandlers handlers;
  handlers.on_body = [&](std::string_view bytes) {
    body += bytes;
    if (body != "begun") return;
    client->call_at(steady_clock::now(), [] { throw std::runtime_error("x"); });
  };
  handlers.on_end = [&](const Status&) { ++num_ends; };
  client->send(get("/"), std::move(handlers));
  EXPECT_THROW(client->run(), std::runtime_error);
  client.reset();
  EXPECT_EQ(body, "begun");
  EXPECT_EQ(num_ends, 0);
}

TEST(HttpClient, AHandlerMaySendTheNextRequest) {
  FakeServer server([](const FakeRequest&, FakeReply& reply) { reply.json(200, "{}"); });
  const auto client = client_of(server.url());
  std::vector<Answer> answers(10);
  std::function<void(size_t)> next = [&](size_t i) {
    if (i < answers.size()) send(*client, get("/"), &answers[i], [&, i] { next(i + 1); });
  };
  next(0);
  client->run();
  EXPECT_EQ(std::count_if(answers.begin(), answers.end(),
                          [](const Answer& answer) { return answer.status == 200; }),
            10);
  EXPECT_EQ(client->num_connections(), 1u);
}

}  // namespace
}  // namespace foretoken::net
