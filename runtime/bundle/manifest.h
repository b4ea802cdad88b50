// What the runtime knows of a plan: the contents of a bundle's manifest.json.
// Plain data. The generator fills it from an ExchangePlan; the runtime recomputes none of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace afdep::bundle {

// Changes whenever a reader of the older format would misread the newer one.
constexpr int kFormatVersion = 2;

enum class Role : std::uint8_t { kAttention, kFfn };
enum class Operation : std::uint8_t {
  kDispatch,
  kReceive,
  kReply,
  kCollect,
  kCollectView,
  kExpand,      // FFN, behind receive
  kReduce,      // attention, behind collect
  kIdleExpand,  // attention, behind dispatch
  kIdleReduce,  // FFN, behind reply
};
enum class Protocol : std::uint8_t { kFlagInData, kChunked, kBulk };
enum class IdType : std::uint8_t { kInt32, kInt64 };
enum class RouteCheck : std::uint8_t { kReport, kTrap, kOff };

std::string_view to_string(Role role);            // "attention", "ffn"
std::string_view to_string(Operation operation);  // "dispatch", ..., "idle_reduce"
std::string_view to_string(Protocol protocol);    // "flag_in_data", "chunked", "bulk"
std::string_view to_string(IdType type);          // "int32", "int64"
std::string_view to_string(RouteCheck check);     // "report", "trap", "off"

// Part of a registered window or of a workspace. Byte address of an item:
// offset + half * half_bytes + peer * peer_bytes + item * item_bytes.
struct Region {
  std::string name;
  std::int64_t offset = 0;  // bytes, 256-aligned
  int halves = 1;           // 2: selected by generation parity
  int peers = 1;
  std::int64_t items = 0;
  std::int64_t item_bytes = 0;
  std::int64_t peer_bytes = 0;
  std::int64_t half_bytes = 0;
  // The words are done words: they start out as the generation before the first, not as zero.
  bool done_words = false;

  [[nodiscard]] std::int64_t bytes() const { return halves * half_bytes; }
  friend bool operator==(const Region&, const Region&) = default;
};

struct RoleLayout {
  std::vector<Region> window;  // written by peers
  std::int64_t window_bytes = 0;
  std::vector<Region> workspace;  // private
  std::int64_t workspace_bytes = 0;

  friend bool operator==(const RoleLayout&, const RoleLayout&) = default;
};

// What the compiler says of a kernel for one arch; the cubin is the file cubin_path(arch, symbol).
struct Compiled {
  std::string arch;   // "sm_90a"
  int registers = 0;  // a thread

  friend bool operator==(const Compiled&, const Compiled&) = default;
};

struct Kernel {
  Role role = Role::kAttention;
  Operation operation = Operation::kDispatch;
  std::string symbol;
  std::string source;              // a path of the bundle: "src/attention_dispatch_b8.cu"
  int grid = 1;                    // CTAs
  int threads = 32;                // a CTA
  int blocks_per_sm = 1;           // that the compiler was told to make room for
  std::int64_t shared_bytes = 0;   // dynamic, as launched
  bool grid_sync = false;          // its CTAs wait for each other: all must be resident
  std::vector<Compiled> compiled;  // ascending by arch; empty if only emitted

  friend bool operator==(const Kernel&, const Kernel&) = default;
};

struct Bucket {
  int tokens = 0;
  Protocol protocol = Protocol::kFlagInData;
  std::int64_t receive_rows = 0;  // of a receive tensor: holds any routing of `tokens` a source
  std::vector<Kernel>
      kernels;  // dispatch, receive, reply, collect, maybe collect_view and epilogues

  // nullptr if the bucket has no such kernel.
  [[nodiscard]] const Kernel* find(Operation operation) const;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

// A file of the bundle other than the manifest.
struct FileEntry {
  std::string path;  // relative, with '/'
  std::int64_t bytes = 0;
  std::string checksum;  // XXH3-128, 32 hex digits

  friend bool operator==(const FileEntry&, const FileEntry&) = default;
};

struct Manifest {
  int format_version = kFormatVersion;
  std::string afdep_version;
  int abi_version = 0;        // kAbiVersion of the headers that the kernels were emitted for
  std::string spec_digest;    // hex
  std::string nvrtc_version;  // "13.0"; empty if only emitted
  std::string name;           // of the spec
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
  IdType id_type = IdType::kInt64;
  RouteCheck route_check = RouteCheck::kReport;
  bool zero_padding = false;
  bool host_counts = false;  // receive.host_counts
  bool capture = true;       // graph.mode: capture
  bool has_view = false;     // source_collect may return the region "view" of the attention window
  std::int64_t device_timeout_ms = 0;
  std::int64_t host_timeout_ms = 0;
  std::int64_t window_bytes = 0;  // registered by every rank: the larger role's
  RoleLayout attention;
  RoleLayout ffn;
  std::vector<Bucket> buckets;   // ascending by tokens
  std::vector<FileEntry> files;  // ascending by path; make_bundle() fills it

  [[nodiscard]] int ranks() const { return attention_ranks + ffn_ranks; }
  [[nodiscard]] int local_experts() const { return experts / ffn_ranks; }
  [[nodiscard]] const RoleLayout& layout(Role role) const {
    return role == Role::kAttention ? attention : ffn;
  }
  // World rank of a role's rank, and back.
  [[nodiscard]] int world_rank(Role role, int index) const;
  [[nodiscard]] Role role_of(int world_rank) const;
  [[nodiscard]] int index_of(int world_rank) const;
  // nullptr if the bundle has no such bucket.
  [[nodiscard]] const Bucket* find_bucket(int tokens) const;

  friend bool operator==(const Manifest&, const Manifest&) = default;
};

// nullptr if the layout has no region of this name.
const Region* find_region(const std::vector<Region>& regions, std::string_view name);

// "bin/sm_90a/<symbol>.cubin".
std::string cubin_path(std::string_view arch, std::string_view symbol);

constexpr std::string_view kManifestPath = "manifest.json";
constexpr std::string_view kPlanPath = "plan.txt";

}  // namespace afdep::bundle
