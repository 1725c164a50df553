# See tests/entries.cmake.
set(sanitizers asan)
# Statistics of many drafts; and random schedules of many steps: types, windows and latents touch there
# what the other tests of the same drafters touch.
set(slow_asan "DialledRates\\." "(UnderAnySchedule|ListedDrafters\\.).*(Latents|Windows|Mixture|Bf16|Int8Kv|Fp8Kv)"
  # When a sequence is caught up, cut, preempted or opted out is decided before any type is looked at:
  # the plain cases of each drafter stand for the others.
  "(LittleIs|AHundredSteps|InPieces|WereCut|AfterPreemption|OptedOut).*(Latents|Window|Mixture|Bf16|8Kv|Reduced|Probabilistic)")
