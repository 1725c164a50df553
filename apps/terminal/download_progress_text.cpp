#include "apps/terminal/download_progress_text.h"

#include <spdlog/fmt/fmt.h>

#include "apps/terminal/report.h"

namespace foretoken {

void DownloadProgressText::note(const std::string& file, int64_t done, int64_t total) {
  files_[file] = {done, total};
}

std::string DownloadProgressText::text(const std::string& model) const {
  File sum;
  int num_done = 0;
  for (const auto& [name, file] : files_) {
    sum.done += file.done;
    sum.total += file.total;
    num_done += file.done == file.total ? 1 : 0;
  }
  return fmt::format("fetching {}: {} of {} files, {:.1f} of {:.1f} MiB ({} %)", model, num_done,
                     files_.size(), mebibytes(sum.done), mebibytes(sum.total),
                     sum.total > 0 ? 100 * sum.done / sum.total : 100);
}

}  // namespace foretoken
