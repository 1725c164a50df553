#include "gguf/model_files.h"

#include <mutex>
#include <utility>

#include "gguf/container/gguf_file.h"

namespace foretoken {

struct ModelFiles::Shared {
  std::once_flag opened;
  std::shared_ptr<const GgufFile> file;
  Status status;
  std::once_flag looked;
  std::optional<bool> ties_head;
};

ModelFiles::ModelFiles(std::filesystem::path path)
    : path_(std::move(path)), shared_(std::make_shared<Shared>()) {}

bool ModelFiles::is_gguf() const { return foretoken::is_gguf(path_.native()); }

Result<std::shared_ptr<const GgufFile>> ModelFiles::gguf() const {
  std::call_once(shared_->opened, [&] {
    Result<std::unique_ptr<GgufFile>> file = GgufFile::open(path_.string());
    if (file.ok()) {
      shared_->file = std::move(file).value();
    } else {
      shared_->status = file.status();
    }
  });
  if (shared_->file == nullptr) return shared_->status;
  return shared_->file;
}

std::optional<bool> ModelFiles::ties_head(const std::function<std::optional<bool>()>& look) const {
  std::call_once(shared_->looked, [&] { shared_->ties_head = look(); });
  return shared_->ties_head;
}

}  // namespace foretoken
