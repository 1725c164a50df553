#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "apps/command_run.h"

namespace foretoken {
namespace {

using json = nlohmann::json;

// A connection to a unix socket that carries one request.
class Client {
 public:
  Client(const std::string& path, const std::string& method, const std::string& target,
         const std::string& body, const std::string& headers = "") {
    socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    const int connected =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
    EXPECT_EQ(connected, 0) << path << ": " << std::strerror(errno);
    const std::string request =
        method + " " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + headers +
        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    EXPECT_EQ(::write(socket_, request.data(), request.size()),
              static_cast<ssize_t>(request.size()));
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Reads until there is `text`; false at the end.
  bool read_to(const std::string& text) {
    char bytes[4096];
    while (all_.find(text) == std::string::npos) {
      const ssize_t count = ::read(socket_, bytes, sizeof(bytes));
      if (count <= 0) return false;
      all_.append(bytes, static_cast<size_t>(count));
    }
    return true;
  }
  const std::string& read_all() {
    (void)read_to("\x01 never in an answer");
    return all_;
  }
  int status() {
    read_all();
    return all_.size() > 12 ? std::stoi(all_.substr(9, 3)) : 0;
  }
  json body() {
    read_all();
    return json::parse(all_.substr(all_.find("\r\n\r\n") + 4), nullptr, false);
  }

 private:
  int socket_ = -1;
  std::string all_;
};

class Serve : public testing::Test {
 protected:
  std::string socket() const { return scratch_.file("s"); }
  std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = {
        "serve", bundled_model().string(), "--uds", socket(), "--cpu-threads",
        "1",     "--served-model-name",    "tiny"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::string long_request(int max_tokens, int n = 1) {
    return json{{"prompt", "Once upon a time"},
                {"max_tokens", max_tokens},
                {"n", n},
                {"ignore_eos", true},
                {"stream", true}}
        .dump();
  }

  const test::ScratchFolder scratch_;
};

TEST_F(Serve, AnswersAndEndsRunningRequestsOnSigterm) {
  Command command(arguments({"--shutdown-timeout", "600"}));
  ASSERT_TRUE(command.wait_for("serving tiny at unix:"));
  EXPECT_EQ(Client(socket(), "GET", "/health", "").status(), 200);
  Client whole(socket(), "POST", "/v1/completions", R"({"prompt": "Once", "max_tokens": 3})");
  EXPECT_EQ(whole.body()["usage"]["completion_tokens"], 3);
  Client stream(socket(), "POST", "/v1/completions", long_request(1500));
  ASSERT_TRUE(stream.read_to("data: "));
  command.send_signal(SIGTERM);
  const std::string text = stream.read_all();
  EXPECT_NE(text.find("\"finish_reason\":\"length\""), std::string::npos);
  EXPECT_NE(text.find("data: [DONE]"), std::string::npos);
  const CommandResult result = command.finish();
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// As a supervisor signals a process and its group.
TEST_F(Serve, SignalsTogetherAreOne) {
  Command command(arguments({"--shutdown-timeout", "600"}));
  ASSERT_TRUE(command.wait_for("serving tiny"));
  Client stream(socket(), "POST", "/v1/completions", long_request(1500));
  ASSERT_TRUE(stream.read_to("data: "));
  for (const int number : {SIGSTOP, SIGTERM, SIGINT, SIGCONT}) command.send_signal(number);
  EXPECT_NE(stream.read_all().find("\"finish_reason\":\"length\""), std::string::npos);
  EXPECT_EQ(command.finish().exit_code, 0);
}

TEST_F(Serve, WhatRunsAfterTheDeadlineEndsWithWhatItHas) {
  Command command(arguments({"--shutdown-timeout", "0.05"}));
  ASSERT_TRUE(command.wait_for("serving tiny"));
  Client stream(socket(), "POST", "/v1/completions", long_request(2000, 16));
  ASSERT_TRUE(stream.read_to("data: "));
  command.send_signal(SIGTERM);
  EXPECT_NE(stream.read_all().find("\"finish_reason\":\"abort\""), std::string::npos);
  EXPECT_EQ(command.finish().exit_code, 143);
}

TEST_F(Serve, KeysAreAskedFor) {
  Command command(arguments({"--api-key", "one", "--api-key", "two"}));
  ASSERT_TRUE(command.wait_for("serving tiny"));
  EXPECT_EQ(Client(socket(), "GET", "/v1/models", "").status(), 401);
  EXPECT_EQ(Client(socket(), "GET", "/v1/models", "", "Authorization: Bearer two\r\n").status(),
            200);
  EXPECT_EQ(Client(socket(), "GET", "/v1/models", "", "x-api-key: one\r\n").status(), 200);
  EXPECT_EQ(Client(socket(), "GET", "/health", "").status(), 200);
  Client anthropic(socket(), "POST", "/v1/messages", "{}");
  EXPECT_EQ(anthropic.status(), 401);
  EXPECT_EQ(anthropic.body()["type"], "error");
  EXPECT_EQ(anthropic.body()["error"]["type"], "authentication_error");
  command.send_signal(SIGINT);
  EXPECT_EQ(command.finish().exit_code, 0);
}

TEST_F(Serve, VllmsCommandLinesAreTaken) {
  Command command(
      arguments({"-tp", "1", "--max_model_len", "1k", "--no-enable-prefix-caching", "-O3",
                 "--trust-remote-code", "--disable-log-stats", "--enable-chunked-prefill", "-sc",
                 R"({"method": "ngram", "num_speculative_tokens": 2})"}));
  ASSERT_TRUE(command.wait_for("serving tiny"));
  Client models(socket(), "GET", "/v1/models", "");
  EXPECT_EQ(models.body()["data"][0]["max_model_len"], 1000);
  command.send_signal(SIGTERM);
  const CommandResult result = command.finish();
  EXPECT_EQ(result.exit_code, 0);
  for (const char* flag : {"--trust-remote-code has no effect", "--optimization-level has no"}) {
    EXPECT_NE(result.err.find(flag), std::string::npos) << result.err;
  }
  for (const char* flag : {"--tensor-parallel-size", "--enable-chunked-prefill"}) {
    EXPECT_EQ(result.err.find(flag), std::string::npos) << result.err;
  }
}

TEST_F(Serve, FlagsOfAFileAndOfTheEnvironment) {
  const std::string file = scratch_.write("serve.yaml",
                                          "# flags\nmax_model_len: 512  # short\n"
                                          "served-model-name:\n  - first\n  - second\n"
                                          "enable-prefix-caching: false\nuds: /nowhere/s\n"
                                          "seed: null\nspeculative_config:\n"
                                          "    method: ngram\n    num_speculative_tokens: 3\n"
                                          "compilation-config:\n  cudagraph_capture_sizes:\n"
                                          "    - 1\n    - 8\nchat-template: |\n  {{ 1 }}\n"
                                          "  two\n");
  CommandSetting setting;
  setting.environment = {"VLLM_API_KEY=k", "VLLM_FLASH_ATTN_VERSION=3"};
  Command command({"serve", bundled_model().string(), "--config", file, "--uds", socket(),
                   "--cpu-threads", "1"},
                  setting);
  ASSERT_TRUE(command.wait_for("serving first"));
  Client models(socket(), "GET", "/v1/models", "", "Authorization: Bearer k\r\n");
  const json body = models.body();
  ASSERT_EQ(body["data"].size(), 2u) << body;
  EXPECT_EQ(body["data"][1]["id"], "second");
  EXPECT_EQ(body["data"][1]["max_model_len"], 512);
  Client info(socket(), "GET", "/server_info", "", "Authorization: Bearer k\r\n");
  const json drafters = info.body()["vllm_config"]["speculative_config"];
  ASSERT_EQ(drafters.size(), 1u) << drafters;
  EXPECT_EQ(drafters[0]["num_speculative_tokens"], 3);
  Client props(socket(), "GET", "/props", "", "Authorization: Bearer k\r\n");
  EXPECT_EQ(props.body()["chat_template"], "{{ 1 }}\ntwo");
  command.send_signal(SIGTERM);
  EXPECT_NE(command.finish().err.find("VLLM_FLASH_ATTN_VERSION has no effect"), std::string::npos);
}

TEST_F(Serve, WhatCannotBeIsRefusedInOneLine) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> wrong = {
      {{"-tp", "3"}, "--tensor-parallel-size 3 does not divide"},
      {{"-tp", "0"}, "--tensor-parallel-size"},
      {{"-dcp", "2"}, "--decode-context-parallel-size 2 does not divide --tensor-parallel-size 1"},
      {{"-tp", "4", "-dcp", "2"}, "4 heads of keys and values"},
      {{"--enable-dbo", "--cudagraph-mode", "PIECEWISE"}, "two lanes are within one graph"},
      {{"--nnodes", "2", "-tp", "2"}, "--master-addr"},
      {{"--nnodes", "2", "--node-rank", "2", "-tp", "2"}, "--node-rank 2"},
      {{"-dp", "3", "--nnodes", "2", "--master-addr", "x"}, "--data-parallel-size 3 cannot be"},
      {{"-dp", "4", "-dpl", "5"}, "name engines that there are not"},
      {{"-dp", "4", "-dpl", "3", "-dpr", "2", "-dpa", "x"}, "name engines that there are not"},
      {{"-dp", "4", "-dpl", "2"}, "--data-parallel-address"},
      {{"-dp", "4", "-dpl", "0"}, "--data-parallel-address"},
      {{"-dp", "4", "-dpr", "2"}, "say how many engines this host has"},
      {{"-dp", "4", "-dpa", "x", "--headless"}, "--headless is for hosts without a server"},
      {{"-dp", "4", "-dph"}, "say how many engines this host has"},
      {{"-dp", "4", "-dph", "-dpe"}, "leave one of them out"},
      {{"-dp", "4", "-dph", "-dpl", "2", "--headless"}, "every host has one"},
      {{"-dp", "4", "-dpe"}, "say which engine this server has, with --data-parallel-rank"},
      {{"-dp", "4", "-dpn", "4"}, "--data-parallel-rank 4 is no engine of --data-parallel-size 4"},
      {{"-dp", "4", "-dpn", "1", "-dpl", "2"}, "--data-parallel-size-local is 2"},
      {{"--lora-modules", "a"}, "--lora-modules 'a' is no adapter"},
      {{"--tool-call-parser", "hermse"}, "there is no tool-call parser 'hermse'"},
      {{"--allowed-origins", "x"}, "--allowed-origins"},
      {{"--default-chat-template-kwargs", "[1]"}, "must be a JSON object"},
      {{"--per-request-spec-decode-metrics", "detailed"}, "use summary"},
      {{"--max-num-queud-reqs", "3"}, "did you mean '--max-num-queued-reqs'?"},
      {{"--tensor-paralel-size", "1"}, "did you mean '--tensor-parallel-size'?"},
      {{"--config", scratch_.write("switch.yaml", "enable-prefix-caching: maybe\n")},
       "--enable-prefix-caching cannot be 'maybe'"},
      {{"--config", "/nowhere.yaml"}, "/nowhere.yaml"}};
  for (const auto& [flags, part] : wrong) {
    const CommandResult result = run_command(arguments(flags));
    EXPECT_NE(result.exit_code, 0);
    ASSERT_EQ(result.errors().size(), 1u) << result.err;
    EXPECT_NE(result.errors().front().find(part), std::string::npos) << result.err;
  }
}

}  // namespace
}  // namespace foretoken
