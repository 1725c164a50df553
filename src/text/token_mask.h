#pragma once
#include <cstdint>
#include <span>

#include "base/result.h"

namespace foretoken {

// What one output may go on with, token by token. One thread at a time.
class TokenMask {
 public:
  virtual ~TokenMask() = default;

  // Sets bit id % 32 of word id / 32 of every id that may come next and clears all others; `words`
  // has ceil(vocab / 32) of them. No bit at all: the output is complete and there is no EOS id, or
  // no token fits. Fails, and goes on failing, where the grammar exceeds its limits.
  virtual Status fill(std::span<uint32_t> words) = 0;

  // The id with the longest text among those that a filled mask allows, where all others begin like
  // it, so that the text which follows is certain; -1: it is not.
  virtual int32_t forced(std::span<const uint32_t> words) const = 0;

  // Goes on by an id that the mask allows. Nothing comes behind an id that ends the output.
  virtual Status consume(int32_t id) = 0;
  virtual bool ends(int32_t id) const = 0;

  // Takes back the last `count` ids.
  virtual Status rollback(int count) = 0;

  // Whether nothing but the end can follow.
  virtual bool is_complete() = 0;
};

}  // namespace foretoken
