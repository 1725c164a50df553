#pragma once

namespace foretoken {

// KV positions that are reduced together before partial results are merged, in order. Splits have
// fixed bounds, the same for every row, so that neither the batch nor the chunking changes a bit.
// On CPUs all have kAttentionSplit positions. On GPUs, where blocks share the splits of a row and
// leave partial results in memory, they grow with the position: far contexts have enough of them
// for every multiprocessor, and so fewer results to write and read again.
inline constexpr int kAttentionSplit = 256;

// Bounds of a GPU's splits: kAttentionSplit positions each up to kNearEnd, twice as many up to
// kMiddleEnd, then four times. All functions are shifts, for they stand in the kernels' loops.
struct AttentionSplits {
  static constexpr int kNearEnd = 6144;
  static constexpr int kMiddleEnd = 16384;

  // Number of the split that holds `position`.
  static constexpr int of(int position) { return before(position) + (position >> shift(position)); }
  // First position of split number `split`.
  static constexpr int begin(int split) {
    const int position = split < of(kNearEnd) ? 0 : split < of(kMiddleEnd) ? kNearEnd : kMiddleEnd;
    return (split - before(position)) << shift(position);
  }
  // First position of the split that holds `position`.
  static constexpr int floor(int position) { return position & -width(position); }
  // Positions of the split that holds `position`; it begins at a multiple of them.
  static constexpr int width(int position) { return 1 << shift(position); }

 private:
  static constexpr int shift(int position) {
    static_assert(kAttentionSplit == 256);
    return 8 + (position >= kNearEnd) + (position >= kMiddleEnd);
  }
  // By which the numbers of splits are ahead of those of equal splits as wide as here.
  static constexpr int before(int position) {
    constexpr int kMiddle = kNearEnd >> 9;
    constexpr int kFar = kMiddle + (kMiddleEnd >> 10);
    return (position >= kNearEnd ? kMiddle : 0) + (position >= kMiddleEnd ? kFar - kMiddle : 0);
  }
};

}  // namespace foretoken
