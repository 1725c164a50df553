#include <gtest/gtest.h>
#include <signal.h>

#include "apps/command_run.h"
#include "support/gate.h"
#include "support/hub_server.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using test::HubServer;
using test::HubServerAnswer;
using test::HubServerRepo;
using test::HubServerRequest;

// The bundled model as repository org/tiny of a server on this machine.
class Hub : public testing::Test {
 protected:
  Hub() {
    setenv("no_proxy", "*", 1);
    setenv("HF_ENDPOINT", server.url().c_str(), 1);
    setenv("HF_HOME", scratch.path().c_str(), 1);
    unsetenv("HF_HUB_CACHE");
    repo.commit = std::string(40, 'a');
    for (const fs::directory_entry& entry : fs::directory_iterator(bundled_model())) {
      repo.files[entry.path().filename().string()] = read_file(entry.path());
    }
    repo.large = {"model.safetensors"};
    server.set_repo("org/tiny", repo);
  }
  ~Hub() override {
    for (const char* name : {"HF_ENDPOINT", "HF_HOME", "HF_HUB_OFFLINE"}) unsetenv(name);
  }

  static std::vector<std::string> generate(const std::string& model) {
    return {"generate", "--model",       model, "--prompt", "Once upon a time", "--max-tokens",
            "8",        "--temperature", "0",   "--json",   "--log-level",      "error"};
  }
  std::string snapshot() const {
    return scratch.file("hub/models--org--tiny/snapshots/" + repo.commit);
  }

  const test::ScratchFolder scratch;
  HubServer server;
  HubServerRepo repo;
};

TEST_F(Hub, GenerateFetchesOnceAndThenReadsTheCache) {
  const CommandResult local = run_command(generate(bundled_model().string()));
  const CommandResult first = run_command(generate("org/tiny"));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  ASSERT_EQ(local.exit_code, 0) << local.err;
  EXPECT_EQ(first.json_lines()[0]["token_ids"], local.json_lines()[0]["token_ids"]);
  EXPECT_EQ(server.count("", "README.md"), 0);
  server.forget_requests();
  EXPECT_EQ(run_command(generate("org/tiny@main")).exit_code, 0);
  EXPECT_EQ(server.count_files(), 0);
  server.forget_requests();
  setenv("HF_HUB_OFFLINE", "1", 1);
  const CommandResult offline = run_command(generate("org/tiny"));
  EXPECT_EQ(offline.json_lines()[0]["token_ids"], local.json_lines()[0]["token_ids"]);
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST_F(Hub, DownloadPrintsTheSnapshot) {
  const CommandResult result = run_command({"download", "org/tiny"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, snapshot() + "\n");
  EXPECT_TRUE(fs::exists(fs::path(snapshot()) / "model.safetensors"));
  const std::string other = scratch.file("other");
  const CommandResult there =
      run_command({"download", "org/tiny", "--revision", repo.commit, "--download-dir", other});
  EXPECT_EQ(there.out.rfind(other + "/models--org--tiny/snapshots/", 0), 0u) << there.err;
}

TEST_F(Hub, TwoProcessesFetchEachFileOnce) {
  Command first({"download", "org/tiny"});
  Command second({"download", "org/tiny"});
  const CommandResult a = first.finish();
  const CommandResult b = second.finish();
  EXPECT_EQ(a.out, snapshot() + "\n") << a.err;
  EXPECT_EQ(b.out, snapshot() + "\n") << b.err;
  EXPECT_EQ(server.count("GET", "/cdn/"), 1);
}

TEST_F(Hub, ErrorsAreOneLine) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{"download", "org/none"}, "org/none"},
      {{"download", "org/tiny@none"}, "'none'"},
      {{"download", "not/an/id"}, "'not/an/id' is neither a folder"},
      {{"download", "org/tiny", "--revision", "x y"}, "'x y'"},
      {{"download", "org/tiny", "--download-dir", "/proc/nothing"}, "/proc/nothing"},
      {generate("org/none"), "org/none"}};
  for (const auto& [arguments, part] : cases) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_EQ(result.out, "");
    ASSERT_EQ(result.errors().size(), 1u) << result.err;
    EXPECT_NE(result.errors()[0].find(part), std::string::npos) << result.errors()[0];
  }
  EXPECT_EQ(run_command({"download"}).exit_code, 2);
}

TEST_F(Hub, InterruptedDownloadResumes) {
  const std::string& weights = repo.files["model.safetensors"];
  server.set_intercept([&](const HubServerRequest& request) -> std::optional<HubServerAnswer> {
    if (!request.cdn) return std::nullopt;
    return HubServerAnswer{.status = 200,
                           .headers = {},
                           .body = weights,
                           .cut_after = static_cast<int64_t>(weights.size() / 2),
                           .hang = true};
  });
  Command command({"download", "org/tiny"});
  const fs::path blobs = scratch.file("hub/models--org--tiny/blobs");
  const fs::path part = blobs / (HubServer::etag(repo, "model.safetensors") + ".incomplete");
  std::error_code ignored;
  ASSERT_TRUE(test::eventually([&] {
    return fs::exists(part, ignored) && fs::file_size(part, ignored) == weights.size() / 2;
  }));
  command.send_signal(SIGINT);
  const CommandResult result = command.finish();
  EXPECT_EQ(result.exit_code, 130) << result.err;
  EXPECT_NE(result.err.find("resumes"), std::string::npos) << result.err;
  server.set_intercept({});
  server.forget_requests();
  EXPECT_EQ(run_command({"download", "org/tiny"}).exit_code, 0);
  bool resumed = false;
  for (const HubServerRequest& request : server.requests()) {
    resumed = resumed || (request.cdn && request.headers.count("range") > 0);
  }
  EXPECT_TRUE(resumed);
}

}  // namespace
}  // namespace foretoken
