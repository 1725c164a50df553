#pragma once
// fmt 9 leaves its largest template to every file that formats, though its library holds it; a
// sanitizer compiles it for a third of such a file's time. The library's own is taken instead.
#ifdef __cplusplus
#include <fmt/format.h>

#if FMT_VERSION >= 90000 && FMT_VERSION < 100000 && !defined(FMT_HEADER_ONLY)
FMT_BEGIN_NAMESPACE
namespace detail {
extern template void vformat_to<char>(buffer<char>&, basic_string_view<char>,
                                      basic_format_args<buffer_context<char>>, locale_ref);
}  // namespace detail
FMT_END_NAMESPACE
#endif
#endif
