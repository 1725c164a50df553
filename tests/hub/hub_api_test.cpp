#include "hub/hub_api.h"

#include "hub/hub_fixture.h"

namespace foretoken {
namespace {

const std::string kCommit(40, 'b');

std::string api_listing(const std::string& siblings) {
  return "{\"sha\": \"" + kCommit + "\", \"siblings\": " + siblings + "}";
}

void expect_refused(const std::string& body, const std::string& part) {
  const Result<HubListing> result = parse_listing(body, "http://hub");
  ASSERT_FALSE(result.ok()) << body.substr(0, 100);
  EXPECT_NE(result.status().message().find(part), std::string::npos) << result.status().message();
}

TEST(HubListing, SizesAndEtags) {
  const auto result = parse_listing(
      api_listing("[{\"rfilename\": \"a.json\", \"size\": 3, \"blobId\": \"" +
                  std::string(40, 'c') +
                  "\"}, {\"rfilename\": \"w.safetensors\", \"size\": 9, \"blobId\": \"" +
                  std::string(40, 'd') + "\", \"lfs\": {\"sha256\": \"" + std::string(64, 'e') +
                  "\", \"size\": 9}}, {\"rfilename\": \"plain\"}]"),
      "http://hub");
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result.value().commit, kCommit);
  const std::vector<HubFile>& files = result.value().files;
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].etag, std::string(40, 'c'));
  EXPECT_EQ(files[0].size, 3);
  EXPECT_EQ(files[1].etag, std::string(64, 'e'));
  EXPECT_EQ(files[1].size, 9);
  EXPECT_EQ(files[2].etag, "");
  EXPECT_EQ(files[2].size, -1);
}

TEST(HubListing, HostileAnswers) {
  expect_refused("", "no JSON object");
  expect_refused("<html>", "no JSON object");
  expect_refused("[1]", "no JSON object");
  expect_refused(std::string(100000, '['), "no JSON object");
  expect_refused("{\"sha\": \"../../x\", \"siblings\": []}", "no commit");
  expect_refused("{\"sha\": \"" + kCommit + "\"}", "no files");
  for (const char* name : {"../evil", "/etc/passwd", "a/../../b", "a\\\\b", "a\\u0000b", ""}) {
    expect_refused(api_listing("[{\"rfilename\": \"" + std::string(name) + "\"}]"), "unsafe name");
  }
  expect_refused(api_listing("[7]"), "unsafe name");
  const auto odd = parse_listing(
      api_listing("[{\"rfilename\": \"a\", \"size\": -5, \"blobId\": \"../../x\"}]"), "http://hub");
  ASSERT_TRUE(odd.ok());
  EXPECT_EQ(odd.value().files[0].etag, "");
}

TEST(HubBlobName, LettersAndDigitsOnly) {
  EXPECT_TRUE(is_blob_name(std::string(64, 'a')));
  EXPECT_TRUE(is_blob_name("5d41402abc-1.x"));
  for (const char* etag : {"", "..", ".hidden", "a/b", "../a", "a b", "a\n"}) {
    EXPECT_FALSE(is_blob_name(etag)) << etag;
  }
}

class HubApi : public test::HubFixture {
 protected:
  const RepoId id{"org/tiny", "main"};

  Status find(HubFile* file) {
    HttpClient client(http_settings(options, {}));
    return find_file(client, options, id, repo.commit, file);
  }
  Result<HubListing> list(const RepoId& which, int attempts) {
    HttpClient client(http_settings(options, {}));
    return list_repo(client, options, which, attempts);
  }
};

TEST_F(HubApi, ListsARevision) {
  repo.revisions.insert("refs/pr/1");
  server.set_repo("org/tiny", repo);
  const auto result = list({"org/tiny", "refs/pr/1"}, 1);
  ASSERT_TRUE(result.ok()) << result.status().message();
  EXPECT_EQ(result.value().commit, repo.commit);
  EXPECT_EQ(server.requests()[0].path, "/api/models/org/tiny/revision/refs%2Fpr%2F1?blobs=true");
}

TEST_F(HubApi, AsksAgainWhenTheServerIsBusy) {
  std::atomic<int> asked{0};
  server.set_intercept([&](const test::HubServerRequest&) -> std::optional<test::HubServerAnswer> {
    if (++asked < 3) return test::HubServerAnswer{.status = 503, .headers = {}, .body = ""};
    return std::nullopt;
  });
  EXPECT_TRUE(list(id, 3).ok());
  asked = 0;
  EXPECT_FALSE(list(id, 2).ok());
  EXPECT_EQ(asked.load(), 2);
  server.set_intercept({});
}

TEST_F(HubApi, FindsEtagAndSize) {
  HubFile small{.name = "config.json", .etag = ""};
  ASSERT_TRUE(find(&small).ok());
  EXPECT_EQ(small.etag, test::HubServer::etag(repo, "config.json"));
  EXPECT_EQ(small.size, static_cast<int64_t>(repo.files["config.json"].size()));
  HubFile large{.name = "model.safetensors", .etag = ""};
  ASSERT_TRUE(find(&large).ok());
  EXPECT_EQ(large.etag, test::HubServer::etag(repo, "model.safetensors"));
  EXPECT_EQ(large.size, 300000);
  EXPECT_EQ(server.count("", "/cdn/"), 0);
}

TEST_F(HubApi, RefusesHeadsThatFitNothing) {
  using Headers = std::vector<std::pair<std::string, std::string>>;
  const std::string good(40, 'c');
  const std::vector<std::pair<Headers, std::string>> cases = {
      {{{"X-Repo-Commit", kCommit}, {"ETag", good}}, "is of commit"},
      {{{"ETag", good}}, "is of commit"},
      {{{"X-Repo-Commit", repo.commit}}, "no usable ETag"},
      {{{"X-Repo-Commit", repo.commit}, {"ETag", "\"../../evil\""}}, "no usable ETag"},
      {{{"X-Repo-Commit", repo.commit}, {"X-Linked-Etag", good}}, "how large"},
      {{{"X-Repo-Commit", repo.commit}, {"X-Linked-Etag", good}, {"X-Linked-Size", "-7"}},
       "how large"}};
  for (const auto& [headers, part] : cases) {
    server.set_intercept([h = headers](const auto&) -> std::optional<test::HubServerAnswer> {
      return test::HubServerAnswer{.status = 200, .headers = h, .body = "x"};
    });
    HubFile file{.name = "config.json", .etag = ""};
    const Status status = find(&file);
    EXPECT_NE(status.message().find(part), std::string::npos) << part << ": " << status.message();
  }
}

TEST_F(HubApi, WaitsAtLeastAsLongAsTheServerAsks) {
  HttpReply last;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(wait_for_attempt(2, last, options, [] { return false; }));
  last.headers["retry-after"] = "1";
  EXPECT_TRUE(wait_for_attempt(2, last, options, [] { return false; }));
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
  EXPECT_FALSE(wait_for_attempt(2, last, options, [] { return true; }));
}

}  // namespace
}  // namespace foretoken
