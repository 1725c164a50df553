#include "hub/blob_download.h"

#include "hub/hub_fixture.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;
using test::HubServerAnswer;
using test::HubServerRequest;

constexpr const char* kFile = "model.safetensors";

class BlobDownload : public test::HubFixture {
 protected:
  Status download(HubFile file) {
    const RepoCache cache(options.cache_folder, id);
    FT_RETURN_IF_ERROR(cache.make_folders());
    HttpClient client(http_settings(options, [this] { return options.cancelled(); }));
    DownloadProgress progress(options);
    const DownloadJob job{options, id, cache, repo.commit, progress};
    return download_blob(client, job, &file);
  }
  HubFile known(const std::string& name) {
    return {name, test::HubServer::etag(repo, name),
            static_cast<int64_t>(repo.files.at(name).size())};
  }
  void expect_whole() { EXPECT_EQ(read(blob(kFile)), repo.files[kFile]); }
  void expect_message(const Status& status, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) {
      EXPECT_NE(status.message().find(part), std::string::npos)
          << part << " is not in: " << status.message();
    }
  }
  // The start of each ranged request for the large file, in order.
  std::vector<std::string> ranges() {
    std::vector<std::string> all;
    for (const HubServerRequest& request : server.requests()) {
      const auto range = request.headers.find("range");
      if (request.cdn) all.push_back(range == request.headers.end() ? "" : range->second);
    }
    return all;
  }

  const RepoId id{"org/tiny", "main"};
};

TEST_F(BlobDownload, AsksForEtagAndSizeOnlyWhenNotKnown) {
  ASSERT_TRUE(download(known("config.json")).ok());
  EXPECT_EQ(server.count("HEAD", ""), 0);
  ASSERT_TRUE(download({.name = kFile, .etag = ""}).ok());
  EXPECT_EQ(server.count("HEAD", ""), 1);
  expect_whole();
  EXPECT_EQ(read(blob("config.json")), repo.files["config.json"]);
}

TEST_F(BlobDownload, ResumesWhatIsThere) {
  write(incomplete(kFile), repo.files[kFile].substr(0, 123456));
  ASSERT_TRUE(download(known(kFile)).ok());
  EXPECT_EQ(ranges(), std::vector<std::string>({"bytes=123456-"}));
  expect_whole();
  EXPECT_FALSE(fs::exists(incomplete(kFile)));
}

TEST_F(BlobDownload, EmptyFullAndOverlongRemainders) {
  write(incomplete(kFile), "");
  ASSERT_TRUE(download(known(kFile)).ok());
  expect_whole();
  fs::remove(blob(kFile));
  server.forget_requests();
  write(incomplete(kFile), repo.files[kFile]);
  ASSERT_TRUE(download(known(kFile)).ok());
  EXPECT_EQ(server.requests().size(), 0u);
  expect_whole();
  fs::remove(blob(kFile));
  write(incomplete(kFile), repo.files[kFile] + "more");
  ASSERT_TRUE(download(known(kFile)).ok());
  expect_whole();
}

TEST_F(BlobDownload, ADamagedRemainderIsFetchedAnew) {
  write(incomplete(kFile), std::string(1000, '\0'));
  ASSERT_TRUE(download(known(kFile)).ok());
  EXPECT_EQ(ranges(), std::vector<std::string>({"bytes=1000-", ""}));
  expect_whole();
}

TEST_F(BlobDownload, ABlobOfTheWrongSizeIsReplaced) {
  write(blob(kFile), "half");
  ASSERT_TRUE(download(known(kFile)).ok());
  expect_whole();
}

TEST_F(BlobDownload, AServerThatCannotResumeStartsAgain) {
  write(incomplete(kFile), repo.files[kFile].substr(0, 5000));
  answer_get("/cdn/", {.status = 200, .headers = {}, .body = repo.files[kFile]});
  ASSERT_TRUE(download(known(kFile)).ok());
  expect_whole();
}

TEST_F(BlobDownload, WrongBytes) {
  std::string wrong = repo.files[kFile];
  wrong[200000] ^= 1;
  answer_get("/cdn/", {.status = 200, .headers = {}, .body = wrong});
  expect_message(download(known(kFile)), {kFile, "org/tiny", "checksum", "run again"});
  EXPECT_FALSE(fs::exists(blob(kFile)));
  EXPECT_FALSE(fs::exists(incomplete(kFile)));
  EXPECT_EQ(server.count("GET", "/cdn/"), 1);
  server.set_intercept({});
  ASSERT_TRUE(download(known(kFile)).ok());
  expect_whole();
}

