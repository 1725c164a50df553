#include "model/files/containers/pickle.h"

#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <utility>

#include "base/check.h"

namespace foretoken {
namespace {

using Kind = PickleValue::Kind;

// Of a checkpoint with a hundred thousand tensors; more are no state dictionary.
constexpr size_t kMaxValues = size_t{8} << 20;
constexpr std::string_view kOrderedDict = "collections.OrderedDict";

// Opcodes, as Python's pickletools names them.
enum PickleOp : uint8_t {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinPersistent = 'Q',
  kReduce = 'R',
  kBinString = 'T',
  kShortBinString = 'U',
  kBinUnicode = 'X',
  kAppend = 'a',
  kBuild = 'b',
  kGlobalOp = 'c',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kEmptyList = ']',
  kEmptyTuple = ')',
  kProtocol = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kNewObject = 0x81,
  kTuple3 = 0x87,
  kTrue = 0x88,
  kFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kStackGlobal = 0x93,
  kMemoize = 0x94,
  kFrame = 0x95,
};

}  // namespace

// The pickle machine: a stack, marks in it, and a memo.
class PickleMachine {
 public:
  PickleMachine(std::span<const std::byte> bytes, Pickle::Allows allows, const std::string& where)
      : bytes_(bytes), allows_(allows), where_(where) {}

  Result<Pickle> run() {
    while (error_.ok() && !done_) step(static_cast<uint8_t>(number<uint8_t>()));
    if (!error_.ok()) return error_;
    if (stack_.size() != 1)
      return broken("it ends with " + std::to_string(stack_.size()) + " values instead of one");
    out_.root_ = stack_.back();
    out_.num_bytes_ = at_;
    return std::move(out_);
  }

 private:
  Status broken(const std::string& why) const {
    return invalid_argument(where_ + ": the pickle is broken (" + why +
                            "); the file is damaged or incomplete, fetch it again");
  }
  void fail(const std::string& why) {
    if (error_.ok()) error_ = broken(why);
  }

