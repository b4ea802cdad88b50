#include "tests/mutation/apply.h"

#include <map>
#include <string>
#include <string_view>

#include "generator/emit/emit.h"
#include "generator/manifest.h"
#include "generator/plan/text.h"
#include "templates/embedded.h"

namespace afdep::mutation {
namespace {

int replace(std::string& text, const Edit& edit) {
  const std::string_view from = edit.from;
  const std::string_view to = edit.to;
  int seen = 0;
  int changed = 0;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    ++seen;
    if (edit.only != 0 && seen != edit.only) {
      at += from.size();
      continue;
    }
    text.replace(at, from.size(), to);
    at += to.size();
    ++changed;
  }
  return changed;
}

bool is_header(const Edit& edit) { return std::string_view(edit.where).starts_with("afdep/"); }

std::vector<emulator::HeaderText> headers_of(const Mutant& mutant, int& changes) {
  std::map<std::string, std::string> headers;  // by path
  for (const Edit& edit : mutant.edits) {
    if (!is_header(edit)) continue;
    for (const char* const root : {"device/emulator/", "device/common/"}) {
      const std::string path = std::string(root) + edit.where;
      const auto embedded = templates::find(path);
      if (!embedded) continue;
      std::string& text = headers.try_emplace(path, *embedded).first->second;
      changes += replace(text, edit);
      break;
    }
  }
  std::vector<emulator::HeaderText> all;
  for (auto& [path, text] : headers) all.push_back({path, std::move(text)});
  return all;
}

}  // namespace

std::vector<emulator::HeaderText> changed_headers(const Mutant& mutant) {
  int changes = 0;
  return headers_of(mutant, changes);
}

Result<Applied> apply(const Mutant& mutant, const plan::ExchangePlan& right) {
  int changes = 0;
  plan::ExchangePlan plan = right;
  if (mutant.change != nullptr) {
    mutant.change(plan);
    changes += plan == right ? 0 : 1;
  }
  std::vector<emulator::HeaderText> headers = headers_of(mutant, changes);
  std::vector<KernelSource> sources = emit::emit(plan);
  for (KernelSource& source : sources) {
    for (const Edit& edit : mutant.edits) {
      if (is_header(edit) || source.file_name.find(edit.where) == std::string::npos) continue;
      changes += replace(source.text, edit);
    }
  }
  Result<bundle::Bundle> bundle =
      bundle::make_bundle(manifest_of(plan, sources, {}), files_of(plan::print(plan), sources, {}));
  if (!bundle.ok()) return bundle.failure();
  return Applied{std::move(*bundle), std::move(headers), changes};
}

}  // namespace afdep::mutation
