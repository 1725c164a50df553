#pragma once
#include <cstddef>

#include "device/memory_ledger.h"

namespace foretoken::cpu {

// Zeroed memory of its own pages, on huge pages where the system lends them (madvise), and, on a
// machine of several memory nodes, spread over those that this process may use: weights and keys
// are read by all cores alike, so the bandwidth of every node counts.
class PageBlock {
 public:
  PageBlock() = default;
  // Throws std::bad_alloc. Pages cost nothing until they are touched.
  explicit PageBlock(size_t bytes);
  ~PageBlock();
  PageBlock(PageBlock&& other) noexcept;
  PageBlock& operator=(PageBlock&& other) noexcept;

  // Aligned to a page; to a huge one from kHugePage bytes on.
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

  static constexpr size_t kHugePage = size_t{2} << 20;

 private:
  bool take_again();
  void unmap();

  std::byte* data_ = nullptr;
  size_t size_ = 0;
  MemoryLedger* ledger_ = nullptr;  // null: it is in none
};

// Asks for plain pages in [begin, begin + bytes), a part of one block, from the first page that
// begins in it: a touch takes one of them, not a huge one. A wish; what was touched before stays.
void prefer_plain_pages(std::byte* begin, size_t bytes);

// What the calling thread makes blocks for from now on: those of weights and of the KV cache are
// noted in the ledger, which outlives them, and where it says so lie where others lay. What was
// said before.
struct PagePurpose {
  MemoryLedger* ledger = nullptr;  // null: kStays
  MemoryRole role = MemoryRole::kStays;
};
PagePurpose make_pages_for(PagePurpose purpose);

// Gives all pages of a block back to the system, which lends zeroed ones at the next touch; where
// it does not take them they are filled with zeros.
void clear_pages(std::byte* begin, size_t bytes);

}  // namespace foretoken::cpu
