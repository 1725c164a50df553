#include "hub/snapshot_download.h"

#include "hub/hub_fixture.h"
#include "support/gate.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using test::HubServerAnswer;
using test::HubServerRequest;

class SnapshotDownload : public test::HubFixture {
 protected:
  Result<std::string> download() {
    const RepoId id{"org/tiny", "main"};
    HttpClient client(http_settings(options, {}));
    FT_ASSIGN_OR_RETURN(const HubListing listing, list_repo(client, options, id, 1));
    return download_snapshot(options, id, RepoCache(options.cache_folder, id), listing);
  }

  void shard_weights() {
    repo.files.erase("model.safetensors");
    repo.files["model-1.safetensors"] = weights(1000);
    repo.files["model-2.safetensors"] = weights(2000);
    repo.files["model-3.safetensors"] = weights(3000);
    repo.files["model.safetensors.index.json"] =
        R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})";
    repo.large = {"model-1.safetensors", "model-2.safetensors", "model-3.safetensors"};
    server.set_repo("org/tiny", repo);
  }
};

TEST_F(SnapshotDownload, FetchesWhatIsNeededInTheLayoutOfHuggingfaceHub) {
  const auto folder = download();
  ASSERT_TRUE(folder.ok()) << folder.status().message();
  EXPECT_EQ(folder.value(), snapshot().string());
  for (const char* name :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}) {
    EXPECT_EQ(read(snapshot() / name), repo.files[name]) << name;
    EXPECT_EQ(fs::read_symlink(snapshot() / name),
              fs::path("../../blobs") / test::HubServer::etag(repo, name));
  }
  EXPECT_EQ(count_files(snapshot()), 4);
  EXPECT_EQ(count_files(root() / "blobs"), 4);
  EXPECT_EQ(read(root() / "refs/main"), repo.commit);
}

TEST_F(SnapshotDownload, OnlyTheShardsThatTheIndexNames) {
  shard_weights();
  ASSERT_TRUE(download().ok());
  EXPECT_TRUE(fs::exists(snapshot() / "model-1.safetensors"));
  EXPECT_TRUE(fs::exists(snapshot() / "model-2.safetensors"));
  EXPECT_FALSE(fs::exists(snapshot() / "model-3.safetensors"));
  server.forget_requests();
  fs::remove(snapshot() / "model-2.safetensors");
  fs::remove(blob("model-2.safetensors"));
  ASSERT_TRUE(download().ok());
  EXPECT_EQ(server.count_files(), 2);
}

TEST_F(SnapshotDownload, MirrorsThatListNamesOnly) {
  shard_weights();
  repo.lists_blobs = false;
  server.set_repo("org/tiny", repo);
  ASSERT_TRUE(download().ok());
  EXPECT_EQ(server.count("HEAD", "/resolve/"), 6);
  EXPECT_EQ(read(snapshot() / "model-2.safetensors"), repo.files["model-2.safetensors"]);
  server.forget_requests();
  ASSERT_TRUE(download().ok());
  EXPECT_EQ(server.count_files(), 0);
}

TEST_F(SnapshotDownload, WithoutWeights) {
  options.weights = false;
  ASSERT_TRUE(download().ok());
  EXPECT_EQ(server.count("", "safetensors"), 0);
}

TEST_F(SnapshotDownload, AnErrorLeavesNothingInTheSnapshot) {
  answer_get("/cdn/", {.status = 200, .headers = {}, .body = std::string(300000, 'x')});
  expect_error(download(), {"model.safetensors", "checksum"});
  EXPECT_EQ(count_files(root() / "snapshots"), 0);
  EXPECT_FALSE(fs::exists(root() / "refs/main"));
  server.set_intercept({});
  ASSERT_TRUE(download().ok());
}

TEST_F(SnapshotDownload, SeveralFilesAtOnce) {
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  server.set_intercept([&](const HubServerRequest& request) -> std::optional<HubServerAnswer> {
    if (request.path.find("/resolve/") == std::string::npos || request.cdn) return std::nullopt;
    const int running = now.fetch_add(1) + 1;
    for (int seen = most.load(); running > seen && !most.compare_exchange_weak(seen, running);) {
    }
    EXPECT_TRUE(test::eventually([&] { return most.load() >= 2; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    now.fetch_sub(1);
    return std::nullopt;
  });
  options.max_parallel = 2;
  ASSERT_TRUE(download().ok());
  EXPECT_EQ(most.load(), 2);
  server.set_intercept({});
}

TEST_F(SnapshotDownload, OneErrorStopsTheOthers) {
  server.set_intercept([](const HubServerRequest& request) -> std::optional<HubServerAnswer> {
    if (request.cdn) {
      return HubServerAnswer{
          .status = 200, .headers = {}, .body = "x", .content_length = 300000, .hang = true};
    }
    if (request.path.find("/tokenizer.json") != std::string::npos) {
      return HubServerAnswer{.status = 404, .headers = {}, .body = ""};
    }
    return std::nullopt;
  });
  options.stall_timeout = 4 * test::kPatience;
  const auto start = std::chrono::steady_clock::now();
  expect_error(download(), {"tokenizer.json of org/tiny"});
  EXPECT_LT(std::chrono::steady_clock::now() - start, options.stall_timeout / 2);
}

TEST_F(SnapshotDownload, TheDiskIsAskedBeforeTheFirstByte) {
  options.free_bytes = [](const std::string&) { return 300000; };
  expect_error(download(), {"org/tiny", "model.safetensors", "bytes, but only 300000 are free",
                            "--download-dir"});
  EXPECT_EQ(server.count_files(), 0);
}

TEST_F(SnapshotDownload, ProgressOfEveryFile) {
  std::map<std::string, std::vector<int64_t>> seen;
  options.progress = [&seen](const std::string& file, int64_t done, int64_t total) {
    EXPECT_LE(done, total);
    seen[file].push_back(done);
  };
  ASSERT_TRUE(download().ok());
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen["model.safetensors"].front(), 0);
  EXPECT_EQ(seen["model.safetensors"].back(), 300000);
}

}  // namespace
}  // namespace foretoken
