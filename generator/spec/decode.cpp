#include "generator/spec/decode.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "generator/spec/keys.h"
#include "generator/spec/names.h"
#include "generator/spec/nearest.h"
#include "generator/spec/presets.h"
#include "generator/spec/scalar.h"

namespace afdep::spec {
namespace {

constexpr int kLongestName = 48;

// [a-z0-9-]{1,48}: file names and symbol prefixes.
bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

// A directory that any tool can show: no C0, C1 or DEL characters.
bool is_printable(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return false;
    // U+0080..U+009F are 0xC2 0x80..0x9F.
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0) {
      return false;
    }
  }
  return true;
}

// The value of each key that the file gives, and the place of that key.
struct Given {
  const Node* node = nullptr;
  Place place;
};
using GivenKeys = std::map<std::string_view, Given, std::less<>>;

class Decoder {
 public:
  Decoder(const GivenKeys& given, Origin& origin, Sink& sink)
      : given_(given), origin_(origin), sink_(sink) {}

  template <typename T>
  void operator()(const Key& key, Field<T>& field) {
    const Given* given = take(key.path);
    if (given == nullptr) return;
    field.place = given->place;
    field.given = true;
    store(key, field, read(key, *given->node, field.value));
  }

  // kernel.protocol: one word for every bucket, or a mapping of buckets.
  void operator()(const Key& key, Field<Protocol>& all, Field<std::map<int, Protocol>>& buckets) {
    const Given* given = take(key.path);
    if (given == nullptr) return;
    if (given->node->kind == Node::Kind::kMapping) {
      buckets.place = given->place;
      buckets.given = true;
      store(key, buckets, read_bucket_protocols(key, *given->node));
    } else {
      all.place = given->place;
      all.given = true;
      store(key, all, read(key, *given->node, all.value));
    }
  }

 private:
  const Given* take(std::string_view path) const {
    const auto found = given_.find(path);
    return found == given_.end() ? nullptr : &found->second;
  }

  template <typename T>
  void store(const Key& key, Field<T>& field, std::optional<T> value) {
    if (value) {
      field.value = std::move(*value);
    } else {
      origin_.mark_bad(std::string(key.path));
    }
  }

  void refuse(ErrorCode code, const Node& node, std::string message, std::string note) {
    sink_.add(code, node.place, std::move(message), std::move(note));
  }

  static Range range_of(const Key& key) { return {key.code, key.min, key.max, key.code}; }

  // The last argument of each overload only selects the type to read.
  std::optional<int> read(const Key& key, const Node& node, int) {
    if (key.takes_auto && node.kind == Node::Kind::kScalar && node.text == "auto") {
      return kAutoValue;
    }
    return read_int(node, key.path, range_of(key), sink_);
  }

  std::optional<bool> read(const Key& key, const Node& node, bool) {
    return read_bool(node, key.path, sink_);
  }

  template <typename E>
    requires std::is_enum_v<E>
  std::optional<E> read(const Key& key, const Node& node, E) {
    return read_name<E>(key.code, key.path, node);
  }

  template <typename E>
  std::optional<E> read_name(ErrorCode code, std::string_view path, const Node& node) {
    const std::vector<std::string_view> texts = name_texts<E>();
    if (node.kind != Node::Kind::kScalar) {
      report_form(node, path, fmt::format("one of {}", join(texts)), sink_);
      return std::nullopt;
    }
    if (const auto value = from_name<E>(node.text)) return value;
    std::string note = fmt::format("use one of {}", join(texts));
    if (const auto near = nearest(node.text, texts)) {
      note = fmt::format("did you mean {}? The values are {}", *near, join(texts));
    }
    refuse(code, node, fmt::format("{} = {} is not a known value", path, described(node)),
           std::move(note));
    return std::nullopt;
  }

