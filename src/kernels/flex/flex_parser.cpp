#include "kernels/flex/flex_parser.h"

#include <array>
#include <charconv>
#include <utility>

namespace foretoken {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct FlexFunction {
  std::string_view name;
  FlexOp op;
  int operands;
};
constexpr FlexFunction kFunctions[] = {
    {"abs", FlexOp::kAbsolute, 1}, {"min", FlexOp::kMinimum, 2}, {"max", FlexOp::kMaximum, 2},
    {"where", FlexOp::kWhere, 3},  {"exp", FlexOp::kExp, 1},     {"log", FlexOp::kLog, 1},
    {"tanh", FlexOp::kTanh, 1},    {"sqrt", FlexOp::kSqrt, 1},   {"floor", FlexOp::kFloor, 1},
    {"sin", FlexOp::kSin, 1},      {"cos", FlexOp::kCos, 1}};

struct FlexVariable {
  std::string_view name;
  FlexOp op;
};
constexpr FlexVariable kVariables[] = {{"q", FlexOp::kQuery}, {"q_idx", FlexOp::kQuery},
                                       {"kv", FlexOp::kKey},  {"kv_idx", FlexOp::kKey},
                                       {"h", FlexOp::kHead},  {"head", FlexOp::kHead}};

}  // namespace

Result<FlexExpression> FlexParser::run(FlexType wanted) {
  if (text_.size() > kMaxFlexLength) {
    return invalid_argument("it has " + std::to_string(text_.size()) + " characters; at most " +
                            std::to_string(kMaxFlexLength) + " are taken");
  }
  int result = choice();
  skip_spaces();
  if (!failed() && at_ < text_.size()) fail("the expression should end here");
  if (!failed() && wanted == FlexType::kBool && type_of(result) != FlexType::kBool) {
    fail("a mask is true or false, not a number; compare it with one");
  }
  if (!failed() && wanted == FlexType::kFloat) result = as_float(result);
  if (failed()) return invalid_argument(fault_);
  // The last step is the result.
  if (result + 1 != static_cast<int>(steps_.size())) {
    steps_.resize(static_cast<size_t>(result) + 1);
  }
  return FlexExpression{std::string(text_), std::move(steps_)};
}

int FlexParser::choice() {
  if (++depth_ > kMaxFlexDepth) return fail("it is nested too deeply");
  int value = either();
  if (!failed() && take_word("if")) {
    const int condition = either();
    if (!failed() && !take_word("else")) return fail("'else' is missing");
    const int other = choice();
    value = where(condition, value, other);
  }
  --depth_;
  return value;
}

int FlexParser::either() {
  int value = both();
  while (!failed() && take_word("or")) value = logic(FlexOp::kOr, value, both());
  return value;
}

int FlexParser::both() {
  int value = negation();
  while (!failed() && take_word("and")) value = logic(FlexOp::kAnd, value, negation());
  return value;
}

int FlexParser::negation() {
  if (!take_word("not")) return comparison();
  if (++depth_ > kMaxFlexDepth) return fail("it is nested too deeply");
  const int value = negation();
  --depth_;
  if (failed()) return -1;
  if (type_of(value) != FlexType::kBool) return fail("'not' takes a comparison, not a number");
  return add({FlexOp::kNot, FlexType::kBool, {value, -1, -1}});
}

// a < b < c is a < b and b < c.
int FlexParser::comparison() {
  constexpr std::array<std::string_view, 6> kSigns = {"<=", ">=", "==", "!=", "<", ">"};
  int left = bits_or();
  int all = -1;
  while (!failed()) {
    std::string_view sign;
    for (const std::string_view each : kSigns) {
      if (sign.empty() && take(each)) sign = each;
    }
    if (sign.empty()) break;
    const int right = bits_or();
    const int one = compare(sign, left, right);
    all = all < 0 ? one : logic(FlexOp::kAnd, all, one);
    left = right;
  }
  return all < 0 ? left : all;
}

int FlexParser::bits_or() {
  int value = bits_and();
  while (!failed() && take("|")) value = logic(FlexOp::kOr, value, bits_and());
  return value;
}

int FlexParser::bits_and() {
  int value = sum();
  while (!failed() && take("&")) value = logic(FlexOp::kAnd, value, sum());
  return value;
}

