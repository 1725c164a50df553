#include "hub/repo_cache.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string_view>

#include "hub/cache_folder.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This file is a cache directory tag (https://bford.info/cachedir/).\n";

std::string folder_name(const std::string& repo) {
  std::string name = "models--" + repo;
  const size_t slash = name.find('/');
  if (slash != std::string::npos) name.replace(slash, 1, "--");
  return name;
}

Status cannot_write(const fs::path& path, const std::string& why) {
  return invalid_argument("cannot write " + path.string() + " (" + why +
                          "); check the permissions or choose another folder with --download-dir");
}

bool is_whole(const fs::path& path, int64_t size) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  const auto there = static_cast<int64_t>(fs::file_size(path, error));
  return size < 0 ? there > 0 : there == size;
}

// A name beside `path` that no other process uses.
fs::path temporary_name(const fs::path& path) {
  std::string text = path.string() + ".XXXXXX";
  const int descriptor = mkstemp(text.data());
  if (descriptor < 0) return {};
  close(descriptor);
  return text;
}

// Puts what `make` makes at a temporary name to `path` in one step.
template <class Make>
Status replace_file(const fs::path& path, const Make& make) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return cannot_write(path, error.message());
  const fs::path temporary = temporary_name(path);
  if (temporary.empty()) return cannot_write(path, "no temporary file");
  make(temporary, error);
  if (!error) fs::rename(temporary, path, error);
  if (!error) return {};
  const std::string why = error.message();
  fs::remove(temporary, error);
  return cannot_write(path, why);
}

}  // namespace

RepoCache::RepoCache(const std::string& cache_folder, const RepoId& id)
    : cache_(cache_folder), root_(cache_ / folder_name(id.name)), folder_(folder_name(id.name)) {}

fs::path RepoCache::incomplete(const std::string& etag) const {
  return root_ / "blobs" / (etag + ".incomplete");
}

fs::path RepoCache::lock(const std::string& etag) const {
  return cache_ / ".locks" / folder_ / (etag + ".lock");
}

fs::path RepoCache::snapshot(const std::string& commit) const {
  return root_ / "snapshots" / commit;
}

std::string RepoCache::find_commit(const std::string& revision) const {
  return find_cached_commit(root_, revision);
}

bool RepoCache::has_blob(const std::string& etag, int64_t size) const {
  return is_whole(blob(etag), size);
}

bool RepoCache::has_file(const std::string& commit, const std::string& name, int64_t size) const {
  return is_whole(snapshot(commit) / name, size);
}

Status RepoCache::make_folders() const {
  for (const char* name : {"blobs", "refs", "snapshots"}) {
    std::error_code error;
    fs::create_directories(root_ / name, error);
    if (error) return cannot_write(root_ / name, error.message());
  }
  std::error_code ignored;
  if (!fs::exists(cache_ / "CACHEDIR.TAG", ignored)) {
    std::ofstream(cache_ / "CACHEDIR.TAG") << kCacheTag;
  }
  return {};
}

Status RepoCache::link_file(const std::string& commit, const std::string& name,
                            const std::string& etag) const {
  const fs::path path = snapshot(commit) / name;
  const fs::path target = blob(etag).lexically_relative(path.parent_path());
  return replace_file(path, [&](const fs::path& temporary, std::error_code& error) {
    fs::remove(temporary, error);
    if (!error) fs::create_symlink(target, temporary, error);
  });
}

Status RepoCache::write_ref(const std::string& revision, const std::string& commit) const {
  if (revision == commit || find_commit(revision) == commit) return {};
  return replace_file(root_ / "refs" / revision, [&](const fs::path& temporary,
                                                     std::error_code& error) {
    std::ofstream file(temporary);
    file << commit;
    file.close();
    if (!file) error = std::make_error_code(std::errc::io_error);
    // mkstemp made it for this user alone; others may share the cache.
    if (!error) {
      fs::permissions(temporary, fs::status(root_ / "refs").permissions() & fs::perms(0666), error);
    }
  });
}

}  // namespace foretoken
