#pragma once
#include <string>

#include "kernels/flex/flex_program.h"

namespace foretoken {

// Operations of expressions as text in CUDA C++, for values of the names `a` and `b`. Arithmetic is
// rounded operation by operation, as flex_value.cpp does it.

// Exactly the number of a constant, in a form that C++ reads.
std::string constant_text(const FlexStep& step);
// "<" of kLess and so on, of comparisons and of `and` and `or`.
const char* sign_of(FlexOp op);
// Integers that wrap around.
std::string int_text(FlexOp op, const std::string& a, const std::string& b);
std::string float_text(FlexOp op, const std::string& a, const std::string& b);
// Of one value, of the step's type.
std::string unary_text(const FlexStep& step, const std::string& a);

}  // namespace foretoken
