#include "gguf/model_files.h"

#include <array>
#include <mutex>
#include <utility>

#include "gguf/container/gguf_file.h"

namespace foretoken {

struct ModelFiles::Shared {
  std::once_flag opened;
  std::shared_ptr<const GgufFile> file;
  Status status;
  struct Fact {
    std::once_flag looked;
    std::optional<bool> told;
  };
  std::array<Fact, static_cast<size_t>(WeightsFact::kCount)> facts;
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

std::optional<bool> ModelFiles::weights_fact(
    WeightsFact fact, const std::function<std::optional<bool>()>& look) const {
  Shared::Fact& kept = shared_->facts[static_cast<size_t>(fact)];
  std::call_once(kept.looked, [&] { kept.told = look(); });
  return kept.told;
}

}  // namespace foretoken
