// Clang names the template of fmt_once.h otherwise than GCC, with which the library was built: here
// it is for the sanitizers' programs.
#include "fmt_once.h"

FMT_BEGIN_NAMESPACE
namespace detail {
template void vformat_to<char>(buffer<char>&, basic_string_view<char>,
                               basic_format_args<buffer_context<char>>, locale_ref);
}  // namespace detail
FMT_END_NAMESPACE
