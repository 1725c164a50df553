#include "model/layer/recurrent/linear_parts.h"

#include <algorithm>

namespace foretoken {
namespace {

// Heads of a rank, and the rows that all queries (and all keys), and all values, have.
struct LinearPlaces {
  ShardRange keys;
  ShardRange values;
  int64_t q_size;
  int64_t v_size;
  int64_t key_dim;
  int64_t value_dim;

  LinearPlaces(const LinearSpec& whole, const Sharding& sharding)
      : keys(shard_of_kv_heads(whole.shape.key_heads, sharding)),
        values(shard_of(whole.shape.value_heads, sharding)),
        q_size(whole.shape.q_size()),
        v_size(whole.shape.v_size()),
        key_dim(whole.shape.key_dim),
        value_dim(whole.shape.value_dim) {}

  // Of a key head, the values of the rank among its own.
  struct ValuesOfKey {
    int64_t head;
    int64_t begin;
    int64_t count;
  };
  std::vector<ValuesOfKey> values_by_key(int64_t num_keys) const {
    const int64_t each = v_size / value_dim / num_keys;
    std::vector<ValuesOfKey> own;
    for (int64_t head = keys.begin; head < keys.begin + keys.count; ++head) {
      const int64_t begin = std::max(values.begin, head * each);
      const int64_t end = std::min(values.begin + values.count, (head + 1) * each);
      own.push_back({head, begin - head * each, end - begin});
    }
    return own;
  }

