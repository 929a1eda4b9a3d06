#include "kernels/cpu/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/buffer.hpp"
#include "base/check.hpp"
#include "base/divide_up.hpp"
#include "kernels/cpu/attention_split.hpp"

namespace qpn8::cpu {
namespace {

/// Query vectors a tile: enough to reuse keys and values from the second-level cache, few enough that their scores and
/// sums stay in the first and second.
constexpr std::int64_t kTileVectors = 32;

/// A tile's splits are shared out where there are fewer than this many tiles a thread, and no more than so many rows
/// (the parts are kept until they are merged). Bits do not depend on it.
constexpr std::int64_t kTilesPerMember = 4;
constexpr std::int64_t kMostRowsShared = 32;

/// Consecutive rows of a batch at consecutive positions of one sequence.
struct RowBlock {
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  std::int64_t slot = 0;
  std::int64_t first_position = 0;
};

/// A tile (a block's query heads of one key head) and the splits [first, last) that one member computes of it.
struct Task {
  RowBlock block;
  std::int64_t kv_head = 0;
  std::int64_t first_split = 0;
  std::int64_t last_split = 0;
  std::int64_t part = 0;  ///< where the first split's result lies among the parts, if they are shared out
};

}  // namespace

class AttentionScratch::Impl {
 public:
  std::vector<RowBlock> blocks;
  std::vector<Task> tiles;   ///< all splits of a tile
  std::vector<Task> pieces;  ///< one split of a tile each
  std::vector<const float*> queries;
  Buffer memory;

  float* floats(std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
    if (memory.size() < bytes) memory = Buffer(bytes);
    return reinterpret_cast<float*>(memory.data());
  }
};

AttentionScratch::AttentionScratch() : impl_(std::make_unique<Impl>()) {}
AttentionScratch::~AttentionScratch() = default;

/// One call of attention().
class AttentionCall {
 public:
  AttentionCall(const KvLayer& layer, MatrixView<const float> q, const RowPlaces& places, const AttentionRule& rule,
                AttentionScratch& scratch, MatrixView<float> out, ThreadTeam& team)
      : layer_(layer),
        q_(q),
        rule_(rule),
        scratch_(*scratch.impl_),
        out_(out),
        team_(team),
        group_(rule.heads / layer.kv_heads),
        padded_(layer.padded_head_dim()),
        tile_rows_(std::max<std::int64_t>(1, kTileVectors / group_)) {
    find_blocks(places);
    list_tiles();
    const auto tiles = static_cast<std::int64_t>(scratch_.tiles.size());
    shared_ = tiles < kTilesPerMember * team.size() && q.rows <= kMostRowsShared && team.size() > 1;
    reserve();
  }

  void run() {
    if (!shared_) {
      for_each(scratch_.tiles, [&](const Task& tile, int member) { compute_whole(tile, member); });
      return;
    }
    list_pieces();
    for_each(scratch_.pieces, [&](const Task& piece, int member) { compute_piece(piece, member); });
    for_each(scratch_.tiles, [&](const Task& tile, int member) { merge_pieces(tile, member); });
  }

 private:
  void find_blocks(const RowPlaces& places) {
    std::vector<RowBlock>& blocks = scratch_.blocks;
    blocks.clear();
    blocks.reserve(static_cast<std::size_t>(q_.rows));
    for (std::int64_t t = 0; t < q_.rows; ++t) {
      const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
      const std::int64_t position = places.positions[static_cast<std::size_t>(t)];
      check(slot >= 0 && slot < layer_.slots && position >= 0 && position < layer_.capacity, "a row has a place");
      if (!blocks.empty()) {
        RowBlock& last = blocks.back();
        const bool follows = last.slot == slot && last.first_position + last.rows == position;
        if (follows && last.rows < tile_rows_) {
          ++last.rows;
          continue;
        }
      }
      blocks.push_back({t, 1, slot, position});
    }
  }

