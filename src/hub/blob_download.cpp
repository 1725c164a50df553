#include "hub/blob_download.h"

#include "base/log.h"
#include "hub/blob_writer.h"
#include "hub/digest.h"
#include "hub/file_lock.h"

namespace foretoken {
namespace {

constexpr int64_t kProgressBytes = int64_t{1} << 20;
constexpr int64_t kMaxTextBytes = int64_t{256} << 20;

// The first byte that a partial answer begins with, or -1.
int64_t range_start(const HttpReply& reply) {
  HttpReply only;
  const std::string range = reply.header("content-range");
  if (range.rfind("bytes ", 0) != 0) return -1;
  only.headers["start"] = range.substr(6, range.find('-') - 6);
  return only.number("start");
}

class BlobDownload {
 public:
  BlobDownload(HttpClient& client, const DownloadJob& job, const HubFile& file, BlobWriter& writer)
      : client_(client), job_(job), file_(file), writer_(writer) {}

  // Fetches what is missing, in several attempts if need be.
  Status fill() {
    HttpReply reply;
    int64_t last_gain = writer_.num_bytes();
    for (int attempt = 1; !writer_.is_whole(); ++attempt) {
      if (writer_.num_bytes() >= last_gain + kProgressBytes) {
        last_gain = writer_.num_bytes();
        attempt = 2;
      }
      if (attempt > job_.options.max_attempts) return broken_off(reply);
      const auto cancelled = [this] { return client_.cancelled(); };
      if (attempt > 1 && !wait_for_attempt(attempt, reply, job_.options, cancelled)) break;
      reply = ask();
      if (client_.cancelled()) break;
      if (!reply.error.ok()) return reply.error;
      if (reply.status == 416) {
        FT_RETURN_IF_ERROR(writer_.restart());
      } else if (reply.status >= 300 && !reply.is_transient()) {
        return explain_reply(reply, job_.options, job_.id, what());
      }
    }
    return client_.cancelled() ? aborted("the download was interrupted") : Status();
  }

 private:
  std::string what() const { return file_.name + " of " + job_.id.name; }

  HttpReply ask() {
    const std::string url = file_url(job_.options, job_.id, job_.commit, file_.name);
    return client_.send({.url = url,
                         .from = writer_.num_bytes(),
                         .on_start = [this](const HttpReply& head) { return begin(head); },
                         .on_body =
                             [this](std::string_view bytes) {
                               FT_RETURN_IF_ERROR(writer_.append(bytes));
                               job_.progress.report(file_.name, writer_.num_bytes(), file_.size);
                               return Status();
                             }});
  }

  Status begin(const HttpReply& head) {
    // A whole file in answer to a range: the server cannot resume.
    if (head.status != 206 && writer_.num_bytes() > 0) FT_RETURN_IF_ERROR(writer_.restart());
    if (head.status == 206 && range_start(head) != writer_.num_bytes()) {
      return invalid_argument("the server sends another part of " + what() + " ('" +
                              head.header("content-range") +
                              "') than was asked for; check "
                              "HF_ENDPOINT");
    }
    const int64_t announced = head.number("content-length");
    if (announced < 0 || announced == file_.size - writer_.num_bytes()) return {};
    return invalid_argument("the server announces " + std::to_string(announced) + " bytes of " +
                            what() + " where " + std::to_string(file_.size - writer_.num_bytes()) +
                            " are missing; check HF_ENDPOINT and run again");
  }

  Status broken_off(const HttpReply& reply) const {
    std::string why = reply.failure;
    if (why.empty() && reply.status >= 300)
      why = "the server answered " + std::to_string(reply.status);
    if (why.empty()) why = "the connection ended early";
    return internal_error(
        "downloading " + what() + " broke off after " + std::to_string(writer_.num_bytes()) +
        " of " + std::to_string(file_.size) + " bytes (" + why + "; " +
        std::to_string(job_.options.max_attempts) + " attempts); running again resumes");
  }

  HttpClient& client_;
  const DownloadJob& job_;
  const HubFile& file_;
  BlobWriter& writer_;
};

Status check_size(const DownloadJob& job, const HubFile& file, int64_t num_there) {
  const bool weights = file.name.ends_with(".safetensors") || file.name.ends_with(".bin") ||
                       file.name.ends_with(".pt");
  if (!weights && file.size > kMaxTextBytes) {
    return invalid_argument(file.name + " of " + job.id.name + " is said to have " +
                            std::to_string(file.size) +
                            " bytes; no such file is that large, it "
                            "is refused");
  }
  const std::string folder = job.cache.root().string();
  const int64_t free =
      job.options.free_bytes ? job.options.free_bytes(folder) : free_disk_bytes(folder);
  if (file.size - num_there <= free) return {};
  return disk_full(file.name + " of " + job.id.name, file.size - num_there, free, folder);
}

// One download from what is there to the blob. False when the bytes were wrong and were removed.
Result<bool> fetch(HttpClient& client, const DownloadJob& job, const HubFile& file, bool* resumed) {
  FT_ASSIGN_OR_RETURN(BlobWriter writer, BlobWriter::open(job.cache.incomplete(file.etag), file));
  *resumed = writer.num_bytes() > 0;
  FT_RETURN_IF_ERROR(check_size(job, file, writer.num_bytes()));
  job.progress.report(file.name, writer.num_bytes(), file.size);
  FT_RETURN_IF_ERROR(BlobDownload(client, job, file, writer).fill());
  return writer.publish(job.cache.blob(file.etag));
}

}  // namespace

Status download_blob(HttpClient& client, const DownloadJob& job, HubFile* file) {
  if (file->etag.empty()) {
    FT_RETURN_IF_ERROR(find_file(client, job.options, job.id, job.commit, file));
  }
  if (!job.cache.has_blob(file->etag, file->size)) {
    FT_ASSIGN_OR_RETURN(const FileLock lock, FileLock::take(job.cache.lock(file->etag), [&client] {
                          return client.cancelled();
                        }));
    bool resumed = false;
    bool right = job.cache.has_blob(file->etag, file->size);
    // Bytes that an earlier run left may be at fault: once more from the start.
    for (int round = 0; !right && (round == 0 || (round == 1 && resumed)); ++round) {
      if (round == 1) FT_LOG(warn, "{} was damaged; fetching it again", file->name);
      FT_ASSIGN_OR_RETURN(right, fetch(client, job, *file, &resumed));
    }
    if (digest_kind(file->etag) == DigestKind::kNone) {
      FT_LOG(warn, "{}: {} gives no checksum; only its size was compared", file->name,
             job.options.endpoint);
    }
    if (!right) {
      return internal_error(file->name + " of " + job.id.name +
                            " arrived damaged: its checksum "
                            "is not " +
                            file->etag +
                            "; nothing of it was kept, run again to fetch "
                            "it anew");
    }
  }
  job.progress.report(file->name, file->size, file->size);
  return {};
}

}  // namespace foretoken