  std::optional<std::string> read(const Key& key, const Node& node, const std::string&) {
    std::optional<std::string> text = read_string(node, key.path, sink_);
    if (!text) return std::nullopt;
    if (key.path == "name" && !is_name(*text)) {
      refuse(key.code, node,
             fmt::format("name = {} is not of the form [a-z0-9-]{{1,48}}", quoted(*text)),
             "use 1 to 48 lower-case letters, digits and hyphens: it names files and symbols");
      return std::nullopt;
    }
    if (key.path == "model.preset" && !find_preset(*text)) {
      std::vector<std::string_view> texts;
      for (const Preset& preset : presets()) texts.push_back(preset.name);
      const auto near = nearest(*text, texts);
      refuse(key.code, node, fmt::format("model.preset = {} is not a known model", quoted(*text)),
             near ? fmt::format("did you mean {}?", *near)
                  : fmt::format("give hidden_size, num_experts and top_k, or use one of {}",
                                join(texts)));
      return std::nullopt;
    }
    if (key.path == "cache.dir" && (text->empty() || !is_printable(*text))) {
      refuse(key.code, node, fmt::format("cache.dir = {} is not a path", quoted(*text)),
             "give a directory without control characters, or leave the key out");
      return std::nullopt;
    }
    if (key.path == "kernel.tuned_on" &&
        (text->empty() || text->size() > kMaxGpuName || !is_printable(*text))) {
      refuse(key.code, node,
             fmt::format("kernel.tuned_on = {} is not the name of a GPU", quoted(*text)),
             fmt::format("give 1 to {} characters, such as \"NVIDIA H200\", or leave the key out",
                         kMaxGpuName));
      return std::nullopt;
    }
    return text;
  }

