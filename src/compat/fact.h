#pragma once
#include <concepts>
#include <cstdint>

namespace foretoken {

// Something that is so, is not so, or is not known. Only what is known counts: as a condition it is
// true where it is known to be so, and is_false() where it is known not to be.
class Fact {
 public:
  constexpr Fact() = default;  // not known
  template <std::same_as<bool> Bool>
  constexpr Fact(Bool value)  // NOLINT(google-explicit-constructor): a bool is a fact
      : state_(value ? State::kTrue : State::kFalse) {}

  constexpr explicit operator bool() const { return state_ == State::kTrue; }
  constexpr bool is_false() const { return state_ == State::kFalse; }
  constexpr bool is_known() const { return state_ != State::kUnknown; }

 private:
  enum class State : uint8_t { kUnknown, kFalse, kTrue };
  State state_ = State::kUnknown;
};

}  // namespace foretoken
