#pragma once
#include <string>

namespace foretoken {

// All that compat decides, as tables in Markdown: KV formats and batch invariance by attention
// backend and device, drafters, what depends on ranks, and the rows of support_rows.h. Of the
// build, whatever devices are here.
std::string support_matrix();

}  // namespace foretoken
