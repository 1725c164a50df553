#include "device/cpu/page_block.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "device/cpu/memory_nodes.h"

namespace foretoken::cpu {
namespace {

thread_local PagePurpose page_purpose;

std::byte* map(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(memory);
}

// Only whole huge pages of the mapping can be huge, so it begins with one.
std::byte* map_aligned(size_t bytes) {
  constexpr size_t kAlign = PageBlock::kHugePage;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t wanted = (bytes + page - 1) / page * page;
  if (wanted < bytes) throw std::bad_alloc();
  std::byte* begin = map(wanted + kAlign);
  const size_t before = (kAlign - reinterpret_cast<uintptr_t>(begin) % kAlign) % kAlign;
  if (before > 0) munmap(begin, before);
  munmap(begin + before + wanted, kAlign - before);
  return begin + before;
}

}  // namespace

PageBlock::PageBlock(size_t bytes) : size_(bytes) {
  if (bytes == 0 || take_again()) return;
  const bool is_large = bytes >= kHugePage;
  data_ = is_large ? map_aligned(bytes) : map(bytes);
  // Both are wishes: a system that knows neither gives plain pages of the nearest node.
  if (is_large) (void)madvise(data_, size_, MADV_HUGEPAGE);
  spread_over_nodes(data_, size_);
  if (page_purpose.ledger != nullptr &&
      page_purpose.ledger->note(data_, size_, page_purpose.role)) {
    ledger_ = page_purpose.ledger;
  }
}

bool PageBlock::take_again() {
  if (page_purpose.ledger == nullptr || !comes_with_weights(page_purpose.role)) return false;
  data_ = static_cast<std::byte*>(page_purpose.ledger->again(size_));
  if (data_ == nullptr) return false;
  ledger_ = page_purpose.ledger;
  clear_pages(data_, size_);
  return true;
}

PageBlock::~PageBlock() { unmap(); }

PageBlock::PageBlock(PageBlock&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      ledger_(std::exchange(other.ledger_, nullptr)) {}

PageBlock& PageBlock::operator=(PageBlock&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  ledger_ = std::exchange(other.ledger_, nullptr);
  return *this;
}

void PageBlock::unmap() {
  if (data_ != nullptr && (ledger_ == nullptr || ledger_->drop(data_))) munmap(data_, size_);
  data_ = nullptr;
}

void prefer_plain_pages(std::byte* begin, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t skipped = (page - reinterpret_cast<uintptr_t>(begin) % page) % page;
  if (bytes > skipped) (void)madvise(begin + skipped, bytes - skipped, MADV_NOHUGEPAGE);
}

PagePurpose make_pages_for(PagePurpose purpose) { return std::exchange(page_purpose, purpose); }

void clear_pages(std::byte* begin, size_t bytes) {
  if (madvise(begin, bytes, MADV_DONTNEED) != 0) std::memset(begin, 0, bytes);
}

}  // namespace foretoken::cpu
