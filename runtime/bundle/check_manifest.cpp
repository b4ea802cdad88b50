#include "runtime/bundle/check_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "afdep/abi.h"

namespace afdep::bundle {
namespace {

constexpr std::int64_t kRegionAlignment = 256;
constexpr std::int64_t kMaxBytes = std::int64_t{1}
                                   << 46;  // beyond any GPU; keeps products in range
constexpr int kMaxThreads = 1024;
constexpr int kMaxTokens = 65536;

// Keeps the first complaint.
class Complaints {
 public:
  template <typename... Args>
  void unless(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    if (holds || failure_) return;
    failure_ = true;
    first_ = fmt::format(format, std::forward<Args>(args)...);
  }
  [[nodiscard]] Result<void> result() const {
    if (!failure_) return {};
    return Failure(ErrorCode::kBundle, first_, "generate the bundle again");
  }

 private:
  bool failure_ = false;
  std::string first_;
};

bool is_symbol(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

// Relative, without "." and "..": a bundle never reaches outside its folder.
bool is_safe_path(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.back() == '/') return false;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return std::ranges::all_of(path, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
  });
}

void check_regions(Complaints& wrong, std::string_view where, std::span<const Region> regions,
                   std::int64_t total) {
  wrong.unless(total >= 0 && total <= kMaxBytes, "{}_bytes = {} is out of range", where, total);
  std::set<std::string_view> names;
  for (const Region& region : regions) {
    const std::string name = fmt::format("{} region \"{}\"", where, region.name);
    wrong.unless(names.insert(region.name).second, "{} is there twice", name);
    wrong.unless(region.halves == 1 || region.halves == 2, "{}: halves = {}", name, region.halves);
    wrong.unless(region.peers >= 1 && region.peers <= kMaxRanks, "{}: peers = {}", name,
                 region.peers);
    wrong.unless(region.offset >= 0 && region.offset % kRegionAlignment == 0, "{}: offset = {}",
                 name, region.offset);
    const bool in_range = region.items >= 0 && region.items <= kMaxBytes &&
                          region.item_bytes >= 0 && region.item_bytes <= (1 << 24) &&
                          region.peer_bytes >= 0 && region.peer_bytes <= kMaxBytes &&
                          region.half_bytes >= 0 && region.half_bytes <= kMaxBytes &&
                          region.offset <= kMaxBytes;
    wrong.unless(in_range, "{}: a size is out of range", name);
    if (!in_range) return;
    wrong.unless(region.item_bytes == 0 || region.items <= region.peer_bytes / region.item_bytes,
                 "{}: {} items of {} bytes exceed peer_bytes = {}", name, region.items,
                 region.item_bytes, region.peer_bytes);
    wrong.unless(region.peer_bytes <= region.half_bytes / region.peers,
                 "{}: {} peers of {} bytes exceed half_bytes = {}", name, region.peers,
                 region.peer_bytes, region.half_bytes);
    wrong.unless(region.offset + region.bytes() <= total, "{} ends at {}, beyond {}_bytes = {}",
                 name, region.offset + region.bytes(), where, total);
    wrong.unless(!region.done_words || region.bytes() % 4 == 0, "{}: {} bytes of done words", name,
                 region.bytes());
  }
}

Role role_of(Operation operation) {
  switch (operation) {
    case Operation::kReceive:
    case Operation::kReply:
    case Operation::kExpand:
    case Operation::kIdleReduce:
      return Role::kFfn;
    case Operation::kDispatch:
    case Operation::kCollect:
    case Operation::kCollectView:
    case Operation::kReduce:
    case Operation::kIdleExpand:
      break;
  }
  return Role::kAttention;
}

void check_kernel(Complaints& wrong, const Bucket& bucket, const Kernel& kernel) {
  const std::string name = fmt::format("kernel {}", kernel.symbol);
  wrong.unless(is_symbol(kernel.symbol), "bucket {}: symbol \"{}\" is no identifier", bucket.tokens,
               kernel.symbol);
  wrong.unless(kernel.role == role_of(kernel.operation), "{}: {} is not an operation of {}", name,
               to_string(kernel.operation), to_string(kernel.role));
  wrong.unless(is_safe_path(kernel.source) && kernel.source.starts_with("src/"),
               "{}: source = \"{}\" is not below src/", name, kernel.source);
  wrong.unless(kernel.grid >= 1, "{}: grid = {}", name, kernel.grid);
  wrong.unless(kernel.threads >= 1 && kernel.threads <= kMaxThreads, "{}: threads = {}", name,
               kernel.threads);
  wrong.unless(kernel.blocks_per_sm >= 1, "{}: blocks_per_sm = {}", name, kernel.blocks_per_sm);
  wrong.unless(kernel.shared_bytes >= 0 && kernel.shared_bytes <= (1 << 20),
               "{}: shared_bytes = {}", name, kernel.shared_bytes);
  std::string_view before;
  for (const Compiled& compiled : kernel.compiled) {
    wrong.unless(is_symbol(compiled.arch) && compiled.arch > before,
                 "{}: archs are not ascending names at \"{}\"", name, compiled.arch);
    wrong.unless(compiled.registers >= 1 && compiled.registers <= 255, "{}: registers = {}", name,
                 compiled.registers);
    before = compiled.arch;
  }
}

void check_bucket(Complaints& wrong, const Manifest& manifest, const Bucket& bucket) {
  wrong.unless(bucket.receive_rows >= 0 &&
                   bucket.receive_rows <= kMaxBytes / std::max(manifest.row_bytes, 1),
               "bucket {}: receive_rows = {}", bucket.tokens, bucket.receive_rows);
  std::set<Operation> operations;
  for (const Kernel& kernel : bucket.kernels) {
    check_kernel(wrong, bucket, kernel);
    wrong.unless(operations.insert(kernel.operation).second, "bucket {} has {} twice",
                 bucket.tokens, to_string(kernel.operation));
  }
  for (const Operation needed :
       {Operation::kDispatch, Operation::kReceive, Operation::kReply, Operation::kCollect}) {
    wrong.unless(operations.contains(needed), "bucket {} has no {} kernel", bucket.tokens,
                 to_string(needed));
  }
  wrong.unless(operations.contains(Operation::kExpand) == operations.contains(Operation::kReduce),
               "bucket {} has one of the expand and reduce kernels", bucket.tokens);
}

}  // namespace