  // Blocks of one key head follow each other, so that a member's next block finds keys and values in the cache.
  void list_tiles() {
    std::vector<Task>& tiles = scratch_.tiles;
    tiles.clear();
    tiles.reserve(static_cast<std::size_t>(q_.rows * layer_.kv_heads));
    std::int64_t part = 0;
    for (std::int64_t head = 0; head < layer_.kv_heads; ++head) {
      for (const RowBlock& block : scratch_.blocks) {
        const std::int64_t first = first_visible(block.first_position) / kSplit;
        const std::int64_t last = divide_up(block.first_position + block.rows, kSplit);
        tiles.push_back({block, head, first, last, part});
        part += (last - first) * part_elements(block);
      }
    }
  }

  void list_pieces() {
    scratch_.pieces.clear();
    for (const Task& tile : scratch_.tiles) {
      for (std::int64_t split = tile.first_split; split < tile.last_split; ++split) {
        scratch_.pieces.push_back({tile.block, tile.kv_head, split, split + 1, part_of(tile, split)});
      }
    }
  }

  // Sizes follow from the call's shape and the cache's capacity alone, so that a sequence that grows allocates nothing.
  void reserve() {
    const std::int64_t most_vectors = std::max(kTileVectors, group_);
    const std::int64_t parts = PartialSoftmax::elements(most_vectors, padded_);
    member_elements_ = most_vectors * kSplit + 2 * parts;
    std::int64_t shared_elements = 0;
    if (shared_) {
      const std::int64_t splits = divide_up(layer_.capacity, kSplit);
      scratch_.pieces.reserve(static_cast<std::size_t>(q_.rows * layer_.kv_heads * splits));
      shared_elements = q_.rows * layer_.kv_heads * splits * PartialSoftmax::elements(group_, padded_);
    }
    member_memory_ = scratch_.floats(team_.size() * member_elements_ + shared_elements);
    part_memory_ = member_memory_ + team_.size() * member_elements_;
    scratch_.queries.resize(static_cast<std::size_t>(team_.size() * most_vectors));
    most_vectors_ = most_vectors;
  }

  template <class Body>
  void for_each(const std::vector<Task>& tasks, const Body& body) {
    team_.run([&](int member) {
      // Round robin: later blocks of a prompt see more positions, so that contiguous shares would be uneven.
      for (auto i = static_cast<std::size_t>(member); i < tasks.size(); i += static_cast<std::size_t>(team_.size())) {
        body(tasks[i], member);
      }
    });
  }

  void compute_whole(const Task& task, int member) {
    const QueryTile tile = query_tile(task, member);
    const std::int64_t vectors = task.block.rows * group_;
    float* memory = member_scores(member) + most_vectors_ * kSplit;
    const PartialSoftmax part(memory, vectors, padded_);
    const PartialSoftmax state(memory + PartialSoftmax::elements(most_vectors_, padded_), vectors, padded_);
    clear(state, vectors, padded_);
    for (std::int64_t split = task.first_split; split < task.last_split; ++split) {
      attend_split(layer_, tile, split, member_scores(member), part);
      merge(part, vectors, padded_, state);
    }
    write(task, state);
  }

  void compute_piece(const Task& task, int member) {
    const std::int64_t vectors = task.block.rows * group_;
    attend_split(layer_, query_tile(task, member), task.first_split, member_scores(member),
                 PartialSoftmax(part_memory_ + task.part, vectors, padded_));
  }

  void merge_pieces(const Task& task, int member) {
    const std::int64_t vectors = task.block.rows * group_;
    const PartialSoftmax state(member_scores(member) + most_vectors_ * kSplit, vectors, padded_);
    clear(state, vectors, padded_);
    for (std::int64_t split = task.first_split; split < task.last_split; ++split) {
      merge(PartialSoftmax(part_memory_ + part_of(task, split), vectors, padded_), vectors, padded_, state);
    }
    write(task, state);
  }

