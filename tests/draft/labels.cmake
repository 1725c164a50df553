# See tests/entries.cmake.
set(sanitizers asan)
# Statistics of many drafts; and random schedules of many steps: types, windows and latents touch there
# what the other tests of the same drafters touch.
set(slow_asan "DialledRates\\." "(UnderAnySchedule|ListedDrafters\\.).*(Latents|Windows|Mixture|Bf16|Int8Kv|Fp8Kv)")
# Every drafter with every type of the cache and of attention.
set(in_turns "ExactDrafts\\." "ListedDrafters\\.")