  // Bytes of the pickle; empty behind its end, which is an error.
  std::string_view take(uint64_t count) {
    if (!error_.ok() || count > bytes_.size() - at_) {
      fail("it ends inside a value");
      return {};
    }
    at_ += count;
    return {reinterpret_cast<const char*>(bytes_.data()) + at_ - count, count};
  }
  template <class T>
  T number() {
    T value{};
    const std::string_view raw = take(sizeof value);
    if (raw.size() == sizeof value) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  std::string line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_,
                                bytes_.size() - at_);
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) return fail("it ends inside a name"), std::string();
    at_ += end + 1;
    return std::string(rest.substr(0, end));
  }

  uint32_t add(PickleValue value) {
    if (out_.values_.size() >= kMaxValues) {
      fail("more than " + std::to_string(kMaxValues) + " values");
      return 0;
    }
    out_.values_.push_back(std::move(value));
    return static_cast<uint32_t>(out_.values_.size() - 1);
  }
  void push(PickleValue value) {
    const uint32_t index = add(std::move(value));
    if (error_.ok()) stack_.push_back(index);
  }
  void push_integer(int64_t value) { push({.kind = Kind::kInteger, .integer = value}); }
  void push_bool(bool value) { push({.kind = Kind::kBool, .integer = value}); }
  void push_text(std::string_view text) { push({.kind = Kind::kText, .text = std::string(text)}); }

  // Values above the last mark, or all of the stack's bottom where there is none, are free to take.
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  uint32_t pop() {
    if (stack_.size() <= floor()) {
      fail("its stack is empty");
      return kNothing;
    }
    const uint32_t top = stack_.back();
    stack_.pop_back();
    return top;
  }
  std::vector<uint32_t> pop_mark() {
    if (marks_.empty()) return fail("a mark is missing"), std::vector<uint32_t>();
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<uint32_t> items(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return items;
  }
  PickleValue* top(Kind kind) {
    if (stack_.size() <= floor() || out_.values_[stack_.back()].kind != kind) {
      fail("items go into what holds none");
      return nullptr;
    }
    return &out_.values_[stack_.back()];
  }
  void extend(Kind kind, const std::vector<uint32_t>& items) {
    PickleValue* into = top(kind);
    if (into == nullptr) return;
    if (kind == Kind::kDict && items.size() % 2 != 0) return fail("a key without a value");
    into->items.insert(into->items.end(), items.begin(), items.end());
  }
  void push_tuple(size_t count) {
    PickleValue tuple{.kind = Kind::kList};
    tuple.items.resize(count);
    while (count > 0) tuple.items[--count] = pop();
    if (error_.ok()) push(std::move(tuple));
  }

  void push_global(const std::string& module, const std::string& name) {
    const std::string full = module + "." + name;
    if (error_.ok() && !allows_(full)) {
      error_ = unsupported(where_ + ": the pickle names '" + full.substr(0, 120) +
                           "', and only dictionaries of tensors are read from pickles, which can "
                           "run programs elsewhere; save the weights as safetensors");
    }
    push({.kind = Kind::kGlobal, .text = full});
  }
  void stack_global() {
    const uint32_t name = pop(), module = pop();
    if (!error_.ok()) return;
    const PickleValue &n = out_.values_[name], &m = out_.values_[module];
    if (n.kind != Kind::kText || m.kind != Kind::kText) return fail("a global without a name");
    push_global(m.text, n.text);
  }
  void reduce() {
    const uint32_t arguments = pop(), callable = pop();
    if (!error_.ok()) return;
    if (out_.values_[callable].kind != Kind::kGlobal) return fail("it calls what is no function");
    if (out_.values_[callable].text != kOrderedDict) {
      return push({.kind = Kind::kCall, .items = {callable, arguments}});
    }
    if (!out_.values_[arguments].items.empty()) return fail("an OrderedDict made of arguments");
    push({.kind = Kind::kDict});
  }
  // Of a class that is called with a tuple.
  void new_object() {
    if (stack_.size() < floor() + 2) return fail("its stack is empty");
    const PickleValue& made_of = out_.values_[stack_.back()];
    const PickleValue& of_class = out_.values_[stack_[stack_.size() - 2]];
    if (made_of.kind != Kind::kList || of_class.text == kOrderedDict) {
      return fail("an object that is made of no tuple");
    }
    reduce();
  }
  // torch hangs _metadata on its dictionaries, and objects that torchao keeps beside its tensors
  // have states, which no weight depends on.
  void build() {
    pop();
    const bool is_object =
        stack_.size() > floor() && out_.values_[stack_.back()].kind == Kind::kCall;
    if (!is_object) top(Kind::kDict);
  }
  void push_long() {
    const std::string_view raw = take(number<uint8_t>());
    if (raw.size() > 8) {
      // Only the magic number of old files is as long, which the file's reader knows by its bytes.
      return push({.kind = Kind::kText, .text = std::string(raw)});
    }
    const bool negative = !raw.empty() && (static_cast<uint8_t>(raw.back()) & 0x80) != 0;
    uint64_t value = negative ? ~uint64_t{0} : 0;
    if (!raw.empty()) std::memcpy(&value, raw.data(), raw.size());
    push_integer(std::bit_cast<int64_t>(value));
  }
  void push_float() {
    auto bits = number<uint64_t>();  // big-endian, unlike all else
    bits = __builtin_bswap64(bits);
    push({.kind = Kind::kFloat, .number = std::bit_cast<double>(bits)});
  }
  void put(uint64_t key) {
    if (stack_.size() <= floor()) return fail("its stack is empty");
    memo_[key] = stack_.back();
  }
  void get(uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) return fail("it refers to what it has not");
    if (stack_.size() >= kMaxValues) return fail("its stack is too deep");
    stack_.push_back(found->second);
  }
  void duplicate() {
    if (stack_.size() <= floor()) return fail("its stack is empty");
    if (stack_.size() >= kMaxValues) return fail("its stack is too deep");
    stack_.push_back(stack_.back());
  }

  bool push_plain(uint8_t op);
  bool collect(uint8_t op);
  void step(uint8_t op);

  static constexpr uint32_t kNothing = 0;

  const std::span<const std::byte> bytes_;
  const Pickle::Allows allows_;
  const std::string& where_;
  size_t at_ = 0;
  bool done_ = false;
  Status error_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  Pickle out_;
};

