// Rows of BF16: loads, stores and sums, as packets (12 bytes a lane) or as vectors (16 bytes a
// lane). Sums are FP32 in a fixed order, rounded once to BF16: the order is that of the calls.
#pragma once

#include "afdep/bf16.cuh"
#include "afdep/packet.cuh"
#include "afdep/rank.cuh"
#include "afdep/thread.cuh"

namespace afdep {

// Words `packet * 3 ...` of a row that no kernel writes now; beyond the row 0.
template <int kRowWords>
AFDEP_DEVICE Packet load_input_packet(const uint8_t* row, int packet, uint32_t generation) {
  Packet p{{0, 0, 0}, generation};
#pragma unroll
  for (int i = 0; i < kPacketWords; ++i) {
    const int word = packet * kPacketWords + i;
    if (word < kRowWords) p.word[i] = load_input_word(row + word * 4);
  }
  return p;
}

template <int kRowWords>
AFDEP_DEVICE void store_row_packet(uint8_t* row, int packet, const Packet& p) {
#pragma unroll
  for (int i = 0; i < kPacketWords; ++i) {
    const int word = packet * kPacketWords + i;
    if (word < kRowWords) store_word(row + word * 4, p.word[i]);
  }
}

// FP32 sums of kWords BF16 pairs. They start at -0, the one value to which adding x gives x for
// every x.
template <int kWords>
struct RowSum {
  float low[kWords];
  float high[kWords];

  AFDEP_DEVICE RowSum() {
#pragma unroll
    for (int i = 0; i < kWords; ++i) low[i] = high[i] = -0.0f;
  }
  AFDEP_DEVICE void add_pair(int i, uint32_t pair) {
    low[i] = add(low[i], low_bf16(pair));
    high[i] = add(high[i], high_bf16(pair));
  }
  AFDEP_DEVICE uint32_t pair(int i) const { return pack_bf16(low[i], high[i]); }
};

// A token's rows on this worker, summed over its choices in top-k order. lane_row: lane k's row,
// kNoRow for none; at least one lane has a row. All lanes of a warp take part, with their own
// `packet`.
template <int kTopK, int kRowWords>
AFDEP_DEVICE Packet sum_rows_packet(const uint8_t* rows, int lane_row, int packet,
                                    uint32_t generation) {
  constexpr int kBatch = kTopK < 8 ? kTopK : 8;
  RowSum<kPacketWords> sum;
  for (int first = 0; first < kTopK; first += kBatch) {
    uint32_t words[kBatch][kPacketWords];
    int row[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      row[j] = first + j < kTopK
                   ? static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), first + j & 31))
                   : kNoRow;
#pragma unroll
      for (int i = 0; i < kPacketWords; ++i) {
        const int word = packet * kPacketWords + i;
        words[j][i] = 0;
        if (row[j] != kNoRow && word < kRowWords) {
          words[j][i] = load_word(rows + (static_cast<int64_t>(row[j]) * kRowWords + word) * 4);
        }
      }
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (row[j] == kNoRow) continue;
#pragma unroll
      for (int i = 0; i < kPacketWords; ++i) sum.add_pair(i, words[j][i]);
    }
  }
  return Packet{{sum.pair(0), sum.pair(1), sum.pair(2)}, generation};
}

// The one row of a token whose top-k is 1, unchanged.
template <int kRowWords>
AFDEP_DEVICE Packet copy_row_packet(const uint8_t* rows, int lane_row, int packet,
                                    uint32_t generation) {
  const int64_t row = static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), 0));
  Packet p{{0, 0, 0}, generation};
#pragma unroll
  for (int i = 0; i < kPacketWords; ++i) {
    const int word = packet * kPacketWords + i;
    if (word < kRowWords) p.word[i] = load_word(rows + (row * kRowWords + word) * 4);
  }
  return p;
}

