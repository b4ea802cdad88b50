#include "tests/layering/includes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

namespace afdep::layering {
namespace {

struct Layer {
  std::string_view folder;
  std::vector<std::string_view> may_include;  // other folders of this table
};

// docs/architecture.md, "What may include what". A folder may always include itself.
const std::vector<Layer>& layers() {
  static const std::vector<Layer> kLayers{
      {"templates", {}},
      {"afdep", {}},  // templates/device/common/afdep: the types that host and kernels share
      {"runtime/support", {}},
      {"runtime/bundle", {"runtime/support", "afdep"}},
      {"runtime/backend", {"runtime/support", "runtime/bundle", "afdep"}},
      {"runtime/cuda", {"runtime/support", "runtime/bundle", "runtime/backend", "afdep"}},
      {"runtime/emulator",
       {"runtime/support", "runtime/bundle", "runtime/backend", "templates", "afdep"}},
      {"runtime/transport", {"runtime/support", "runtime/bundle", "runtime/backend", "afdep"}},
      {"runtime",
       {"runtime/support", "runtime/bundle", "runtime/backend", "runtime/transport", "afdep"}},
      {"generator/spec", {"runtime/support"}},
      {"generator/topology", {"runtime/support", "generator/spec"}},
      {"generator/plan", {"runtime/support", "generator/spec", "generator/topology", "afdep"}},
      // The plan alone is enough to emit: neither spec nor topology here.
      {"generator/emit", {"runtime/support", "generator/plan", "templates"}},
      {"generator/compile", {"runtime/support", "generator/emit", "templates"}},
      {"generator",
       {"runtime/support", "runtime/bundle", "generator/spec", "generator/topology",
        "generator/plan", "generator/emit", "generator/compile", "templates", "afdep"}},
      {"generator/verify",
       {"runtime/support", "runtime/bundle", "runtime/backend", "runtime/emulator",
        "runtime/transport", "runtime", "generator", "generator/spec", "generator/topology",
        "generator/plan", "generator/emit", "generator/compile", "templates", "afdep"}},
      {"generator/tune", {"runtime/support", "generator", "generator/spec", "generator/plan"}},
      {"generator/trace",
       {"runtime/support", "runtime/bundle", "runtime", "generator/verify", "afdep"}},
      {"generator/matrix",
       {"runtime/support", "runtime/bundle", "generator", "generator/spec", "generator/plan",
        "generator/emit", "generator/compile", "generator/verify"}},
      {"cli",
       {"runtime/support", "runtime/bundle", "runtime/backend", "runtime/cuda", "runtime/emulator",
        "runtime/transport", "runtime", "generator", "generator/spec", "generator/topology",
        "generator/plan", "generator/emit", "generator/compile", "generator/verify",
        "generator/matrix", "generator/trace", "generator/tune", "templates", "afdep"}},
  };
  return kLayers;
}

struct External {
  std::string_view prefix;  // of the name between the brackets
  std::vector<std::string_view> folders;
};

// A library that only the folders named here may see.
const std::vector<External>& externals() {
  static const std::vector<External> kExternals{
      {"nvrtc.h", {"generator/compile"}},
      {"nvJitLink.h", {"generator/compile"}},
      {"cuda", {"runtime/cuda"}},  // cuda.h, cuda_runtime.h, cuda_bf16.h, ...
      {"nccl", {"runtime/transport"}},
      {"clang/", {"runtime/emulator"}},
      {"llvm/", {"runtime/emulator"}},
      {"boost/", {"runtime/emulator"}},
      {"yaml-cpp/", {"generator/spec"}},
      {"CLI/", {"cli"}},
      {"xxhash.h", {"generator/spec", "generator/compile", "generator/matrix", "runtime/bundle"}},
      {"nlohmann/",
       {"generator/plan", "generator/verify", "generator/matrix", "generator/trace",
        "generator/tune", "runtime/bundle", "cli"}},
  };
  return kExternals;
}

// Slow to compile, so kept out of every header.
constexpr std::string_view kHeavy[] = {"clang/", "llvm/", "yaml-cpp/", "CLI/", "nlohmann/"};

const Layer* layer_of(std::string_view path) {
  const Layer* best = nullptr;
  for (const Layer& layer : layers()) {
    const bool inside = path.starts_with(layer.folder) && path.size() > layer.folder.size() &&
                        path[layer.folder.size()] == '/';
    if (inside && (best == nullptr || layer.folder.size() > best->folder.size())) best = &layer;
  }
  return best;
}

bool contains(const std::vector<std::string_view>& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

struct Include {
  std::string_view name;
  bool quoted = false;
};

std::optional<Include> parse_include(std::string_view line) {
  const auto skip_blanks = [&line] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  skip_blanks();
  if (!line.starts_with('#')) return std::nullopt;
  line.remove_prefix(1);
  skip_blanks();
  if (!line.starts_with("include")) return std::nullopt;
  line.remove_prefix(std::string_view("include").size());
  skip_blanks();
  if (!line.starts_with('"') && !line.starts_with('<')) return std::nullopt;
  const bool quoted = line.front() == '"';
  line.remove_prefix(1);
  const std::size_t end = line.find(quoted ? '"' : '>');
  if (end == std::string_view::npos) return std::nullopt;
  return Include{line.substr(0, end), quoted};
}

// Empty if the include is allowed.
std::string complaint(const Layer& from, std::string_view path, const Include& include) {
  if (const Layer* to = include.quoted ? layer_of(include.name) : nullptr) {
    if (to == &from || contains(from.may_include, to->folder)) return {};
    return std::string(from.folder) + " must not include " + std::string(to->folder);
  }
  if (include.quoted) {
    return "\"" + std::string(include.name) + "\" is not a path from the repository's root";
  }
  for (const External& external : externals()) {
    if (!include.name.starts_with(external.prefix)) continue;
    if (!contains(external.folders, from.folder)) {
      return std::string(from.folder) + " must not see <" + std::string(include.name) + ">";
    }
  }
  if (path.ends_with(".h")) {
    for (const std::string_view heavy : kHeavy) {
      if (include.name.starts_with(heavy)) {
        return "<" + std::string(include.name) + "> belongs into a source file, not a header";
      }
    }
  }
  return {};
}

}  // namespace

std::string_view folder_of(std::string_view path) {
  const Layer* layer = layer_of(path);
  return layer == nullptr ? std::string_view() : layer->folder;
}

std::vector<std::string> offenders(std::string_view path, std::string_view text) {
  std::vector<std::string> found;
  const Layer* from = layer_of(path);
  if (from == nullptr) {
    found.push_back(std::string(path) + ":1: its folder is not in the table of layers");
    return found;
  }
  int number = 0;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::optional<Include> include = parse_include(line);
    if (!include) continue;
    const std::string why = complaint(*from, path, *include);
    if (!why.empty()) {
      found.push_back(std::string(path) + ":" + std::to_string(number) + ": " + why);
    }
  }
  return found;
}

std::string find_cycle() {
  // Removes layers whose edges all lead to removed ones; whatever is left is on or above a cycle.
  std::set<std::string_view> removed;
  for (bool progress = true; progress;) {
    progress = false;
    for (const Layer& layer : layers()) {
      if (removed.contains(layer.folder)) continue;
      const bool leaf = std::ranges::all_of(
          layer.may_include, [&](std::string_view to) { return removed.contains(to); });
      if (leaf) {
        removed.insert(layer.folder);
        progress = true;
      }
    }
  }
  std::string left;
  for (const Layer& layer : layers()) {
    if (removed.contains(layer.folder)) continue;
    left += (left.empty() ? "" : ", ") + std::string(layer.folder);
  }
  return left;
}

}  // namespace afdep::layering
