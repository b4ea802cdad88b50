#include "runtime/bundle/manifest_text.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "afdep/abi.h"
#include "runtime/bundle/check_manifest.h"
#include "runtime/bundle/checksum.h"
#include "runtime/bundle/names.h"

namespace afdep::bundle {
namespace {

using Json = nlohmann::json;  // an object's keys are sorted

constexpr std::string_view kFormat = "afdep-bundle";
constexpr std::string_view kRemedy = "generate the bundle again";

std::string render(const Json& json) { return json.dump(2) + "\n"; }

// One list of fields per struct serves both directions: `visit` calls visitor(name, field) for each
// of them.

template <typename Visitor, typename R>
  requires std::is_same_v<std::remove_const_t<R>, Region>
void visit(Visitor& visitor, R& region) {
  visitor("name", region.name);
  visitor("offset", region.offset);
  visitor("halves", region.halves);
  visitor("peers", region.peers);
  visitor("items", region.items);
  visitor("item_bytes", region.item_bytes);
  visitor("peer_bytes", region.peer_bytes);
  visitor("half_bytes", region.half_bytes);
  visitor("done_words", region.done_words);
}

template <typename Visitor, typename L>
  requires std::is_same_v<std::remove_const_t<L>, RoleLayout>
void visit(Visitor& visitor, L& layout) {
  visitor("window", layout.window);
  visitor("window_bytes", layout.window_bytes);
  visitor("workspace", layout.workspace);
  visitor("workspace_bytes", layout.workspace_bytes);
}

template <typename Visitor, typename C>
  requires std::is_same_v<std::remove_const_t<C>, Compiled>
void visit(Visitor& visitor, C& compiled) {
  visitor("arch", compiled.arch);
  visitor("registers", compiled.registers);
}

template <typename Visitor, typename K>
  requires std::is_same_v<std::remove_const_t<K>, Kernel>
void visit(Visitor& visitor, K& kernel) {
  visitor("role", kernel.role);
  visitor("operation", kernel.operation);
  visitor("symbol", kernel.symbol);
  visitor("source", kernel.source);
  visitor("grid", kernel.grid);
  visitor("threads", kernel.threads);
  visitor("blocks_per_sm", kernel.blocks_per_sm);
  visitor("shared_bytes", kernel.shared_bytes);
  visitor("grid_sync", kernel.grid_sync);
  visitor("compiled", kernel.compiled);
}

template <typename Visitor, typename B>
  requires std::is_same_v<std::remove_const_t<B>, Bucket>
void visit(Visitor& visitor, B& bucket) {
  visitor("tokens", bucket.tokens);
  visitor("protocol", bucket.protocol);
  visitor("receive_rows", bucket.receive_rows);
  visitor("kernels", bucket.kernels);
}

template <typename Visitor, typename F>
  requires std::is_same_v<std::remove_const_t<F>, FileEntry>
void visit(Visitor& visitor, F& file) {
  visitor("path", file.path);
  visitor("bytes", file.bytes);
  visitor("checksum", file.checksum);
}

template <typename Visitor, typename M>
  requires std::is_same_v<std::remove_const_t<M>, Manifest>
void visit(Visitor& visitor, M& manifest) {
  visitor("format_version", manifest.format_version);
  visitor("afdep_version", manifest.afdep_version);
  visitor("abi_version", manifest.abi_version);
  visitor("spec_digest", manifest.spec_digest);
  visitor("nvrtc_version", manifest.nvrtc_version);
  visitor("name", manifest.name);
  visitor("attention_ranks", manifest.attention_ranks);
  visitor("ffn_ranks", manifest.ffn_ranks);
  visitor("ffn_first", manifest.ffn_first);
  visitor("hidden", manifest.hidden);
  visitor("experts", manifest.experts);
  visitor("top_k", manifest.top_k);
  visitor("row_bytes", manifest.row_bytes);
  visitor("capacity", manifest.capacity);
  visitor("expert_alignment", manifest.expert_alignment);
  visitor("id_type", manifest.id_type);
  visitor("route_check", manifest.route_check);
  visitor("zero_padding", manifest.zero_padding);
  visitor("host_counts", manifest.host_counts);
  visitor("capture", manifest.capture);
  visitor("has_view", manifest.has_view);
  visitor("device_timeout_ms", manifest.device_timeout_ms);
  visitor("host_timeout_ms", manifest.host_timeout_ms);
  visitor("window_bytes", manifest.window_bytes);
  visitor("attention", manifest.attention);
  visitor("ffn", manifest.ffn);
  visitor("buckets", manifest.buckets);
  visitor("files", manifest.files);
}

// Builds a JSON object from a struct.
class Writer {
 public:
  template <typename T>
  static Json object(const T& value) {
    Writer writer;
    visit(writer, value);
    return std::move(writer.json_);
  }

