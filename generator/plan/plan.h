// The exchange plan: everything that a general library decides at run time, decided here. Emission,
// bundle, verification and the text form read nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace afdep::plan {

enum class Role : std::uint8_t { kAttention, kFfn };
// Expand and reduce are the epilogues of receive and collect where a plan keeps them apart; the
// idle ones are what the other role launches in their place.
enum class Operation : std::uint8_t {
  kDispatch,
  kReceive,
  kReply,
  kCollect,
  kCollectView,
  kExpand,
  kReduce,
  kIdleExpand,
  kIdleReduce,
};
enum class Protocol : std::uint8_t { kFlagInData, kChunked, kBulk };
enum class IdType : std::uint8_t { kInt32, kInt64 };
enum class RouteCheck : std::uint8_t { kReport, kTrap, kOff };
enum class Arch : std::uint8_t { kSm90a, kSm100a };

// Launched behind another kernel by the same call.
constexpr bool is_epilogue(Operation operation) {
  return operation == Operation::kExpand || operation == Operation::kReduce ||
         operation == Operation::kIdleExpand || operation == Operation::kIdleReduce;
}

std::string_view to_string(Role role);            // "attention", "ffn"
std::string_view to_string(Operation operation);  // "dispatch", "receive", "reply", "collect",
                                                  // "collect_view", "expand", ...
std::string_view to_string(Protocol protocol);    // "flag_in_data", "chunked", "bulk"
std::string_view to_string(IdType type);          // "int32", "int64"
std::string_view to_string(RouteCheck check);     // "report", "trap", "off"
std::string_view to_string(Arch arch);            // "sm_90a", "sm_100a"

// Improvements that a plan reverts, for measurement. docs/ablations.md.
struct Ablation {
  bool entry_barrier = false;       // every phase begins when every rank has come
  bool exit_barrier = false;        // and ends when every rank has sent all
  bool dummy_experts = false;       // every rank sends, receives and waits in both phases
  bool union_buffers = false;       // inboxes have a block for every rank
  bool separate_epilogues = false;  // expand and reduce are kernels of their own

  // Ranks of one role send to each other too.
  [[nodiscard]] bool all_ranks() const { return entry_barrier || exit_barrier || dummy_experts; }
  [[nodiscard]] bool any() const { return all_ranks() || union_buffers || separate_epilogues; }
  friend bool operator==(const Ablation&, const Ablation&) = default;
};

// A number that an emitted kernel names: `constexpr int kName = value;  // why`.
struct Constant {
  std::string name;
  std::int64_t value = 0;
  std::string why;

  friend bool operator==(const Constant&, const Constant&) = default;
};

// A part of a registered window or of a rank's private workspace. Byte address of an item:
// offset + half * half_bytes + peer * peer_bytes + item * item_bytes.
struct Region {
  std::string name;         // e.g. "row_packets"
  std::int64_t offset = 0;  // bytes from the start of the window, 256-aligned
  int halves = 1;           // 2: selected by generation parity
  int peers = 1;            // blocks in a half, one per writing rank or reply slot
  std::int64_t items = 0;   // tokens, chunks or words in a block
  std::int64_t item_bytes = 0;
  std::int64_t peer_bytes = 0;
  std::int64_t half_bytes = 0;
  std::string purpose;  // who writes what, who reads it

  [[nodiscard]] std::int64_t bytes() const { return halves * half_bytes; }
  friend bool operator==(const Region&, const Region&) = default;
};

// What one role needs in its registered window (written by peers) and its private workspace
// (written by itself).
struct RoleLayout {
  Role role = Role::kAttention;
  std::vector<Region> window;
  std::int64_t window_bytes = 0;
  std::vector<Region> workspace;
  std::int64_t workspace_bytes = 0;

  friend bool operator==(const RoleLayout&, const RoleLayout&) = default;
};

enum class SignalKind : std::uint8_t {
  kPacket,       // generation inside the 16-byte data packet
  kReleaseFlag,  // st.release.sys of a generation word after the rows it covers
  kDoneWord,     // st.release.sys of a generation word: an inbox half may be written again
  kBarrier,      // st.release.sys of a generation word by every rank to every other one
  kCounts,       // counts of no rows, as packets, between ranks that have no rows for each other
};
// "packet", "release_flag", "done_word", "barrier", "counts"
std::string_view to_string(SignalKind kind);

// Something that one role publishes and the other awaits, in one region of the awaiting role's
// window. Barriers and counts of no rows go from both roles to both; their region has the same
// place in both windows, and `from` and `to` say nothing.
struct Signal {
  std::string name;  // "table", "rows", "replies", "done"
  SignalKind kind = SignalKind::kPacket;
  Role from = Role::kAttention;
  Role to = Role::kFfn;
  std::string flag_region;  // where the awaited word is
  std::string data_region;  // what it covers; the same region for packets, empty for a done word
  int generation_lag = 0;   // the waiter of generation g awaits g - lag

