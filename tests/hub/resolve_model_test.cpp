#include "hub/resolve_model.h"

#include <thread>

#include "hub/hub_fixture.h"
#include "support/gate.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using test::HubServerAnswer;
using test::HubServerRequest;

class ResolveModel : public test::HubFixture {
 protected:
  // All requests of the Hub's first host are answered so.
  void answer_all(int status, const std::string& code) {
    server.set_intercept([=](const HubServerRequest&) -> std::optional<HubServerAnswer> {
      HubServerAnswer answer{.status = status, .headers = {}, .body = "{}"};
      if (!code.empty()) answer.headers.emplace_back("X-Error-Code", code);
      return answer;
    });
  }
  void fetch_once() {
    const auto folder = resolve();
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    server.forget_requests();
  }
};

TEST_F(ResolveModel, AFolderAlwaysWins) {
  const fs::path before = fs::current_path();
  fs::create_directories(scratch.file("org/tiny"));
  fs::current_path(scratch.path());
  const auto folder = resolve();
  fs::current_path(before);
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(folder.value(), "org/tiny");
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST_F(ResolveModel, FilesAndTyposAreNamed) {
  expect_error(resolve(scratch.write("x.bin", "x")), {"x.bin", "is a file", "*.gguf"});
  expect_error(resolve("/no/such/model"), {"'/no/such/model'", "neither a folder", "Hub id"});
  EXPECT_EQ(server.requests().size(), 0u);
}

// As browsers show it.
TEST_F(ResolveModel, TheAddressOfAFileIsNoPath) {
  for (const char* address : {"https://huggingface.co/org/model/blob/main/m-Q4_K_M.gguf",
                              "https://huggingface.co/org/model/resolve/main/m-Q4_K_M.gguf"}) {
    expect_error(resolve(address),
                 {address, "is neither a folder", "of an address, give org/name"});
  }
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST_F(ResolveModel, PiecesOfAFileAreToBeJoined) {
  for (const char* name : {"x.gguf.part1of2", "y.gguf.part2", "z.gguf-split-a", "w.gguf.001",
                           "v.gguf.part_aa", "u.gguf.ab"}) {
    const Result<std::string> refused = resolve(scratch.write(name, "GGUF"));

    expect_error(refused, {name, "is a piece of a file", "cat "});
  }
}

TEST_F(ResolveModel, AShortCommitOfTheCacheNeedsNoNetwork) {
  fetch_once();
  EXPECT_EQ(resolve("org/tiny@" + repo.commit.substr(0, 8)).value(), snapshot().string());
  EXPECT_EQ(resolve(root().string()).value(), snapshot().string());
  EXPECT_EQ(server.requests().size(), 0u);
  options.offline = true;
  expect_error(resolve("org/tiny@dev"), {"'dev'", "which has main, " + repo.commit});
}

TEST_F(ResolveModel, AGgufFileIsAModel) {
  const std::string path = scratch.write("x.gguf", "x");
  EXPECT_EQ(resolve(path).value(), path);
  options.revision = "dev";
  expect_error(resolve(path), {"--revision 'dev'", path, "remove --revision"});
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST_F(ResolveModel, AGgufFileOfARepository) {
  repo.files = {{"README.md", "read me"},
                {"tiny-Q8_0.gguf", weights(3000)},
                {"tiny-Q4_K_M-00001-of-00002.gguf", weights(2000)},
                {"tiny-Q4_K_M-00002-of-00002.gguf", weights(1000)}};
  server.set_repo("org/tiny", repo);
  const auto named = resolve("org/tiny:q8_0");
  ASSERT_TRUE(named.ok()) << named.status().message();
  EXPECT_EQ(named.value(), (snapshot() / "tiny-Q8_0.gguf").string());
  EXPECT_EQ(read(named.value()), weights(3000));
  EXPECT_FALSE(fs::exists(snapshot() / "README.md"));
  const auto usual = resolve();
  ASSERT_TRUE(usual.ok()) << usual.status().message();
  EXPECT_EQ(usual.value(), (snapshot() / "tiny-Q4_K_M-00001-of-00002.gguf").string());
  EXPECT_TRUE(fs::exists(snapshot() / "tiny-Q4_K_M-00002-of-00002.gguf"));
  options.offline = true;
  EXPECT_EQ(resolve("org/tiny:Q8_0").value(), named.value());
  expect_error(resolve("org/tiny:Q2_K"), {"of the type 'Q2_K'", "there are"});
}

TEST_F(ResolveModel, TheSecondRunAsksForNoFile) {
  fetch_once();
  const auto again = resolve();
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again.value(), snapshot().string());
  EXPECT_EQ(server.count_files(), 0);
  EXPECT_EQ(server.requests().size(), 1u);
  const auto pinned = resolve("org/tiny@" + repo.commit);
  ASSERT_TRUE(pinned.ok());
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(ResolveModel, SingleNamesOfOld) {
  server.set_repo("gpt2", repo);
  const auto folder = resolve("gpt2");
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_NE(folder.value().find("models--gpt2/snapshots/"), std::string::npos);
}

TEST_F(ResolveModel, RenamedRepositories) {
  server.set_intercept([](const HubServerRequest& request) -> std::optional<HubServerAnswer> {
    const size_t at = request.path.find("/old/name/");
    if (at == std::string::npos) return std::nullopt;
    std::string target = request.path;
    target.replace(at, 10, "/org/tiny/");
    return HubServerAnswer{.status = 307, .headers = {{"Location", target}}, .body = ""};
  });
  for (const bool lists_blobs : {true, false}) {
    repo.lists_blobs = lists_blobs;
    server.set_repo("org/tiny", repo);
    const auto folder = resolve("old/name");
    ASSERT_TRUE(folder.ok()) << folder.status().message();
    EXPECT_NE(folder.value().find("models--old--name/snapshots/"), std::string::npos);
    fs::remove_all(options.cache_folder);
  }
}

TEST_F(ResolveModel, AMovedBranchIsFetchedAgain) {
  fetch_once();
  repo.commit = std::string(40, 'b');
  repo.files["config.json"] = "{\"new\": true}";
  server.set_repo("org/tiny", repo);
  const auto folder = resolve();
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(read(fs::path(folder.value()) / "config.json"), "{\"new\": true}");
  EXPECT_EQ(read(root() / "refs/main"), repo.commit);
  EXPECT_EQ(server.count("GET", "/resolve/"), 1);
}

TEST_F(ResolveModel, Revisions) {
  repo.revisions.insert("refs/pr/1");
  server.set_repo("org/tiny", repo);
  ASSERT_TRUE(resolve("org/tiny@refs/pr/1").ok());
  EXPECT_EQ(read(root() / "refs/refs/pr/1"), repo.commit);
  options.revision = "nightly";
  expect_error(resolve(), {"org/tiny", "'nightly'", "--revision"});
}

TEST_F(ResolveModel, UnknownIds) {
  expect_error(resolve("org/none"), {"org/none", "check the name", "local folder 'org/none'"});
  answer_all(401, "");
  expect_error(resolve("org/none"), {"org/none", "check the name", "HF_TOKEN", "local folder"});
}

TEST_F(ResolveModel, GatedFiles) {
  server.set_intercept([](const HubServerRequest& request) -> std::optional<HubServerAnswer> {
    if (request.path.find("/resolve/") == std::string::npos) return std::nullopt;
    return HubServerAnswer{
        .status = 401, .headers = {{"X-Error-Code", "GatedRepo"}}, .body = "gated"};
  });
  const std::string page = server.url() + "/org/tiny";
  expect_error(resolve(), {"org/tiny", "gated", "licence", page, "set HF_TOKEN", "no token"});
  options.token = "hf_weak";
  answer_all(403, "GatedRepo");
  expect_error(resolve(), {"gated", page, "the token that was sent"});
  EXPECT_EQ(resolve().status().message().find("hf_weak"), std::string::npos);
}

TEST_F(ResolveModel, TheTokenGoesToTheHubAlone) {
  options.token = "hf_secret";
  fetch_once();
  fs::remove_all(root());
  ASSERT_TRUE(resolve().ok());
  int num_cdn = 0;
  for (const HubServerRequest& request : server.requests()) {
    EXPECT_EQ(request.headers.count("authorization"), request.cdn ? 0u : 1u) << request.path;
    num_cdn += request.cdn ? 1 : 0;
  }
  EXPECT_EQ(num_cdn, 1);
}

TEST_F(ResolveModel, TokensAndEndpointsThatCannotBe) {
  options.token = "hf\nX-Evil: 1";
  expect_error(resolve(), {"HF_TOKEN"});
  options.token = "";
  options.endpoint = "ftp://hub";
  expect_error(resolve(), {"HF_ENDPOINT", "ftp://hub"});
  options.endpoint = server.url();
  options.cache_folder = "";
  expect_error(resolve(), {"HF_HOME", "--download-dir"});
}

TEST_F(ResolveModel, Offline) {
  options.offline = true;
  expect_error(resolve(), {"org/tiny", "not in the cache", "HF_HUB_OFFLINE", "local folder"});
  options.offline = false;
  fetch_once();
  options.offline = true;
  const auto folder = resolve();
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_EQ(folder.value(), snapshot().string());
  expect_error(resolve("org/tiny@v2"), {"'v2'", "HF_HUB_OFFLINE"});
  EXPECT_EQ(server.requests().size(), 0u);
}

TEST_F(ResolveModel, AnUnreachableHubFallsBackToTheCache) {
  expect_error(resolve("org/none"), {"org/none"});
  fetch_once();
  for (const int status : {500, 503, 401, 404}) {
    answer_all(status, "");
    const auto folder = resolve();
    ASSERT_TRUE(folder.ok()) << status << ": " << folder.status().message();
    EXPECT_EQ(folder.value(), snapshot().string());
  }
  options.endpoint = "http://127.0.0.1:1";
  EXPECT_TRUE(resolve().ok());
  expect_error(resolve("org/other"),
               {"http://127.0.0.1:1", "check the network", "HF_ENDPOINT", "local folder"});
}

TEST_F(ResolveModel, HalfWrittenCaches) {
  fetch_once();
  fs::remove(blob("model.safetensors"));
  options.offline = true;
  expect_error(resolve(), {"incomplete", "model.safetensors"});
  options.offline = false;
  ASSERT_TRUE(resolve().ok());
  EXPECT_EQ(read(snapshot() / "model.safetensors"), repo.files["model.safetensors"]);

  fs::remove_all(snapshot());
  options.offline = true;
  expect_error(resolve(), {"not in the cache"});
  options.offline = false;
  server.forget_requests();
  ASSERT_TRUE(resolve().ok());
  EXPECT_EQ(server.count_files(), 0);

  fs::resize_file(blob("model.safetensors"), 7);
  ASSERT_TRUE(resolve().ok());
  EXPECT_EQ(read(snapshot() / "model.safetensors"), repo.files["model.safetensors"]);

  write(root() / "refs/main", "garbage");
  EXPECT_TRUE(resolve().ok());

  repo.lists_blobs = false;
  server.set_repo("org/tiny", repo);
  fs::resize_file(blob("tokenizer.json"), 0);
  ASSERT_TRUE(resolve().ok());
  EXPECT_EQ(read(snapshot() / "tokenizer.json"), repo.files["tokenizer.json"]);
}

TEST_F(ResolveModel, HostileFileNames) {
  for (const char* name : {"../../evil.json", "/tmp/evil.json", "a/../../tokenizer.json"}) {
    repo.files["tokenizer.json"] = "{}";
    test::HubServerRepo hostile = repo;
    hostile.files[name] = "evil";
    server.set_repo("org/tiny", hostile);
    expect_error(resolve(), {"unsafe name", "HF_ENDPOINT"});
  }
  EXPECT_EQ(server.count_files(), 0);
  repo.files.erase("model.safetensors");
  repo.files["model.safetensors.index.json"] = R"({"weight_map": {"a": "../x.safetensors"}})";
  server.set_repo("org/tiny", repo);
  expect_error(resolve(), {"model.safetensors.index.json of org/tiny", "../x.safetensors"});
}

TEST_F(ResolveModel, HostileListings) {
  const auto answer_listing = [this](const HubServerAnswer& answer) {
    answer_get("/api/models/", answer);
  };
  answer_listing({.status = 200,
                  .headers = {},
                  .body = std::string(1 << 20, ' '),
                  .content_length = -2,
                  .endless = true});
  expect_error(resolve(), {"larger than"});
  answer_listing({.status = 302, .headers = {{"Location", "/api/models/x"}}, .body = ""});
  expect_error(resolve(), {"redirects in a circle"});
  answer_listing({.status = 200, .headers = {}, .body = std::string(1 << 20, '[')});
  expect_error(resolve(), {"no JSON object"});
}

TEST_F(ResolveModel, SeveralAtOnceFetchEachFileOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> num_ok{0};
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] { num_ok += resolve().ok() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_ok.load(), 3);
  EXPECT_EQ(server.count("GET", "/cdn/"), 1);
  EXPECT_EQ(server.count("GET", "/resolve/"), 5);
  EXPECT_EQ(read(snapshot() / "model.safetensors"), repo.files["model.safetensors"]);
}

TEST_F(ResolveModel, CancelKeepsWhatCame) {
  answer_get("/cdn/", {.status = 200,
                       .headers = {},
                       .body = repo.files["model.safetensors"],
                       .cut_after = 100000,
                       .hang = true});
  std::atomic<bool> cancel{false};
  options.cancel = &cancel;
  std::thread user([&] {
    EXPECT_TRUE(test::eventually([&] {
      std::error_code ignored;
      return fs::file_size(incomplete("model.safetensors"), ignored) == 100000;
    }));
    cancel = true;
  });
  const auto folder = resolve();
  user.join();
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.status().code(), StatusCode::kAborted);
  EXPECT_EQ(fs::file_size(incomplete("model.safetensors")), 100000u);
  EXPECT_EQ(count_files(root() / "snapshots"), 0);
  server.set_intercept({});
  cancel = false;
  EXPECT_TRUE(resolve().ok());
}

TEST_F(ResolveModel, AReadOnlyCacheThatIsWholeWillDo) {
  fetch_once();
  fs::remove(root() / "refs/main");
  fs::remove(root() / "refs");
  write(root() / "refs", "no folder");
  EXPECT_TRUE(resolve().ok());
}

}  // namespace
}  // namespace foretoken
