#include "evidence/output_metrics.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.hpp"

namespace qpn8 {

double repeated_4gram_rate(std::span<const std::int32_t> tokens) {
  using Gram = std::array<std::int32_t, 4>;
  if (tokens.size() < 4) return 0.0;
  std::vector<Gram> grams;
  grams.reserve(tokens.size() - 3);
  for (std::size_t i = 0; i + 4 <= tokens.size(); ++i) {
    grams.push_back({tokens[i], tokens[i + 1], tokens[i + 2], tokens[i + 3]});
  }
  const auto total = static_cast<double>(grams.size());
  std::sort(grams.begin(), grams.end());
  const auto distinct = static_cast<double>(std::unique(grams.begin(), grams.end()) - grams.begin());
  return 1.0 - distinct / total;
}

std::int64_t count_replacement_chars(std::string_view text) {
  static constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::int64_t count = 0;
  for (std::size_t at = text.find(kReplacement); at != std::string_view::npos;
       at = text.find(kReplacement, at + kReplacement.size())) {
    ++count;
  }
  return count;
}

std::int64_t count_nul_chars(std::string_view text) { return std::count(text.begin(), text.end(), '\0'); }

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int done = EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  check(done == 1 && size == 32, "OpenSSL computes SHA-256");
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

std::string token_hash(std::span<const std::int32_t> ids) { return sha256_hex(fmt::format("{}", fmt::join(ids, ","))); }

std::optional<std::int64_t> first_divergence(std::span<const std::int32_t> left, std::span<const std::int32_t> right) {
  const auto at = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  if (at.first == left.end() && at.second == right.end()) return std::nullopt;
  return at.first - left.begin();
}

}  // namespace qpn8
