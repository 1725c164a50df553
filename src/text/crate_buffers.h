#pragma once
#include <foretoken_text.h>

#include <string>
#include <string_view>
#include <vector>

namespace foretoken {

// Receives text from the text crate and frees it. Pass `out()` to one call at most.
class CrateText {
 public:
  CrateText() = default;
  CrateText(const CrateText&) = delete;
  CrateText& operator=(const CrateText&) = delete;
  ~CrateText() { ft_text_free(text_); }

  FtText* out() { return &text_; }
  std::string_view view() const { return {text_.data == nullptr ? "" : text_.data, text_.size}; }
  std::string str() const { return std::string(view()); }

 private:
  FtText text_{nullptr, 0};
};

// The same for token ids.
class CrateIds {
 public:
  CrateIds() = default;
  CrateIds(const CrateIds&) = delete;
  CrateIds& operator=(const CrateIds&) = delete;
  ~CrateIds() { ft_ids_free(ids_); }

  FtIds* out() { return &ids_; }
  std::vector<int32_t> vector() const { return {ids_.data, ids_.data + ids_.size}; }

 private:
  FtIds ids_{nullptr, 0};
};

}  // namespace foretoken