  QueryTile query_tile(const Task& task, int member) {
    const float** vectors = scratch_.queries.data() + member * most_vectors_;
    std::size_t count = 0;
    for (std::int64_t row = 0; row < task.block.rows; ++row) {
      const float* first = q_.row(task.block.first_row + row).data() + task.kv_head * group_ * layer_.head_dim;
      for (std::int64_t g = 0; g < group_; ++g) vectors[count++] = first + g * layer_.head_dim;
    }
    return {{vectors, count},          group_,      task.block.slot, task.kv_head,
            task.block.first_position, rule_.scale, rule_.window};
  }

  void write(const Task& task, const PartialSoftmax& state) {
    for (std::int64_t i = 0; i < task.block.rows * group_; ++i) {
      const std::int64_t head = task.kv_head * group_ + i % group_;
      float* to = out_.row(task.block.first_row + i / group_).data() + head * layer_.head_dim;
      finish(state, i, layer_.head_dim, padded_, to);
    }
  }

  std::int64_t first_visible(std::int64_t position) const {
    return rule_.window > 0 ? std::max<std::int64_t>(0, position - rule_.window + 1) : 0;
  }
  std::int64_t part_elements(const RowBlock& block) const {
    return PartialSoftmax::elements(block.rows * group_, padded_);
  }
  std::int64_t part_of(const Task& tile, std::int64_t split) const {
    return tile.part + (split - tile.first_split) * part_elements(tile.block);
  }
  float* member_scores(int member) const { return member_memory_ + member * member_elements_; }

  const KvLayer& layer_;
  MatrixView<const float> q_;
  const AttentionRule& rule_;
  AttentionScratch::Impl& scratch_;
  MatrixView<float> out_;
  ThreadTeam& team_;
  std::int64_t group_;
  std::int64_t padded_;
  std::int64_t tile_rows_;
  bool shared_ = false;
  std::int64_t most_vectors_ = 0;
  std::int64_t member_elements_ = 0;
  float* member_memory_ = nullptr;
  float* part_memory_ = nullptr;
};

void attention(const KvLayer& layer, MatrixView<const float> q, const RowPlaces& places, const AttentionRule& rule,
               AttentionScratch& scratch, MatrixView<float> out, ThreadTeam& team) {
  check(rule.heads % layer.kv_heads == 0, "query heads are a multiple of key heads");
  check(q.cols == rule.heads * layer.head_dim && out.cols == q.cols && out.rows == q.rows, "a row is all query heads");
  AttentionCall(layer, q, places, rule, scratch, out, team).run();
}

void attention_reference(const KvLayer& layer, MatrixView<const float> q, const RowPlaces& places,
                         const AttentionRule& rule, MatrixView<double> out) {
  for (std::int64_t t = 0; t < q.rows; ++t) {
    const std::int64_t slot = places.slots[static_cast<std::size_t>(t)];
    const std::int64_t position = places.positions[static_cast<std::size_t>(t)];
    const std::int64_t first = rule.window > 0 ? std::max<std::int64_t>(0, position - rule.window + 1) : 0;
    for (std::int64_t head = 0; head < rule.heads; ++head) {
      const std::int64_t kv_head = head / (rule.heads / layer.kv_heads);
      const float* query = q.row(t).data() + head * layer.head_dim;
      double* sums = out.row(t).data() + head * layer.head_dim;
      std::vector<double> weights;
      for (std::int64_t p = first; p <= position; ++p) {
        double score = 0;
        for (std::int64_t i = 0; i < layer.head_dim; ++i)
          score += query[i] * double{key_at(layer, slot, kv_head, p, i)};
        weights.push_back(score * rule.scale);
      }
      const double largest = *std::max_element(weights.begin(), weights.end());
      double total = 0;
      for (double& weight : weights) total += weight = std::exp(weight - largest);
      for (std::int64_t i = 0; i < layer.head_dim; ++i) {
        sums[i] = 0;
        for (std::int64_t p = first; p <= position; ++p) {
          sums[i] += weights[static_cast<std::size_t>(p - first)] / total * value_at(layer, slot, kv_head, p, i);
        }
      }
    }
  }
}

}  // namespace qpn8::cpu