  // Reads every element, so that all of its errors are seen; nothing if any is refused.
  template <typename T, typename ReadItem>
  std::optional<std::vector<T>> read_list(std::string_view path, std::string_view expected,
                                          const Node& node, ReadItem read_item) {
    if (node.kind != Node::Kind::kSequence) {
      report_form(node, path, expected, sink_);
      return std::nullopt;
    }
    std::vector<T> values;
    bool good = true;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
      const std::string item_path = fmt::format("{}[{}]", path, i);
      origin_.set_place(item_path, node.items[i].place);
      std::optional<T> value = read_item(item_path, node.items[i]);
      good = good && value.has_value();
      if (value) values.push_back(std::move(*value));
    }
    if (!good) return std::nullopt;
    return values;
  }

  std::optional<std::vector<int>> read_ints(std::string_view path, const Range& range,
                                            const Node& node) {
    return read_list<int>(path, "a list of integers", node,
                          [&](const std::string& item_path, const Node& item) {
                            return read_int(item, item_path, range, sink_);
                          });
  }

  std::optional<std::vector<int>> read(const Key& key, const Node& node, const std::vector<int>&) {
    // The list is capacity.buckets. A bucket over the capacity has the code of the capacity.
    return read_ints(key.path, {key.code, key.min, key.max, ErrorCode::kTokens}, node);
  }

  std::optional<std::vector<Arch>> read(const Key& key, const Node& node,
                                        const std::vector<Arch>&) {
    return read_list<Arch>(key.path, "a list of architectures", node,
                           [&](const std::string& path, const Node& item) {
                             return read_name<Arch>(key.code, path, item);
                           });
  }

  std::optional<std::vector<std::vector<int>>> read(const Key& key, const Node& node,
                                                    const std::vector<std::vector<int>>&) {
    return read_list<std::vector<int>>(key.path, "a list of experts for each FFN rank", node,
                                       [&](const std::string& path, const Node& item) {
                                         return read_ints(path, range_of(key), item);
                                       });
  }

  // Calls read_entry(sub-key, path, node) for each entry whose key is among `allowed`; the others
  // are E001. False if the node is no mapping or any entry is refused.
  template <typename ReadEntry>
  bool read_entries(std::string_view path, std::span<const std::string_view> allowed,
                    const Node& node, ReadEntry read_entry) {
    if (node.kind != Node::Kind::kMapping) {
      report_form(node, path, fmt::format("a mapping with the keys {}", join(allowed)), sink_);
      return false;
    }
    bool good = true;
    for (const Entry& entry : node.entries) {
      const std::string entry_path = fmt::format("{}.{}", path, shown(entry.key));
      if (std::find(allowed.begin(), allowed.end(), entry.key) == allowed.end()) {
        const auto near = nearest(entry.key, allowed);
        sink_.add(ErrorCode::kSpecKey, entry.place, fmt::format("unknown key {}", entry_path),
                  near ? fmt::format("did you mean {}?", *near)
                       : fmt::format("the keys here are {}", join(allowed)));
        good = false;
        continue;
      }
      origin_.set_place(entry_path, entry.value.place);
      good = read_entry(entry.key, entry_path, entry.value) && good;
    }
    return good;
  }

  std::optional<std::vector<Domain>> read(const Key& key, const Node& node,
                                          const std::vector<Domain>&) {
    return read_list<Domain>(
        key.path, "a list of domains", node,
        [&](const std::string& path, const Node& item) { return read_domain(key, path, item); });
  }

  std::optional<Domain> read_domain(const Key& key, const std::string& path, const Node& node) {
    constexpr std::array<std::string_view, 5> kKeys = {"name", "count", "attention", "ffn",
                                                       "ranks"};
    constexpr std::string_view kForms =
        "a domain is {name, count, attention, ffn} or {name, ranks}";
    Domain domain;
    bool counted = false;
    bool listed = false;
    const auto read_into = [&](int& target, const std::string& at, const Node& value, int min) {
      counted = true;
      const auto number = read_int(value, at, {key.code, min, kMaxRanks, key.code}, sink_);
      if (number) target = *number;
      return number.has_value();
    };
    bool good = read_entries(
        path, kKeys, node, [&](std::string_view sub, const std::string& at, const Node& value) {
          if (sub == "count") return read_into(domain.count, at, value, 1);
          if (sub == "attention") return read_into(domain.attention, at, value, 0);
          if (sub == "ffn") return read_into(domain.ffn, at, value, 0);
          if (sub == "ranks") {
            listed = true;
            auto ranks = read_ints(at, {key.code, 0, kMaxRanks - 1, key.code}, value);
            if (ranks) domain.ranks = std::move(*ranks);
            return ranks.has_value();
          }
          auto name = read_string(value, at, sink_);
          if (name && !is_name(*name)) {
            refuse(key.code, value,
                   fmt::format("{} = {} is not of the form [a-z0-9-]{{1,48}}", at, quoted(*name)),
                   "use 1 to 48 lower-case letters, digits and hyphens");
            return false;
          }
          if (name) domain.name = std::move(*name);
          return name.has_value();
        });
    if (!good) return std::nullopt;
    const auto refuse_form = [&](std::string_view what) {
      refuse(key.code, node, fmt::format("{} {}", path, what), std::string(kForms));
      return std::nullopt;
    };
    if (domain.name.empty()) return refuse_form("has no name");
    if (counted && listed) return refuse_form("gives both numbers and ranks");
    if (listed && domain.ranks.empty()) return refuse_form("has no ranks");
    if (!listed && domain.attention + domain.ffn == 0) return refuse_form("has no ranks");
    return domain;
  }

  std::optional<int> read_sms(const Key& key, std::string_view path, const Node& node) {
    if (node.kind == Node::Kind::kScalar && node.text == "auto") return 0;
    return read_int(node, path, range_of(key), sink_);
  }

  std::optional<NumSms> read(const Key& key, const Node& node, const NumSms&) {
    if (node.kind != Node::Kind::kMapping) {
      const std::optional<int> both = read_sms(key, key.path, node);
      if (!both) return std::nullopt;
      return NumSms{*both, *both};
    }
    constexpr std::array<std::string_view, 2> kRoles = {"attention", "ffn"};
    NumSms sms;
    const bool good =
        read_entries(key.path, kRoles, node,
                     [&](std::string_view role, const std::string& at, const Node& value) {
                       const std::optional<int> number = read_sms(key, at, value);
                       if (number) (role == "attention" ? sms.attention : sms.ffn) = *number;
                       return number.has_value();
                     });
    if (!good) return std::nullopt;
    return sms;
  }

  std::optional<std::map<int, Protocol>> read_bucket_protocols(const Key& key, const Node& node) {
    std::map<int, Protocol> protocols;
    bool good = true;
    for (const Entry& entry : node.entries) {
      const std::string path = fmt::format("{}.{}", key.path, shown(entry.key));
      Node bucket;
      bucket.kind = Node::Kind::kScalar;
      bucket.plain = true;
      bucket.place = entry.place;
      bucket.text = entry.key;
      const auto number = read_int(bucket, fmt::format("a bucket of {}", key.path),
                                   {ErrorCode::kBuckets, 1, kMaxTokens, ErrorCode::kTokens}, sink_);
      const auto protocol = read_name<Protocol>(key.code, path, entry.value);
      good = good && number && protocol;
      if (!number || !protocol) continue;
      // The key, not the value: what is wrong with a bucket is wrong with its number.
      origin_.set_place(fmt::format("{}.{}", key.path, *number), entry.place);
      protocols.emplace(*number, *protocol);
    }
    if (!good) return std::nullopt;
    return protocols;
  }

  std::optional<std::map<std::string, bool>> read(const Key& key, const Node& node,
                                                  const std::map<std::string, bool>&) {
    std::map<std::string, bool> switches;
    const bool good =
        read_entries(key.path, ablation_names(), node,
                     [&](std::string_view name, const std::string& at, const Node& value) {
                       const std::optional<bool> on = read_bool(value, at, sink_);
                       if (on) switches.emplace(name, *on);
                       return on.has_value();
                     });
    if (!good) return std::nullopt;
    return switches;
  }

  const GivenKeys& given_;
  Origin& origin_;
  Sink& sink_;
};