int FlexParser::sum() {
  int value = product();
  while (!failed()) {
    if (take("+")) {
      value = arithmetic(FlexOp::kAdd, value, product());
    } else if (take("-")) {
      value = arithmetic(FlexOp::kSubtract, value, product());
    } else {
      break;
    }
  }
  return value;
}

int FlexParser::product() {
  int value = sign();
  while (!failed()) {
    if (take("//")) {
      value = arithmetic(FlexOp::kFloorDivide, value, sign());
    } else if (take("*")) {
      value = arithmetic(FlexOp::kMultiply, value, sign());
    } else if (take("/")) {
      value = arithmetic(FlexOp::kDivide, value, sign());
    } else if (take("%")) {
      value = arithmetic(FlexOp::kModulo, value, sign());
    } else {
      break;
    }
  }
  return value;
}

int FlexParser::sign() {
  const bool minus = take("-");
  if (!minus && !take("+")) return primary();
  if (++depth_ > kMaxFlexDepth) return fail("it is nested too deeply");
  const int value = sign();
  --depth_;
  if (failed()) return -1;
  if (type_of(value) == FlexType::kBool) return fail("a comparison has no sign");
  return minus ? add({FlexOp::kNegate, type_of(value), {value, -1, -1}}) : value;
}

int FlexParser::primary() {
  skip_spaces();
  if (at_ >= text_.size()) return fail("it ends where a value should stand");
  const char c = text_[at_];
  if (is_digit(c) || c == '.') return number();
  if (is_letter(c)) return name();
  if (!take("(")) {
    std::string quoted = "' '";
    quoted[1] = c;
    return fail(quoted += " cannot stand here");
  }
  const int value = choice();
  if (!failed() && !take(")")) return fail("')' is missing");
  return value;
}

int FlexParser::number() {
  const size_t begin = at_;
  bool whole = true;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const bool after_e = at_ > begin && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
    const bool goes_on =
        is_digit(c) || c == '.' || c == 'e' || c == 'E' || ((c == '-' || c == '+') && after_e);
    if (!goes_on) break;
    whole = whole && is_digit(c);
    ++at_;
  }
  const char* from = text_.data() + begin;
  const char* to = text_.data() + at_;
  FlexStep step{FlexOp::kConstant, whole ? FlexType::kInt : FlexType::kFloat};
  const auto read =
      whole ? std::from_chars(from, to, step.integer) : std::from_chars(from, to, step.number);
  if (read.ec == std::errc() && read.ptr == to) return add(step);
  at_ = begin;
  return fail("'" + std::string(from, to) + "' is not a number of 32 bits");
}

int FlexParser::name() {
  const size_t begin = at_;
  while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
  const std::string_view word = text_.substr(begin, at_ - begin);
  if (take("(")) return call(word);
  for (const FlexVariable& each : kVariables) {
    if (each.name == word) return add({each.op, FlexType::kInt});
  }
  if (word == "score" && knows_score_) return add({FlexOp::kScore, FlexType::kFloat});
  if (word == "prompt" && !knows_score_ && !of_request_) {
    return add({FlexOp::kPrompt, FlexType::kBool});
  }
  if (word == "request" && !of_request_) {
    return add({FlexOp::kRequest, knows_score_ ? FlexType::kFloat : FlexType::kBool});
  }
  if (word == "True" || word == "true" || word == "False" || word == "false") {
    return add({FlexOp::kConstant,
                FlexType::kBool,
                {-1, -1, -1},
                word.back() == 'e' && (word[0] == 'T' || word[0] == 't')});
  }
  at_ = begin;
  return fail("'" + std::string(word) + "' is unknown; use q, kv, h" +
              (knows_score_  ? ", score"
               : of_request_ ? ""
                             : ", prompt") +
              (of_request_ ? "" : ", request") + " and numbers");
}

