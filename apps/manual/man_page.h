#pragma once
#include <string>

#include "apps/flags/flag_table.h"

namespace foretoken {

// The manual page of section 1 in roff's man macros, with every command and flag of `table`.
std::string man_page(const CommandRow& table);

}  // namespace foretoken