  template <typename T>
  void operator()(const char* name, const T& value) {
    json_[name] = convert(value);
  }

 private:
  static Json convert(const std::string& value) { return value; }
  static Json convert(bool value) { return value; }
  static Json convert(int value) { return value; }
  static Json convert(std::int64_t value) { return value; }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  static Json convert(Enum value) {
    return std::string(to_string(value));
  }
  template <typename T>
    requires std::is_class_v<T>
  static Json convert(const T& value) {
    return object(value);
  }
  template <typename T>
  static Json convert(const std::vector<T>& values) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(convert(value));
    return array;
  }

  Json json_ = Json::object();
};

const auto& names_of(Role /*tag*/) { return kRoleNames; }
const auto& names_of(Operation /*tag*/) { return kOperationNames; }
const auto& names_of(Protocol /*tag*/) { return kProtocolNames; }
const auto& names_of(IdType /*tag*/) { return kIdTypeNames; }
const auto& names_of(RouteCheck /*tag*/) { return kRouteCheckNames; }

// The first thing that is wrong, if any.
struct Problem {
  std::string file;
  std::optional<Failure> failure;

  void report(const std::string& field, const std::string& what) {
    if (failure) return;
    failure = Failure(
        Diagnostic{ErrorCode::kBundle, {file, 0, 0}, field + ": " + what, std::string(kRemedy)});
  }
};

// Fills a struct from a JSON object; every field must be there and nothing else.
class Reader {
 public:
  Reader(const Json& json, std::string path, Problem& problem)
      : json_(json), path_(std::move(path)), problem_(problem) {}

  template <typename T>
  void read(T& value) {
    if (!json_.is_object()) {
      problem_.report(path_.empty() ? "the whole" : path_, "is not an object");
      return;
    }
    visit(*this, value);
    for (const auto& [key, ignored] : json_.items()) {
      if (!seen_.contains(key)) problem_.report(where(key), "is not a field of a manifest");
    }
  }

  void accept(const std::string& key) { seen_.insert(key); }

  template <typename T>
  void operator()(const char* name, T& value) {
    seen_.insert(name);
    const auto found = json_.find(name);
    if (found == json_.end()) {
      problem_.report(where(name), "is missing");
      return;
    }
    convert(*found, where(name), value);
  }

 private:
  [[nodiscard]] std::string where(const std::string& name) const {
    return path_.empty() ? name : path_ + "." + name;
  }

  void convert(const Json& json, const std::string& path, std::string& value) {
    if (!json.is_string()) return problem_.report(path, "is not a string");
    value = json.get<std::string>();
  }
  void convert(const Json& json, const std::string& path, bool& value) {
    if (!json.is_boolean()) return problem_.report(path, "is not true or false");
    value = json.get<bool>();
  }
  void convert(const Json& json, const std::string& path, std::int64_t& value) {
    const bool fits = json.is_number_unsigned()
                          ? json.get<std::uint64_t>() <=
                                static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())
                          : json.is_number_integer();
    if (!fits) return problem_.report(path, "is not an integer");
    value = json.get<std::int64_t>();
  }
  void convert(const Json& json, const std::string& path, int& value) {
    std::int64_t wide = 0;
    convert(json, path, wide);
    if (!std::in_range<int>(wide)) return problem_.report(path, "does not fit 32 bits");
    value = static_cast<int>(wide);
  }
  template <typename Enum>
    requires std::is_enum_v<Enum>
  void convert(const Json& json, const std::string& path, Enum& value) {
    const auto known =
        json.is_string() ? value_of(names_of(Enum{}), json.get<std::string>()) : std::nullopt;
    if (!known) {
      std::string all;
      for (const auto& [ignored, name] : names_of(Enum{})) {
        all += (all.empty() ? "" : ", ") + std::string(name);
      }
      return problem_.report(path, "is not one of " + all);
    }
    value = *known;
  }
  template <typename T>
    requires std::is_class_v<T>
  void convert(const Json& json, const std::string& path, T& value) {
    Reader(json, path, problem_).read(value);
  }
  template <typename T>
  void convert(const Json& json, const std::string& path, std::vector<T>& values) {
    if (!json.is_array()) return problem_.report(path, "is not a list");
    values.resize(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) {
      convert(json[i], fmt::format("{}[{}]", path, i), values[i]);
    }
  }