// Opcodes of values without parts.
bool PickleMachine::push_plain(uint8_t op) {
  switch (op) {
    case kNone:
      return push({}), true;
    case kTrue:
      return push_bool(true), true;
    case kFalse:
      return push_bool(false), true;
    case kBinInt:
      return push_integer(number<int32_t>()), true;
    case kBinInt1:
      return push_integer(number<uint8_t>()), true;
    case kBinInt2:
      return push_integer(number<uint16_t>()), true;
    case kLong1:
      return push_long(), true;
    case kBinFloat:
      return push_float(), true;
    case kBinUnicode:
    case kBinString:
      return push_text(take(number<uint32_t>())), true;
    case kShortBinUnicode:
    case kShortBinString:
      return push_text(take(number<uint8_t>())), true;
    case kBinUnicode8:
      return push_text(take(number<uint64_t>())), true;
    case kEmptyDict:
      return push({.kind = Kind::kDict}), true;
    case kEmptyList:
    case kEmptyTuple:
    case kEmptySet:
      return push({.kind = Kind::kList}), true;
    default:
      return false;
  }
}

// Opcodes that gather values in others.
bool PickleMachine::collect(uint8_t op) {
  switch (op) {
    case kTuple:
      return push({.kind = Kind::kList, .items = pop_mark()}), true;
    case kTuple1:
    case kTuple2:
    case kTuple3:
      return push_tuple(op - kTuple1 + 1u), true;
    case kAppend: {
      const uint32_t value = pop();
      return extend(Kind::kList, {value}), true;
    }
    case kAppends:
    case kAddItems:
      return extend(Kind::kList, pop_mark()), true;
    case kSetItem: {
      const uint32_t value = pop(), key = pop();
      return extend(Kind::kDict, {key, value}), true;
    }
    case kSetItems:
      return extend(Kind::kDict, pop_mark()), true;
    case kBinPersistent: {
      const uint32_t id = pop();
      return push({.kind = Kind::kPersistent, .items = {id}}), true;
    }
    case kNewObject:
      return new_object(), true;
    case kReduce:
      return reduce(), true;
    case kBuild:
      return build(), true;
    default:
      return false;
  }
}

void PickleMachine::step(uint8_t op) {
  if (!error_.ok() || push_plain(op) || collect(op)) return;
  switch (op) {
    case kStop:
      done_ = true;
      return;
    case kMark:
      if (marks_.size() >= kMaxValues) return fail("its stack is too deep");
      return marks_.push_back(stack_.size());
    case kPop:
      pop();
      return;
    case kPopMark:
      pop_mark();
      return;
    case kDup:
      return duplicate();
    case kGlobalOp: {
      const std::string module = line();
      return push_global(module, line());
    }
    case kStackGlobal:
      return stack_global();
    case kBinPut:
      return put(number<uint8_t>());
    case kLongBinPut:
      return put(number<uint32_t>());
    case kMemoize:
      return put(memo_.size());
    case kBinGet:
      return get(number<uint8_t>());
    case kLongBinGet:
      return get(number<uint32_t>());
    case kProtocol:
      number<uint8_t>();
      return;
    case kFrame:
      number<uint64_t>();
      return;
    default:
      return fail("opcode " + std::to_string(op) + " has no place in a dictionary of tensors");
  }
}

Result<Pickle> Pickle::read(std::span<const std::byte> bytes, Allows allows,
                            const std::string& where) {
  return PickleMachine(bytes, allows, where).run();
}

}  // namespace foretoken
