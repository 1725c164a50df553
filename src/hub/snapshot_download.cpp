#include "hub/snapshot_download.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/log.h"
#include "hub/blob_download.h"
#include "hub/blob_writer.h"
#include "hub/gguf_choice.h"
#include "hub/wanted_files.h"

namespace foretoken {
namespace {

namespace fs = std::filesystem;

// Runs the downloads of some files on several threads.
class DownloadPool {
 public:
  DownloadPool(const DownloadJob& job, std::vector<HubFile>& files) : job_(job), files_(files) {}

  Status run() {
    const size_t num_threads =
        std::min(files_.size(), static_cast<size_t>(std::max(1, job_.options.max_parallel)));
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < num_threads; ++i) threads.emplace_back([this] { work(); });
    for (std::jthread& thread : threads) thread.join();
    return error_;
  }

 private:
  void work() {
    const auto cancelled = [this] { return failed_.load() || job_.options.cancelled(); };
    HttpClient client(http_settings(job_.options, cancelled));
    while (!cancelled()) {
      const size_t i = next_.fetch_add(1);
      if (i >= files_.size()) return;
      if (Status status = download_blob(client, job_, &files_[i]); !status.ok()) fail(status);
    }
    if (job_.options.cancelled()) fail(aborted("the download was interrupted"));
  }

  void fail(const Status& status) {
    std::lock_guard lock(mutex_);
    if (!failed_.exchange(true)) error_ = status;
  }

  const DownloadJob& job_;
  std::vector<HubFile>& files_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  Status error_;
};

class SnapshotDownload {
 public:
  SnapshotDownload(const HubOptions& options, const RepoId& id, const RepoCache& cache,
                   const HubListing& listing)
      : progress_(options),
        job_{options, id, cache, listing.commit, progress_},
        listing_(listing) {}

  Result<std::string> run() {
    const RepoId& id = job_.id;
    if (!id.gguf_type.empty() || holds_gguf_alone(names())) return run_gguf();
    FT_ASSIGN_OR_RETURN(std::vector<HubFile> files,
                        wanted_files(listing_, job_.options.weights, id.name));
    FT_RETURN_IF_ERROR(fetch(files));
    const auto index = std::find_if(files.begin(), files.end(), [](const HubFile& file) {
      return is_weights_index(file.name);
    });
    if (index != files.end()) {
      const fs::path path =
          is_there(*index) ? folder() / index->name : job_.cache.blob(index->etag);
      FT_ASSIGN_OR_RETURN(std::vector<HubFile> shards,
                          find_shards({path, index->name}, listing_, id.name));
      FT_RETURN_IF_ERROR(fetch(shards));
      files.insert(files.end(), shards.begin(), shards.end());
    }
    FT_RETURN_IF_ERROR(link(files));
    const Status ref = job_.cache.write_ref(id.revision, job_.commit);
    if (!ref.ok()) FT_LOG(warn, "{}", ref.message());
    return folder().string();
  }

 private:
  fs::path folder() const { return job_.cache.snapshot(job_.commit); }
  bool is_there(const HubFile& file) const {
    return job_.cache.has_file(job_.commit, file.name, file.size);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const HubFile& file : listing_.files) names.push_back(file.name);
    return names;
  }

  Result<std::string> run_gguf() {
    const RepoId& id = job_.id;
    FT_ASSIGN_OR_RETURN(const std::vector<std::string> chosen,
                        choose_gguf(names(), id.gguf_type, id.name));
    std::vector<HubFile> files;
    for (const HubFile& file : listing_.files) {
      if (std::find(chosen.begin(), chosen.end(), file.name) != chosen.end()) {
        files.push_back(file);
      }
    }
    FT_RETURN_IF_ERROR(fetch(files));
    FT_RETURN_IF_ERROR(link(files));
    const Status ref = job_.cache.write_ref(id.revision, job_.commit);
    if (!ref.ok()) FT_LOG(warn, "{}", ref.message());
    return (folder() / chosen.front()).string();
  }

  // Completes the files that the snapshot does not have yet.
  Status fetch(std::vector<HubFile>& files) {
    std::vector<HubFile> missing;
    for (const HubFile& file : files) {
      if (!is_there(file)) missing.push_back(file);
    }
    if (missing.empty()) return {};
    FT_RETURN_IF_ERROR(job_.cache.make_folders());
    FT_RETURN_IF_ERROR(check_disk(missing));
    for (const HubFile& file : missing) {
      if (file.size >= 0) progress_.report(file.name, 0, file.size);
    }
    FT_RETURN_IF_ERROR(DownloadPool(job_, missing).run());
    for (const HubFile& done : missing) {
      for (HubFile& file : files) {
        if (file.name == done.name) file = done;
      }
    }
    return {};
  }

  // All files together, before the first is begun.
  Status check_disk(const std::vector<HubFile>& files) const {
    int64_t needed = 0;
    const HubFile* largest = nullptr;
    for (const HubFile& file : files) {
      if (file.size < 0 || job_.cache.has_blob(file.etag, file.size)) continue;
      std::error_code error;
      const auto there = fs::file_size(job_.cache.incomplete(file.etag), error);
      const int64_t rest = file.size - (error ? 0 : static_cast<int64_t>(there));
      // Sizes are the server's word: their sum may not overflow.
      needed = rest > INT64_MAX - needed ? INT64_MAX : needed + std::max<int64_t>(0, rest);
      if (largest == nullptr || file.size > largest->size) largest = &file;
    }
    if (largest == nullptr) return {};
    const std::string root = job_.cache.root().string();
    const HubOptions& options = job_.options;
    const int64_t free = options.free_bytes ? options.free_bytes(root) : free_disk_bytes(root);
    if (needed <= free) return {};
    return disk_full("downloading " + job_.id.name + " (largest file " + largest->name + ")",
                     needed, free, root);
  }

  // config.json comes last: a snapshot that has it has the rest.
  Status link(const std::vector<HubFile>& files) {
    for (const bool last : {false, true}) {
      for (const HubFile& file : files) {
        if ((file.name == "config.json") != last || is_there(file)) continue;
        FT_RETURN_IF_ERROR(job_.cache.link_file(job_.commit, file.name, file.etag));
      }
    }
    return {};
  }

  DownloadProgress progress_;
  DownloadJob job_;
  const HubListing& listing_;
};

}  // namespace

Result<std::string> download_snapshot(const HubOptions& options, const RepoId& id,
                                      const RepoCache& cache, const HubListing& listing) {
  return SnapshotDownload(options, id, cache, listing).run();
}

}  // namespace foretoken