int FlexParser::call(std::string_view function) {
  const FlexFunction* found = nullptr;
  for (const FlexFunction& each : kFunctions) {
    if (each.name == function) found = &each;
  }
  if (found == nullptr) {
    return fail("'" + std::string(function) +
                "' is no function here; there are abs, min, max, where, exp, log, tanh, sqrt, "
                "floor, sin and cos");
  }
  int operands[3] = {-1, -1, -1};
  for (int i = 0; i < found->operands && !failed(); ++i) {
    if (i > 0 && !take(",")) {
      return fail(std::string(function) + " takes " + std::to_string(found->operands) + " values");
    }
    operands[i] = choice();
  }
  if (failed()) return -1;
  if (!take(")")) return fail("')' is missing");
  if (found->op == FlexOp::kWhere) return where(operands[0], operands[1], operands[2]);
  if (found->operands == 2) return arithmetic(found->op, operands[0], operands[1]);
  if (type_of(operands[0]) == FlexType::kBool) {
    return fail(std::string(function) + " takes a number, not a comparison");
  }
  if (found->op == FlexOp::kAbsolute) {
    return add({found->op, type_of(operands[0]), {operands[0], -1, -1}});
  }
  const int number = as_float(operands[0]);
  return add({found->op, FlexType::kFloat, {number, -1, -1}});
}

int FlexParser::compare(std::string_view sign, int a, int b) {
  if (failed()) return -1;
  if ((type_of(a) == FlexType::kBool) != (type_of(b) == FlexType::kBool)) {
    return fail("a comparison cannot be compared with a number");
  }
  if (type_of(a) != type_of(b)) {
    a = as_float(a);
    b = as_float(b);
  }
  if (failed()) return -1;
  if (sign == ">" || sign == ">=") std::swap(a, b);
  const FlexOp op = sign == "=="       ? FlexOp::kEqual
                    : sign == "!="     ? FlexOp::kNotEqual
                    : sign.size() == 1 ? FlexOp::kLess
                                       : FlexOp::kLessEqual;
  return add({op, FlexType::kBool, {a, b, -1}});
}

int FlexParser::arithmetic(FlexOp op, int a, int b) {
  if (failed()) return -1;
  if (type_of(a) == FlexType::kBool || type_of(b) == FlexType::kBool) {
    return fail("numbers are wanted, not comparisons");
  }
  if (op == FlexOp::kDivide || type_of(a) != type_of(b)) {
    a = as_float(a);
    b = as_float(b);
  }
  if (failed()) return -1;
  return add({op, type_of(a), {a, b, -1}});
}

int FlexParser::logic(FlexOp op, int a, int b) {
  if (failed()) return -1;
  if (type_of(a) != FlexType::kBool || type_of(b) != FlexType::kBool) {
    return fail("'and' and 'or' take comparisons, not numbers");
  }
  return add({op, FlexType::kBool, {a, b, -1}});
}

int FlexParser::where(int condition, int a, int b) {
  if (failed()) return -1;
  if (type_of(condition) != FlexType::kBool) return fail("a condition is true or false");
  if (type_of(a) != type_of(b)) {
    if (type_of(a) == FlexType::kBool || type_of(b) == FlexType::kBool) {
      return fail("both values of a choice are numbers, or both are comparisons");
    }
    a = as_float(a);
    b = as_float(b);
  }
  if (failed()) return -1;
  return add({FlexOp::kWhere, type_of(a), {condition, a, b}});
}

int FlexParser::as_float(int step) {
  if (failed() || type_of(step) == FlexType::kFloat) return step;
  if (type_of(step) == FlexType::kBool) return fail("a number is wanted, not a comparison");
  return add({FlexOp::kToFloat, FlexType::kFloat, {step, -1, -1}});
}

int FlexParser::add(FlexStep step) {
  if (failed()) return -1;
  if (steps_.size() >= static_cast<size_t>(kMaxFlexSteps)) {
    return fail("it has more than " + std::to_string(kMaxFlexSteps) + " steps");
  }
  steps_.push_back(step);
  return static_cast<int>(steps_.size()) - 1;
}

FlexType FlexParser::type_of(int step) const { return steps_.at(static_cast<size_t>(step)).type; }

bool FlexParser::take(std::string_view sign) {
  skip_spaces();
  if (failed() || text_.substr(at_, sign.size()) != sign) return false;
  at_ += sign.size();
  return true;
}

bool FlexParser::take_word(std::string_view word) {
  skip_spaces();
  const size_t end = at_ + word.size();
  if (failed() || text_.substr(at_, word.size()) != word) return false;
  if (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) return false;
  at_ = end;
  return true;
}

void FlexParser::skip_spaces() {
  while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) {
    ++at_;
  }
}

int FlexParser::fail(const std::string& what) {
  if (!failed()) fault_ = "character " + std::to_string(at_ + 1) + ": " + what;
  return -1;
}

}  // namespace foretoken
