#pragma once
#include <filesystem>
#include <string>

#include "base/result.h"
#include "hub/repo_id.h"

namespace foretoken {

// The folder of one repository in the cache, laid out as huggingface_hub does:
//   models--org--name/refs/<revision>         commit id
//   models--org--name/blobs/<etag>            content; <etag>.incomplete while it is fetched
//   models--org--name/snapshots/<commit>/...  relative links into blobs/
//   .locks/models--org--name/<etag>.lock
// Its functions change no state in memory.
class RepoCache {
 public:
  RepoCache(const std::string& cache_folder, const RepoId& id);

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path blob(const std::string& etag) const { return root_ / "blobs" / etag; }
  std::filesystem::path incomplete(const std::string& etag) const;
  std::filesystem::path lock(const std::string& etag) const;
  std::filesystem::path snapshot(const std::string& commit) const;

  // The commit that a revision was when it was last fetched (hub/cache_folder.h). Empty when it is
  // not known.
  std::string find_commit(const std::string& revision) const;

  // True when a blob is there and `size` bytes long; for -1 it must only not be empty.
  bool has_blob(const std::string& etag, int64_t size) const;
  // The same for a file of a snapshot.
  bool has_file(const std::string& commit, const std::string& name, int64_t size) const;

  // Makes the folders, and the tag that tells backup programs to skip the cache.
  Status make_folders() const;
  // Links a snapshot's file to its blob, in place of what was there.
  Status link_file(const std::string& commit, const std::string& name,
                   const std::string& etag) const;
  // Remembers which commit a revision is. Nothing to do when it is one itself.
  Status write_ref(const std::string& revision, const std::string& commit) const;

 private:
  std::filesystem::path cache_;
  std::filesystem::path root_;
  std::string folder_;  // models--org--name
};

}  // namespace foretoken
