#pragma once
#include <span>

#include "serve/routes/page_routes.h"

namespace foretoken {

// The files of src/serve/page (cmake/page.cmake writes the definition).
std::span<const PageFile> page_files();

}  // namespace foretoken