  const Json& json_;
  std::string path_;
  Problem& problem_;
  std::set<std::string> seen_;
};

Failure skew(const std::string& file, std::string_view what, const std::string& theirs,
             const std::string& ours) {
  return Failure(
      Diagnostic{ErrorCode::kVersionSkew,
                 {file, 0, 0},
                 fmt::format("the bundle has {} {}, this runtime has {}", what, theirs, ours),
                 "generate the bundle again with the afdep-gen of this runtime, or use the runtime "
                 "of that version"});
}

// Fields that a reader of any version can rely on; checked before the others so that skew is called
// skew.
Result<void> check_versions(const Json& json, Problem& problem) {
  const auto version = [&](const char* name) -> std::optional<std::string> {
    const auto found = json.find(name);
    if (found == json.end()) {
      problem.report(name, "is missing");
      return std::nullopt;
    }
    if (found->is_string()) return found->get<std::string>();
    if (found->is_number_integer()) return std::to_string(found->get<std::int64_t>());
    problem.report(name, "is not a version");
    return std::nullopt;
  };
  const std::pair<const char*, std::pair<const char*, std::string>> versions[] = {
      {"format_version", {"format version", std::to_string(kFormatVersion)}},
      {"afdep_version", {"afdep version", AFDEP_VERSION}},
      {"abi_version", {"ABI version", std::to_string(kAbiVersion)}}};
  for (const auto& [key, named] : versions) {
    const std::optional<std::string> theirs = version(key);
    if (!theirs) return *problem.failure;
    if (*theirs != named.second) return skew(problem.file, named.first, *theirs, named.second);
  }
  return {};
}

}  // namespace

std::string print(const Manifest& manifest) {
  Json json = Writer::object(manifest);
  json["format"] = std::string(kFormat);
  json["checksum"] = checksum(render(json));
  return render(json);
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& file) {
  Problem problem{file, std::nullopt};
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    problem.report(fmt::format("byte {} of {}", error.byte, text.size()),
                   "the JSON ends or breaks here");
    return *problem.failure;
  }
  if (!json.is_object() || !json.contains("format") || json["format"] != std::string(kFormat)) {
    problem.report("format", fmt::format("is not \"{}\": another program's file", kFormat));
    return *problem.failure;
  }
  AFDEP_RETURN_IF_FAILED(check_versions(json, problem));

  Manifest manifest;
  Reader reader(json, "", problem);
  reader.accept("format");
  reader.accept("checksum");
  reader.read(manifest);
  if (problem.failure) return *problem.failure;

  // What this prints as again differs from the text if a value was altered.
  if (print(manifest) != text) {
    problem.report("checksum", "does not match the contents: the file was changed");
    return *problem.failure;
  }
  if (Result<void> sound = check(manifest); !sound.ok()) {
    problem.report("contents", sound.diagnostics().front().message);
    return *problem.failure;
  }
  return manifest;
}

std::optional<std::set<std::string>> listed_files(const std::string& text) {
  const Json json = Json::parse(text, /*cb=*/nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("format", Json()) != std::string(kFormat))
    return std::nullopt;
  const Json files = json.value("files", Json());
  if (!files.is_array()) return std::nullopt;
  std::set<std::string> paths;
  for (const Json& file : files) {
    if (!file.is_object() || !file.contains("path") || !file["path"].is_string()) {
      return std::nullopt;
    }
    paths.insert(file["path"].get<std::string>());
  }
  return paths;
}

}  // namespace afdep::bundle
