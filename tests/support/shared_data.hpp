#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>

namespace qpn8::test {

/// The repository's own test data.
inline std::filesystem::path data() { return QPN8_TEST_DATA; }
inline std::filesystem::path repository() { return QPN8_REPOSITORY; }

/// A file or folder of `shared/`, which lies beside a checkout on the project's own machines and is not part of the
/// repository; nothing where it is absent. A test that needs it says so and is skipped:
///
///   const auto golden = shared_data("tokenizers/qwen3/golden.jsonl");
///   if (!golden) GTEST_SKIP() << "needs ../shared/tokenizers, which is not here";
inline std::optional<std::filesystem::path> shared_data(const std::filesystem::path& relative) {
  const char* override_path = std::getenv("QPN8_SHARED");
  const std::filesystem::path root =
      override_path != nullptr ? std::filesystem::path(override_path) : repository().parent_path() / "shared";
  if (std::filesystem::exists(root / relative)) return root / relative;
  return std::nullopt;
}

}  // namespace qpn8::test
