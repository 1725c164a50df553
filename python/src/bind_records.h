#pragma once
#include <nanobind/nanobind.h>

namespace foretoken::python {

// Plain records that the engine returns: updates of requests, statistics, what the start decided.
void bind_records(nanobind::module_& module);

}  // namespace foretoken::python
