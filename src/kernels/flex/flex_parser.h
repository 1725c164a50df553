#pragma once
#include <string>
#include <string_view>

#include "kernels/flex/flex_program.h"

namespace foretoken {

// Reads one expression by recursive descent; what follows the first fault is not read.
class FlexParser {
 public:
  // of_request: what a request says itself, which is told of neither prompts nor requests.
  FlexParser(std::string_view text, bool knows_score, bool of_request = false)
      : text_(text), knows_score_(knows_score), of_request_(of_request) {}
  // The expression as a bool or as a float. InvalidArgument begins with the place.
  Result<FlexExpression> run(FlexType wanted);

 private:
  int choice();
  int either();
  int both();
  int negation();
  int comparison();
  int bits_or();
  int bits_and();
  int sum();
  int product();
  int sign();
  int primary();
  int number();
  int name();
  int call(std::string_view function);

  int compare(std::string_view sign, int a, int b);
  int arithmetic(FlexOp op, int a, int b);
  int logic(FlexOp op, int a, int b);
  int where(int condition, int a, int b);
  int as_float(int step);
  int add(FlexStep step);

  FlexType type_of(int step) const;
  bool take(std::string_view sign);
  bool take_word(std::string_view word);
  void skip_spaces();
  int fail(const std::string& what);
  bool failed() const { return !fault_.empty(); }

  std::string_view text_;
  bool knows_score_;
  bool of_request_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string fault_;
  std::vector<FlexStep> steps_;
};

}  // namespace foretoken
