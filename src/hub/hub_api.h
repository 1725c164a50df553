#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hub/http_client.h"
#include "hub/hub_options.h"
#include "hub/repo_id.h"

namespace foretoken {

// A file of a repository at one commit.
struct HubFile {
  std::string name;   // path in the repository
  std::string etag;   // name of its blob; empty: not known yet
  int64_t size = -1;  // -1: not known yet
};

// A repository at one commit.
struct HubListing {
  std::string commit;
  std::vector<HubFile> files;
};

// The settings of a client for `options`. Aborts when `cancelled` says so.
HttpSettings http_settings(const HubOptions& options, std::function<bool()> cancelled);

// Waits before attempt `attempt` (2, 3, ...): options.retry_delay, doubled each time, or as long as
// the server asked for, at most a minute. False when cancelled meanwhile.
bool wait_for_attempt(int attempt, const HttpReply& last, const HubOptions& options,
                      const std::function<bool()>& cancelled);

// Asks the Hub which commit a revision is and which files it has, in at most `max_attempts`
// attempts. NotFound, InvalidArgument (no access) or Internal (network) with the remedy. Names that
// would leave the snapshot's folder are an error.
Result<HubListing> list_repo(HttpClient& client, const HubOptions& options, const RepoId& id,
                             int max_attempts);

// Reads the body of that answer.
Result<HubListing> parse_listing(std::string_view body, const std::string& url);

// Asks for the ETag and size of a file. The answer must be of `commit`.
Status find_file(HttpClient& client, const HubOptions& options, const RepoId& id,
                 const std::string& commit, HubFile* file);

// The address of a file's content.
std::string file_url(const HubOptions& options, const RepoId& id, const std::string& commit,
                     const std::string& name);

// What to tell a user about an answer that is no success. `what` is the thing asked for.
Status explain_reply(const HttpReply& reply, const HubOptions& options, const RepoId& id,
                     const std::string& what);

// True for a string that can name a blob: letters, digits, '-', '_' and '.', beginning with a
// letter or digit.
bool is_blob_name(const std::string& etag);

}  // namespace foretoken