Result<void> check(const Manifest& manifest) {
  Complaints wrong;
  wrong.unless(manifest.attention_ranks >= 1 && manifest.attention_ranks < kMaxRanks,
               "attention_ranks = {}", manifest.attention_ranks);
  wrong.unless(manifest.ffn_ranks >= 1 && manifest.ffn_ranks < kMaxRanks, "ffn_ranks = {}",
               manifest.ffn_ranks);
  if (Result<void> ranks = wrong.result(); !ranks.ok()) return ranks;
  wrong.unless(manifest.ranks() <= kMaxRanks, "{} ranks exceed {}", manifest.ranks(), kMaxRanks);
  wrong.unless(manifest.hidden >= 1 && manifest.hidden <= (1 << 20), "hidden = {}",
               manifest.hidden);
  wrong.unless(
      manifest.row_bytes == 2 * std::int64_t{manifest.hidden} && manifest.row_bytes % 16 == 0,
      "row_bytes = {} is not one BF16 row of hidden = {}", manifest.row_bytes, manifest.hidden);
  wrong.unless(manifest.experts >= 1 && manifest.experts % manifest.ffn_ranks == 0,
               "experts = {} over {} FFN ranks", manifest.experts, manifest.ffn_ranks);
  wrong.unless(manifest.top_k >= 1 && manifest.top_k <= std::min(32, manifest.experts),
               "top_k = {}", manifest.top_k);
  wrong.unless(manifest.capacity >= 1 && manifest.capacity <= kMaxTokens, "capacity = {}",
               manifest.capacity);
  wrong.unless(manifest.expert_alignment >= 1, "expert_alignment = {}", manifest.expert_alignment);
  wrong.unless(manifest.device_timeout_ms >= 1 && manifest.host_timeout_ms >= 1,
               "timeouts of {} and {} ms", manifest.device_timeout_ms, manifest.host_timeout_ms);
  wrong.unless(
      manifest.window_bytes == std::max(manifest.attention.window_bytes, manifest.ffn.window_bytes),
      "window_bytes = {} is not the larger role's", manifest.window_bytes);
  for (const Role role : {Role::kAttention, Role::kFfn}) {
    const RoleLayout& layout = manifest.layout(role);
    check_regions(wrong, fmt::format("{}.window", to_string(role)), layout.window,
                  layout.window_bytes);
    check_regions(wrong, fmt::format("{}.workspace", to_string(role)), layout.workspace,
                  layout.workspace_bytes);
  }
  if (manifest.has_view) {
    const Region* view = find_region(manifest.attention.window, "view");
    wrong.unless(view != nullptr && view->halves == 1 && view->peers == 1 &&
                     view->items >= manifest.capacity && view->item_bytes >= manifest.row_bytes &&
                     view->item_bytes % 16 == 0,
                 "has_view, but the attention window has no region \"view\" of {} rows",
                 manifest.capacity);
  }
  wrong.unless(!manifest.buckets.empty(), "there are no buckets");
  int before = 0;
  std::set<std::string_view> symbols;
  for (const Bucket& bucket : manifest.buckets) {
    wrong.unless(bucket.tokens > before && bucket.tokens <= manifest.capacity,
                 "bucket {} follows {}, of capacity {}", bucket.tokens, before, manifest.capacity);
    before = bucket.tokens;
    check_bucket(wrong, manifest, bucket);
    for (const Kernel& kernel : bucket.kernels) {
      wrong.unless(symbols.insert(kernel.symbol).second, "kernel {} is there twice", kernel.symbol);
    }
  }
  std::string_view previous;
  for (const FileEntry& file : manifest.files) {
    wrong.unless(is_safe_path(file.path) && file.path != kManifestPath && file.path > previous,
                 "files: \"{}\" is out of order or not a path of a bundle", file.path);
    previous = file.path;
  }
  return wrong.result();
}

std::set<std::string> needed_files(const Manifest& manifest) {
  std::set<std::string> needed{std::string(kPlanPath)};
  for (const Bucket& bucket : manifest.buckets) {
    for (const Kernel& kernel : bucket.kernels) {
      needed.insert(kernel.source);
      for (const Compiled& compiled : kernel.compiled) {
        needed.insert(cubin_path(compiled.arch, kernel.symbol));
      }
    }
  }
  return needed;
}

}  // namespace afdep::bundle