  // The rank's keys, or queries, in a tensor of `all` rows where those of all heads begin at `at`.
  TensorPart of_keys(const std::string& name, int64_t all, int64_t at) const {
    return {name, all, at + keys.begin * key_dim, keys.count * key_dim};
  }
  TensorPart of_values(const std::string& name, int64_t all, int64_t at) const {
    return {name, all, at + values.begin * value_dim, values.count * value_dim};
  }
  // What values have one of a head.
  TensorPart of_heads(const std::string& name, int64_t all, int64_t at) const {
    return {name, all, at + values.begin, values.count};
  }
};

// A key head's query, key, values and gates lie together. Ranks that have the same key head divide
// its values.
std::vector<TensorPart> grouped_first_parts(const std::string& name, const LinearSpec& whole,
                                            const Sharding& sharding) {
  const LinearPlaces at(whole, sharding);
  const int64_t all = 2 * (at.q_size + at.v_size);
  const int64_t group = all / whole.shape.key_heads, values = at.v_size / whole.shape.key_heads;
  std::vector<TensorPart> parts;
  for (const int64_t first : {int64_t{0}, at.key_dim}) {
    for (const auto& own : at.values_by_key(whole.shape.key_heads)) {
      parts.push_back({name, all, own.head * group + first, at.key_dim});
    }
  }
  const int num_parts = whole.gate == NormGate::kNone ? 1 : 2;
  for (int64_t part = 0; part < num_parts; ++part) {
    for (const auto& own : at.values_by_key(whole.shape.key_heads)) {
      const int64_t first = 2 * at.key_dim + part * values + own.begin * at.value_dim;
      parts.push_back({name, all, own.head * group + first, own.count * at.value_dim});
    }
  }
  return parts;
}

// Of each head its query, key and value.
std::vector<TensorPart> parts_by_head(const std::string& name, const LinearSpec& whole,
                                      const Sharding& sharding) {
  const LinearPlaces at(whole, sharding);
  std::vector<TensorPart> parts;
  for (int64_t which = 0; which < 3; ++which) {
    for (int64_t head = at.keys.begin; head < at.keys.begin + at.keys.count; ++head) {
      parts.push_back({name, 3 * at.q_size, (3 * head + which) * at.key_dim, at.key_dim});
    }
  }
  return parts;
}

// The same of scales, which lie before the decays.
std::vector<TensorPart> grouped_step_parts(const std::string& name, const LinearSpec& whole,
                                           const Sharding& sharding) {
  const LinearPlaces at(whole, sharding);
  const int64_t each = whole.shape.value_heads / whole.shape.key_heads;
  std::vector<TensorPart> parts;
  for (const int64_t behind : {each, int64_t{0}}) {
    for (const auto& own : at.values_by_key(whole.shape.key_heads)) {
      parts.push_back(
          {name, 2 * whole.shape.value_heads, own.head * 2 * each + behind + own.begin, own.count});
    }
  }
  return parts;
}

}  // namespace

std::vector<TensorPart> first_parts(const std::string& base, const LinearSpec& whole,
                                    const Sharding& sharding) {
  const LinearPlaces at(whole, sharding);
  const std::string name = base + whole.in_qkv;
  std::vector<TensorPart> parts;
  switch (whole.files) {
    case LinearFiles::kByGroup:
      return grouped_first_parts(name, whole, sharding);
    case LinearFiles::kStep: {
      const int64_t all = 2 * (at.q_size + at.v_size) + whole.shape.value_heads;
      parts = {at.of_keys(name, all, 2 * at.v_size + at.q_size),
               at.of_keys(name, all, 2 * at.v_size), at.of_values(name, all, at.v_size),
               at.of_values(name, all, 0)};
      const LinearFactors& factors = whole.factors;
      const float by[] = {factors.queries, factors.keys, factors.values, factors.gates};
      for (size_t i = 0; i < parts.size(); ++i) parts[i].padded = PaddedHeads::scaled(by[i]);
      break;
    }
    case LinearFiles::kEach:
      parts = {at.of_keys(base + "q_proj", at.q_size, 0), at.of_keys(base + "k_proj", at.q_size, 0),
               at.of_values(base + "v_proj", at.v_size, 0)};
      break;
    case LinearFiles::kByHead:
      parts = parts_by_head(name, whole, sharding);
      break;
    case LinearFiles::kApart: {
      const int64_t all = 2 * at.q_size + at.v_size;
      parts = {at.of_keys(name, all, 0), at.of_keys(name, all, at.q_size),
               at.of_values(name, all, 2 * at.q_size)};
      if (!sharding.is_cut()) parts = {{name, all}};
      break;
    }
  }
  const bool has_gates = whole.gate != NormGate::kNone && whole.gate_rank == 0;
  if (has_gates && whole.files != LinearFiles::kStep) {
    parts.push_back(at.of_values(base + whole.in_gate, at.v_size, 0));
  }
  return parts;
}

std::vector<TensorPart> step_parts(const std::string& base, const LinearSpec& whole,
                                   const Sharding& sharding) {
  const LinearPlaces at(whole, sharding);
  std::vector<TensorPart> parts;
  switch (whole.files) {
    case LinearFiles::kByGroup:
      parts = grouped_step_parts(base + whole.in_decay, whole, sharding);
      break;
    case LinearFiles::kStep: {
      const int64_t before = 2 * (at.q_size + at.v_size);
      parts = {at.of_heads(base + whole.in_qkv, before + whole.shape.value_heads, before)};
      parts[0].padded = PaddedHeads::scaled(whole.factors.steps);
      break;
    }
    case LinearFiles::kApart:
    case LinearFiles::kEach:
      if (!whole.decays()) break;
      if (whole.decay_rank == 0) {
        const int64_t each = whole.shape.decay_size() / whole.shape.value_heads;
        parts.push_back(low_part(base + whole.in_decay, whole, sharding, each));
      }
      parts.push_back(at.of_heads(base + whole.in_scale, whole.shape.value_heads, 0));
      break;
    case LinearFiles::kByHead:
      break;
  }
  for (TensorPart& part : parts) part.is_exact = true;
  return parts;
}

TensorPart low_part(const std::string& name, const LinearSpec& whole, const Sharding& sharding,
                    int64_t each) {
  const ShardRange heads = shard_of(whole.shape.value_heads, sharding);
  return {name, whole.shape.value_heads * each, heads.begin * each, heads.count * each};
}

std::vector<TensorPart> apart_conv_parts(const std::string& base, const LinearSpec& whole,
                                         const Sharding& sharding, bool is_deep) {
  const LinearPlaces at(whole, sharding);
  std::vector<TensorPart> parts = {at.of_keys(base + "q_conv1d.weight", at.q_size, 0),
                                   at.of_keys(base + "k_conv1d.weight", at.q_size, 0),
                                   at.of_values(base + "v_conv1d.weight", at.v_size, 0)};
  for (TensorPart& part : parts) {
    if (is_deep) part.stacked = part.rows;
    part.row_size = whole.conv_width;
    part.rows *= whole.conv_width;
    part.first_row *= whole.conv_width;
    part.num_rows *= whole.conv_width;
  }
  return parts;
}

// As the first product has them, which for kStep are in the opposite order.
std::vector<TensorPart> conv_parts(const std::string& name, const LinearSpec& whole,
                                   const Sharding& sharding, int64_t each, bool is_deep) {
  const LinearPlaces at(whole, sharding);
  const int64_t all = whole.conv_channels();
  std::vector<TensorPart> parts;
  if (whole.files == LinearFiles::kStep) {
    parts = {at.of_keys(name, all, at.v_size + at.q_size), at.of_keys(name, all, at.v_size),
             at.of_values(name, all, 0)};
  } else {
    parts = {at.of_keys(name, all, 0), at.of_keys(name, all, at.q_size),
             at.of_values(name, all, 2 * at.q_size)};
  }
  for (TensorPart& part : parts) {
    part.rows *= each;
    part.first_row *= each;
    part.num_rows *= each;
    if (each > 1) part.row_size = each;
    if (is_deep) part.stacked = all;
  }
  return parts;
}

}  // namespace foretoken
