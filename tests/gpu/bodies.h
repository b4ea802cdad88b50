// The bodies of exchange tests by name. The GPU's and the emulator's tests run these same ones.
#pragma once

#include "tests/gpu/exchange_bodies.h"
#include "tests/gpu/refusal_bodies.h"

namespace afdep::exchange_test {

struct Body {
  const char* name;
  void (*run)(Backend&, const bundle::Bundle&, const Scale&);
};

constexpr Body kBodies[] = {
    {"EagerExchangesOfEverySize", eager_exchanges_of_every_size},
    {"EagerExchangesOfMixedSizesAndBuckets", eager_exchanges_of_mixed_sizes_and_buckets},
    {"EagerExchangesIntoTheBuffersStorage", eager_exchanges_into_the_buffers_storage},
    {"TheGenerationWraps", the_generation_wraps},
    {"GraphsOfEverySize", graphs_of_every_size},
    {"GraphsOfSeveralBuckets", graphs_of_several_buckets},
    {"ReplaysFollowEachOtherWithoutALook", replays_follow_each_other_without_a_look},
    {"TwoBuffersInterleave", two_buffers_interleave},
    {"AViewIsTheCollectedRows", a_view_is_the_collected_rows},
    {"BadIdsAreReported", bad_ids_are_reported},
    {"ALateWorkerIsNamed", a_late_worker_is_named},
    {"ALateSourceIsNamed", a_late_source_is_named},
    {"AbortEndsAWait", abort_ends_a_wait},
    {"HostCountsCutTheRows", host_counts_cut_the_rows},
    {"RefusedCallsChangeNothing", refused_calls_change_nothing}};

}  // namespace afdep::exchange_test
