#include "model/layer/recurrent/wkv_mixer.h"

#include "model/layer/part_rig.h"

namespace foretoken {
namespace {

constexpr int32_t kWkvHidden = 8, kWkvHeads = 2, kWkvDim = 4, kWkvRows = 6;

class WkvMixerTest : public test::PartTest {
 protected:
  static WkvSpec spec_of(bool is_first) {
    return {.shape = {.key_heads = kWkvHeads,
                      .value_heads = kWkvHeads,
                      .key_dim = kWkvDim,
                      .value_dim = kWkvDim,
                      .channel_decay = true,
                      .removes = true},
            .inputs = kWkvHidden,
            .ranks = {.decay = 3, .rate = 2, .share = 2, .gate = 4},
            .is_first = is_first,
            .norm_eps = 1e-5f};
  }

  void add_layer(const std::string& base, bool is_first, bool joined) {
    const int64_t hidden = kWkvHidden, size = int64_t{kWkvHeads} * kWkvDim;
    if (joined) {
      add(base + "x_x", {6, hidden});
    } else {
      for (const char* name : WkvSpec::kMixes) add(base + name, {1, 1, hidden});
    }
    for (const char* name : {"k_k", "k_a", "g_norm.weight", "g_norm.bias"}) {
      add(base + name, {size});
    }
    add(base + "r_k", {kWkvHeads, kWkvDim});
    for (const char* name : {"r_proj", "k_proj", "v_proj"}) {
      add(base + name + ".weight", {size, hidden});
    }
    add(base + "o_proj.weight", {hidden, size});
    const WkvRanks ranks = spec_of(false).ranks;
    for (const auto& [name, rank] : {std::pair("w", ranks.decay), std::pair("a", ranks.rate),
                                     std::pair("v", ranks.share), std::pair("g", ranks.gate)}) {
      if (is_first && name[0] == 'v') continue;
      const std::string lora = base + name + "_lora.lora.";
      add(lora + "0.weight", {rank, hidden});
      add(lora + "2.weight", {size, rank});
      if (name[0] != 'g') add(lora + "2.bias", {size});
    }
  }

  LayerKv kv_of(const WkvSpec& part) {
    const StateSpec state = part.state();
    LayerKv kv{};
    kv.state.history_rows = 2;
    kv.state.history = allocate<float>(size_t{2} * 2 * size_t(state.conv_channels));
    kv.state.pending_rows = 1;
    kv.state.states = allocate<float>(size_t{2} * size_t(state.linear.state_size()));
    kv.state.committed = to_device(std::vector<int32_t>(2, 0));
    kv.state.pending = allocate<float>(size_t{2} * size_t(state.linear.update_size()));
    return kv;
  }

  // The rows of one sequence through two layers' mixers, in steps of so many.
  std::vector<float> run(const float* x, int32_t each, const Sharding& sharding = {}) {
    const auto load = [&](bool is_first) {
      return load_part<WkvMixer>(
          [&](PartLoader& loader, WkvMixer* out) {
            return out->load(loader, is_first ? "0." : "1.", spec_of(is_first));
          },
          {}, sharding);
    };
    const WkvMixer first = load(true), second = load(false);
    WkvMixer::Scratch scratch;
    scratch.fit(first.spec);
    EXPECT_TRUE(scratch.take(scratch_source(kWkvRows)).ok());
    const LayerKv kv[] = {kv_of(first.spec), kv_of(second.spec)};
    float* out = allocate<float>(size_t{kWkvRows} * kWkvHidden);
    for (int32_t begin = 0; begin < kWkvRows; begin += each) {
      const int32_t count = std::min(each, kWkvRows - begin);
      std::vector<int32_t> positions;
      for (int32_t i = 0; i < count; ++i) positions.push_back(begin + i);
      const LayerRows rows = rows_of(count, positions);
      for (const WkvMixer* mixer : {&first, &second}) {
        mixer->project(rows, x + begin * kWkvHidden, scratch);
        mixer->attend(rows, kv[mixer == &second], scratch);
        mixer->output(rows, scratch, {out + begin * kWkvHidden});
      }
    }
    return read(out, size_t{kWkvRows} * kWkvHidden);
  }
};

TEST_F(WkvMixerTest, StepsAndRanksLeaveWhatOneRunDoes) {
  add_layer("0.attn.", true, true);
  add_layer("1.attn.", false, false);
  std::vector<double> first;
  const float* x = random_rows(kWkvRows, kWkvHidden, &first);
  const std::vector<float> whole = run(x, kWkvRows);
  EXPECT_EQ(run(x, 1), whole);
  EXPECT_EQ(run(x, 4), whole);
  const std::vector<float> parts[] = {run(x, kWkvRows, {0, 2}), run(x, kWkvRows, {1, 2})};
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(parts[0][i] + parts[1][i], whole[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace foretoken