// A token's replies, waited for and summed in ascending worker order. `from`: the workers that
// reply, at least one. replies: packet `packet` of the token in slot 0; slots are slot_bytes apart.
// kBySlot: a worker's slot is its place among the token's workers, else its index.
template <int kSlots, bool kBySlot>
AFDEP_DEVICE Packet sum_replies_packet(const CommonArgs& args, const uint8_t* replies,
                                       int64_t slot_bytes, const Destinations& from, int token,
                                       uint32_t generation) {
  constexpr int kBatch = kSlots < 4 ? kSlots : 4;
  RowSum<kPacketWords> sum;
  uint64_t left = from.mask;
  for (int first = 0; first < kSlots; first += kBatch) {
    const uint8_t* at[kBatch];
    Awaited awaited[kBatch];
    Packet packets[kBatch];
    uint32_t wanted = 0;
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const int slot = first + j;
      at[j] = replies + slot * slot_bytes;
      int worker = slot;
      if constexpr (kBySlot) {
        worker = left == 0 ? 0 : lowest_bit(left);
        if (left != 0 && slot < kSlots) wanted |= 1u << j;
        left &= left - 1;
      } else {
        if (slot < kSlots && from.includes(slot)) wanted |= 1u << j;
      }
      awaited[j] =
          Awaited{kPhaseReply, static_cast<uint32_t>(worker), static_cast<uint32_t>(token)};
    }
    await_packets(args, packets, at, wanted, generation, awaited);
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if ((wanted >> j & 1u) == 0) continue;
#pragma unroll
      for (int i = 0; i < kPacketWords; ++i) sum.add_pair(i, packets[j].word[i]);
    }
  }
  return Packet{{sum.pair(0), sum.pair(1), sum.pair(2)}, generation};
}

// kCount vectors of a row, a lane's own: first, first + 32, ...; those beyond the row are 0 and are
// not stored.
template <int kCount>
struct Piece {
  Vector vector[kCount];
};

template <int kRowVectors, int kCount>
AFDEP_DEVICE Piece<kCount> load_input_piece(const uint8_t* row, int first) {
  Piece<kCount> piece{};
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int v = first + i * 32;
    if (v < kRowVectors) piece.vector[i] = load_input_vector(row + v * 16);
  }
  return piece;
}

template <int kRowVectors, int kCount>
AFDEP_DEVICE Piece<kCount> load_piece(const uint8_t* row, int first) {
  Piece<kCount> piece{};
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int v = first + i * 32;
    if (v < kRowVectors) piece.vector[i] = load_vector(row + v * 16);
  }
  return piece;
}

template <int kRowVectors, int kCount>
AFDEP_DEVICE void store_piece(uint8_t* row, int first, const Piece<kCount>& piece) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int v = first + i * 32;
    if (v < kRowVectors) store_vector(row + v * 16, piece.vector[i]);
  }
}

template <int kCount>
AFDEP_DEVICE void add_piece(RowSum<4 * kCount>& sum, const Piece<kCount>& piece) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int w = 0; w < 4; ++w) sum.add_pair(4 * i + w, piece.vector[i].word[w]);
  }
}

template <int kCount>
AFDEP_DEVICE Piece<kCount> rounded(const RowSum<4 * kCount>& sum) {
  Piece<kCount> piece;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
#pragma unroll
    for (int w = 0; w < 4; ++w) piece.vector[i].word[w] = sum.pair(4 * i + w);
  }
  return piece;
}

// A token's rows on this worker, summed over its choices in top-k order. chosen: the lanes whose
// lane_row is a row, at least one. All lanes of a warp take part.
template <int kRowVectors, int kCount>
AFDEP_DEVICE Piece<kCount> sum_rows_piece(const uint8_t* rows, int lane_row, uint32_t chosen,
                                          int first) {
  constexpr int kBatch = 3;  // rows in flight: what 64 registers a thread hold
  RowSum<4 * kCount> sum;
  uint32_t left = chosen;
  while (left != 0) {
    Piece<kCount> piece[kBatch];
    bool present[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      present[j] = left != 0;
      if (!present[j]) continue;
      const int64_t row =
          static_cast<int>(shuffle(static_cast<uint32_t>(lane_row), lowest_bit(left)));
      left &= left - 1;
      piece[j] = load_piece<kRowVectors, kCount>(rows + row * kRowVectors * 16, first);
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (present[j]) add_piece(sum, piece[j]);
    }
  }
  return rounded<kCount>(sum);
}

// A token's replies, which have all arrived, summed in ascending worker order. Slots as in
// sum_replies_packet.
template <int kRowVectors, int kCount, bool kBySlot>
AFDEP_DEVICE Piece<kCount> sum_replies_piece(const uint8_t* replies, int64_t slot_bytes,
                                             const Destinations& from, int first) {
  constexpr int kBatch = 2;  // replies in flight: what 64 registers a thread hold
  RowSum<4 * kCount> sum;
  uint64_t left = from.mask;
  int next_slot = 0;
  while (left != 0) {
    Piece<kCount> piece[kBatch];
    bool present[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      present[j] = left != 0;
      if (!present[j]) continue;
      const int slot = kBySlot ? next_slot : lowest_bit(left);
      ++next_slot;
      left &= left - 1;
      piece[j] = load_piece<kRowVectors, kCount>(replies + slot * slot_bytes, first);
    }
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (present[j]) add_piece(sum, piece[j]);
    }
  }
  return rounded<kCount>(sum);
}

}  // namespace afdep
