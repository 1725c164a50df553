#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace foretoken::cpu {

// The numbers of a Linux list such as "0-2,5"; empty where it is none.
std::vector<int> parse_number_list(const std::string& text);

// Memory nodes (NUMA) that this process may use; empty where the system does not say.
const std::vector<int>& memory_nodes();

// Pages of [memory, memory + bytes) that are touched from here on lie on the nodes in turns. Does
// nothing on a machine of one node. `memory` begins with a page.
void spread_over_nodes(void* memory, size_t bytes);

}  // namespace foretoken::cpu
