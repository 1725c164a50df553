#include "http/server/listener.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "http/server/test_server.h"
#include "support/scratch_folder.h"

namespace foretoken::http {
namespace {

std::string problem(ServerConfig config) {
  const auto server = Server::start(std::move(config), {});
  return server.ok() ? std::string() : server.status().message();
}

bool has_ipv6() {
  ServerConfig config;
  config.host = "::1";
  config.port = 0;
  return problem(config).empty();
}

TEST(HttpListener, AddressesInUseAreNamed) {
  TestServer server;
  ServerConfig config;
  config.host = "127.0.0.1";
  config.port = server->port();
  const std::string message = problem(config);
  EXPECT_NE(message.find("127.0.0.1:" + std::to_string(server->port())), std::string::npos)
      << message;
  EXPECT_NE(message.find("--port"), std::string::npos) << message;
  config.host = "";
  EXPECT_NE(problem(config).find("in use"), std::string::npos);
}

TEST(HttpListener, UnknownHostsAreNamed) {
  ServerConfig config;
  config.host = "256.0.0.1.invalid";
  EXPECT_NE(problem(config).find("--host 256.0.0.1.invalid"), std::string::npos);
}

TEST(HttpListener, AllAddresses) {
  ServerConfig config;
  config.port = 0;
  const auto started = Server::start(
      config, {{"GET", "/",
                [](auto exchange) { exchange->respond(200, "", exchange->request().client); }}});
  ASSERT_TRUE(started.ok()) << started.status().message();
  const uint16_t port = started.value()->port();
  const Answer v4 = HttpClient::tcp(port, "127.0.0.1").ask(get("/"));
  EXPECT_TRUE(v4.body.starts_with("127.0.0.1:")) << v4.body;  // not ::ffff:127.0.0.1
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  EXPECT_TRUE(HttpClient::tcp(port, "::1").ask(get("/")).body.starts_with("[::1]:"));
}

TEST(HttpListener, AStarIsAllAddresses) {
  ServerConfig config;
  config.host = "*";
  TestServer server(std::move(config));
  EXPECT_EQ(HttpClient::tcp(server->port(), "127.0.0.1").ask(get("/hello")).body, "hello");
}

TEST(HttpListener, Ipv6) {
  if (!has_ipv6()) GTEST_SKIP() << "no IPv6 here";
  for (const char* host : {"::1", "[::1]"}) {
    ServerConfig config;
    config.host = host;
    TestServer server(std::move(config));
    EXPECT_EQ(server->address(), "http://[::1]:" + std::to_string(server->port()));
    EXPECT_EQ(HttpClient::tcp(server->port(), "::1").ask(get("/hello")).body, "hello");
  }
}

TEST(HttpListener, NamesListenOnTheirAddresses) {
  ServerConfig config;
  config.host = "localhost";
  TestServer server(std::move(config));
  const Answer v4 = HttpClient::tcp(server->port(), "127.0.0.1").ask(get("/hello"));
  const Answer v6 = HttpClient::tcp(server->port(), "::1").ask(get("/hello"));
  EXPECT_TRUE(v4.body == "hello" || v6.body == "hello");
}

TEST(HttpListener, SeveralPortsTellThemselvesApart) {
  ServerConfig config;
  config.host = "127.0.0.1";
  config.num_ports = 3;
  const std::vector<Route> routes = {{"GET", "/", [](auto exchange) {
                                        const int number = exchange->request().port_number;
                                        exchange->respond(200, "", std::to_string(number));
                                      }}};
  // Somebody else may have a port behind a free one.
  std::unique_ptr<Server> server;
  for (int tries = 0; server == nullptr && tries < 50; ++tries) {
    const uint16_t free_port = TestServer()->port();
    if (free_port > 65000) continue;
    config.port = free_port;
    if (auto started = Server::start(config, routes); started.ok()) {
      server = std::move(started).value();
    }
  }
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(server->port(), config.port);
  for (int i = 0; i < 3; ++i) {
    const auto port = static_cast<uint16_t>(config.port + i);
    EXPECT_EQ(HttpClient::tcp(port).ask(get("/")).body, std::to_string(i));
  }
}

TEST(HttpListener, SeveralPortsNeedAFirstOne) {
  ServerConfig config;
  config.num_ports = 2;
  config.port = 0;
  EXPECT_NE(problem(config).find("give --port"), std::string::npos);
  config.port = 65535;
  EXPECT_NE(problem(config).find("give a lower one"), std::string::npos);
}

class HttpUnixListener : public ::testing::Test {
 protected:
  ServerConfig config() const {
    ServerConfig config;
    config.uds = path_;
    config.uds_mode = 0600;
    return config;
  }
  bool exists() const { return access(path_.c_str(), F_OK) == 0; }

  const test::ScratchFolder folder_;
  const std::string path_ = folder_.file("socket");
};

TEST_F(HttpUnixListener, ServesAndCleansUp) {
  {
    TestServer server(config());
    EXPECT_EQ(server->address(), "unix:" + path_);
    EXPECT_EQ(server->port(), 0);
    struct stat info{};
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600U);
    HttpClient client = HttpClient::unix_socket(path_);
    EXPECT_EQ(client.ask(get("/hello")).body, "hello");
    EXPECT_EQ(client.ask(post("/echo", std::string(1 << 20, 'x'))).body.size(), size_t{1} << 20);
    EXPECT_NE(problem(config()).find("another server"), std::string::npos);
    EXPECT_EQ(HttpClient::unix_socket(path_).ask(get("/hello")).body, "hello");
  }
  EXPECT_FALSE(exists());
}

TEST_F(HttpUnixListener, StaleFilesAreReplacedAndOthersKept) {
  {
    TestServer server(config());
    ASSERT_EQ(rename(path_.c_str(), (path_ + ".old").c_str()), 0);
  }
  ASSERT_EQ(rename((path_ + ".old").c_str(), path_.c_str()), 0);  // as after SIGKILL
  {
    TestServer server(config());
    EXPECT_EQ(HttpClient::unix_socket(path_).ask(get("/hello")).body, "hello");
  }
  std::ofstream(path_) << "precious";
  EXPECT_NE(problem(config()).find("no socket"), std::string::npos);
  EXPECT_TRUE(exists());
}

TEST_F(HttpUnixListener, PathsThatCannotWork) {
  ServerConfig config;
  config.uds = "/nonexistent/folder/x.sock";
  EXPECT_NE(problem(config).find("--uds"), std::string::npos);
  config.uds = "/tmp/" + std::string(200, 'x');
  EXPECT_NE(problem(config).find("longer"), std::string::npos);
}

}  // namespace
}  // namespace foretoken::http
