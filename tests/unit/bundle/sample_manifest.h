// A small hand-made manifest: 2A1F, two buckets, everything legal. Kernels and files are not real.
#pragma once

#include <string>
#include <vector>

#include "runtime/bundle/bundle.h"

namespace afdep::bundle {

inline Kernel sample_kernel(Operation operation, int bucket) {
  const bool ffn = operation == Operation::kReceive || operation == Operation::kReply;
  Kernel kernel;
  kernel.role = ffn ? Role::kFfn : Role::kAttention;
  kernel.operation = operation;
  kernel.symbol =
      "afdep_sample_" + std::string(to_string(operation)) + "_b" + std::to_string(bucket);
  kernel.source =
      "src/" + std::string(to_string(operation)) + "_b" + std::to_string(bucket) + ".cu";
  kernel.grid = ffn ? 3 : 2;
  kernel.threads = 64;
  kernel.shared_bytes = ffn ? 1024 : 0;
  kernel.compiled = {{"sm_100a", 40}, {"sm_90a", 48}};
  return kernel;
}

// Two attention ranks, one FFN rank (world rank 0), 8 experts, top-2, rows of 64 elements,
// alignment 4.
inline Manifest sample_manifest() {
  Manifest manifest;
  manifest.spec_digest = "00112233445566778899aabbccddeeff";
  manifest.nvrtc_version = "13.0";
  manifest.name = "sample-2a1f";
  manifest.attention_ranks = 2;
  manifest.ffn_ranks = 1;
  manifest.hidden = 64;
  manifest.experts = 8;
  manifest.top_k = 2;
  manifest.row_bytes = 128;
  manifest.capacity = 4;
  manifest.expert_alignment = 4;
  manifest.has_view = true;
  manifest.device_timeout_ms = 30000;
  manifest.host_timeout_ms = 120000;
  manifest.attention.window = {{.name = "done",
                                .offset = 0,
                                .halves = 1,
                                .peers = 1,
                                .items = 1,
                                .item_bytes = 4,
                                .peer_bytes = 256,
                                .half_bytes = 256,
                                .done_words = true},
                               {.name = "view",
                                .offset = 256,
                                .halves = 1,
                                .peers = 1,
                                .items = 4,
                                .item_bytes = 128,
                                .peer_bytes = 512,
                                .half_bytes = 512}};
  manifest.attention.window_bytes = 768;
  manifest.ffn.window = {{.name = "table",
                          .offset = 0,
                          .halves = 2,
                          .peers = 2,
                          .items = 4,
                          .item_bytes = 16,
                          .peer_bytes = 256,
                          .half_bytes = 512}};
  manifest.ffn.window_bytes = 1024;
  manifest.ffn.workspace = {{.name = "unit_rows",
                             .offset = 0,
                             .halves = 1,
                             .peers = 1,
                             .items = 8,
                             .item_bytes = 8,
                             .peer_bytes = 256,
                             .half_bytes = 256}};
  manifest.ffn.workspace_bytes = 256;
  manifest.window_bytes = 1024;
  for (const int tokens : {2, 4}) {
    Bucket bucket{.tokens = tokens,
                  .protocol = tokens == 2 ? Protocol::kFlagInData : Protocol::kChunked,
                  .receive_rows = 2 * tokens * 2 + 8 * 3,
                  .kernels = {}};
    for (const Operation operation :
         {Operation::kDispatch, Operation::kReceive, Operation::kReply, Operation::kCollect}) {
      bucket.kernels.push_back(sample_kernel(operation, tokens));
    }
    if (tokens == 4) bucket.kernels.push_back(sample_kernel(Operation::kCollectView, tokens));
    manifest.buckets.push_back(std::move(bucket));
  }
  return manifest;
}

// Every file that the manifest's kernels need, with contents that tell them apart.
inline std::vector<File> sample_files(const Manifest& manifest) {
  std::vector<File> files{{"plan.txt", "the plan\n"}};
  for (const Bucket& bucket : manifest.buckets) {
    for (const Kernel& kernel : bucket.kernels) {
      files.push_back({kernel.source, "// source of " + kernel.symbol + "\n"});
      for (const Compiled& compiled : kernel.compiled) {
        std::string image = "cubin of " + kernel.symbol + " for " + compiled.arch;
        image.push_back('\0');  // bytes, not text
        files.push_back({cubin_path(compiled.arch, kernel.symbol), image});
      }
    }
  }
  return files;
}

inline Bundle sample_bundle() {
  const Manifest manifest = sample_manifest();
  return *make_bundle(manifest, sample_files(manifest));
}

}  // namespace afdep::bundle
