#include "measure/load_measurement.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#include "backend/cpu_backend.hpp"
#include "engine/engine_loader.hpp"
#include "qpn8/error.hpp"

namespace qpn8 {
namespace {

using Clock = std::chrono::steady_clock;

static_assert(std::is_trivially_copyable_v<LoadResult>, "it goes through a pipe as bytes");

// How a child's message begins; what follows is a LoadResult, or the text of an error.
constexpr std::uint8_t kResult = 0xff;

LoadResult load_once(const std::filesystem::path& folder, const EngineOptions& options) {
  LoadResult result;
  const Clock::time_point start = Clock::now();
  Clock::time_point first = start;
  LoadObserver observer;
  observer.loaded = [&first](std::int64_t done, std::int64_t /*total*/) {
    if (done == 0) first = Clock::now();
  };
  const LoadedModel loaded = load_model(FrontEnd(folder, options), observer);
  const Clock::time_point end = Clock::now();
  result.seconds = std::chrono::duration<double>(end - start).count();
  result.weights_seconds = std::chrono::duration<double>(end - first).count();
  result.weight_bytes = loaded.model->weight_bytes();
  for (const CheckpointTensor& tensor : loaded.checkpoint.tensors()) {
    result.checkpoint_bytes += static_cast<std::int64_t>(tensor.bytes.size());
  }
  result.threads = cpu_threads(options.threads);
  return result;
}

std::vector<std::byte> message(std::uint8_t first, std::span<const std::byte> rest) {
  std::vector<std::byte> bytes(1 + rest.size());
  bytes.front() = std::byte{first};
  std::copy(rest.begin(), rest.end(), bytes.begin() + 1);
  return bytes;
}

std::vector<std::byte> message(Error::Kind kind, std::string_view text) {
  return message(static_cast<std::uint8_t>(kind), std::as_bytes(std::span(text)));
}

std::vector<std::byte> child_message(const std::filesystem::path& folder, const EngineOptions& options) {
  try {
    const LoadResult result = load_once(folder, options);
    return message(kResult, std::as_bytes(std::span(&result, 1)));
  } catch (const Error& error) {
    return message(error.kind(), error.what());
  } catch (const std::exception& error) {
    return message(Error::missing_capability, error.what());
  }
}

void write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // the parent sees that the message is short
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

std::vector<std::byte> read_all(int fd) {
  std::vector<std::byte> bytes;
  std::array<std::byte, 4096> block{};
  while (true) {
    const ssize_t count = ::read(fd, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return bytes;
    bytes.insert(bytes.end(), block.begin(), block.begin() + count);
  }
}

[[noreturn]] void fail(const std::string& what) {
  throw Error(Error::missing_capability,
              fmt::format("measuring the load: {}: {}", what, std::generic_category().message(errno)));
}

std::int64_t peak_of(const rusage& usage) { return static_cast<std::int64_t>(usage.ru_maxrss) * 1024; }

LoadResult decode(std::span<const std::byte> bytes, const rusage& usage) {
  if (bytes.empty()) {
    throw Error(Error::missing_capability, "measuring the load: the loading process ended early (out of memory?)");
  }
  const auto first = std::to_integer<std::uint8_t>(bytes.front());
  const std::span<const std::byte> rest = bytes.subspan(1);
  if (first != kResult) {
    throw Error(static_cast<Error::Kind>(first), std::string(reinterpret_cast<const char*>(rest.data()), rest.size()));
  }
  LoadResult result;
  std::memcpy(&result, rest.data(), sizeof(result));
  result.peak_rss_bytes = peak_of(usage);
  return result;
}

}  // namespace

LoadResult measure_load_here(const std::filesystem::path& folder, const EngineOptions& options) {
  LoadResult result = load_once(folder, options);
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) fail("getrusage");
  result.peak_rss_bytes = peak_of(usage);
  return result;
}

LoadResult measure_load(const std::filesystem::path& folder, const EngineOptions& options) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) fail("pipe");
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    close(ends[0]);
    write_all(ends[1], child_message(folder, options));
    _exit(0);  // nothing of the parent's is to be flushed or destroyed twice
  }
  close(ends[1]);
  const std::vector<std::byte> bytes = read_all(ends[0]);
  close(ends[0]);
  rusage usage{};
  while (wait4(child, nullptr, 0, &usage) < 0) {
    if (errno != EINTR) fail("wait");
  }
  return decode(bytes, usage);
}

}  // namespace qpn8
