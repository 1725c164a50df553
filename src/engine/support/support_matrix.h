#pragma once
#include <string>

namespace foretoken {

// All that compat decides, as tables in Markdown: KV formats and batch invariance by attention
// backend and device, drafters, what depends on ranks and on a model's layers, the rows of
// support_rows.h, and every rule. Of the build, whatever devices are here.
std::string support_matrix();

}  // namespace foretoken