TEST_F(BlobDownload, WrongBytesOfAnOrdinaryFile) {
  answer_get(
      "/config.json",
      {.status = 200, .headers = {}, .body = std::string(repo.files["config.json"].size(), 'x')});
  expect_message(download(known("config.json")), {"config.json", "checksum"});
}

TEST_F(BlobDownload, ABrokenConnectionIsTakenUpAgain) {
  std::atomic<int> asked{0};
  server.set_intercept([&](const HubServerRequest& request) -> std::optional<HubServerAnswer> {
    if (!request.cdn || asked.fetch_add(1) > 0) return std::nullopt;
    return HubServerAnswer{
        .status = 200, .headers = {}, .body = repo.files[kFile], .cut_after = 100000};
  });
  ASSERT_TRUE(download(known(kFile)).ok());
  EXPECT_EQ(ranges().size(), 2u);
  expect_whole();
  server.set_intercept({});
}

TEST_F(BlobDownload, GivesUpAfterSomeAttemptsAndKeepsTheBytes) {
  answer_get("/cdn/",
             {.status = 200, .headers = {}, .body = repo.files[kFile], .cut_after = 100000});
  const Status status = download(known(kFile));
  expect_message(status, {kFile, "100000 of 300000 bytes", "3 attempts", "running again resumes"});
  EXPECT_EQ(server.count("GET", "/cdn/"), 3);
  EXPECT_EQ(fs::file_size(incomplete(kFile)), 100000u);
  server.set_intercept({});
  server.forget_requests();
  ASSERT_TRUE(download(known(kFile)).ok());
  EXPECT_EQ(ranges(), std::vector<std::string>({"bytes=100000-"}));
  expect_whole();
}

TEST_F(BlobDownload, AStalledServerIsGivenUp) {
  options.max_attempts = 1;
  options.stall_timeout = std::chrono::milliseconds(200);
  answer_get(
      "/cdn/",
      {.status = 200, .headers = {}, .body = repo.files[kFile], .cut_after = 1000, .hang = true});
  expect_message(download(known(kFile)), {kFile, "running again resumes"});
}

TEST_F(BlobDownload, MoreBytesThanAnnounced) {
  answer_get("/cdn/", {.status = 200,
                       .headers = {},
                       .body = repo.files[kFile],
                       .content_length = -2,
                       .endless = true});
  expect_message(download(known(kFile)), {kFile, "300000 bytes that it announced"});
  EXPECT_FALSE(fs::exists(blob(kFile)));
}

TEST_F(BlobDownload, ContentLengthThatDoesNotFit) {
  answer_get("/cdn/", {.status = 200, .headers = {}, .body = "short"});
  expect_message(download(known(kFile)), {kFile, "announces 5 bytes", "300000"});
}

TEST_F(BlobDownload, AnotherPartThanAskedFor) {
  write(incomplete(kFile), repo.files[kFile].substr(0, 1000));
  answer_get("/cdn/", {.status = 206,
                       .headers = {{"Content-Range", "bytes 500-299999/300000"}},
                       .body = repo.files[kFile].substr(500)});
  expect_message(download(known(kFile)), {kFile, "another part"});
}

TEST_F(BlobDownload, EtagsThatAreNoChecksumsAreComparedBySize) {
  const HubFile odd{"config.json", "5d41402abc4b2a76b9719d911017c592",
                    static_cast<int64_t>(repo.files["config.json"].size())};
  ASSERT_TRUE(download(odd).ok());
  EXPECT_EQ(read(root() / "blobs" / odd.etag), repo.files["config.json"]);
}

TEST_F(BlobDownload, SizesThatCannotBe) {
  HubFile huge = known("config.json");
  huge.size = int64_t{1} << 40;
  expect_message(download(huge), {"config.json", "refused"});
  options.free_bytes = [](const std::string&) { return 299999; };
  expect_message(download(known(kFile)), {kFile, "needs 300000 bytes", "only 299999"});
  EXPECT_EQ(server.requests().size(), 0u);
  write(incomplete(kFile), repo.files[kFile].substr(0, 1));
  EXPECT_TRUE(download(known(kFile)).ok());
}

}  // namespace
}  // namespace foretoken