bool is_section(std::string_view word) {
  return std::any_of(all_keys().begin(), all_keys().end(),
                     [&](const Key& key) { return section_of(key.path) == word; });
}

const Key* find_key(std::string_view path) {
  const auto found = std::find_if(all_keys().begin(), all_keys().end(),
                                  [&](const Key& key) { return key.path == path; });
  return found == all_keys().end() ? nullptr : &*found;
}

// Finds the value of every known key and reports the unknown ones.
class KeyFinder {
 public:
  KeyFinder(Origin& origin, Sink& sink) : origin_(origin), sink_(sink) {}

  GivenKeys find(const Node& root) {
    for (const Entry& entry : root.entries) {
      if (is_section(entry.key)) {
        find_in_section(entry);
      } else {
        note_value(entry.key, entry);
      }
    }
    // A misspelt key is one mistake: the key that was meant is not reported as missing, too.
    for (const std::string& meant : meant_) {
      for (const Key& key : all_keys()) {
        const bool concerned =
            key.path == meant || (!meant.empty() && section_of(key.path) == meant);
        if (concerned && !given_.contains(key.path)) origin_.mark_bad(std::string(key.path));
      }
    }
    return std::move(given_);
  }

 private:
  void find_in_section(const Entry& section) {
    origin_.set_place(section.key, section.place);
    if (section.value.kind == Node::Kind::kMapping) {
      for (const Entry& entry : section.value.entries) {
        note_value(section.key + "." + entry.key, entry);
      }
      return;
    }
    report_form(section.value, section.key, "a mapping of keys", sink_);
    // One error for the section, none for each key that it was to hold.
    for (const Key& key : all_keys()) {
      if (section_of(key.path) == section.key) origin_.mark_bad(std::string(key.path));
    }
  }

  void note_value(const std::string& path, const Entry& entry) {
    const Key* key = find_key(path);
    if (key == nullptr) {
      meant_.push_back(report_unknown_key(path, entry.place, sink_));
      return;
    }
    origin_.set_place(path, entry.value.place);
    given_[key->path] = {&entry.value, entry.place};
  }

  GivenKeys given_;
  std::vector<std::string> meant_;  // by misspelt keys; may hold empty strings
  Origin& origin_;
  Sink& sink_;
};

}  // namespace

std::string report_unknown_key(std::string_view path, const Place& place, Sink& sink) {
  // Keys of the same section first: there, only the last word is compared.
  const std::string_view section = section_of(path);
  std::vector<std::string_view> siblings;
  for (const Key& key : all_keys()) {
    const std::string_view other = section_of(key.path);
    if (other == section) {
      siblings.push_back(last_of(key.path));
    } else if (section.empty() && (siblings.empty() || siblings.back() != other)) {
      siblings.push_back(other);
    }
  }
  const std::string_view word = section.empty() ? path : path.substr(section.size() + 1);
  std::string meant;
  if (const auto near = nearest(word, siblings)) {
    meant = section.empty() ? std::string(*near) : fmt::format("{}.{}", section, *near);
  } else {
    // A known key in the wrong section.
    for (const Key& key : all_keys()) {
      if (last_of(key.path) == word) meant = key.path;
    }
  }
  std::string note = "docs/spec.md lists every key";
  if (!meant.empty()) {
    note = fmt::format("did you mean {}?", meant);
  } else if (!siblings.empty()) {
    note = fmt::format("the keys {} are {}",
                       section.empty() ? "of the top level" : "of this section", join(siblings));
  }
  sink.add(ErrorCode::kSpecKey, place, fmt::format("unknown key {}", shown(path)), std::move(note));
  return meant;
}

void decode(const Node& root, const std::string& file, Spec& spec, Origin& origin, Sink& sink) {
  spec.file = file;
  if (root.kind != Node::Kind::kMapping) {
    report_form(root, "the file", "a mapping of keys", sink);
    return;
  }
  const GivenKeys given = KeyFinder(origin, sink).find(root);
  visit_keys(spec, Decoder(given, origin, sink));
}

}  // namespace afdep::spec
