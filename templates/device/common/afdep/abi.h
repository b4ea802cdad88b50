// What the host passes to an emitted kernel and reads back: one definition for NVRTC, the emulator
// and the runtime.
#pragma once

#include "afdep/types.h"

namespace afdep {

constexpr int kAbiVersion = 2;
constexpr int kMaxRanks = 64;

// Generation words of one rank, in its own device memory. A graph replay advances them without the
// host. "First" is dispatch on an attention rank and receive on an FFN rank, "second" is collect
// and reply. The first kernel reads `finished` and writes `started`; the second reads `started` and
// writes `finished`: no kernel reads a word it writes, so CTAs of one kernel need no order among
// themselves.
struct Control {
  uint32_t started;        // generation of the newest first kernel
  uint32_t finished;       // generation of the newest second kernel
  uint32_t abort;          // nonzero: every wait of this rank gives up at its next look
  uint32_t route_claimed;  // nonzero: a thread has taken the route record of this exchange
  uint32_t units_taken;    // of those that the blocks of a bulk receive share out; reply clears it
};
static_assert(sizeof(Control) == 20, "Control is read by the host");

// Where in an exchange a wait stands.
enum Phase : uint32_t {
  kPhaseDone = 1,   // dispatch waits for a worker's done word
  kPhaseTable = 2,  // receive waits for a source's top-k table
  kPhaseRow = 3,    // receive waits for a source's row
  kPhaseReply = 4,  // collect waits for a worker's reply
  // Of plans that revert improvements. The awaited rank is numbered attention first; the item is
  // the Part of the exchange.
  kPhaseEntry = 5,   // for a rank to come to an entry barrier
  kPhaseExit = 6,    // for a rank to come to an exit barrier
  kPhaseCounts = 7,  // for a rank to say that it has no rows
  kPhaseGrid = 8,    // for another block of the kernel, which is the item
};

enum RouteError : uint32_t {
  kRouteOutOfRange = 1,  // neither -1 nor in [0, experts)
  kRouteDuplicate = 2,   // the same expert twice in one token
};

// A record is filled by the one thread that claimed it in Control, which then publishes 2 in
// `state`. The host resets `state` to 0 after it has read a record.
struct WaitFault {
  uint32_t state;
  uint32_t phase;  // Phase
  uint32_t peer;   // index of the awaited rank within its role
  uint32_t generation;
  uint32_t seen;      // the word that was there
  uint32_t expected;  // the word that was awaited
  uint32_t item;      // token, packet or chunk that was awaited
  uint32_t reserved;
};
static_assert(sizeof(WaitFault) == 32, "WaitFault is read by the host");

struct RouteFault {
  uint32_t state;
  uint32_t error;  // RouteError
  uint32_t generation;
  uint32_t token;
  int64_t value;    // the id as given
  uint32_t choice;  // position within the token's top-k
  uint32_t reserved;
};
static_assert(sizeof(RouteFault) == 32, "RouteFault is read by the host");

// Host memory that the device can write; one per rank.
struct Faults {
  WaitFault wait;
  RouteFault route;
};
static_assert(sizeof(Faults) == 64, "Faults is read by the host");

// Fields that every kernel needs.
struct CommonArgs {
  Control* control;
  Faults* faults;
  uint8_t* window;      // this rank's registered window
  uint8_t* workspace;   // this rank's private scratch, laid out by the plan
  uint64_t timeout_ns;  // bound of each wait
  uint32_t index;       // of this rank within its role
  uint32_t reserved;
  // Windows of the other role's ranks, by index within that role, then of the own role's.
  uint8_t* peer[kMaxRanks];
};
static_assert(sizeof(CommonArgs) == 48 + 8 * kMaxRanks, "CommonArgs is filled by the host");

// Attention: x [tokens, H], ids [tokens, K], weights FP32 [tokens, K], all contiguous; tokens <=
// bucket.
struct DispatchArgs {
  CommonArgs common;
  const void* x;
  const void* ids;  // int32 or int64, by plan; -1 skips
  const float* weights;
  uint32_t tokens;
  uint32_t reserved;
};

// FFN: rows [receive_rows, H] expert-major, row_weights FP32 [receive_rows], ends and counts int32
// [local experts].
struct ReceiveArgs {
  CommonArgs common;
  void* rows;
  float* row_weights;
  int32_t* ends;    // expert e occupies [align_up(ends[e-1]), ends[e])
  int32_t* counts;  // live rows of expert e
};

// FFN: rows as returned by receive, now holding weighted expert outputs.
struct ReplyArgs {
  CommonArgs common;
  const void* rows;
};

// Attention: out [tokens, H] contiguous.
struct CollectArgs {
  CommonArgs common;
  void* out;
  uint32_t tokens;
  uint32_t reserved;
};

static_assert(sizeof(DispatchArgs) == sizeof(CommonArgs) + 32, "filled by the host");
static_assert(sizeof(ReceiveArgs) == sizeof(CommonArgs) + 32, "filled by the host");
static_assert(sizeof(ReplyArgs) == sizeof(CommonArgs) + 8, "filled by the host");
static_assert(sizeof(CollectArgs) == sizeof(CommonArgs) + 16, "filled by the host");

}  // namespace afdep
