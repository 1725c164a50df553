#include "device/cpu/memory_nodes.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <fstream>

namespace foretoken::cpu {
namespace {

constexpr int kMaxNodes = 1024;
constexpr int kBitsPerWord = 8 * sizeof(unsigned long);
constexpr int kInterleave = 3;  // MPOL_INTERLEAVE of linux/mempolicy.h

std::vector<int> find_nodes() {
  std::ifstream status("/proc/self/status");
  const std::string key = "Mems_allowed_list:";
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key, 0) != 0) continue;
    return parse_number_list(line.substr(line.find_first_not_of(" \t", key.size())));
  }
  return {};
}

bool read_number(const char*& at, const char* end, int& number) {
  const auto [next, error] = std::from_chars(at, end, number);
  if (error != std::errc() || number < 0 || number >= kMaxNodes) return false;
  at = next;
  return true;
}

}  // namespace

std::vector<int> parse_number_list(const std::string& text) {
  std::vector<int> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int first = 0;
    if (!read_number(at, end, first)) return {};
    int last = first;
    if (at < end && *at == '-' && !read_number(++at, end, last)) return {};
    for (int number = first; number <= last; ++number) numbers.push_back(number);
    if (at < end && *at++ != ',') return {};
  }
  return numbers;
}

const std::vector<int>& memory_nodes() {
  static const std::vector<int> nodes = find_nodes();
  return nodes;
}

void spread_over_nodes(void* memory, size_t bytes) {
  if (memory_nodes().size() < 2) return;
  std::array<unsigned long, kMaxNodes / kBitsPerWord> mask{};
  for (const int node : memory_nodes()) {
    mask[static_cast<size_t>(node / kBitsPerWord)] |= 1ul << (node % kBitsPerWord);
  }
  (void)syscall(SYS_mbind, memory, bytes, kInterleave, mask.data(), kMaxNodes + 1, 0);
}

}  // namespace foretoken::cpu
