#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/model_config.hpp"

namespace qpn8 {

/// The hashed n-gram tables of one layer, as its checkpoint stores them.
struct NgramTables {
  std::vector<std::int64_t> multipliers;  ///< one a token of the longest n-gram
  std::vector<std::int64_t> sizes;        ///< rows of each head's table: primes, no two layers sharing one
  std::vector<std::int64_t> offsets;      ///< where each head's rows begin in the one table
  std::int64_t rows = 0;                  ///< of that table, padded
};

/// `rank` counts the layers that have tables, from 0. Error::bad_file names a key of the config that is wrong.
NgramTables ngram_tables(const ModelConfig& config, std::int64_t rank);

}  // namespace qpn8
