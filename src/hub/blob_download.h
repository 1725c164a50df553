#pragma once
#include <string>

#include "hub/download_progress.h"
#include "hub/hub_api.h"
#include "hub/repo_cache.h"

namespace foretoken {

// What every download of a call shares. Borrowed; outlives the call.
struct DownloadJob {
  const HubOptions& options;
  const RepoId& id;
  const RepoCache& cache;
  const std::string& commit;
  DownloadProgress& progress;
};

// Sees to it that the blob of `file` is in the cache: asks for its ETag and size where they are not
// known, waits for other processes that fetch it, resumes <etag>.incomplete, tries again when the
// connection breaks (options.max_attempts times without a MiB of progress), and compares size and
// digest. On success `file` is complete. The error names the file and the remedy; what came in
// stays in <etag>.incomplete unless it was wrong. One client a thread.
Status download_blob(HttpClient& client, const DownloadJob& job, HubFile* file);

}  // namespace foretoken
