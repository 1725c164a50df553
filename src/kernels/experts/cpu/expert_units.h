#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/experts/expert_lists.h"

namespace foretoken::cpu {

// Some slices of an expert's matrix times some of its entries: what a thread does at once.
struct ExpertUnit {
  int expert;
  int first_slice;  // of the packed weight
  int num_slices;
  int first_entry;  // in ExpertLists::entries
  int num_entries;
};

// The work of a product with the experts that have entries. Those of few entries are cut by slice,
// so that a single row spreads evenly over the threads; those of many take several slices together,
// for which their rows are gathered once.
class ExpertUnits {
 public:
  static constexpr int kFewEntries = 8;

  struct Sizes {
    int slices;     // of an expert
    int together;   // of them where there are many entries
    int tile_rows;  // most entries of a unit
  };

  void cut(const ExpertLists& lists, const Sizes& sizes) {
    sizes_ = sizes;
    begins_ = lists.begins;
    num_touched_ = 0;
    num_units_ = 0;
    for (int e = 0; e < lists.count; ++e) {
      const int entries = lists.begins[e + 1] - lists.begins[e];
      if (entries == 0) continue;
      experts_[num_touched_] = e;
      first_units_[num_touched_++] = num_units_;
      num_units_ += groups(entries) * tiles(entries);
    }
  }

  int64_t size() const { return num_units_; }

  // Tiles of the same slices follow one another, so that a thread keeps the slices in its cache.
  ExpertUnit at(int64_t index) const {
    const int64_t* behind = std::upper_bound(first_units_, first_units_ + num_touched_, index);
    const auto touched = static_cast<int>(behind - first_units_) - 1;
    const int expert = experts_[touched];
    const int entries = begins_[expert + 1] - begins_[expert];
    const auto unit = static_cast<int>(index - first_units_[touched]);
    const int group = unit / tiles(entries), tile = unit % tiles(entries);
    const int first_slice = group * width(entries);
    const int first_entry = tile * sizes_.tile_rows;
    return {expert, expert * sizes_.slices + first_slice,
            std::min(width(entries), sizes_.slices - first_slice), begins_[expert] + first_entry,
            std::min(sizes_.tile_rows, entries - first_entry)};
  }

 private:
  int width(int entries) const { return entries > kFewEntries ? sizes_.together : 1; }
  int groups(int entries) const { return (sizes_.slices + width(entries) - 1) / width(entries); }
  int tiles(int entries) const { return (entries + sizes_.tile_rows - 1) / sizes_.tile_rows; }

  Sizes sizes_{};
  const int32_t* begins_ = nullptr;
  int num_touched_ = 0;
  int64_t num_units_ = 0;
  int32_t experts_[kMaxExperts];
  int64_t first_units_[kMaxExperts];
};

}  // namespace foretoken::cpu
