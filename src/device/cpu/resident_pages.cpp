#include "device/cpu/resident_pages.h"

#include <sys/mman.h>
#include <unistd.h>

namespace foretoken::cpu {
namespace {

size_t page_bytes() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

// Empty where the system does not tell.
std::vector<unsigned char> find_resident(std::byte* begin, size_t bytes) {
  std::vector<unsigned char> pages((bytes + page_bytes() - 1) / page_bytes());
  if (mincore(begin, bytes, pages.data()) != 0) pages.clear();
  return pages;
}

}  // namespace

ResidentPages ResidentPages::of(std::byte* begin, size_t bytes) {
  ResidentPages pages;
  pages.begin_ = begin;
  pages.bytes_ = bytes;
  pages.resident_ = find_resident(begin, bytes);
  return pages;
}

void ResidentPages::give_back_others() const {
  if (resident_.empty()) return;
  const std::vector<unsigned char> now = find_resident(begin_, bytes_);
  if (now.empty()) return;
  const auto came_in = [&](size_t page) {
    return (now[page] & 1) != 0 && (resident_[page] & 1) == 0;
  };
  for (size_t begin = 0, end = 0; begin < now.size(); begin = end) {
    end = begin + 1;
    if (!came_in(begin)) continue;
    while (end < now.size() && came_in(end)) ++end;
    (void)madvise(begin_ + begin * page_bytes(), (end - begin) * page_bytes(), MADV_DONTNEED);
  }
}

}  // namespace foretoken::cpu