  [[nodiscard]] bool among_all() const {
    return kind == SignalKind::kBarrier || kind == SignalKind::kCounts;
  }
  friend bool operator==(const Signal&, const Signal&) = default;
};

enum class StepKind : std::uint8_t {
  kAwaitPreviousKernel,  // order within a rank
  kReleaseNextKernel,
  kAdvanceGeneration,
  kAwait,    // waits for `signal`
  kPublish,  // publishes `signal`
  kCompute,  // local work
};
std::string_view to_string(StepKind kind);  // "await_previous_kernel", ...

struct Step {
  StepKind kind = StepKind::kCompute;
  std::string signal;  // kAwait and kPublish
  std::string text;    // one line for a reader

  friend bool operator==(const Step&, const Step&) = default;
};

struct Kernel {
  Role role = Role::kAttention;
  Operation operation = Operation::kDispatch;
  Protocol protocol = Protocol::kFlagInData;
  int bucket = 0;
  std::string symbol;                     // "afdep_<name with _>_<operation>_b<bucket>"
  std::string template_path;              // "kernels/dispatch_flag_in_data.cu.in"
  int grid = 1;                           // CTAs
  int threads = 32;                       // a CTA
  int blocks_per_sm = 1;                  // the launch bound's second number
  int register_ceiling = 255;             // a thread
  std::int64_t shared_bytes = 0;          // dynamic, as launched
  bool grid_sync = false;                 // its CTAs wait for each other: all must be resident
  std::vector<Constant> constants;        // in emitted order
  std::map<std::string, bool> structure;  // template conditions
  std::vector<Step> steps;

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

// A serialized one-way message on the critical path. Within a role only among all ranks.
struct Hop {
  Operation from = Operation::kDispatch;
  Operation to = Operation::kReceive;
  std::string signal;

  friend bool operator==(const Hop&, const Hop&) = default;
};

// Bytes of one exchange in which every source sends `bucket` tokens with top-k distinct experts,
// uniform routing expected.
struct Traffic {
  double dispatch_wire_bytes = 0;  // leaving one attention rank
  double reply_wire_bytes = 0;     // leaving one FFN rank
  double worker_memory_bytes = 0;  // read and written by one FFN rank in receive and reply
  double source_memory_bytes = 0;  // read and written by one attention rank in dispatch and collect

  friend bool operator==(const Traffic&, const Traffic&) = default;
};

// Lower bound of one exchange, microseconds, from the constants in docs/performance.md.
struct Floor {
  double launch_us = 0;  // launches on the critical path x graph node gap
  double hop_us = 0;     // serialized hops x flag hop
  double bytes_us = 0;   // per phase the larger of memory and wire time
  double sync_us = 0;    // barriers x grid-wide sync
  [[nodiscard]] double total_us() const { return launch_us + hop_us + bytes_us + sync_us; }

  friend bool operator==(const Floor&, const Floor&) = default;
};

struct BucketPlan {
  int bucket = 0;
  Protocol protocol = Protocol::kFlagInData;
  std::vector<Kernel> kernels;  // dispatch, receive, reply, collect, then collect_view if the
                                // layout has one, then epilogues
  std::vector<Signal> signals;
  std::vector<Hop> critical_path;
  Traffic traffic;
  Floor floor;

  friend bool operator==(const BucketPlan&, const BucketPlan&) = default;
};

struct ExchangePlan {
  std::string name;
  std::string spec_digest;  // hex
  int attention_ranks = 0;
  int ffn_ranks = 0;
  bool ffn_first =
      true;        // FFN ranks are world ranks [0, ffn_ranks), else attention ranks come first
  int hidden = 0;  // elements
  int experts = 0;
  int top_k = 0;
  int row_bytes = 0;  // one BF16 row
  int capacity = 0;   // tokens a source may send in one exchange
  int expert_alignment = 1;
  bool zero_padding = false;
  bool host_counts = false;
  bool capture = true;    // graph.mode
  bool has_view = false;  // one FFN rank: collect(view) returns the reply inbox itself
  bool traced = false;    // kernels record when warps pass steps (trace.h)
  IdType id_type = IdType::kInt64;
  RouteCheck route_check = RouteCheck::kReport;
  Ablation ablation;
  std::vector<Arch> arches;
  std::int64_t device_timeout_ms = 0;
  std::int64_t host_timeout_ms = 0;
  RoleLayout attention;
  RoleLayout ffn;
  std::int64_t window_bytes = 0;    // registered by every rank: the larger role's
  std::vector<BucketPlan> buckets;  // ascending

  [[nodiscard]] int ranks() const { return attention_ranks + ffn_ranks; }
  [[nodiscard]] int local_experts() const { return experts / ffn_ranks; }
  // Rows of a receive tensor that hold any routing of `bucket` tokens a source, aligned.
  [[nodiscard]] std::int64_t receive_rows(int bucket) const;
  // World rank of a role's rank.
  [[nodiscard]] int world_rank(Role role, int index) const;

  friend bool operator==(const ExchangePlan&, const ExchangePlan&) = default;
};

}  // namespace afdep::plan
