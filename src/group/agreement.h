#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace foretoken::group {

// A thing that all ranks must have alike, by the name that an error gives it.
struct AgreedPart {
  std::string name;   // "--max-num-seqs"
  std::string value;  // short, or a digest
  bool operator==(const AgreedPart&) const = default;
};
using AgreedParts = std::vector<AgreedPart>;

// 16 hexadecimal digits; equal texts have equal digests on every machine.
std::string digest(std::string_view text);

// A sentence on the first part in which a rank differs from the one at which they meet; none: they
// agree.
std::optional<std::string> first_difference(const AgreedParts& of_leader,
                                            const AgreedParts& of_rank, const std::string& rank,
                                            const std::string& leader = "rank 0");

}  // namespace foretoken::group
